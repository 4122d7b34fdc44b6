"""DNS lookups, many at the same time, with a limit for each server."""
