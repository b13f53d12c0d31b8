"""Sources of answers behind one protocol; evidence comes as arguments."""
