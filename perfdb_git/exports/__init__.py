"""Records of a snapshot as tables for other tools: CSV, Parquet and Arrow files."""
