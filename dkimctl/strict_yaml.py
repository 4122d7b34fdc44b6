"""Strict reading of YAML files with a small schema: every problem with its line and column.

A scalar is text, and whether it is plain. Its type is never guessed, so `on` is two letters and
not a boolean: the schema decides. Anchors, aliases, tags, merge keys, directives, repeated keys
and second documents are problems.

The parser's events are read one by one, in one pass and without a tree: a list of 100,000
entries needs the memory of one. Nodes are the events themselves: an object of ours for each would
take as long as parsing.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.input_files import Text
from dkimctl.text import printable, quoted

T = TypeVar("T")
# An event of PyYAML: a scalar with `value`, of which `implicit[0]` says whether it is plain; the
# start of a list or mapping; an alias. The `line` and `column` of its `start_mark` count from 0.
Node: TypeAlias = Any
# Gives the value of a scalar from its text, and whether it is plain: neither quoted nor a block.
# Raises UsageError.
Converter = Callable[[str, bool], T]

MAX_DEPTH = 8  # more than any of our schemas needs; libyaml before 0.2.6 has no limit
MAX_VALUE = 1024  # characters; every value that is valid is shorter
MAX_LISTED = 1_000  # problems; then reading ends
_MAX_SKIPPED = 500_000  # nodes inside what is not expected
_MAX_VALUE_BYTES = 4 << 20  # the parser holds a value that it reads several times over
_MAX_PYTHON_BYTES = 3 << 20  # which PyYAML reads in 10 s without libyaml

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # YAML 1.2.2, 10.3.2
_WRITE_PAIRS = "write lines of the form 'KEY: VALUE'"
_WRITE_VALUE = "write the value itself here"
_MAX_GUESS = 60  # characters; comparing takes quadratic time
_DIRECTIVE = rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])%"
# For syntax errors: the first applies whose fragment the parser's context or message contains.
_SYNTAX_HINTS = (
    ("scanning an alias", "put text that begins with * in quotes; no signing domain has a *"),
    ("mapping values", "check the indentation, and put text that contains ': ' in quotes"),
    ("cannot start any token", "indent with spaces; text that begins with @, ` or % needs quotes"),
    ("end of stream", "close the quotation mark or bracket"),
    ("", "check indentation, quotes and brackets here and on the line before; use no tabs"),
)
# Unquoted, every version of YAML reads this as text, except for its keywords.
_PLAIN = r"[A-Za-z/](?:[A-Za-z0-9._~/%:\[\]-]*[A-Za-z0-9/\]])?"
_KEYWORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


class Place(NamedTuple):
    """A place in text that is not YAML, such as that of a cell: a node without a value."""

    line: int
    column: int

    @property
    def start_mark(self) -> Place:
        return self


class Problems:
    """Collects the problems of a file that is called `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[Problem] = []

    def problem(self, node: Node, message: str, hint: str) -> None:
        """Report a problem at `node`. Raises InputError if there are too many to read on."""
        if len(self._found) == MAX_LISTED:
            message = "more problems follow, which are not shown"
            hint = "correct those above, and run the same command again"
        mark = node.start_mark
        self._found.append(Problem(self._name, mark.line + 1, mark.column + 1, message, hint))
        if len(self._found) > MAX_LISTED:
            self.close()

    def stop(self, node: Node, message: str, hint: str) -> NoReturn:
        """Report a problem at `node`, and do not read on."""
        self.problem(node, message, hint)
        raise self._error() from None

    def close(self) -> None:
        """Raises InputError if there are any, in the order of the file."""
        if self._found:
            raise self._error() from None

    def _error(self) -> InputError:
        last = self._found[MAX_LISTED:]
        listed = sorted(self._found[:MAX_LISTED], key=lambda problem: problem[1:3])
        return InputError([*listed, *last])


class Document(Problems):
    """One YAML document of a small schema.

    A context manager: inside, call `root` first, then walk with `pairs`, `items` and `value`. On
    exit, or where reading on is useless (YAML syntax, nesting), it raises InputError with all
    problems of the file so far.
    """

    def __init__(self, data: bytes, name: str) -> None:
        import yaml

        super().__init__(name)
        self._source = _Source(data, name)
        self._depth = 0
        self._skipped = 0
        self._yaml: Any = yaml
        self._scalar_event: Any = yaml.ScalarEvent
        has_libyaml = hasattr(yaml, "CSafeLoader")
        if not has_libyaml and len(data) > _MAX_PYTHON_BYTES:
            what = f"{printable(name)} is larger than {_MAX_PYTHON_BYTES >> 20} MiB, the most that "
            hint = "split it into several files, or install a PyYAML that has libyaml"
            raise UsageError(f"{what}PyYAML reads without libyaml", hint=hint)
        self._loader: Any = (yaml.CSafeLoader if has_libyaml else yaml.SafeLoader)(self._source)
        self._next_event: Any = self._loader.get_event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # ValueError and OverflowError are PyYAML's for an escape, without libyaml.
        of_syntax = (self._yaml.MarkedYAMLError, ValueError, OverflowError)
        if error is None:
            try:
                self._skip_to(0)
                while event := self._next_event():
                    if isinstance(event, self._yaml.DocumentStartEvent):
                        self.stop(event, "a second YAML document", "keep one document in a file")
                    self._refuse_cut(event.start_mark)
            except of_syntax as syntax_error:
                error = syntax_error
        if isinstance(error, of_syntax):
            self._stop_at_syntax(error)
        if error is None:
            self.close()

    def root(self) -> Node | None:
        """The document's node; None if there are only comments, or a null."""
        self._next_event()
        start = self._next_event()
        if isinstance(start, self._yaml.StreamEndEvent):
            self._refuse_cut(start.start_mark)
            return None
        node: Any = self._node(self._next_event())
        is_scalar = node.__class__ is self._scalar_event
        return None if is_scalar and node.implicit[0] and node.value in _NULLS else node

    def pairs(self, node: Node, what: str) -> Iterator[tuple[Node, Node]]:
        """The keys and values of a mapping; `what` names it in the problem if it is not one."""
        if not self.is_mapping(node):
            self._refuse_kind(node, what, "mapping", _WRITE_PAIRS)
            return
        depth = self._depth
        seen: dict[str, Node] = {}
        next_event, scalar_event = self._next_event, self._scalar_event
        while True:
            # No method is called for simple scalars: this loop takes most of the time of a load.
            key = next_event()
            if key.__class__ is not scalar_event or key.anchor or key.tag:
                key = self._node(key)
                if key is None:
                    return
            if key.__class__ is not scalar_event:
                message = f"a key must be a single word, not {self._kind_of(key)}"
                self.problem(key, message, _WRITE_PAIRS)
                self._skip_to(depth)
            value = next_event()
            if value.__class__ is not scalar_event or value.anchor or value.tag:
                value = self._node(value)
            if key.__class__ is scalar_event:
                if key.value == "<<":  # no schema has such a key, quoted or not
                    self.problem(key, "YAML merge keys (<<) are not supported", _WRITE_VALUE)
                elif first := seen.get(key.value):
                    line = first.start_mark.line + 1
                    message = f"the key {quoted(key.value)} is already on line {line}"
                    self.problem(key, message, "remove one of the two")
                else:
                    seen[key.value] = key
                    yield key, value
            if self._depth > depth:
                self._skip_to(depth)

    def items(self, node: Node, what: str) -> Iterator[Node]:
        """The items of a list; `what` names it in the problem if it is not one."""
        if not self.is_list(node):
            hint = "begin each item with '- ', or write [] for an empty list"
            self._refuse_kind(node, what, "list", hint)
            return
        depth = self._depth
        while item := self._node(self._next_event()):
            yield item
            if self._depth > depth:
                self._skip_to(depth)

    def _refuse_kind(self, node: Node, what: str, wanted: str, hint: str) -> None:
        message = f"{what} must be a {wanted}, not {self._kind_of(node)}"
        if node.__class__ is self._scalar_event and node.implicit[0] and node.value in _NULLS:
            message = f"{what} has no value"
            hint = "add one on the lines below, indented and without #, or remove the key"
        self.problem(node, message, hint)

    def value(self, node: Node, what: str, convert: Converter[T]) -> T | None:
        """A scalar's value; None after a problem, such as a UsageError from `convert`."""
        if node.__class__ is not self._scalar_event:
            message = f"{what} must be a single value, not {self._kind_of(node)}"
            quotes = ", in quotes if it begins with {" if self.is_mapping(node) else ""
            self.problem(node, message, f"{_WRITE_VALUE}{quotes}")
            return None
        text, is_plain = node.value, node.implicit[0]
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

    def unknown_key(self, key: Node, what: str, known: Iterable[str]) -> None:
        """Report that `what` has no such key, with a suggestion."""
        if len(key.value) > MAX_VALUE:
            self.stop(key, f"a key is longer than {MAX_VALUE:,} characters", _WRITE_PAIRS)
        words = list(known)
        similar = difflib.get_close_matches(key.value[:_MAX_GUESS].lower(), words, n=1)
        hint = f"did you mean {similar[0]}?" if similar else f"known keys: {', '.join(words)}"
        self.problem(key, f"{what} has no key {quoted(key.value)}", hint)

    def problem(self, node: Node, message: str, hint: str) -> None:
        self._refuse_cut(node.start_mark)
        self._source.unclaimed = 0
        super().problem(node, message, hint)

    def _node(self, event: Any) -> Node | None:
        """The node that an event begins; None for the end of a list or mapping."""
        self._source.unclaimed = 0
        if isinstance(event, self._yaml.CollectionEndEvent):
            self._depth -= 1
            return None
        if not isinstance(event, self._yaml.AliasEvent):
            if event.anchor:
                self.problem(event, "YAML anchors (&) are not supported", _WRITE_VALUE)
            if event.tag:
                hint = "remove it; the key decides the type"
                self.problem(event, "YAML tags (!) are not supported", hint)
        if isinstance(event, self._yaml.CollectionStartEvent):
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self.stop(event, "nested too deeply", "close the brackets above")
        return event

    def _skip_to(self, depth: int) -> None:
        """Read on to the end of the node at `depth` + 1."""
        while self._depth > depth:
            node = self._node(self._next_event())
            self._skipped += 1
            if node and self._skipped > _MAX_SKIPPED:
                self.stop(node, "too many values that are not expected", "fix the problems above")

    def _kind_of(self, node: Node) -> str:
        if isinstance(node, self._yaml.AliasEvent):
            return "a YAML alias (*)"
        if self.is_mapping(node):
            return "a mapping"
        return "a list" if self.is_list(node) else "a single value"

    def _stop_at_syntax(self, error: Any) -> NoReturn:
        if not isinstance(error, self._yaml.MarkedYAMLError):
            mark = self._loader.get_mark()
            message, hint = "an escape of no character", "write the character itself"
        else:
            mark, context = error.problem_mark, error.context_mark
            if error.context == "while scanning a quoted scalar":
                self._refuse_cut(context)
            message = printable(error.problem[:200])  # characters; it may quote the file
            if "maximum nesting depth" in message:  # libyaml looks ahead, and stops at 1,000
                message = "nested too deeply"
            if context and context.line != mark.line:
                message += f" ({error.context} that begins on line {context.line + 1})"
            said = f"{error.context} {message}"
            hint = next(hint for part, hint in _SYNTAX_HINTS if part in said)
        self.stop(Place(mark.line, mark.column), f"invalid YAML: {message}", hint)

    def _refuse_cut(self, mark: Any) -> None:
        """Stop if the parser did not get all of the text: what it says there means nothing."""
        if self._source.is_cut:
            message = f"a value, comment or gap is longer than {_MAX_VALUE_BYTES >> 20} MiB"
            place = Place(mark.line, mark.column)
            super().problem(place, message, "check the quotes and the indentation")
            self.close()


class _Source(Text):
    """The text of a YAML document for a parser.

    `unclaimed` counts the bytes that have been read; the reader of the parser's events sets it to 0
    with each of them. Where it passes 4 MiB, the text `is_cut`: it ends there for the parser, which
    would need many times the memory of a huge value.
    """

    unclaimed = 0
    is_cut = False

    def read(self, _size: int = 0, /) -> bytes:
        """The next chunk, of any size; b"" at the end. Raises InputError for what is not text."""
        if self.unclaimed > _MAX_VALUE_BYTES and self.position < len(self.data):
            self.is_cut = True
        if self.is_cut:
            return b""
        start = self.position
        chunk = self.next_chunk()
        # Directives are refused here: the parser's time grows with the square of their number.
        directive = b"%" in chunk and re.compile(_DIRECTIVE).search(
            self.data, max(start - 1, 0), start + len(chunk)
        )
        if directive:
            hint = "remove the line that begins with %"
            raise self.error(directive.end() - 1, "YAML directives are not supported", hint)
        self.unclaimed += len(chunk)
        return chunk


def yaml_scalar(value: object) -> str:
    """Text, a number or a boolean as every version of YAML reads it; in quotes only if needed."""
    if isinstance(value, str) and re.fullmatch(_PLAIN, value) and value.lower() not in _KEYWORDS:
        return value
    # JSON is YAML, but for its surrogate pairs and the character DEL.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else f"\\U{ord(char):08x}" for char in text)
