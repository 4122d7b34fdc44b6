"""Which words can follow on a command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dkimctl.cli.completion.line import Line
from dkimctl.cli.completion.typed import TypedWords
from dkimctl.cli.completion.values import Candidate, Files, Request, Source, source_of
from dkimctl.text.escaping import printable

# In no shell is anything in such a word expanded, or in need of quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.@%+,-]*", re.ASCII)
_MARKUP = re.compile(r"\[/?[a-z ]*\]")


class Completion(NamedTuple):
    """The words that can be at the cursor, or rather at the end of `prefix` there."""

    candidates: Sequence[Candidate] = ()
    files: Files = Files.NONE
    prefix: str = ""  # such as `--format=`


def complete_line(root: Any, line: Line, *, with_help: bool) -> Completion:
    """The completion of a line; nothing is imported for help that the shell does not show."""
    if line.redirects:
        return Completion(files=Files.ALL)
    typed = TypedWords(root, line.words)
    if typed.is_unknown:
        return Completion()
    is_value = typed.next is not None and typed.next.param_type_name == "option"
    if line.current.startswith("-") and not is_value and "--" not in line.words:
        return _option(typed, line.current)
    if typed.next is not None:
        values = _values(typed.next, typed, line.current)
        below = _matching(_commands_below(root, line.words), line.current)
        return values._replace(candidates=[*below, *values.candidates])
    if typed.is_group:
        return Completion(_matching(_commands(typed, line.current, with_help), line.current))
    return Completion([] if line.current else _matching(_options(typed), ""))


def _option(typed: TypedWords, word: str) -> Completion:
    """An option, or the value that is attached to one."""
    name, assigned, value = word.partition("=")
    if not assigned:
        return Completion(_matching(_options(typed), word))
    option = typed.option(name)
    if option is None or option.is_flag:
        return Completion()
    return _values(option, typed, value, f"{name}=")


def _values(parameter: Any, typed: TypedWords, start: str, prefix: str = "") -> Completion:
    source = source_of(parameter)
    if source is None:
        return Completion()
    plain = [value for value in _found(source, start, typed) if not value.value.startswith("-")]
    return Completion(_matching(plain, start), source.files, prefix)


def _found(source: Source, start: str, typed: TypedWords) -> list[Candidate]:
    """What a source has; nothing if its file is missing or damaged, or the profile is unknown."""
    try:
        return list(source.find(Request(start, typed.values)))
    except Exception:  # noqa: BLE001 - the user is typing; running the command reports it
        return []


def _commands(typed: TypedWords, start: str, with_help: bool) -> Iterator[Candidate]:
    for name in typed.command.list_commands(typed.context):
        if not name.startswith(start):
            continue
        command = typed.command.get_command(typed.context, name) if with_help else None
        if command is None:
            yield Candidate(name)
        elif not command.hidden:
            yield Candidate(name, command.get_short_help_str(limit=100))


def _commands_below(root: Any, words: Sequence[str]) -> Iterator[Candidate]:
    """The second words of commands such as `rotate run`, of which the first is a command itself."""
    for name in root.commands:
        first, _, second = name.partition(" ")
        if second and words == [first]:
            yield Candidate(second)


def _options(typed: TypedWords) -> Iterator[Candidate]:
    return (Candidate(name, option.help or "") for name, option in typed.option_names())


def _matching(candidates: Iterable[Candidate], start: str) -> list[Candidate]:
    """Those that begin with `start`, regardless of case, and are plain words."""
    return [
        Candidate(value, _one_line(text))
        for value, text in candidates
        if value.lower().startswith(start.lower()) and _PLAIN.fullmatch(value)
    ]


def _one_line(text: str) -> str:
    return printable(" ".join(_MARKUP.sub("", text).split()))
