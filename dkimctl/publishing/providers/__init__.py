"""Providers of octoDNS: opening and sharing one, what it has, plans for our changes, failures."""
