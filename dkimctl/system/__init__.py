"""What the operating system provides: files, their owners and locks, and threads."""
