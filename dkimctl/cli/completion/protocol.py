"""How the shells' scripts ask `dkimctl` for completions: by environment variables.

The answer is a line that says which files the shell is to offer as well, and a line for each
candidate. Whatever goes wrong, there is no answer, and no message in the middle of typing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from dkimctl.cli.completion.candidates import Completion, complete_line
from dkimctl.cli.completion.line import split_line
from dkimctl.cli.completion.values import Candidate

SHELL = "_DKIMCTL_COMPLETE"
LINE = "_DKIMCTL_COMPLETE_LINE"  # the command line up to the cursor
WORD_BREAKS = "_DKIMCTL_COMPLETE_WORDBREAKS"  # of bash: characters at which readline ends a word


def answer(root: Any, environ: Mapping[str, str] = os.environ) -> int:
    """Write the completions that a shell asks for."""
    try:
        lines = [*_answer(root, environ)]
    except Exception:  # noqa: BLE001 - the user is typing, and has not run anything yet
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _answer(root: Any, environ: Mapping[str, str]) -> list[str]:
    shell = environ[SHELL]
    line = split_line(environ[LINE])
    completion = complete_line(root, line, with_help=shell != "bash")
    if shell == "bash":
        unchanged = _before_last_break(line.typed, environ.get(WORD_BREAKS, ""))
        candidates = [_for_bash(each, completion, unchanged) for each in completion.candidates]
    elif shell == "zsh":
        candidates = [_joined(each, ":") for each in completion.candidates]
    else:
        candidates = [completion.prefix + _joined(each, "\t") for each in completion.candidates]
    return [completion.files, *candidates]


def _joined(candidate: Candidate, separator: str) -> str:
    return separator.join(filter(None, candidate))


def _for_bash(candidate: Candidate, completion: Completion, unchanged: str) -> str:
    return (completion.prefix + candidate.value).removeprefix(unchanged)


def _before_last_break(word: str, breaks: str) -> str:
    """The part of a word that readline keeps, because it takes what follows for a word."""
    return word[: max((word.rfind(char) + 1 for char in breaks), default=0)]
