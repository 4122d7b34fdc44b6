"""The HTTP server that the application runs on, and its limits."""
