"""Publish records from the command line: select, plan, ask, apply, and prove."""
