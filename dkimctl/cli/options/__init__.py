"""Options: those that commands share, and those of commands that have many."""
