"""What `init` asks for, and the files that it writes."""
