"""The terminal: questions, and what Ctrl-C, SIGTERM and SIGHUP do.

Without a terminal nothing waits for an answer. Questions go to stderr: Typer's own prompts write
their last character to stdout.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import TypeVar

from dkimctl.errors import CredentialsError, DkimctlError, Interrupted, UsageError
from dkimctl.models import Secret

_ENDINGS = ("SIGTERM", "SIGHUP")  # SIGHUP: the terminal was closed (not on Windows)
_SIGNALS = ("SIGINT", *_ENDINGS)
_MAX_SECRET = 65536  # bytes

_T = TypeVar("_T")
Complain = Callable[[DkimctlError], None]


def is_interactive() -> bool:
    """Whether there is a terminal to prompt on."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def ask(
    question: str, check: Callable[[str], object], complain: Complain, *, default: str = ""
) -> str:
    """Prompt for a line that passes `check`, which raises UsageError for any other.

    An empty line means the `default`, if there is one. `complain` gets the error before the
    question is asked again. Raises UsageError after three invalid answers, and at the end of input.
    """

    def answer() -> str:
        text = _read_line(f"{question} [{default}]" if default else question) or default
        if not text:
            raise UsageError("the answer is empty", hint="write a value, or press Ctrl-C to stop")
        check(text)
        return text

    at_end = UsageError("no answer to the prompt", hint="give the value as an option")
    return _until_valid(answer, complain, at_end)


def confirms(question: str, *, refusal: UsageError, hint: str = "nothing was deleted") -> bool:
    """Whether the answer to a question is yes; anything but y or yes means no.

    Raises `refusal` if there is no terminal, Interrupted with this hint at Ctrl-C.
    """
    if not is_interactive():
        raise refusal
    with interruptible(hint):
        try:
            return _read_line(f"{question} [y/N]").lower() in {"y", "yes"}
        except EOFError:
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
    if from_stdin and (sys.stdin is None or not sys.stdin.isatty()):
        line = b"" if sys.stdin is None else sys.stdin.buffer.readline(_MAX_SECRET)
        try:
            return _require_secret(line.decode())
        except UnicodeDecodeError:
            raise CredentialsError(
                "the secret on standard input is not UTF-8 text", hint="pipe in the secret itself"
            ) from None
    if not from_stdin and not is_interactive():
        raise CredentialsError(
            "there is no terminal to prompt for the client secret",
            hint="pipe it in with --secret-stdin, or set DKIMCTL_CLIENT_ID and "
            "DKIMCTL_CLIENT_SECRET instead of logging in",
        )

    def answer() -> Secret:
        with _at_prompt():  # getpass must restore the terminal's echo
            import getpass

            text = getpass.getpass("Client secret (not shown): ", stream=sys.stderr)
        return _require_secret(text)

    hint = "type it, or pipe it in with --secret-stdin"
    at_end = CredentialsError("no answer to the prompt", hint=hint)
    return _until_valid(answer, complain, at_end)


def _require_secret(text: str) -> Secret:
    from dkimctl.credentials.store import Kind, parse_entry

    secret = parse_entry(Kind.SECRET, Secret(text), "the secret")
    if secret is None:
        raise CredentialsError("the secret is empty", hint="give the secret of the client ID")
    return secret


def _until_valid(answer: Callable[[], _T], complain: Complain, at_end: DkimctlError) -> _T:
    """What `answer` returns; errors of the kind of `at_end` are complained of, the third raised."""
    for is_last in (False, False, True):
        try:
            return answer()
        except EOFError:  # Ctrl-D: asking again would not help
            raise at_end from None
        except type(at_end) as error:
            if is_last:
                raise
            complain(error)
    raise at_end


def _read_line(question: str) -> str:
    with _at_prompt():
        sys.stderr.write(f"{question}: ")
        sys.stderr.flush()
        if line := sys.stdin.readline():
            return line.strip()
        raise EOFError


@contextmanager
def _at_prompt() -> Iterator[None]:
    """End the line of a prompt that is not answered; any signal is like Ctrl-C."""
    try:
        with interrupting():
            yield
    except (KeyboardInterrupt, EOFError):
        sys.stderr.write("\n")
        sys.stderr.flush()
        raise


def stopping(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Within the block, the first signal calls `stop`, every later one raises KeyboardInterrupt.

    A signal that is ignored (nohup ignores SIGHUP) stays ignored. The previous handlers are
    restored at the end. Outside the main thread, where Python handles no signals, nothing changes.

    `stop` interrupts the main thread anywhere, so it must not take a lock that the main thread may
    hold: it must not print, log or set a threading.Event. It may set an attribute or put an item
    into a queue.SimpleQueue, which is reentrant.
    """
    called = False

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal called
        if called:
            raise KeyboardInterrupt
        called = True
        stop()

    return _handling(handle)


def interrupting() -> AbstractContextManager[None]:
    """Within the block, every signal raises KeyboardInterrupt, so that work can be undone.

    Otherwise like `stopping`.
    """

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    return _handling(handle)


def ending_like_ctrl_c() -> AbstractContextManager[None]:
    """Within the block, SIGTERM and SIGHUP do what Ctrl-C does, which asyncio handles itself.

    Otherwise like `stopping`.
    """

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of a job in the background
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    return _handling(handle, _ENDINGS)


@contextmanager
def _handling(
    handler: Callable[[int, FrameType | None], None], names: Iterable[str] = _SIGNALS
) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # An ExitStack restores every handler, even if a signal raises while it does.
    with ExitStack() as previous:
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            current = signal.getsignal(number)
            # None: not set from Python, so it could not be restored.
            if current is not None and current is not signal.SIG_IGN:
                previous.callback(signal.signal, number, current)
                signal.signal(number, handler)
        yield
