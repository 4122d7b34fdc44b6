"""The exceptions and the exit codes.

Every error explains itself: `message` says what happened and where, `hint` what to do about it.
`dkimctl.cli.main` catches them all.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple


class ExitCode(IntEnum):
    """The exit status of a command; if several apply, see `worst` and `worst_check`."""

    OK = 0
    NO = 1  # the answer to the question asked is no
    USAGE = 2  # the command line, a file or a setting is invalid
    AUTH = 3  # access was refused, or there are no credentials
    SERVICE = 4  # no usable response from the service or the network
    INTERRUPTED = 130


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The one that stands for all: 130, then 3, 4, 2, 1, 0."""
    return min(codes, key=(130, 3, 4, 2, 1, 0).index, default=ExitCode.OK)


def worst_check(codes: Iterable[ExitCode]) -> ExitCode:
    """The one that stands for all checks: 130, then 3, 2, 1, 4, 0.

    "No" wins over "no answer", or a script that retries on 4 might do so forever.
    """
    return min(codes, key=(130, 3, 2, 1, 4, 0).index, default=ExitCode.OK)


class DkimctlError(Exception):
    """The root of the tree: a one-line message and a one-line hint.

    `code` identifies the kind of error to scripts, in the output of `--format json`.
    """

    exit_code = ExitCode.SERVICE
    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(DkimctlError):
    """The command line or a setting is invalid; nothing was sent."""

    exit_code = ExitCode.USAGE
    code = "usage"


class Problem(NamedTuple):
    """One mistake in a file. `line` and `column`, in characters, count from 1."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Name the `source` of a value, such as `--timeout`, in a UsageError raised inside."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"in {source}: {error.message}", hint=error.hint) from None


@contextmanager
def os_errors_as(error: Callable[..., DkimctlError], what: str, *, hint: str) -> Iterator[None]:
    """Raise an `error` for an OSError inside: `what` failed, why, and what to do about it."""
    try:
        yield
    except OSError as failure:
        raise error(f"{what}: {failure.strerror or failure}", hint=hint) from None


class InputError(UsageError):
    """A file is invalid. `problems` lists every mistake in it, in the file's order."""

    code = "input"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(str(problems[0]), hint=problems[0].hint)
        self.problems = tuple(problems)


class LedgerError(UsageError):
    """The ledger cannot be read or written."""

    code = "ledger"


class LedgerUnavailable(LedgerError):
    """The database server of the ledger cannot be used, or no longer."""

    exit_code = ExitCode.SERVICE


class ThreadLimitError(UsageError):
    """The system allows none of the threads that the work needs; nothing was sent."""

    code = "threads"

    def __init__(self) -> None:
        hint = "raise the limit of processes, which counts threads (`ulimit -u`; in a container "
        hint += "--pids-limit), or end other processes"
        super().__init__("the system does not allow another thread", hint=hint)


class NegativeAnswer(DkimctlError):
    """The answer to the question asked is no."""

    exit_code = ExitCode.NO
    code = "no"


class ClocksDiffer(NegativeAnswer):
    """The service's clock and ours do not agree, so that it is not known what is due."""

    code = "clock"


class RequestRefused(NegativeAnswer):
    """The service refused a registration request as a whole (400, 413 or 422, interface 7.3)."""

    code = "refused"

    def __init__(self, status: str, detail: str) -> None:
        what = f"the service refused the request ({status})" + (f": {detail}" if detail else "")
        super().__init__(what, hint="check the entries, or send fewer at once with --batch-size")
        self.status = status
        self.detail = detail


class CredentialsError(DkimctlError):
    """No usable client ID, secret, token or credential store."""

    exit_code = ExitCode.AUTH
    code = "credentials"


class DnsRefused(DkimctlError):
    """A DNS server or provider refused the credentials, or what was asked of it."""

    exit_code = ExitCode.AUTH
    code = "dns_refused"


class AuthenticationError(DkimctlError):
    """The service refused the client credentials (interface 7.1) or the token (7.2)."""

    exit_code = ExitCode.AUTH
    code = "authentication"


class ClientRefused(AuthenticationError):
    """The service refused the client ID or secret. `detail` is its own message, or ""."""

    def __init__(self, detail: str, *, refused: str = "secret", hint: str) -> None:
        what = f"the service refused the client ID or {refused}"
        super().__init__(what + (f": {detail}" if detail else ""), hint=hint)
        self.detail = detail


class TokenRejected(AuthenticationError):
    """401 or 403 for a request with a token (interface 7.2). `body` is the response's."""

    code = "token_rejected"

    def __init__(
        self, message: str, *, hint: str = "", status: int = 403, body: bytes = b""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.body = body


class OutputError(DkimctlError):
    """The result could not be written, although the work was done."""

    code = "output"


class Interrupted(DkimctlError):
    """Stopped by Ctrl-C, or by a signal that asks the process to end."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"

    def __init__(
        self, message: str = "interrupted", *,
        hint: str = "the work so far is kept; to continue, run the same command again",
    ) -> None:  # fmt: skip
        super().__init__(message, hint=hint)


class ServiceError(DkimctlError):
    """No usable response. `retry_after`: the seconds that the service asks to wait, if it does."""

    code = "service"

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class NotProcessed(ServiceError):
    """The request certainly had no effect: it was not sent, or was turned away."""

    code = "not_processed"


class Throttled(NotProcessed):
    """The service is limiting requests (429)."""

    code = "throttled"


class NoService(NotProcessed):
    """Nothing at that address registers domains, or it cannot be trusted: do not retry."""

    code = "no_service"


class MaybeProcessed(ServiceError):
    """The request was sent and may have had an effect; no usable response was received."""

    code = "maybe_processed"
