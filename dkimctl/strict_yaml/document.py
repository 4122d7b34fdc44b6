"""A YAML document read front to back, with every problem found on the way.

The parser's events are read one by one, in one pass and without a tree: a list of 100,000
entries needs the memory of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, Self, TypeGuard, TypeVar

from dkimctl.errors import UsageError
from dkimctl.strict_yaml.nodes import Converter, Mark, Node, Scalar
from dkimctl.strict_yaml.problems import Problems, syntax_hint
from dkimctl.strict_yaml.source import MAX_VALUE_BYTES, Source
from dkimctl.text.escaping import printable, quoted

T = TypeVar("T")
NewParser = Callable[[Source], Any]  # makes a parser of PyYAML's interface

MAX_DEPTH = 8  # more than any of our schemas needs; libyaml before 0.2.6 has no limit
MAX_VALUE = 1024  # characters; every value that is valid is shorter
_MAX_SKIPPED = 500_000  # nodes inside what is not expected

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # YAML 1.2.2, 10.3.2
_WRITE_PAIRS = "write lines of the form 'KEY: VALUE'"
_WRITE_VALUE = "write the value itself here"
_MAX_GUESS = 60  # characters; comparing takes quadratic time
_MAX_SYNTAX_MESSAGE = 200  # characters; it may quote the file
_TOO_DEEP = ("nested too deeply", "close the brackets above")


class Document:
    """One YAML document of a small schema.

    A context manager: inside, call `root` first, then walk with `pairs`, `items` and `value`. On
    exit, or where reading on is useless (YAML syntax, nesting), it raises InputError with all
    problems found so far, in the order of the file.

    `syntax_advice` has message and hint for what the parser was doing when it met an error.
    """

    def __init__(
        self,
        data: bytes,
        name: str,
        *,
        new_parser: NewParser | None = None,
        syntax_advice: Mapping[str, tuple[str, str]] = {},
    ) -> None:
        import yaml

        self._syntax_advice = syntax_advice
        self._source = Source(data, name)
        self._problems = Problems(name)
        self._depth = 0
        self._skipped = 0
        self._yaml: Any = yaml
        self._scalar_event: Any = yaml.ScalarEvent
        self._start_events = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
        self._end_events = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
        parser = (new_parser or _parser_class())(self._source)
        self._next_event: Any = parser.get_event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._read_to_the_end()
            except self._yaml.MarkedYAMLError as syntax_error:
                error = syntax_error
        if isinstance(error, self._yaml.MarkedYAMLError):
            self._report_syntax(error)
            raise self._problems.error() from None
        if error is None and self._problems:
            raise self._problems.error()

    def root(self) -> Node | None:
        """The document's node; None if there are only comments, or a null."""
        self._next_event()
        start = self._next_event()
        if isinstance(start, self._yaml.StreamEndEvent):
            self._refuse_cut(start.start_mark)
            return None
        node = self._node(self._next_event())
        if node and self._is_scalar(node) and node.implicit[0] and node.value in _NULLS:
            return None
        return node

    def pairs(self, node: Node, what: str) -> Iterator[tuple[Scalar, Node]]:
        """The keys and values of a mapping; `what` names it in the problem if it is not one."""
        if not self.is_mapping(node):
            message = f"{what} must be a mapping, not {self._kind_of(node)}"
            self.problem(node, message, _WRITE_PAIRS)
            return
        depth = self._depth
        seen: dict[str, Scalar] = {}
        next_event, scalar_event = self._next_event, self._scalar_event
        while True:
            # No method is called for simple scalars: this loop takes most of the time of a load.
            key = next_event()
            if key.__class__ is not scalar_event or key.anchor or key.tag:
                key = self._key(key, depth)
                if key is None:
                    return
            value = next_event()
            if value.__class__ is not scalar_event or value.anchor or value.tag:
                value = self._node(value)
            if key.value in seen or key.value == "<<":
                self._refuse_key(key, seen)
            else:
                seen[key.value] = key
                yield key, value
            if self._depth > depth:
                self._skip_to(depth)

    def items(self, node: Node, what: str) -> Iterator[Node]:
        """The items of a list; `what` names it in the problem if it is not one."""
        if not self.is_list(node):
            message = f"{what} must be a list, not {self._kind_of(node)}"
            self.problem(node, message, "begin each item with '- ', or write [] for an empty list")
            return
        depth = self._depth
        while item := self._node(self._next_event()):
            yield item
            if self._depth > depth:
                self._skip_to(depth)

    def value(self, node: Node, what: str, convert: Converter[T]) -> T | None:
        """A scalar's value; None after a problem, such as a UsageError from `convert`."""
        if node.__class__ is not self._scalar_event:
            message = f"{what} must be a single value, not {self._kind_of(node)}"
            self.problem(node, message, _WRITE_VALUE)
            return None
        scalar: Any = node
        text, is_plain = scalar.value, scalar.implicit[0]
        if is_plain and text in _NULLS:
            self.problem(node, f"{what} has no value", "add a value, or remove it")
            return None
        if len(text) > MAX_VALUE:  # before any pattern sees it
            message = f"{what} is longer than {MAX_VALUE:,} characters"
            self.problem(node, message, "check the quotes and the indentation")
            return None
        try:
            return convert(text, is_plain)
        except UsageError as error:
            self.problem(node, f"{what}: {error.message}", error.hint)
            return None

    def is_mapping(self, node: Node) -> bool:
        return isinstance(node, self._yaml.MappingStartEvent)

    def is_list(self, node: Node) -> bool:
        return isinstance(node, self._yaml.SequenceStartEvent)

    def unknown_key(self, key: Scalar, what: str, known: Iterable[str]) -> None:
        """Report that `what` has no such key, with a suggestion."""
        if len(key.value) > MAX_VALUE:
            self.stop(key, f"a key is longer than {MAX_VALUE:,} characters", _WRITE_PAIRS)
        message = f"{what} has no key {quoted(key.value)}"
        self.problem(key, message, suggestion(key.value, known))

    def problem(self, node: Node, message: str, hint: str) -> None:
        """Report a problem at `node`."""
        self._report(node.start_mark, message, hint)

    def stop(self, node: Node, message: str, hint: str) -> NoReturn:
        """Report a problem at `node`, and do not read on."""
        self._stop(node.start_mark, message, hint)

    def _read_to_the_end(self) -> None:
        self._skip_to(0)
        while event := self._next_event():
            if isinstance(event, self._yaml.DocumentStartEvent):
                hint = "keep one document in a file"
                self._stop(event.start_mark, "a second YAML document", hint)
            self._refuse_cut(event.start_mark)

    def _node(self, event: Any) -> Node | None:
        """The node that an event begins; None for the end of a list or mapping."""
        self._source.unclaimed = 0
        kind = event.__class__
        if kind in self._end_events:
            self._depth -= 1
            return None
        if kind is not self._yaml.AliasEvent and (event.anchor or event.tag):
            self._refuse_properties(event)
        if kind in self._start_events:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self._stop(event.start_mark, *_TOO_DEEP)
        node: Node = event
        return node

    def _key(self, event: Any, depth: int) -> Scalar | None:
        """The next key of the mapping at `depth`; None at its end."""
        while node := self._node(event):
            if self._is_scalar(node):
                return node
            message = f"a key must be a single word, not {self._kind_of(node)}"
            self.problem(node, message, _WRITE_PAIRS)
            self._skip_to(depth)
            self._node(self._next_event())
            self._skip_to(depth)
            event = self._next_event()
        return None

    def _skip_to(self, depth: int) -> None:
        """Read on to the end of the node at `depth` + 1."""
        while self._depth > depth:
            node = self._node(self._next_event())
            self._skipped += 1
            if node and self._skipped > _MAX_SKIPPED:
                self.stop(node, "too many values that are not expected", "fix the problems above")

    def _is_scalar(self, node: Node) -> TypeGuard[Scalar]:
        return node.__class__ is self._scalar_event

    def _kind_of(self, node: Node) -> str:
        if isinstance(node, self._yaml.AliasEvent):
            return "a YAML alias (*)"
        if self._is_scalar(node):
            return "a single value"
        return "a mapping" if self.is_mapping(node) else "a list"

    def _refuse_properties(self, event: Any) -> None:
        if event.anchor:
            self._report(event.start_mark, "YAML anchors (&) are not supported", _WRITE_VALUE)
        if event.tag:
            hint = "remove it; the key decides the type"
            self._report(event.start_mark, "YAML tags (!) are not supported", hint)

    def _refuse_key(self, key: Scalar, seen: dict[str, Scalar]) -> None:
        if first := seen.get(key.value):
            line = first.start_mark.line + 1
            message = f"the key {quoted(key.value)} is already on line {line}"
            self.problem(key, message, "remove one of the two")
        else:  # no schema has such a key, quoted or not
            self.problem(key, "YAML merge keys (<<) are not supported", _WRITE_VALUE)

    def _report_syntax(self, error: Any) -> None:
        """Report a `yaml.MarkedYAMLError`."""
        text = printable(error.problem[:_MAX_SYNTAX_MESSAGE])
        mark, context = error.problem_mark, error.context_mark
        if error.context == "while scanning a quoted scalar":
            self._refuse_cut(context)
        if "maximum nesting depth" in text:  # libyaml looks ahead, and gives up at 1,000 levels
            self._report(mark, *_TOO_DEEP)
            return
        if advice := self._syntax_advice.get(error.context):
            self._report(context, *advice)
            return
        message = f"invalid YAML: {text}"
        if context and context.line != mark.line:
            message += f" ({error.context} that begins on line {context.line + 1})"
        self._report(mark, message, syntax_hint(text))

    def _report(self, mark: Mark, message: str, hint: str) -> None:
        self._refuse_cut(mark)
        self._source.unclaimed = 0
        self._problems.add(mark, message, hint)
        if self._problems.are_too_many:
            raise self._problems.error() from None

    def _stop(self, mark: Mark, message: str, hint: str) -> NoReturn:
        self._report(mark, message, hint)
        raise self._problems.error() from None

    def _refuse_cut(self, mark: Mark) -> None:
        """Stop if the parser did not get all of the text: what it says there means nothing."""
        if self._source.is_cut:
            message = f"a value, comment or gap is longer than {MAX_VALUE_BYTES >> 20} MiB"
            self._problems.add(mark, message, "check the quotes and the indentation")
            raise self._problems.error() from None


def _parser_class() -> Any:
    """The C parser, or else the Python one, which takes ten times as long."""
    import yaml

    if parser := getattr(yaml, "CSafeLoader", None):
        return parser
    from dkimctl.strict_yaml.python_parser import PythonParser

    return PythonParser


def suggestion(word: str, known: Iterable[str], what: str = "keys") -> str:
    """A hint for an unknown word: the known word that resembles it, or else all of them."""
    import difflib

    words = list(known)
    similar = difflib.get_close_matches(word[:_MAX_GUESS].lower(), words, n=1)
    return f"did you mean {similar[0]}?" if similar else f"known {what}: {', '.join(words)}"
