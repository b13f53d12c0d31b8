"""What a machine says of itself: the facts that make two runs comparable, and the passing ones."""
