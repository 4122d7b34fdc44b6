"""Entries that cannot stand together in one file."""

from __future__ import annotations

from dkimctl.strict_yaml.document import Document
from dkimctl.strict_yaml.nodes import Node
from dkimctl.text.wording import shown


class Repetitions:
    """Remembers what stands where, and notes what collides. DNS names compare without case."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._lines: dict[str, dict[str | None, int]] = {}  # by domain and selector

    def check(self, node: Node, domain: str, selector: str | None) -> None:
        """Notes a problem at `node` if it repeats, or makes ambiguous, an entry before it."""
        line = node.start_mark.line + 1
        folded = selector and selector.lower()
        lines = self._lines.get(domain)
        if lines is None:
            self._lines[domain] = {folded: line}
        elif folded in lines:
            self._note_repeated(node, domain, selector, lines[folded])
        else:
            if folded is None or None in lines:
                first = next(iter(lines.values())) if folded is None else lines[None]
                self._document.problem(
                    node,
                    f"{shown(domain)} stands with a selector and without one (line {first})",
                    "give every entry of the domain its selector",
                )
            lines[folded] = line

    def _note_repeated(self, node: Node, domain: str, selector: str | None, first: int) -> None:
        which = f"{shown(domain)} with selector {shown(selector)}" if selector else shown(domain)
        hint = "remove one of the two" + ("" if selector else ", or give each its own selector")
        self._document.problem(node, f"{which} is already on line {first}", hint)
