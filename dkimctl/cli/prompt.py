"""Ask people, on a terminal only."""

from __future__ import annotations

import sys

from dkimctl.cli.interruption import interrupting
from dkimctl.errors import CredentialsError, UsageError
from dkimctl.models.secret import Secret

_MAX_SECRET = 65536  # bytes


def is_interactive() -> bool:
    """Whether somebody is there to answer."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def ask(question: str) -> str:
    """A line that was typed; empty answers are asked for again."""
    while True:
        sys.stderr.write(f"{question}: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise UsageError("the question was not answered", hint="give it as an option instead")
        if answer := line.strip():
            return answer


def ask_secret(question: str) -> Secret:
    """A secret that was typed without being shown.

    Raises CredentialsError where nobody is there to type it.
    """
    if not is_interactive():
        raise CredentialsError(
            "there is no terminal to ask for the client secret on",
            hint="pipe it in with --secret-stdin, or set DKIMCTL_CLIENT_ID and "
            "DKIMCTL_CLIENT_SECRET and do without a login",
        )
    return _typed_unseen(question)


def read_secret() -> Secret:
    """The first line of standard input, which a terminal does not show.

    Raises CredentialsError where it is no text.
    """
    if sys.stdin is None:
        return Secret("")
    if sys.stdin.isatty():
        return _typed_unseen("Client secret")
    try:
        return Secret(sys.stdin.buffer.readline(_MAX_SECRET).decode())
    except UnicodeDecodeError:
        raise CredentialsError(
            "the secret on standard input is not UTF-8 text", hint="give the secret key itself"
        ) from None


def _typed_unseen(question: str) -> Secret:
    import getpass

    try:
        with interrupting():  # so that the terminal gets its echo back
            return Secret(getpass.getpass(f"{question}: ", stream=sys.stderr))
    except EOFError:
        return Secret("")
