"""What the service answered and what is in flight, per account, in a file or in PostgreSQL."""
