"""Strict reading of YAML files with a small schema: what is written, and where it stands.

A scalar is its text and whether it was written plain; nothing is guessed from its looks,
so `on` is two letters and not a boolean: the schema gives the type. Anchors, aliases,
tags, merge keys, directives, repeated keys and second documents are problems.
"""
