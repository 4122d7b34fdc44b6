"""Ask DNS servers for the registered records."""
