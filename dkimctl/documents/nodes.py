"""What a document is made of, as its reader sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

# YAML 1.2.2, 10.3.2, and nothing at all.
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Mark(Protocol):
    """A place in the text; both count from 0, `column` in characters."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


class Scalar(Protocol):
    """Text as written. It is the parser's own event: wrapping each is a tenth of the time."""

    @property
    def value(self) -> str: ...
    @property
    def implicit(self) -> tuple[bool, bool]: ...
    @property
    def start_mark(self) -> Mark: ...


def is_plain(scalar: Scalar) -> bool:
    """Whether it is written without quotes, and not as a block."""
    return scalar.implicit[0]


def is_null(scalar: Scalar) -> bool:
    return scalar.value in _NULLS and is_plain(scalar)


@dataclass(slots=True)
class Structure:
    """What is no scalar."""

    kind: ClassVar[str]
    start_mark: Mark


@dataclass(slots=True)
class Sequence(Structure):
    """A list, to be read with `Document.items`. `level` is its own depth, from 1."""

    kind = "a list"
    level: int


@dataclass(slots=True)
class Mapping(Structure):
    """A mapping, to be read with `Document.pairs`. `level` is its own depth, from 1."""

    kind = "a mapping"
    level: int


@dataclass(slots=True)
class Alias(Structure):
    """A reference to an anchor; no schema takes one."""

    kind = "a YAML alias (*)"


Node = Scalar | Sequence | Mapping | Alias


def kind_of(node: Node) -> str:
    """What to call it in a problem."""
    return node.kind if isinstance(node, Structure) else "a single value"
