"""Tell people of problems, once when they begin and once when they are over."""
