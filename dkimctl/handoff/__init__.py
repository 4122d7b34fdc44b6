"""The sheet for the owner of the DNS: which records to add or delete, where, and how."""
