"""Entries that cannot stand together in one file."""

from __future__ import annotations

from dkimctl.documents import Document, Node
from dkimctl.wording import shown


class Repetitions:
    """Remembers what stands where, and notes what collides. DNS names compare without case."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: dict[tuple[str, str | None], int] = {}
        self._lines_with_selector: dict[str, int] = {}

    def check(self, node: Node, domain: str, selector: str | None) -> None:
        """Notes a problem at `node` if it repeats, or makes ambiguous, an entry before it."""
        pair = (domain, selector and selector.lower())
        if pair in self._lines:
            self._note_repeated(node, domain, selector, self._lines[pair])
            return
        if mixed := self._line_of_other_form(domain, selector):
            self._document.problem(
                node,
                f"{shown(domain)} stands with a selector and without one (line {mixed})",
                "give every entry of the domain its selector",
            )
        line = node.start_mark.line + 1
        self._lines[pair] = line
        if selector:
            self._lines_with_selector.setdefault(domain, line)

    def _line_of_other_form(self, domain: str, selector: str | None) -> int | None:
        if selector:
            return self._lines.get((domain, None))
        return self._lines_with_selector.get(domain)

    def _note_repeated(self, node: Node, domain: str, selector: str | None, first: int) -> None:
        which = f"{shown(domain)} with selector {shown(selector)}" if selector else shown(domain)
        hint = "remove one of the two" + ("" if selector else ", or give each its own selector")
        self._document.problem(node, f"{which} is already on line {first}", hint)
