"""A saved result: the output of `--format json`, or a response of the service as it came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dkimctl.errors import UsageError
from dkimctl.models.registration import DomainSpec, Outcome, Registration, Result
from dkimctl.registration import outcomes
from dkimctl.strict_yaml.source import read_bytes

_LARGEST = 1 << 29  # bytes; 100,000 registrations are 85 MB


class Saved(NamedTuple):
    """What a file holds; `faults` are sentences about items that cannot be read."""

    registrations: Sequence[Registration]
    faults: Sequence[str]


def read_saved(path: str) -> Saved:
    """Read the file at `path`, or standard input for `-`.

    Raises UsageError where it cannot be read, or is no such file.
    """
    from dkimctl.client.wire import DecodeError, decode_reply

    try:
        reply = decode_reply(read_bytes(path, largest=_LARGEST), is_saved=True)
    except DecodeError as error:
        name = "<stdin>" if path == "-" else path
        raise UsageError(
            f"{name} is no saved result: {error}",
            hint="give a file that --format json wrote, or a response of the service",
        ) from None
    return Saved(reply.items, reply.faults)


def judged(registrations: Iterable[Registration]) -> Iterator[Result]:
    """The result of each, by what it says alone: whatever judged it before, it is judged anew.

    Of two that want the same name in DNS, only the first is usable.
    """
    values: dict[str, str] = {}
    for found in registrations:
        result = _judged(found)
        record = result.registration.record
        if (
            record is not None
            and values.setdefault(record.fqdn.lower(), record.value) != record.value
        ):
            reason = f"another item has another record for {record.fqdn}"
            result = Result(found, Outcome.UNUSABLE, reason)
        yield result


def _judged(found: Registration) -> Result:
    asked = DomainSpec(found.sign_domain, found.selector)
    if found.code is None:
        return outcomes.unanswered(asked, "there was no answer when it was saved")
    return outcomes.of_answer(asked, found)
