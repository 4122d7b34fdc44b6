"""Registering domains: the plan, matching answers to entries, outcomes, and saved results."""
