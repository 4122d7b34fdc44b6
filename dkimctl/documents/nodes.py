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


@dataclass(slots=True)
class Scalar:
    """Text as written; `plain` means without quotes and not as a block."""

    kind: ClassVar[str] = "a single value"
    text: str
    plain: bool
    mark: Mark

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in _NULLS


@dataclass(slots=True)
class Sequence:
    """A list, to be read with `Document.items`. `level` is its own depth, from 1."""

    kind: ClassVar[str] = "a list"
    level: int
    mark: Mark


@dataclass(slots=True)
class Mapping:
    """A mapping, to be read with `Document.pairs`. `level` is its own depth, from 1."""

    kind: ClassVar[str] = "a mapping"
    level: int
    mark: Mark


@dataclass(slots=True)
class Alias:
    """A reference to an anchor; no schema takes one."""

    kind: ClassVar[str] = "a YAML alias (*)"
    mark: Mark


Node = Scalar | Sequence | Mapping | Alias
