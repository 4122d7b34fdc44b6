"""What a document is made of, as its reader sees it."""

from __future__ import annotations

from typing import ClassVar, Protocol

from dkimctl.errors import UsageError
from dkimctl.text.wording import shown

# YAML 1.2.2, 10.3.2, and nothing at all.
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Mark(Protocol):
    """A place in the text; both count from 0, `column` in characters."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class Written(Protocol):
    """Text as written; `implicit` begins with whether it is without quotes, and no block."""

    @property
    def value(self) -> str: ...
    @property
    def implicit(self) -> tuple[bool, bool]: ...


class Scalar(Written, Protocol):
    """Text in its place. It is the parser's own event: wrapping each is a tenth of the time."""

    @property
    def start_mark(self) -> Mark: ...


def is_plain(scalar: Written) -> bool:
    """Whether it is written without quotes, and not as a block."""
    return scalar.implicit[0]


def wrong(scalar: Written, wanted: str, hint: str) -> UsageError:
    """What to raise for a scalar that must be plain and is not `wanted`."""
    if is_plain(scalar):
        return UsageError(f"{shown(scalar.value)} is not {wanted}", hint=hint)
    return UsageError(f"{shown(scalar.value)} in quotes is not {wanted}", hint="remove the quotes")


def is_null(scalar: Scalar) -> bool:
    return scalar.value in _NULLS and is_plain(scalar)


class Structure:
    """What is no scalar. `level` is its depth, from 1."""

    __slots__ = ("level", "start_mark")
    kind: ClassVar[str]

    def __init__(self, start_mark: Mark, level: int) -> None:
        self.start_mark = start_mark
        self.level = level


class SequenceNode(Structure):
    """A list, to be read with `Document.items`."""

    __slots__ = ()
    kind = "a list"


class MappingNode(Structure):
    """A mapping, to be read with `Document.pairs`."""

    __slots__ = ()
    kind = "a mapping"


class Alias(Structure):
    """A reference to an anchor; no schema takes one."""

    __slots__ = ()
    kind = "a YAML alias (*)"


Node = Scalar | SequenceNode | MappingNode | Alias


def kind_of(node: Node) -> str:
    """What to call it in a problem."""
    return node.kind if isinstance(node, Structure) else "a single value"
