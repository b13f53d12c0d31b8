"""The vocabulary and the named formulas: shape to operations and bytes."""
