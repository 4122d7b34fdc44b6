"""A question, which an option or an answer on the terminal settles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from dkimctl.cli import prompt
from dkimctl.cli.output.streams import Reporter
from dkimctl.errors import UsageError, naming
from dkimctl.settings.values import Check


class Question(NamedTuple):
    """`option` is the one that answers it; `check` converts a valid answer."""

    label: str
    option: str
    check: Check
    default: str = ""


def answer(reporter: Reporter, question: Question, given: str | None) -> Any:
    """The value of what was given, or of an answer. Raises UsageError."""
    if given is not None:
        with naming(question.option):
            return question.check(given)
    if not prompt.is_interactive():
        raise no_terminal([question.option])
    label = re.split(r" \(|:", question.label, maxsplit=1)[0]
    try:
        text = prompt.ask(
            question.label,
            question.check,
            lambda error: reporter.warn(f"{label}: {error.message}", hint=error.hint),
            default=question.default,
        )
    except UsageError as error:
        hint = f"give it as an option: {question.option}"
        raise UsageError(f"{label}: {error.message}", hint=hint) from None
    return question.check(text)


def no_terminal(options: Sequence[str]) -> UsageError:
    words = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
    return UsageError(
        f"there is no terminal to ask on, and no {words}",
        hint=f"give {words}, or run it on a terminal",
    )
