"""Running a benchmark and storing what it showed, with its environment and protocol."""
