"""The sheet for whoever owns the DNS, in several formats and languages."""
