"""Strict reading of YAML files with a small schema: what is written, and where it stands.

A scalar is its text and whether it was written plain; nothing is guessed from its looks,
so `on` is two letters and not a boolean: the schema gives the type. Anchors, aliases,
tags, merge keys, directives, repeated keys and second documents are problems.
"""

from dkimctl.documents.document import Document
from dkimctl.documents.nodes import Mapping, Node, Scalar, Sequence, Written, is_plain, wrong
from dkimctl.documents.source import decode, read_bytes

__all__ = [
    "Document",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "Written",
    "decode",
    "is_plain",
    "read_bytes",
    "wrong",
]
