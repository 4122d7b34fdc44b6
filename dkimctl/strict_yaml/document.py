"""A YAML document read front to back, with every problem found on the way.

Nodes are made from the parser's events as they are asked for: one pass and no tree, so a
list of 100,000 entries costs the memory of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Self, TypeVar

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.strict_yaml.nodes import (
    Alias,
    MappingNode,
    Mark,
    Node,
    Scalar,
    SequenceNode,
    Structure,
    is_null,
    kind_of,
)
from dkimctl.strict_yaml.syntax import explain
from dkimctl.text.wording import nearest, shown

T = TypeVar("T")

_AS_PAIRS = "write lines of the form 'KEY: VALUE'"
_WRITE_OUT = "write the value itself here"
MAX_DEPTH = 8  # deeper than any schema of the house; the parser itself knows no bound


class Document:
    """One YAML document of a small schema.

    A context manager: inside, `root` first, then walk with `pairs`, `items` and `value`. At
    its end, or where further reading is useless (YAML syntax, nesting), it raises InputError
    with all problems found so far, in the file's order.
    """

    def __init__(self, text: str, name: str) -> None:
        import yaml

        self._name = name
        self._problems: list[Problem] = []
        self._depth = 0
        self._yaml: Any = yaml
        self._scalar_event: Any = yaml.ScalarEvent
        self._builders: dict[type, Callable[[Any], Node]] = {
            yaml.SequenceStartEvent: self._sequence,
            yaml.MappingStartEvent: self._mapping,
            yaml.AliasEvent: lambda event: Alias(event.start_mark, self._depth),
        }
        # The C parser is eight times as fast, but not every platform has it.
        parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        self._event: Callable[[], Any] = parser.get_event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._read_to_the_end()
            except self._yaml.MarkedYAMLError as found:
                error = found
        if isinstance(error, self._yaml.MarkedYAMLError):
            self._report(*explain(error))
            raise self._error() from None
        if error is None and self._problems:
            raise self._error()

    def root(self) -> Node | None:
        """The document's node; None if there is nothing but comments, or a null."""
        self._event()
        start = self._event()
        if isinstance(start, self._yaml.StreamEndEvent):
            return None
        if start.version or start.tags:
            self._report(start.start_mark, "a YAML directive", "remove the line that begins with %")
        node = self._node()
        return None if node and not isinstance(node, Structure) and is_null(node) else node

    def pairs(self, node: Node, what: str) -> Iterator[tuple[Scalar, Node]]:
        """The keys and values of a mapping; `what` names it in the problem if it is none."""
        if not isinstance(node, MappingNode):
            message = f"{what} must be a mapping, not {kind_of(node)}"
            self.problem(node, message, _AS_PAIRS)
            return
        seen: dict[str, Scalar] = {}
        while key := self._node():
            if isinstance(key, Structure):
                message = f"a key must be a single word, not {kind_of(key)}"
                self.problem(key, message, _AS_PAIRS)
                self._leave_to(node.level)
                self._node()
            elif value := self._node():
                if key.value in seen or key.value == "<<":
                    self._refuse_key(key, seen)
                else:
                    seen[key.value] = key
                    yield key, value
            if self._depth > node.level:
                self._leave_to(node.level)

    def items(self, node: Node, what: str) -> Iterator[Node]:
        """The items of a list; `what` names it in the problem if it is none."""
        if not isinstance(node, SequenceNode):
            message = f"{what} must be a list, not {kind_of(node)}"
            self.problem(node, message, "begin each item with '- ', or write [] for none")
            return
        while item := self._node():
            yield item
            if self._depth > node.level:
                self._leave_to(node.level)

    def value(self, node: Node, what: str, convert: Callable[[Scalar], T]) -> T | None:
        """A scalar's value; None after a problem, such as a UsageError out of `convert`."""
        if isinstance(node, Structure):
            self.problem(node, f"{what} must be a single value, not {kind_of(node)}", _WRITE_OUT)
        elif is_null(node):
            self.problem(node, f"{what} has no value", "give it a value, or leave it out")
        else:
            try:
                return convert(node)
            except UsageError as error:
                self.problem(node, f"{what}: {error.message}", error.hint)
        return None

    def unknown_key(self, key: Scalar, what: str, known: Iterable[str]) -> None:
        """Notes that `what` has no such key, with the nearest that it has."""
        self.problem(key, f"{what} has no key {shown(key.value)}", nearest(key.value, known))

    def problem(self, node: Node, message: str, hint: str) -> None:
        """Notes a mistake at `node`."""
        self._report(node.start_mark, message, hint)

    def _read_to_the_end(self) -> None:
        self._leave_to(0)
        while event := self._event():
            if isinstance(event, self._yaml.DocumentStartEvent):
                self._stop(event.start_mark, "a second document", "keep one document in a file")

    def _node(self) -> Node | None:
        """The next node; None where the list or mapping ends."""
        event = self._event()
        if event.__class__ is self._scalar_event:
            if event.anchor or event.tag:
                self._refuse_properties(event)
            scalar: Scalar = event
            return scalar
        if build := self._builders.get(event.__class__):
            return build(event)
        self._depth -= 1
        return None

    def _leave_to(self, level: int) -> None:
        """Skips what was not read of the nodes below `level`."""
        while self._depth > level:
            self._node()

    def _sequence(self, event: Any) -> SequenceNode:
        return SequenceNode(event.start_mark, self._enter(event))

    def _mapping(self, event: Any) -> MappingNode:
        return MappingNode(event.start_mark, self._enter(event))

    def _enter(self, event: Any) -> int:
        if event.anchor or event.tag:
            self._refuse_properties(event)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._stop(event.start_mark, "nested too deep", "close the brackets above")
        return self._depth

    def _refuse_properties(self, event: Any) -> None:
        if event.anchor:
            self._report(event.start_mark, "a YAML anchor (&)", _WRITE_OUT)
        if event.tag:
            self._report(event.start_mark, "a YAML tag (!)", "remove it; the key decides the type")

    def _refuse_key(self, key: Scalar, seen: dict[str, Scalar]) -> None:
        if first := seen.get(key.value):
            where = f"already on line {first.start_mark.line + 1}"
            self.problem(key, f"the key {shown(key.value)} is {where}", "keep one of the two")
        else:  # no schema has such a key, quoted or not
            self.problem(key, "a YAML merge key (<<)", _WRITE_OUT)

    def _report(self, mark: Mark, message: str, hint: str) -> None:
        self._problems.append(Problem(self._name, mark.line + 1, mark.column + 1, message, hint))

    def _stop(self, mark: Mark, message: str, hint: str) -> NoReturn:
        self._report(mark, message, hint)
        raise self._error() from None

    def _error(self) -> InputError:
        return InputError(
            sorted(self._problems, key=lambda problem: (problem.line, problem.column))
        )
