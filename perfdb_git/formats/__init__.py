"""Text to values and back: strict readers, canonical writers, schemas, codec."""
