"""Give a notice to the program that the config file names."""

from __future__ import annotations

import signal
from collections.abc import Container, Mapping, Sequence

from dkimctl.errors import ServiceError
from dkimctl.system.programs import run_program
from dkimctl.text.durations import format_duration
from dkimctl.text.escaping import printable

_SECONDS = 30.0
# The program has no use for them.
OUR_SECRETS = frozenset(
    (
        "DKIMCTL_CLIENT_SECRET",
        "DKIMCTL_ACCESS_TOKEN",
        "DKIMCTL_SERVICE_PASSPHRASE",
        "DKIMCTL_SERVICE_DATABASE",
    )
)
_HINT = "check notify: command in the config file"
_RUN_IT = "run it by hand to see why, with the document in docs/timers.md as its input"


def run_notice_program(
    words: Sequence[str],
    document: bytes,
    environ: Mapping[str, str],
    *,
    withheld: Container[str] = OUR_SECRETS,
    seconds: float = _SECONDS,
) -> None:
    """Run the program with a JSON document on standard input; after `seconds`, it is killed.

    It gets all of `environ` but what is `withheld`, which are the names of variables with secrets.
    Raises ServiceError unless it ends with status 0. Its arguments, which may hold a token, are in
    no error.
    """
    program = f'"{printable(words[0])}"'
    environment = {name: value for name, value in environ.items() if name not in withheld}
    try:
        status = run_program(words, document, seconds=seconds, environment=environment)
    except (OSError, ValueError) as error:  # ValueError: a null character in a word
        reason = getattr(error, "strerror", None) or "invalid"
        raise ServiceError(f"cannot run {program} to notify: {reason}", hint=_HINT) from None
    if status is None:
        limit = format_duration(seconds)
        raise ServiceError(f"{program} did not end within {limit}, and was killed", hint=_RUN_IT)
    if status != 0:
        raise ServiceError(f"{program} {_ended(status)}", hint=_RUN_IT)


def _ended(status: int) -> str:
    if status > 0:
        return f"failed with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
