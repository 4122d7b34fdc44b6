"""Asks for input on a terminal, and never waits for any without one."""

from __future__ import annotations

import sys

from dkimctl.cli.interruption import interrupting
from dkimctl.errors import CredentialsError, UsageError
from dkimctl.models.secret import Secret

_MAX_SECRET = 65536  # bytes


def is_interactive() -> bool:
    """Whether there is a terminal to prompt on."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def ask(question: str) -> str:
    """Prompt for a line until it is not empty."""
    while True:
        sys.stderr.write(f"{question}: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise UsageError("no answer to the prompt", hint="give the value as an option")
        if answer := line.strip():
            return answer


def read_client_secret(*, from_stdin: bool) -> Secret:
    """The client secret, from standard input or else a hidden prompt.

    Raises CredentialsError if it is missing or invalid.
    """
    from dkimctl.credentials.account import parse_secret

    text = _read_stdin() if from_stdin else _prompt_on_terminal()
    secret = parse_secret(text, "the secret")
    if secret is None:
        raise CredentialsError("the secret is empty", hint="give the secret of the client ID")
    return secret


def _read_stdin() -> Secret:
    """The first line of standard input; if that is a terminal, typed without echo."""
    if sys.stdin is None:
        return Secret("")
    if sys.stdin.isatty():
        return _prompt_hidden()
    try:
        return Secret(sys.stdin.buffer.readline(_MAX_SECRET).decode())
    except UnicodeDecodeError:
        raise CredentialsError(
            "the secret on standard input is not UTF-8 text", hint="pipe in the secret itself"
        ) from None


def _prompt_on_terminal() -> Secret:
    if not is_interactive():
        raise CredentialsError(
            "there is no terminal to prompt for the client secret",
            hint="pipe it in with --secret-stdin, or set DKIMCTL_CLIENT_ID and "
            "DKIMCTL_CLIENT_SECRET instead of logging in",
        )
    return _prompt_hidden()


def _prompt_hidden() -> Secret:
    import getpass

    try:
        with interrupting():  # getpass must restore the terminal's echo
            return Secret(getpass.getpass("Client secret: ", stream=sys.stderr))
    except EOFError:
        return Secret("")
