"""Strict reading of YAML files with a small schema: every problem with its line and column.

A scalar is text, and whether it is plain. Its type is never guessed, so `on` is two letters and
not a boolean: the schema decides. Anchors, aliases, tags, merge keys, directives, repeated keys
and second documents are problems.
"""
