"""Make the changes to one zone, one message after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from dkimctl.dns.messages import NOERROR, NXDOMAIN, REFUSED
from dkimctl.errors import DkimctlError, NegativeAnswer
from dkimctl.publishing.changes import Applied, Change, NameState
from dkimctl.publishing.dns_server.refusals import NOTAUTH
from dkimctl.publishing.dns_server.server import Server, UnknownResult
from dkimctl.publishing.dns_server.states import read_states, read_visible
from dkimctl.publishing.dns_server.updates import (
    Part,
    batches,
    make_part,
    make_update,
    room,
)
from dkimctl.publishing.outcomes import changed_error, is_done, outcome_of
from dkimctl.text.escaping import printable

_YXDOMAIN, _YXRRSET, _NXRRSET = 6, 7, 8
_CHANGED = frozenset((NXDOMAIN, _YXDOMAIN, _YXRRSET, _NXRRSET))  # a prerequisite does not hold
_REFUSED = frozenset((REFUSED, NOTAUTH))
# How many names in a message are read again: up to so many all of them, else a sample.
_MOST, _SAMPLE = 50, 4
_PAUSE = 0.2  # seconds


class Updater:
    """Makes changes, each with its prerequisites; a message is done as a whole, or not at all.

    If names in a message have changed meanwhile, or are refused, its halves are sent, and so on,
    until only these names fail. What makes all others fail as well ends it: no answer, any other
    error, and a message of which every name is refused.

    A server may accept what it then drops, such as PowerDNS by its policy script, name by name. So
    the names in a message are read again: of many a sample, or all if one in it has not changed.
    """

    def __init__(self, server: Server, zone: str) -> None:
        self._server = server
        self._zone = zone
        self._is_accepted = False
        self._refusal: DkimctlError | None = None
        self._end: DkimctlError | None = None

    def run(self, changes: Sequence[Change]) -> Iterator[Applied]:
        max_size = room(self._zone, self._server.signer.size)
        parts = [make_part(change, self._zone) for change in changes]
        fitting = [part for part in parts if part.size <= max_size]
        for part in parts:
            if part.size > max_size:
                yield Applied(part.change, _too_large(part.change))
        for batch in batches(fitting, max_size):
            yield from self._apply(batch)
            if not self._is_accepted:
                self._end = self._end or self._refusal

    def _apply(self, parts: Sequence[Part]) -> Iterator[Applied]:
        if self._end is not None:
            yield from _all(parts, self._end)
            return
        try:
            rcode = self._server.update(make_update(self._zone, parts), self._zone)
        except UnknownResult as unknown:
            yield from self._look_again(parts, unknown.error)
        except DkimctlError as error:
            self._end = error
            yield from _all(parts, error)
        else:
            yield from self._answered(parts, rcode)

    def _answered(self, parts: Sequence[Part], rcode: int) -> Iterator[Applied]:
        if rcode == NOERROR:
            self._is_accepted = True
            yield from self._confirm([part.change for part in parts])
        elif rcode in _CHANGED | _REFUSED and len(parts) > 1:
            middle = len(parts) // 2
            yield from self._apply(parts[:middle])
            yield from self._apply(parts[middle:])
        elif rcode in _CHANGED:
            self._is_accepted = True
            yield from (Applied(part.change, changed_error(part.change)) for part in parts)
        else:
            error = self._server.errors.of_update(rcode, self._zone)
            if rcode in _REFUSED:
                self._refusal = error
            else:
                self._end = error
            yield from _all(parts, error)

    def _look_again(self, parts: Sequence[Part], error: DkimctlError) -> Iterator[Applied]:
        """Find out what became of an update without an answer."""
        try:
            looked_up = self._look_up([part.change for part in parts], error)
        except DkimctlError:
            looked_up = list(_all(parts, error))
        if any(applied.error is error for applied in looked_up):
            self._end = error
        yield from looked_up

    def _confirm(self, changes: Sequence[Change]) -> Iterator[Applied]:
        """Find out whether the changes that were accepted are made."""
        step = 1 if len(changes) <= _MOST else len(changes) // _SAMPLE
        try:
            if self._are_made(changes[::step]):
                yield from map(Applied, changes)
            else:
                yield from self._look_up(changes, self._server.errors.not_made(self._zone))
        except DkimctlError as error:
            self._end = error
            yield from (Applied(change, error) for change in changes)

    def _are_made(self, changes: Sequence[Change]) -> bool:
        """Whether these names have changed; waits, since a server may forward an update."""
        deadline = time.monotonic() + self._server.timeouts.change
        while not all(is_done(state, change) for change, state in self._states(changes)):
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def _look_up(self, changes: Sequence[Change], error: DkimctlError) -> list[Applied]:
        """What became of changes; `error` is for a name that has what it had before.

        Raises DkimctlError.
        """
        return [outcome_of(change, state, error) for change, state in self._states(changes)]

    def _states(self, changes: Sequence[Change]) -> list[tuple[Change, NameState]]:
        """What the names have now. Raises DkimctlError."""
        by_name = {change.record.fqdn: change for change in changes}
        states = read_visible(self._server, self._zone, by_name)
        # What a wildcard has may hide that the name has nothing.
        others = [name for name, change in by_name.items() if not is_done(states[name], change)]
        states |= read_states(self._server, self._zone, others)
        return [(change, states[name]) for name, change in by_name.items()]


def _all(parts: Sequence[Part], error: DkimctlError | None) -> Iterator[Applied]:
    return (Applied(part.change, error) for part in parts)


def _too_large(change: Change) -> DkimctlError:
    return NegativeAnswer(
        f"the TXT records of {printable(change.record.fqdn)} are too large for one DNS update",
        hint="remove the records that are there by other means, then run the same command again",
    )
