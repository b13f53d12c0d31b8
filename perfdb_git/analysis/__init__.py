"""Pure numerics: statistics and special functions."""
