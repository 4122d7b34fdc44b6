"""What the registered keys need next: what is urgent comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dkimctl.cli.guide.steps import Guide, Step
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.urgent import WARNINGS
from dkimctl.dns.verdicts import Urgency
from dkimctl.models.keys import NOT_IN_USE, KeyStage, KeyStatus, NextAction
from dkimctl.models.registration import named
from dkimctl.settings.profile import require_ledger_account
from dkimctl.text.escaping import few
from dkimctl.text.grouping import counted

if TYPE_CHECKING:
    from dkimctl.cli.session import Session

_MOST = 5_000  # domains whose keys are looked through in half a second
_OVERVIEW = Step("`dkimctl overview`", "what matters today, this week and this month")
_CHECK = Step("`dkimctl check-dns`", "ask DNS whether all records are there")


def guide_to_keys(session: Session) -> Guide | None:
    """What the profile's keys need, by the ledger; None if it has none."""
    from dkimctl.cli.selection import read_selection
    from dkimctl.rotation.stages import read_stages

    ledger = session.open_ledger(for_writing=False)
    domains = ledger.count_domains(*require_ledger_account(session.profile))
    if domains > _MOST:
        return Guide([f"{domains:,} domains are registered."], [_OVERVIEW, _CHECK])
    now = datetime.now(UTC)
    statuses = read_stages(ledger, read_selection(session, None), session.config.rotation, now)
    if not statuses:
        return None
    return guide_of(statuses, now, by_target=session.has_dns_targets)


def guide_of(statuses: Sequence[KeyStatus], now: datetime, *, by_target: bool) -> Guide:
    """What these keys need; `by_target`: the config file says how to change DNS."""
    used = [status for status in statuses if status.stage not in NOT_IN_USE]
    stages = Counter(str(status.stage) for status in statuses)
    counts = ", ".join(f"{stage} {stages[stage]}" for stage in KeyStage if stages[stage])
    domains = len({status.sign_domain for status in used})
    summary = f"{counted(len(used), 'key')} of {counted(domains, 'domain')}: {counts}."
    guide = (
        _urgent(statuses, by_target=by_target)
        or _undecided(statuses)
        or _unpublished(statuses, by_target=by_target)
        or _due(statuses, now, by_target=by_target)
        or _all_well(statuses)
    )
    return guide._replace(lines=[*guide.lines, summary])


def _urgent(statuses: Sequence[KeyStatus], *, by_target: bool) -> Guide | None:
    urgent = [status for status in statuses if status.urgency]
    lines = []
    for urgency, text in WARNINGS.items():
        if some := [named(status) for status in urgent if status.urgency == urgency]:
            word = "URGENT" if urgency is not Urgency.SOON else "Soon urgent"
            lines.append(f"{word}: {text}: {len(some)} ({few(some)}).")
    steps = _to_publish(urgent, by_target=by_target)
    return Guide(lines, steps, is_urgent=True) if urgent else None


def _undecided(statuses: Sequence[KeyStatus]) -> Guide | None:
    undecided = [named(status) for status in statuses if status.needs_attention]
    if not undecided:
        return None
    line = f"{_keys(len(undecided), 'needs', 'need')} a decision of yours: {few(undecided)}."
    return Guide([line], [Step("`dkimctl list --sort-by due`", "see the notes")])


def _unpublished(statuses: Sequence[KeyStatus], *, by_target: bool) -> Guide | None:
    missing = [status for status in statuses if status.action is NextAction.PUBLISH]
    if not missing:
        return None
    names = few([named(status) for status in missing])
    line = f"{_keys(len(missing), 'has', 'have')} not been seen in DNS: {names}."
    return Guide([line], _to_publish(missing, by_target=by_target))


def _due(statuses: Sequence[KeyStatus], now: datetime, *, by_target: bool) -> Guide | None:
    due = [status for status in statuses if status.due is not None and status.due <= now]
    old = [status for status in due if status.action is NextAction.REGISTER]
    gone = [status for status in due if status.action is NextAction.REMOVE]
    lines = []
    steps = []
    if old:
        names = few([named(status) for status in old])
        lines.append(f"{_keys(len(old), 'is', 'are')} due for replacement: {names}.")
        selection = next_steps.select_domains(status.sign_domain for status in old)
        steps.append(Step(next_steps.rotate(selection), "print the specs of their successors"))
    if gone:
        names = few([named(status) for status in gone])
        lines.append(f"{_keys(len(gone), 'is', 'are')} retired, and can leave DNS: {names}.")
        steps.append(Step("`dkimctl rotate --retired`", "look at DNS, and list them"))
    if by_target:
        steps = [Step("`dkimctl rotate run`", "do it; once a day from a timer, it always will")]
    return Guide(lines, steps) if lines else None


def _all_well(statuses: Sequence[KeyStatus]) -> Guide:
    planned = [status for status in statuses if status.due and status.action is not NextAction.NONE]
    if not planned:
        return Guide(["All is well."], [_OVERVIEW, _CHECK])
    first = min(planned, key=lambda status: status.due or datetime.max.replace(tzinfo=UTC))
    line = f"All is well. Next: {first.due:%Y-%m-%d}, {_what(first)}, {named(first)}."
    return Guide([line], [_OVERVIEW, _CHECK])


def _what(status: KeyStatus) -> str:
    """What is due; who waits does so for the start."""
    return "signing starts" if status.action is NextAction.WAIT else str(status.action)


def _to_publish(keys: Sequence[KeyStatus], *, by_target: bool) -> list[Step]:
    selection = next_steps.select_domains(status.sign_domain for status in keys)
    if by_target:
        publish = Step(next_steps.publish(selection, by_target=True), "put the records into DNS")
    else:
        publish = Step(next_steps.show_all(selection), "show the records to put into DNS")
    return [publish, Step(next_steps.wait_for(selection), "wait until all servers have them")]


def _keys(count: int, one: str, several: str) -> str:
    return f"{counted(count, 'key')} {one if count == 1 else several}"
