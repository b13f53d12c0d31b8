"""Import of whole aiconfigurator databases: every kind of table of a wheel, value for value."""
