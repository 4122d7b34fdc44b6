"""Completion of command lines in shells: what can follow, and the shells' scripts."""
