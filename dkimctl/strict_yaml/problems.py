"""The problems of a file: those to list, and how many more there are."""

from __future__ import annotations

from dkimctl.errors import InputError, Problem
from dkimctl.strict_yaml.nodes import Mark

MAX_LISTED = 1_000
MAX_COUNTED = 5_000  # then reading ends: to check what is invalid takes long

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
)
_SYNTAX_HINT = "check the indentation, quotes and brackets here and on the line before"


class Problems:
    """Collects the problems of a file that is called `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._listed: list[Problem] = []
        self._next: Problem | None = None  # the first that is not listed
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    @property
    def are_too_many(self) -> bool:
        return self._count >= MAX_COUNTED

    def add(self, mark: Mark, message: str, hint: str) -> None:
        self._count += 1
        if self._next:
            return
        problem = Problem(self._name, mark.line + 1, mark.column + 1, message, hint)
        if self._count <= MAX_LISTED:
            self._listed.append(problem)
        else:
            self._next = problem

    def error(self) -> InputError:
        """All of them, in the order of the file; the last one may stand for many."""
        problems = sorted(self._listed, key=lambda problem: (problem.line, problem.column))
        if self._next:
            more = f"{self._count - MAX_LISTED:,}"
            if self.are_too_many:
                more = f"at least {more}"
            problems.append(
                self._next._replace(
                    message=f"{more} more problems from here on",
                    hint="fix those above, and run the same command again",
                )
            )
        return InputError(problems)


def syntax_hint(text: str) -> str:
    """What to do about a syntax error of which the parser says `text`."""
    return next((hint for part, hint in _SYNTAX_HINTS if part in text), _SYNTAX_HINT)
