"""The keys of `list`: for JSON and CSV, and as a table for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import compress

from dkimctl.dns.verdicts import Verdict
from dkimctl.formats.data import open_data
from dkimctl.formats.renderer import KeyFormat, TableLayout, render_all
from dkimctl.formats.table import INDENT, Row, Style, below, styled, table
from dkimctl.models import MailStats, own_time, written_time
from dkimctl.rotation.life import NOT_CHECKED, Key, NextAction
from dkimctl.rotation.successors import FEW_LEFT
from dkimctl.settings.rotation import Policies
from dkimctl.text import format_duration, printable, readable

MAIL_FIELDS = ("mail_passed_on", "mail_passed", "mail_failed")
KEY_COLUMNS = (
    "sign_domain", "name", "selector", "key_len", "age_days", "created_at", "starts_at", "enable",
    "state", "looked_at", "stage", "since", "next", "due", "urgency", "note", "fqdn",
    "published_at", "replaced_at", "removable_at", "removed_at", "selectors_left", "owner",
    *MAIL_FIELDS,
)  # fmt: skip


def render_keys(
    keys: Iterable[Key], fmt: KeyFormat, layout: TableLayout, now: datetime, *, notes: bool,
    without: Collection[str] = (),
) -> Iterator[str]:  # fmt: skip
    """A list of keys in `fmt`; of `layout`, `wide` adds columns, and the FQDN below each row.

    `notes`: a table also says below a row what is urgent, or waits for people. `without`: it has no
    such columns.
    """
    if fmt is not KeyFormat.TABLE:
        return render_all(open_data(fmt, KEY_COLUMNS, key_row, "count"), keys)
    shown = [name not in without for name in _COLUMNS]
    columns = [*compress(_COLUMNS, shown)]
    rows = (_row(key, shown, layout, now, notes=notes) for key in keys)
    return table(columns, rows, layout, optional=[each for each in _OPTIONAL if each in columns])


def key_fields(key: Key) -> dict[str, str | int | None]:
    """The values of KEY_COLUMNS by name; None: not known, or none."""
    return dict(zip(KEY_COLUMNS, key_row(key), strict=True))


def key_row(key: Key) -> tuple[str | int | None, ...]:
    """The values of KEY_COLUMNS; times are UTC, to the second."""
    dates = key.dates
    return (
        key.sign_domain, readable(key.sign_domain), key.selector, key.key_len,
        None if key.age is None else key.age.days, written_time(dates.created_at),
        written_time(key.starts_at), key.enable, key.state, written_time(key.looked_at),
        key.stage, written_time(key.since), key.action, written_time(key.due),
        key.urgency or None, key.note or None, key.fqdn,
        written_time(dates.published_at), written_time(dates.replaced_at),
        written_time(dates.removable_at), written_time(dates.removed_at), key.left,
        key.policy.owner or None, *mail_row(key.mail),
    )  # fmt: skip


def mail_row(mail: MailStats | None) -> tuple[str | int | None, ...]:
    """The values of MAIL_FIELDS, without messages where no reports tell of the domain."""
    counts = mail[:2] if mail is not None and mail.is_reported else (None, None)
    return str(mail.passed_on) if mail and mail.passed_on else None, *counts


MAIL_COLUMNS = ("PASSED ON", "MAIL", "FAILED")
_COLUMNS = (
    "DOMAIN", "SELECTOR", "BITS", "AGE", "START", "ON", "STATE", "SEEN", "STAGE", "NEXT", "DUE",
    *MAIL_COLUMNS, "LEFT", "OWNER",
)  # fmt: skip
# The first that a narrow table lacks first.
_OPTIONAL = ("ON", "SEEN", "BITS", "AGE", "START", "OWNER", *reversed(MAIL_COLUMNS))
_GOOD_STATES = {
    Verdict.PUBLISHED: Style.GREEN,
    Verdict.DIFFERS: Style.YELLOW,
    Verdict.NO_ANSWER: Style.YELLOW,
    NOT_CHECKED: Style.YELLOW,
}


def _row(
    key: Key, shown: Sequence[bool], layout: TableLayout, now: datetime, *, notes: bool
) -> Row:
    lines = []
    if layout.wide and key.fqdn:  # on one line, to be copied
        lines.append(f"{INDENT}{styled(printable(key.fqdn), Style.DIM, layout)}\n")
    if notes and key.note and key.needs_attention:
        note, style = key.note, Style.YELLOW
        if key.urgency or key.is_last or key.is_not_followed:
            note, style = f"URGENT: {note}", Style.BOLD_RED
        lines += below(note, layout, style)
    mail = key.mail
    cells = (
        readable(key.sign_domain, layout.encoding),
        key.selector,
        str(key.key_len or ""),
        "" if key.age is None else format_duration(key.age, units=1),
        _day(own_time(key.registration.start_date) or key.starts_at),
        "" if key.enable is None else ("yes" if key.enable else "no"),
        key.state,
        format_duration(now - key.looked_at, units=1) if key.looked_at else "",
        key.stage,
        # In one word, since most rows have it.
        "register" if key.action is NextAction.REGISTER else key.action,
        _day(key.due),
        str(mail.passed_on or "") if mail is not None else "",
        "" if mail is None else f"{mail.messages:,}" if mail.is_reported else "no reports",
        mail.failed_percent if mail is not None and mail.messages else "",
        "" if key.left is None else str(key.left),
        key.policy.owner,
    )
    styles = [_style(key, name) for name in compress(_COLUMNS, shown)] if layout.colour else ()
    return Row([*compress(cells, shown)], styles, lines)


def _style(key: Key, column: str) -> str:
    if column == "STATE" and key.state is not None:
        return Style.BOLD_RED if key.urgency else _GOOD_STATES.get(key.state, Style.RED)
    if column == "FAILED" and key.mail is not None and key.mail.is_failing:
        return Style.YELLOW
    if column == "LEFT" and key.left is not None and key.left <= FEW_LEFT:
        return Style.BOLD_RED if key.is_last else Style.YELLOW
    if key.urgency and column in ("NEXT", "DUE"):
        return Style.BOLD_RED
    return Style.DIM if key.action is NextAction.NONE else ""


_DAY = timedelta(days=1)
POLICY_COLUMNS = (
    "sign_domain", "name", "policy", "domains", "max_age", "lead", "grace", "limit", "key_len",
    "selectors", "freeze", "owner",
)  # fmt: skip


def render_policies(
    domains: Collection[str], policies: Policies, fmt: KeyFormat, layout: TableLayout
) -> Iterator[str]:
    """The policy of each domain; its number is that of the entry of `rotation`, from 1."""
    numbers = {id(entry): number for number, entry in enumerate(policies.entries, start=1)}

    def row(domain: str) -> tuple[str | int | None, ...]:
        policy, pool = policies.of(domain), policies.pool_of(domain)
        days = ((begin.date(), (end - _DAY).date()) for begin, end in policy.freeze)
        return (
            domain, readable(domain), numbers.get(id(policy)), " ".join(policy.domains) or None,
            *(f"{time / _DAY:g}d" for time in policy[:3]), policy.limit, policy.key_len,
            pool.selectors if pool else policy.selectors,
            ", ".join(f"{first}/{last}" for first, last in days) or None, policy.owner or None,
        )  # fmt: skip

    if fmt is not KeyFormat.TABLE:
        return render_all(open_data(fmt, POLICY_COLUMNS, tuple, "count"), map(row, domains))
    titles = ("DOMAIN", "POLICY", *(name.upper() for name in POLICY_COLUMNS[4:]))
    rows = (
        Row(["" if cell is None else str(cell) for cell in
             (readable(domain, layout.encoding), number or "defaults", *rest)])
        for domain, (_, _, number, _, *rest) in zip(domains, map(row, domains), strict=True)
    )  # fmt: skip
    return table(titles, rows, layout, optional=("GRACE", "LEAD", "KEY_LEN"))


@lru_cache(maxsize=1024)
def _day(time: datetime | None) -> str:
    return str(time.date()) if time else ""
