"""The terminal: questions, and what Ctrl-C, SIGTERM and SIGHUP do.

Without a terminal nothing waits for an answer. Questions go to stderr: Typer's own prompts write
their last character to stdout.
"""

from __future__ import annotations

import getpass
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TypeVar

from dkimctl.credentials.store import Kind, parse_entry
from dkimctl.errors import CredentialsError, DkimctlError, Interrupted, UsageError
from dkimctl.models import Secret

_ENDINGS = ("SIGTERM", "SIGHUP")  # SIGHUP: the terminal was closed (not on Windows)
_ATTEMPTS = 3

_T = TypeVar("_T")
Warn = Callable[..., None]  # `Reporter.warn`


def is_interactive() -> bool:
    """Whether there is a terminal to prompt on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(
    question: str, check: Callable[[str], _T], option: str, warn: Warn, *, default: str = ""
) -> _T:
    """What `check` makes of the line that is typed, or else of the `default`.

    Raises UsageError, which names the option, after three invalid answers or at the end of input.
    """

    def checked(text: str) -> _T:
        if not (text or default):
            raise UsageError("the answer is empty", hint="write a value, or press Ctrl-C to stop")
        return check(text or default)

    name = re.split(r" \(|:", question, maxsplit=1)[0]
    read = partial(_read_line, f"{question} [{default}]" if default else question)
    try:
        return _until_valid(name, read, checked, warn, UsageError("no answer to the prompt"))
    except UsageError as error:
        hint = f"give it as an option: {option}"
        raise UsageError(f"{name}: {error.message}", hint=hint) from None


def confirms(
    question: str, *, refusal: UsageError | None, hint: str = "nothing was deleted"
) -> bool:
    """Whether the answer is y or yes. Without a terminal raises `refusal`; None: that is a yes.

    Raises Interrupted with this hint at Ctrl-C.
    """
    if not is_interactive():
        if refusal is None:
            return True
        raise refusal
    with interruptible(hint):
        try:
            return _prompt(partial(_read_line, f"{question} [y/N]")).lower() in {"y", "yes"}
        except EOFError:
            return False


def may_delete(note: Callable[[str], None], what: str, how: str, *, yes: bool) -> bool:
    """Whether `yes` was given, or is the answer. Raises UsageError without a terminal."""
    refusal = UsageError(f"there is no terminal to ask whether to delete {what}", hint="add --yes")
    if yes or confirms(f"Delete {what}{how}?", refusal=refusal):
        return True
    note("dkimctl: nothing was deleted")
    return False


@contextmanager
def interruptible(hint: str) -> Iterator[None]:
    """Within the block, Ctrl-C ends the command with this hint."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(hint=hint) from None


def read_client_secret(warn: Warn, *, from_stdin: bool) -> Secret:
    """The client secret, from standard input or else a hidden prompt. Raises CredentialsError."""

    def checked(text: str) -> Secret:
        if secret := parse_entry(Kind.SECRET, Secret(text), "the secret"):
            return secret
        raise CredentialsError("the secret is empty", hint="give the secret of the client ID")

    if from_stdin and not sys.stdin.isatty():
        try:
            return checked(sys.stdin.buffer.readline(2**16).decode())
        except UnicodeDecodeError:
            text = "the secret on standard input is not UTF-8 text"
            raise CredentialsError(text, hint="pipe in the secret itself") from None
    if not from_stdin and not is_interactive():
        hint = "pipe it in with --secret-stdin, or set DKIMCTL_CLIENT_ID and DKIMCTL_CLIENT_SECRET "
        text = "there is no terminal to prompt for the client secret"
        raise CredentialsError(text, hint=f"{hint}instead of logging in")
    hint = "type it, or pipe it in with --secret-stdin"
    at_end = CredentialsError("no answer to the prompt", hint=hint)
    read = partial(getpass.getpass, "Client secret (not shown): ", stream=sys.stderr)
    return _until_valid("Client secret", read, checked, warn, at_end)


def _until_valid(
    name: str, read: Callable[[], str], check: Callable[[str], _T], warn: Warn, at_end: DkimctlError
) -> _T:
    """What `check` makes of an answer; errors of the kind of `at_end` are warnings at first."""
    attempts = 0
    while True:
        attempts += 1
        try:
            return check(_prompt(read))
        except EOFError:  # Ctrl-D: asking again would not help
            raise at_end from None
        except type(at_end) as error:
            if attempts == _ATTEMPTS:
                raise
            warn(f"{name}: {error.message}", hint=error.hint)


def _read_line(question: str) -> str:
    sys.stderr.write(f"{question}: ")
    sys.stderr.flush()
    if line := sys.stdin.readline():
        return line.strip()
    raise EOFError


def _prompt(read: Callable[[], str]) -> str:
    """What `read` returns; ends the line of a prompt that is not answered."""
    try:
        with interrupting():  # any signal is like Ctrl-C: getpass must restore the terminal's echo
            return read()
    except (KeyboardInterrupt, EOFError):
        sys.stderr.write("\n")
        sys.stderr.flush()
        raise


def stopping(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Within the block, the first signal calls `stop`, every later one raises KeyboardInterrupt.

    A signal that is ignored (nohup ignores SIGHUP) stays ignored. Outside the main thread, where
    Python handles no signals, nothing changes.

    `stop` interrupts the main thread anywhere, so it must not take a lock that the main thread may
    hold: it must not print, log or set a threading.Event. It may set an attribute or put an item
    into a queue.SimpleQueue, which is reentrant.
    """

    is_first = True

    def handle(*_: object) -> None:
        nonlocal is_first
        if not is_first:
            raise KeyboardInterrupt
        is_first = False
        stop()

    return _handling(handle, ("SIGINT", *_ENDINGS))


@contextmanager
def interrupting() -> Iterator[None]:
    """Within the block, each signal raises KeyboardInterrupt, so that work can be undone.

    SIGTERM and SIGHUP do what Ctrl-C does, which asyncio handles itself: it cancels its tasks
    first. Raised anywhere, the interruption could be lost: dnspython takes any exception while it
    parses a message for an error of that message.
    """

    def handle(*_: object) -> None:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a job in the background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with _handling(signal.default_int_handler, ["SIGINT"]), _handling(handle, _ENDINGS):
        yield


@contextmanager
def _handling(handle: Callable[..., None], names: Iterable[str]) -> Iterator[None]:
    # An ExitStack restores every handler, even if a signal raises while it does.
    with ExitStack() as previous:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
                current = signal.getsignal(number)
                # None: not set from Python, so it could not be restored.
                if current is not None and current is not signal.SIG_IGN:
                    previous.callback(signal.signal, number, current)
                    signal.signal(number, handle)
        yield
