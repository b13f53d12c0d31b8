"""Results as text, JSON and annotations."""
