"""The first line of a YAML file that names its schema, for editors."""

from __future__ import annotations


def modeline(kind: str) -> str:  # noqa: ARG001
    """The line for a file of this `kind`, `config` or `specs`; "" while no schema has a URL."""
    return ""
