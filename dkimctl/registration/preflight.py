"""What to know before entries are sent: which of them are refused, and warnings about others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from dkimctl.errors import ClocksDiffer, DkimctlError, NegativeAnswer, UsageError
from dkimctl.files import new_name
from dkimctl.models import ClosedKey, DomainSpec, RegistrationKey, Result, named
from dkimctl.registration import outcomes
from dkimctl.specs.entries import parse_start_date
from dkimctl.text import counted, few

if TYPE_CHECKING:
    from dkimctl.ledger.ledger import Ledger

_UNSURE = "it may be registered under a selector that the service chose"
_LONG = 2048  # bits
# Resolvers that ask too early remember for up to an hour, in most zones, that there is no record.
_LEAD = timedelta(hours=1)
_FAR = timedelta(days=3653)
# Where the clocks are further apart, nobody knows what has begun at the service.
_MAX_SKEW = timedelta(hours=1)


class Planner:
    """Decides from the ledger whether an entry must be sent."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        selector_for: Callable[[str], str | DkimctlError | None] = lambda _: None,
        refresh: bool = False,
        retry_unknown: bool = False,
        now: datetime | None = None,
    ) -> None:
        self._ledger = ledger
        # For entries without one, by their domains; or why they are not sent.
        self._selector_for = selector_for
        self._refresh = refresh  # entries that are in the ledger are sent again
        self._retry_unknown = retry_unknown  # also those without selector, never answered
        self._now = now or datetime.now(UTC)  # decides which key of a domain is the current one

    def plan_entry(self, spec: DomainSpec) -> DomainSpec | Result:
        """The entry as it must be sent, or its result if nothing must be sent."""
        registrations = self._ledger.of_domain(spec.sign_domain)
        if registrations and (known := outcomes.registration_for(spec, registrations, self._now)):
            if spec.selector is not None:
                is_sent = self._refresh and known.selector
                send = spec._replace(selector=known.selector)
                return send if is_sent else outcomes.of_registered(spec, known)
            # It is about the domain's first key: which bits and start others have, makes no
            # difference. Nor do starts that have both passed: of an imported key, nobody knows
            # whether it is the first.
            names, has_begun = spec.implied, known.starts_at and known.starts_at <= self._now
            ours = [each for each in registrations if not each.is_taken]
            if len(ours) > 1 or known.key in self._successors:
                names = ("key_len", "start_date")
            elif has_begun and spec.start_date and _start(spec.start_date) <= self._now:
                names = (*names, "start_date")
            unstated: dict[str, Any] = dict.fromkeys(names)
            spec = spec._replace(**unstated)
            if not (self._refresh and known.selector):
                return outcomes.of_registered(spec, known)
            # As a request for the key that the entry stands for.
            try:
                start_date = parse_start_date(known.start_date or "")
            except UsageError:  # such as one with seconds
                start_date = None
            return spec._replace(
                selector=known.selector,
                key_len=spec.key_len or known.key_len,
                start_date=spec.start_date or start_date,
            )
        if spec.selector is None:
            return self._plan_without_selector(spec)
        closed = None if self._refresh else self._closed.get(spec.key)
        if closed is None or self.is_in_doubt(spec):
            return spec
        return outcomes.of_closed(spec, closed)

    @cached_property
    def _closed(self) -> Mapping[RegistrationKey, ClosedKey]:
        return {closed.key: closed for closed in self._ledger.closed_keys()}

    @cached_property
    def _successors(self) -> Set[tuple[str, str]]:
        return self._ledger.successors()

    def new_entries(self, specs: Iterable[DomainSpec]) -> list[DomainSpec]:
        """Those of `specs`, of which there may be many, that must be sent and are not known yet."""
        known = self._ledger.known_keys()
        return [
            spec
            for spec in specs
            if spec.key not in known and isinstance(self.plan_entry(spec), DomainSpec)
        ]

    def is_in_doubt(self, spec: DomainSpec) -> bool:
        """Whether an earlier run sent this entry and got no answer."""
        intents = self._ledger.intents_of(spec.sign_domain)
        return bool(intents) and spec.key in {intent.key for intent in intents}

    def _plan_without_selector(self, spec: DomainSpec) -> DomainSpec | Result:
        """Nothing that was sent for the domain before may be registered a second time."""
        intents = self._ledger.intents_of(spec.sign_domain)
        for intent in intents:
            if intent.selector is not None:  # sent again with it, the service gives its record
                return spec._replace(selector=intent.selector)
        doubt = ""
        if intents:
            doubt = f"sent at {intents[0].sent_at}, and never answered: {_UNSURE}"
        elif (quarantined := self._ledger.quarantined) is not None:
            doubt = f"{_UNSURE}: the damaged ledger {quarantined.name} may have it "
            doubt += "(once settled, move it away)"
        if doubt and not self._retry_unknown:
            return outcomes.unanswered(spec, doubt)
        selector = self._selector_for(spec.sign_domain)
        if isinstance(selector, DkimctlError):
            return outcomes.not_sent(spec, selector)
        return spec._replace(selector=selector)


def plan(specs: Iterable[DomainSpec], planner: Planner) -> Iterator[Result]:
    """The result that `register` would have for each entry, in order; nothing is sent."""
    for spec in specs:
        planned = planner.plan_entry(spec)
        yield planned if isinstance(planned, Result) else outcomes.pending(planned)


def inspect_entries(
    specs: Iterable[DomainSpec],
    planner: Planner,
    now: datetime,
    dates: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """Warnings about those of `specs`, with their defaults, that must be sent, each with its field.

    There is one of each kind: about keys of 1024 bits, stated or by the service's default
    (interface 2.3), where RFC 8301 3.2 wants at least 2048; about signing that starts at
    registration, or too soon after it for DNS to be ready; and about a start that is so far away
    that its year must be wrong. `dates` has the place of each start date.

    Raises UsageError for successors that would sign at once, without a record in DNS. One that an
    earlier run sent without an answer is not refused: it may be registered.
    """
    soon, far = now + _LEAD, now + _FAR
    in_doubt = [
        spec
        for spec in specs
        if spec.key_len != _LONG or signs_by(spec, soon) or not signs_by(spec, far)
    ]
    if not in_doubt:
        return []  # without reading the ledger
    new = planner.new_entries(in_doubt)
    at_once = [spec for spec in new if signs_by(spec, now)]
    late = [spec for spec in at_once if spec.replaces is not None and not planner.is_in_doubt(spec)]
    if late:
        file = new_name("successors.yaml")
        raise UsageError(
            f"{counted(len(late), 'successor')} would sign at once, before DNS has the record, "
            f"since the start_date is not in the future: {few([named(spec) for spec in late])}; "
            "nothing was sent",
            hint=f"get specs with a new start_date from `dkimctl rotate > {file}`, and register "
            "those; for keys that another machine has registered, remove replaces:",
        )
    kinds = {
        "1024-bit keys for {}: write key_len: 2048 (RFC 8301)": [
            spec for spec in new if spec.key_len != _LONG
        ],
        "signing starts at registration, before DNS is published, for {}: write a start_date in "
        "the future, or enable: false": [spec for spec in at_once if spec.start_date is None],
        "start_date {date} is in the past, so signing starts at registration, before DNS is "
        "published, for {}: write a later one into these entries, or enable: false": [
            spec for spec in at_once if spec.start_date is not None
        ],
        "start_date {date} is more than ten years ahead, for {}: check the year": [
            spec for spec in new if spec.start_date and _start(spec.start_date) > far
        ],
        "signing starts within the hour for {}: publish the records at once, and check them with "
        "`dkimctl check-dns --wait 30m`": [
            spec for spec in new if signs_by(spec, soon) and not signs_by(spec, now)
        ],
    }
    warnings = []
    for text, affected in kinds.items():
        if not affected:
            continue
        named_date = affected[0].start_date or ""
        place = (dates or {}).get(named_date) if "{date}" in text else None
        if any(spec.start_date != affected[0].start_date for spec in affected):
            named_date += " (and others)"
        domains = few([spec.sign_domain for spec in affected], limit=3)
        what = text.format(f"{counted(len(affected), 'domain')} ({domains})", date=named_date)
        field = "key_len" if "key_len" in text else "start_date"
        warnings.append((f"{place}: {what}" if place else what, field))
    return warnings


def clock_fault(ours: datetime, services: datetime | None, held: str) -> NegativeAnswer | None:
    """Why it is not known what is due, by our clock and the service's; so what is `held` is not.

    ClocksDiffer, or another error if the service does not say what time it is.
    """
    if services is None:
        hint = "the header Date is missing in its answers, or cannot be read, or they come from a "
        hint += "cache: ask its operator, or check the profile's URLs and any proxy in between"
        return NegativeAnswer(f"the service does not say what time it is, so {held}", hint=hint)
    if abs(ours - services) <= _MAX_SKEW:
        return None
    return ClocksDiffer(
        f"this machine's clock says {ours:%Y-%m-%d %H:%M} UTC, and the service's "
        f"{services.astimezone(UTC):%Y-%m-%d %H:%M} UTC: {held}",
        hint="set the clock of this machine, such as with `timedatectl set-ntp true` or `chronyc "
        "makestep`; if it is right, ask the operator of the service to set its clock. When "
        "both agree, grace periods begin again",
    )


def signs_by(spec: DomainSpec, time: datetime) -> bool:
    """Whether the key of a spec would sign at `time`."""
    if spec.enable is False:
        return False
    return spec.start_date is None or _start(spec.start_date) <= time


# The entries of a file have few different dates.
_start = lru_cache(maxsize=64)(datetime.fromisoformat)
