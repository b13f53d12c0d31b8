"""Pure functions from a snapshot to findings."""
