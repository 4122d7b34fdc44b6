"""Domain specs: from YAML to what is registered (interface 2.3), with line and column."""
