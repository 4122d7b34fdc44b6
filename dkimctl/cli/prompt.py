"""Asks for input on a terminal, and never waits for any without one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dkimctl.cli.interruption import interrupting
from dkimctl.errors import CredentialsError, DkimctlError, Interrupted, UsageError
from dkimctl.models.secret import Secret

_MAX_SECRET = 65536  # bytes
_MAX_TRIES = 3  # invalid answers to one question

_T = TypeVar("_T")
Complain = Callable[[DkimctlError], None]


def is_interactive() -> bool:
    """Whether there is a terminal to prompt on."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def ask(
    question: str, check: Callable[[str], object], complain: Complain, *, default: str = ""
) -> str:
    """Prompt for a line that passes `check`, which raises UsageError for any other.

    An empty line means the `default`, if there is one. `complain` gets the error before the
    question is asked again. Raises UsageError after three invalid answers, and at the end of input.
    """
    shown = f"{question} [{default}]" if default else question

    def answer() -> str:
        text = _read_line(shown) or default
        if not text:
            raise UsageError("the answer is empty", hint="write a value, or press Ctrl-C to stop")
        check(text)
        return text

    return _until_valid(answer, UsageError, complain)


def may_delete(question: str, *, refusal: UsageError) -> bool:
    """The same as `confirms`, for what deletes something."""
    return confirms(question, refusal=refusal, hint="nothing was deleted")


def confirms(question: str, *, refusal: UsageError, hint: str) -> bool:
    """Whether the answer to a question is yes; anything but y or yes means no.

    Raises `refusal` if there is no terminal, Interrupted with this hint at Ctrl-C.
    """
    if not is_interactive():
        raise refusal
    with interruptible(hint):
        try:
            return _read_line(f"{question} [y/N]").lower() in {"y", "yes"}
        except _EndOfInput:
            return False


@contextmanager
def interruptible(hint: str) -> Iterator[None]:
    """Within the block, Ctrl-C ends the command with this hint."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(hint=hint) from None


def read_client_secret(*, from_stdin: bool, complain: Complain) -> Secret:
    """The client secret, from standard input or else a hidden prompt.

    Raises CredentialsError if it is missing or invalid: of a prompt, three times.
    """
    if not from_stdin and not is_interactive():
        raise CredentialsError(
            "there is no terminal to prompt for the client secret",
            hint="pipe it in with --secret-stdin, or set DKIMCTL_CLIENT_ID and "
            "DKIMCTL_CLIENT_SECRET instead of logging in",
        )
    if from_stdin and (sys.stdin is None or not sys.stdin.isatty()):
        return _require_secret(_read_stdin())
    return _until_valid(lambda: _require_secret(_prompt_hidden()), CredentialsError, complain)


def _until_valid(answer: Callable[[], _T], refusal: type[DkimctlError], complain: Complain) -> _T:
    """What `answer` returns, which raises `refusal` for what is invalid; the third is final."""
    try:
        for _ in range(_MAX_TRIES - 1):
            try:
                return answer()
            except refusal as error:
                complain(error)
        return answer()
    except _EndOfInput as error:
        raise error.reason from None


class _EndOfInput(Exception):
    """Ctrl-D at a prompt: asking again would not help."""

    def __init__(self, reason: DkimctlError) -> None:
        super().__init__()
        self.reason = reason


def _read_line(question: str) -> str:
    with _at_prompt():
        sys.stderr.write(f"{question}: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
    if not line:
        _end_line()
        hint = "give the value as an option"
        raise _EndOfInput(UsageError("no answer to the prompt", hint=hint))
    return line.strip()


def _require_secret(text: Secret) -> Secret:
    from dkimctl.credentials.store import parse_secret

    secret = parse_secret(text, "the secret")
    if secret is None:
        raise CredentialsError("the secret is empty", hint="give the secret of the client ID")
    return secret


def _read_stdin() -> Secret:
    """The first line of standard input."""
    if sys.stdin is None:
        return Secret("")
    try:
        return Secret(sys.stdin.buffer.readline(_MAX_SECRET).decode())
    except UnicodeDecodeError:
        raise CredentialsError(
            "the secret on standard input is not UTF-8 text", hint="pipe in the secret itself"
        ) from None


def _prompt_hidden() -> Secret:
    import getpass

    try:
        with _at_prompt():  # getpass must restore the terminal's echo
            return Secret(getpass.getpass("Client secret (not shown): ", stream=sys.stderr))
    except EOFError:
        _end_line()
        hint = "type it, or pipe it in with --secret-stdin"
        raise _EndOfInput(CredentialsError("no answer to the prompt", hint=hint)) from None


@contextmanager
def _at_prompt() -> Iterator[None]:
    """End the line of a prompt at which a signal ends the command."""
    try:
        with interrupting():
            yield
    except KeyboardInterrupt:
        _end_line()
        raise


def _end_line() -> None:
    sys.stderr.write("\n")
    sys.stderr.flush()
