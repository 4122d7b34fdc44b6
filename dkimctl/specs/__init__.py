"""Spec files: the domains to register (interface 2.3), and templates for their selectors."""
