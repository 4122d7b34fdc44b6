"""The client of the messaging service: HTTP, its JSON, access tokens (interface 4 and 5)."""
