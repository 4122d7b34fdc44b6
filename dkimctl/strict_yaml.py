"""Strict reading of YAML files with a small schema: every problem with its line and column.

A scalar is text, and whether it is plain. Its type is never guessed, so `on` is two letters and
not a boolean: the schema decides. Anchors, aliases, tags, merge keys, directives, repeated keys
and second documents are problems.

The parser's events are read one by one, in one pass and without a tree: a list of 100,000
entries needs the memory of one. Nodes are the events themselves: an object of ours for each would
take as long as parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeGuard, TypeVar

from dkimctl.errors import InputError, Problem, UsageError
from dkimctl.input_files import Text
from dkimctl.text import printable, quoted

T = TypeVar("T")
# Gives the value of a scalar from its text, and whether it is plain: neither quoted nor a block.
# Raises UsageError.
Converter = Callable[[str, bool], T]

MAX_DEPTH = 8  # more than any of our schemas needs; libyaml before 0.2.6 has no limit
MAX_VALUE = 1024  # characters; every value that is valid is shorter
MAX_LISTED = 1_000  # problems
_MAX_COUNTED = 5_000  # then reading ends: to check what is invalid takes long
_MAX_VALUE_BYTES = 4 << 20  # the parser holds a value that it reads several times over
_MAX_PYTHON_BYTES = 3 << 20  # which PyYAML reads in 10 s without libyaml

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # YAML 1.2.2, 10.3.2
_WRITE_PAIRS = "write lines of the form 'KEY: VALUE'"
_WRITE_VALUE = "write the value itself here"
_MAX_GUESS = 60  # characters; comparing takes quadratic time
_TOO_DEEP = ("nested too deeply", "close the brackets above")
_DIRECTIVE = rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])%"
# Hints for syntax errors: the first whose fragment is in the parser's message applies.
_SYNTAX_HINTS = (
    ("mapping values", "check the indentation, and put text that contains ': ' in quotes"),
    (
        "cannot start any token",
        "indent with spaces, not tabs; text that begins with @, ` or % needs quotes",
    ),
    ("tab character", "indent with spaces, not tabs"),
    ("end of stream", "close the quotation mark or bracket"),
    ("expected '-'", "indent the lines of an item alike, two spaces more than its '- '"),
    ("expected <block end>", "indent the lines of an item alike, two spaces more than its '- '"),
    ("' or '", "close the bracket, or add the missing comma"),
    ("directive", "remove the line that begins with %"),
    ("", "check the indentation, quotes and brackets here and on the line before"),
)
# Unquoted, every version of YAML reads this as text, except for its keywords.
_PLAIN = r"[A-Za-z/](?:[A-Za-z0-9._~/%:\[\]-]*[A-Za-z0-9/\]])?"
_KEYWORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


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


class Place(NamedTuple):
    """A place in text that is not YAML, such as that of a cell: a node without a value."""

    line: int
    column: int

    @property
    def start_mark(self) -> Place:
        return self


class Problems:
    """Collects the problems of a file that is called `name`: those to list, and how many more."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._listed: list[Problem] = []
        self._next: Problem | None = None  # the first that is not listed
        self._count = 0

    def add(self, mark: Mark, message: str, hint: str) -> None:
        """Raises InputError with all of them where they are too many to read on."""
        self._count += 1
        problem = Problem(self._name, mark.line + 1, mark.column + 1, message, hint)
        if self._count <= MAX_LISTED:
            self._listed.append(problem)
        elif not self._next:
            self._next = problem
        if self._count >= _MAX_COUNTED:
            raise self.error() from None

    def problem(self, node: Node, message: str, hint: str) -> None:
        """Report a problem at `node`."""
        self.add(node.start_mark, message, hint)

    def stop(self, node: Node, message: str, hint: str) -> NoReturn:
        """Report a problem at `node`, and do not read on."""
        self.add(node.start_mark, message, hint)
        raise self.error() from None

    def close(self) -> None:
        """Raises InputError if there are any."""
        if self._count:
            raise self.error()

    def error(self) -> InputError:
        """All of them, in the order of the file; the last one may stand for many."""
        problems = sorted(self._listed, key=lambda problem: (problem.line, problem.column))
        if self._next:
            more = f"{self._count - MAX_LISTED:,}"
            if self._count >= _MAX_COUNTED:
                more = f"at least {more}"
            problems.append(
                self._next._replace(
                    message=f"{more} more problems from here on",
                    hint="fix those above, and run the same command again",
                )
            )
        return InputError(problems)


class Document(Problems):
    """One YAML document of a small schema.

    A context manager: inside, call `root` first, then walk with `pairs`, `items` and `value`. On
    exit, or where reading on is useless (YAML syntax, nesting), it raises InputError with all
    problems found so far, in the order of the file.
    """

    def __init__(
        self, data: bytes, name: str, *, syntax_advice: Mapping[str, tuple[str, str]] = {}
    ) -> None:
        import yaml

        # Message and hint, by what the parser was doing when it met an error.
        self._syntax_advice = syntax_advice
        self._source = _Source(data, name)
        super().__init__(name)
        self._depth = 0
        self._skipped = 0
        self._yaml: Any = yaml
        self._scalar_event: Any = yaml.ScalarEvent
        self._start_events = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
        self._end_events = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
        has_libyaml = hasattr(yaml, "CSafeLoader")
        if not has_libyaml and len(data) > _MAX_PYTHON_BYTES:
            raise UsageError(
                f"{printable(name)} is larger than {_MAX_PYTHON_BYTES >> 20} MiB, "
                "the most that PyYAML reads without libyaml",
                hint="split it into several files, or install a PyYAML that has libyaml",
            )
        self._loader: Any = (yaml.CSafeLoader if has_libyaml else yaml.SafeLoader)(self._source)
        self._next_event: Any = self._loader.get_event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._skip_to(0)
                while event := self._next_event():
                    if isinstance(event, self._yaml.DocumentStartEvent):
                        hint = "keep one document in a file"
                        self.stop(event, "a second YAML document", hint)
                    self._refuse_cut(event.start_mark)
            except (self._yaml.MarkedYAMLError, ValueError, OverflowError) as syntax_error:
                error = syntax_error
        if isinstance(error, self._yaml.MarkedYAMLError):
            self._report_syntax(error)
            raise self.error() from None
        if isinstance(error, ValueError | OverflowError):  # PyYAML's, without libyaml
            hint = "write the character itself"
            self.add(self._loader.get_mark(), "invalid YAML: an escape of no character", hint)
            raise self.error() from None
        if error is None:
            self.close()

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
                if first := seen.get(key.value):
                    line = first.start_mark.line + 1
                    message = f"the key {quoted(key.value)} is already on line {line}"
                    self.problem(key, message, "remove one of the two")
                else:  # no schema has such a key, quoted or not
                    self.problem(key, "YAML merge keys (<<) are not supported", _WRITE_VALUE)
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

    def add(self, mark: Mark, message: str, hint: str) -> None:
        self._refuse_cut(mark)
        self._source.unclaimed = 0
        super().add(mark, message, hint)

    def _node(self, event: Any) -> Node | None:
        """The node that an event begins; None for the end of a list or mapping."""
        self._source.unclaimed = 0
        kind = event.__class__
        if kind in self._end_events:
            self._depth -= 1
            return None
        if kind is not self._yaml.AliasEvent:
            if event.anchor:
                self.problem(event, "YAML anchors (&) are not supported", _WRITE_VALUE)
            if event.tag:
                hint = "remove it; the key decides the type"
                self.problem(event, "YAML tags (!) are not supported", hint)
        if kind in self._start_events:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self.stop(event, *_TOO_DEEP)
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
            if node and self._skipped > 500_000:  # nodes inside what is not expected
                self.stop(node, "too many values that are not expected", "fix the problems above")

    def _is_scalar(self, node: Node) -> TypeGuard[Scalar]:
        return node.__class__ is self._scalar_event

    def _kind_of(self, node: Node) -> str:
        if isinstance(node, self._yaml.AliasEvent):
            return "a YAML alias (*)"
        if self._is_scalar(node):
            return "a single value"
        return "a mapping" if self.is_mapping(node) else "a list"

    def _report_syntax(self, error: Any) -> None:
        """Report a `yaml.MarkedYAMLError`."""
        text = printable(error.problem[:200])  # characters; it may quote the file
        mark, context = error.problem_mark, error.context_mark
        if error.context == "while scanning a quoted scalar":
            self._refuse_cut(context)
        if "maximum nesting depth" in text:  # libyaml looks ahead, and gives up at 1,000 levels
            self.add(mark, *_TOO_DEEP)
            return
        if advice := self._syntax_advice.get(error.context):
            self.add(context, *advice)
            return
        message = f"invalid YAML: {text}"
        if context and context.line != mark.line:
            message += f" ({error.context} that begins on line {context.line + 1})"
        hint = next(hint for part, hint in _SYNTAX_HINTS if part in text)
        self.add(mark, message, hint)

    def _refuse_cut(self, mark: Mark) -> None:
        """Stop if the parser did not get all of the text: what it says there means nothing."""
        if self._source.is_cut:
            message = f"a value, comment or gap is longer than {_MAX_VALUE_BYTES >> 20} MiB"
            super().add(mark, message, "check the quotes and the indentation")
            raise self.error() from None


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


def invalid_value(text: str, is_plain: bool, expected: str, hint: str) -> UsageError:
    """The error for a scalar that is not plain, or not what is `expected`."""
    if is_plain:
        return UsageError(f"{quoted(text)} is not {expected}", hint=hint)
    return UsageError(f"{quoted(text)} in quotes is not {expected}", hint="remove the quotes")


def suggestion(word: str, known: Iterable[str], what: str = "keys") -> str:
    """A hint for an unknown word: the known word that resembles it, or else all of them."""
    import difflib

    words = list(known)
    similar = difflib.get_close_matches(word[:_MAX_GUESS].lower(), words, n=1)
    return f"did you mean {similar[0]}?" if similar else f"known {what}: {', '.join(words)}"


def yaml_scalar(value: object) -> str:
    """Text, a number or a boolean as every version of YAML reads it; in quotes only if needed."""
    if isinstance(value, str) and re.fullmatch(_PLAIN, value) and value.lower() not in _KEYWORDS:
        return value
    import json  # only commands that write YAML need it

    # JSON is YAML, but for its surrogate pairs and the character DEL.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if " " <= char <= "~" else f"\\U{ord(char):08x}" for char in text)
