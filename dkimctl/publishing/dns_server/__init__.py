"""A DNS server that takes updates (RFC 2136): signed messages over TCP, and what they say."""
