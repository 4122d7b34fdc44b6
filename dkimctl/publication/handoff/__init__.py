"""The sheet for whoever owns the DNS: what goes on it, as values."""
