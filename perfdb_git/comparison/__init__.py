"""Two groups of evidence held against each other."""
