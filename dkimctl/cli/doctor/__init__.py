"""Checks of the set-up, one module a subject. Each is a function that returns findings."""
