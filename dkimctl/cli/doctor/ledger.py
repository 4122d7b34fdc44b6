"""The ledger, and whether what is due is done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from dkimctl.cli.doctor.findings import Finding, State, wrong
from dkimctl.cli.session import Session
from dkimctl.errors import LedgerError
from dkimctl.ledger.ledger import Ledger
from dkimctl.models.registration import named
from dkimctl.settings.profile import require_ledger_account
from dkimctl.text.escaping import few
from dkimctl.text.grouping import counted

_ANSWERS = 1000  # for which there should be space on the disk


def open_ledger(session: Session) -> Ledger:
    """The profile's ledger, for the thread of a check, which closes it. Raises LedgerError."""
    base_url, client_id = require_ledger_account(session.profile)
    return Ledger.open_existing(session.ledger_file, base_url=base_url, client_id=client_id)


def check_ledger(session: Session) -> Iterator[Finding]:
    check, path = "ledger", session.ledger_file
    if not _is_writable(path):
        hint = f"make {path.parent} writable for you, or name another in DKIMCTL_STATE_DIR"
        yield Finding(check, State.WRONG, f"you cannot write to {path}", hint)
    if not path.exists():
        yield Finding(check, State.OK, f"none yet; the first `register` creates {path}")
        return
    with open_ledger(session) as ledger:
        ledger.verify()
        domains = ledger.count_domains(*require_ledger_account(session.profile))
        yield Finding(check, State.OK, f"{path} is sound ({counted(domains, 'domain')})")
        if intents := ledger.intents():
            text = f"{counted(len(intents), 'request')} got no answer"
            hint = "register the same file again; `dkimctl list --stage unanswered` shows them"
            yield Finding(check, State.WARNING, text, hint)
        if ledger.quarantined is not None:
            text = f"a damaged ledger was quarantined: {ledger.quarantined}"
            hint = "this one may know less: when it does not, move that file away"
            yield Finding(check, State.WARNING, text, hint)
        try:
            ledger.require_disk_space(_ANSWERS)
        except LedgerError as error:
            yield wrong(check, error)


def check_keys(session: Session) -> Iterator[Finding]:
    """Whether a key signs, or soon will, without DNS; and whether `rotate run` is overdue."""
    from dkimctl.cli.selection import read_selection
    from dkimctl.rotation.stages import read_stages

    rotation, now = session.config.rotation, datetime.now(UTC)
    with open_ledger(session) as ledger:
        statuses = read_stages(ledger, read_selection(session, None), rotation, now)
    urgent = [named(status) for status in statuses if status.urgency]
    if urgent:
        text = f"urgent: {counted(len(urgent), 'key')} ({few(urgent)})"
        hint = "`dkimctl overview` says why, and what to do"
        yield Finding("keys", State.WRONG, text, hint)
    else:
        yield Finding("keys", State.OK, "nothing is urgent")
    overdue = [status for status in statuses if status.is_overdue(now - rotation.lead)]
    if not overdue:
        yield Finding("timer", State.OK, "nothing is overdue")
        return
    since = min(status.due for status in overdue if status.due is not None)
    text = f"overdue since {since:%Y-%m-%d}: {counted(len(overdue), 'key')}"
    hint = "run `dkimctl rotate run` once a day, from a timer"
    yield Finding("timer", State.WRONG, text, hint)


def _is_writable(path: Path) -> bool:
    """Whether the file can be written, or be created with its directory."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    directory = path.parent if path.exists() else place
    return os.access(place, os.W_OK) and os.access(directory, os.W_OK)
