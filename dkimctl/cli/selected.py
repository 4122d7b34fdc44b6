"""The SELECTION argument: which registrations a command is about."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from dkimctl.cli import next_steps
from dkimctl.cli.options import argument, complete_selection, read_duration
from dkimctl.cli.report import Reporter, warn_alike, warn_unreadable
from dkimctl.cli.session import Session
from dkimctl.errors import ClocksDiffer, ExitCode, NegativeAnswer, UsageError, worst_check
from dkimctl.formats.renderer import sound_record
from dkimctl.models import Outcome, Registration, RegistrationKey, Result, named
from dkimctl.names import MAX_NAME, Selection, is_file, is_glob, parse_domain
from dkimctl.registration import outcomes
from dkimctl.registration.preflight import clock_fault
from dkimctl.registration.saved_results import read_saved_results, results_of
from dkimctl.rotation import retirement
from dkimctl.rotation.retirement import Retirement, RetirementStatus
from dkimctl.settings.rotation import Pool
from dkimctl.text import few, readable, without_names

MAX_AGE_OF_CHECK = "24h"  # of one that shows a successor in DNS
_MAX_COMPARED = 2000  # domains, each of which takes 40 µs

SelectionArgument = Annotated[list[str] | None, argument("[SELECTION]...",
    "Domain names, globs such as '*.example.com', spec files (default: everything).",
    autocompletion=complete_selection)]  # fmt: skip


def read_selection(session: Session, words: Sequence[str] | None) -> Selection:
    """What `words` select. Raises UsageError for an invalid name or spec file."""
    if not words:
        return Selection()
    names: list[str | RegistrationKey] = []
    for word in words:
        if is_file(word):
            for spec in session.read_specs(word).specs:
                key = RegistrationKey(spec.sign_domain, spec.selector or "")
                names.append(key if spec.selector else spec.sign_domain)
        elif not is_glob(word):
            try:
                names.append(parse_domain(word))
            except UsageError as error:
                if hint := _file_hint([word]):
                    raise UsageError(error.message, hint=hint) from None
                raise
    return Selection(names, [word for word in words if is_glob(word) and not is_file(word)])


def registered_results(session: Session, selection: Selection) -> Iterator[Result]:
    """The results of the selected registrations by the ledger; raises like `require_empty`."""
    exists = Outcome.EXISTS  # looked up once: member access is slow in Python 3.11
    ours = session.open_ledger(for_writing=False).ours()
    results = (outcomes.verified(registration, exists) for registration in selection.pick(ours))
    first = list(itertools.islice(results, 1))
    if not first:
        require_empty(session, selection)
    return itertools.chain(first, results)


def select_pools(session: Session, words: Sequence[str] | None) -> dict[str, Pool]:
    """The pool of each selected domain: named, in the ledger, or in `delegation`.

    Raises UsageError for a domain without a pool, NegativeAnswer if nothing is selected.
    """
    selection, config = read_selection(session, words), session.config
    pools = {domain: config.pool_of(domain) for domain in selection.domains}
    if not config.delegation:
        hint = "add a pool of selectors there (docs/fleet.md shows how)"
        raise UsageError(f"no `delegation` in {session.config_file}", hint=hint)
    if outside := [domain for domain, pool in pools.items() if pool is None]:
        hint = "add it to the domains of a pool there (docs/fleet.md shows how)"
        text = f"no entry of `delegation` in {session.config_file} has {few(outside)}"
        raise UsageError(text, hint=hint)
    for domain, pool in pools.items():
        if pool is not None and pool.is_too_long(domain):
            what = f"the names of its pool have more than {MAX_NAME} octets: {domain}"
            raise UsageError(what, hint="use shorter templates in `delegation`")
    if not words or any(is_glob(word) and not is_file(word) for word in words):
        known = {name for pool in config.delegation for name in pool.domains if not is_glob(name)}
        known |= {domain for domain, _ in session.open_ledger(for_writing=False).known_keys()}
        keys = (Registration(domain) for domain in sorted(known) if config.pool_of(domain))
        picked = [key.sign_domain for key in selection.pick(keys)]
        pools |= {domain: config.pool_of(domain) for domain in picked}
    missing = [word for word in selection.unmatched() if is_glob(word)]
    if missing or not (pools or words):
        what = "no known domain is in a pool"
        what = f"{what} and matches {few(missing)}" if missing else what
        raise NegativeAnswer(what, hint="name the domains: nothing has to be registered yet")
    return {domain: pool for domain, pool in pools.items() if pool}


def saved_results(
    session: Session, path: str, selection: Selection
) -> tuple[list[Result], ExitCode]:
    """The results of the selected registrations of a file; 1 if some of it cannot be read."""
    saved = read_saved_results(path)
    warn_unreadable(session.reporter, path, saved.faults)
    results = [*results_of(selection.pick(saved.items), saved.retired)]
    return results, ExitCode.NO if saved.faults else ExitCode.OK


def require_empty(session: Session, selection: Selection) -> None:
    """Raise NegativeAnswer, since the ledger has nothing that is selected."""
    if selection.is_empty:  # spec files without specs: there is nothing to do
        return
    unmatched = selection.unmatched()
    register = "run `dkimctl register FILE` first"
    if session.open_ledger(for_writing=False).known_keys():
        register += "; `dkimctl show-dns` shows everything registered"
    text = f"nothing is registered in the profile {session.profile.name}"
    text += f" that matches {few(unmatched)}" if unmatched else ""
    hint = _file_hint(unmatched) or _near(session, unmatched) or register
    raise NegativeAnswer(text, hint=hint)


def warn_unmatched(session: Session, selection: Selection, why: str = "not registered") -> ExitCode:
    """Warn about words that select nothing; that is exit code 1."""
    unmatched = selection.unmatched()
    warnings = [(f"{word} is {why}", why, why.replace(" ", "_")) for word in unmatched]
    if near := _near(session, unmatched):
        warnings[0] = (f"{warnings[0][0]}: {near}", *warnings[0][1:])
    warn_alike(session.reporter, warnings)
    return ExitCode.NO if unmatched else ExitCode.OK


def _near(session: Session, words: Sequence[str]) -> str:
    """A registered domain that is written nearly like the first of `words`, as a question."""
    if not words:
        return ""
    domains = {domain for domain, _ in session.open_ledger(for_writing=False).known_keys()}
    if len(domains) > _MAX_COMPARED:
        domains &= _one_letter_away(words[0][:MAX_NAME])
    near = difflib.get_close_matches(words[0], domains, 1, 0.8)
    return f"did you mean {readable(near[0])}?" if near else ""


def _one_letter_away(word: str) -> set[str]:
    """All names with a letter more, less or other, or two letters the other way round."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789-."
    changed = set()
    for head, tail in ((word[:at], word[at:]) for at in range(len(word) + 1)):
        changed |= {head + tail[1:], head + tail[1::-1] + tail[2:]}
        changed |= {head + letter + end for letter in letters for end in (tail, tail[1:])}
    return changed


def _file_hint(words: Sequence[str]) -> str:
    """For words that select nothing, and are the names of files here; else ""."""
    hint = "it is a file here: name a spec file as in ./list, and put globs in quotes, as in "
    return f"{hint}'*.example.com'" if any(map(os.path.exists, words)) else ""


class Checkable:
    """The registrations of `results` that have a record to check; it warns about the others."""

    def __init__(
        self, results: Iterable[Result], reporter: Reporter, *,
        retired: Mapping[RegistrationKey, str],  # whose records may be gone, with the reason
        counted: Container[RegistrationKey] | None = None,  # whose looks are recorded; None: all
        status: ExitCode = ExitCode.OK,  # as far as `registrations` has been iterated over
        left_out: str = "not checked",  # what becomes of the others
    ) -> None:  # fmt: skip
        self.registrations = self._with_record(results, reporter)
        self.retired, self.counted, self.status, self._left_out = retired, counted, status, left_out

    def _with_record(self, results: Iterable[Result], reporter: Reporter) -> Iterator[Registration]:
        warnings = []
        for result in results:
            if sound_record(result) is not None:
                yield result.registration
                continue
            name, why = named(result.registration), f"{result.outcome}: {result.reason}"
            kind = f"{self._left_out}: {without_names(why, *result.registration.key)}"
            warnings.append((f"{name} is {self._left_out}: {why}", kind, result.outcome))
            self.status = ExitCode.NO
        warn_alike(reporter, warnings)


def retired_keys(session: Session) -> Mapping[RegistrationKey, str]:
    """The keys of the ledger whose records may be gone, each with the reason."""
    ledger = session.open_ledger(for_writing=False)
    reasons = retirement.keys_past_grace(ledger, datetime.now(UTC), session.config.rotation)
    return {key: session.reporter.complete(reason) for key, reason in reasons.items()}


def review_retired(
    session: Session, selection: Selection, *, assume_successors: bool, look: bool = True,
    max_age: str | None = None,
) -> list[RetirementStatus]:  # fmt: skip
    """How far the selected registrations are on their way out, after a look at DNS.

    Without a `look`, those of the last `max_age` count. Raises like `require_empty`; and if
    something may be retired, ClocksDiffer and ServiceError.
    """
    now, age = datetime.now(UTC), read_duration("--max-age-of-check", max_age or MAX_AGE_OF_CHECK)
    rotation = session.config.rotation
    policy = retirement.RetirementPolicy(now, now - age, assume_successors, rotation=rotation)
    known = retirement.known_keys(session.open_ledger(for_writing=False).domains(), selection)
    if not known.selected:
        require_empty(session, selection)
    statuses, fault = known.statuses(policy), None
    if any(status.is_over for status in statuses):
        services = session.client.ask_time()
        fault = clock_fault(datetime.now(UTC), services, "no record is listed for removal")
    if look and any(status.successors for status in statuses):
        from dkimctl.cli.checking import review_now  # asks DNS, and so imports asyncio

        statuses = review_now(session, known, policy, restarts=isinstance(fault, ClocksDiffer))
    if fault is not None:
        raise fault
    return statuses


def report_not_retired(session: Session, statuses: Iterable[RetirementStatus]) -> ExitCode:
    """Warn about those that are due, and cannot be listed; returns the exit code for these."""
    reporter = session.reporter
    by_state: dict[Retirement, list[RetirementStatus]] = {state: [] for state in Retirement}
    for status in statuses:
        by_state[status.retirement].append(status)
    due, kind = by_state[Retirement.DUE], "due, but check first"
    if unknown := by_state[Retirement.UNKNOWN]:
        domains = list(dict.fromkeys(status.registration.sign_domain for status in unknown))
        text = f"not listed: {len(domains)} ({few(domains)}); the ledger does not record which of "
        hint = "if the newer keys replace the older ones, add --assume-successors"
        code = "unknown_successor"
        reporter.warn(f"{text}their keys replaces which", hint=hint, code=code)
    warn_alike(reporter, (
        (f"{named(status.registration)} is {kind}: {reporter.complete(status.reason)}", kind, "due")
        for status in due
    ))  # fmt: skip
    if due:
        selection = next_steps.select_domains(status.registration.sign_domain for status in due)
        hint = f"publish what is missing, then run {next_steps.command('check-dns', selection)}"
        text = f"not listed until their successors are published: {len(due)}"
        reporter.warn(text, hint=hint, code="due")
    signing, ledger = by_state[Retirement.SIGNING], session.open_ledger(for_writing=False)
    warn_alike(reporter, (
        (f"{named(status.registration)} is not listed: {retirement.why_it_stays(status, ledger)}",
         "still signing", "still_signing") for status in signing
    ))  # fmt: skip
    waiting = by_state[Retirement.WAITING]
    if frozen := [named(status.registration) for status in waiting if status.is_over]:
        reporter.note(f"dkimctl: not listed before a freeze ends: {len(frozen)} ({few(frozen)})")
    elif not (due or signing or by_state[Retirement.RETIRED]):
        reporter.note(
            "dkimctl: nothing is retired: a key is retired when its successor has been enabled and "
            "published for the grace period (14 days by default), and has started that long ago"
        )
    left = [*due, *(status for status in signing if status.is_late)]
    return worst_check(ExitCode.SERVICE if status.is_unanswered else ExitCode.NO for status in left)
