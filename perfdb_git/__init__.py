"""Git-native performance evidence: exact cost queries answered with proof."""

__version__ = "0.1.0"
