"""Text for people: escaping, wording of errors, durations."""
