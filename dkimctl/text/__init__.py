"""Text for people, and from them: escaping, quoting, durations."""
