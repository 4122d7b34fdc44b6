"""What the service answered and what is in flight, per account, in one SQLite file."""
