"""Foreign measurement files to record sets."""
