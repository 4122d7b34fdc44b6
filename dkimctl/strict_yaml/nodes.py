"""The parts of a document, and how the text of a scalar becomes a value.

Nodes are the parser's own events: an object of ours for each would take as long as parsing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from dkimctl.errors import UsageError
from dkimctl.text.escaping import quoted

T = TypeVar("T")

# Gives the value of a scalar from its text, and whether it is plain: neither quoted nor a block.
# Raises UsageError.
Converter = Callable[[str, bool], T]


class Mark(Protocol):
    """A place in the text; both count from 0, `column` in characters."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class Node(Protocol):
    """A scalar, a list, a mapping or an alias."""

    @property
    def start_mark(self) -> Mark: ...


class Scalar(Node, Protocol):
    """`implicit` begins with whether the scalar is plain."""

    @property
    def value(self) -> str: ...
    @property
    def implicit(self) -> tuple[bool, bool]: ...


def invalid_value(text: str, is_plain: bool, expected: str, hint: str) -> UsageError:
    """The error for a scalar that is not plain, or not what is `expected`."""
    if is_plain:
        return UsageError(f"{quoted(text)} is not {expected}", hint=hint)
    return UsageError(f"{quoted(text)} in quotes is not {expected}", hint="remove the quotes")
