"""Whether DNS has the registered records."""
