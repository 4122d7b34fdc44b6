"""What a run works with, passed in by its caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dkimctl.settings.config import RotationSettings

if TYPE_CHECKING:
    from dkimctl.dns.check import Progress
    from dkimctl.dns.queries import Source
    from dkimctl.dns.verdicts import Verdict
    from dkimctl.ledger.ledger import Ledger
    from dkimctl.publishing.changes import ConfiguredTarget
    from dkimctl.registration.limits import Limits, RunObserver
    from dkimctl.registration.retrying import Send


class OpenLedger(Protocol):
    def __call__(self, *, for_writing: bool) -> Ledger: ...


class Tools(NamedTuple):
    """The ledger, the service and DNS, as the caller reaches them.

    `lock_account` holds the lock of the account's registrations. `connect` returns what sends a
    batch. `stopping` calls what it gets at a signal. `observing` and `watching` show the progress
    of registrations, by their number, and of checks, by the wanted verdict.
    """

    open_ledger: OpenLedger
    lock_account: Callable[[], AbstractContextManager[None]]
    connect: Callable[[], Send]
    limits: Limits
    open_targets: Callable[[], Sequence[ConfiguredTarget]]
    open_source: Callable[[], Source]
    warn: Callable[[str], None]
    stopping: Callable[[Callable[[], None]], AbstractContextManager[None]]
    observing: Callable[[int], AbstractContextManager[RunObserver]]
    watching: Callable[[Verdict], AbstractContextManager[Progress]]
    clock: Callable[[], datetime]


class RunPolicy(NamedTuple):
    """`wait`: for how many seconds to look at DNS again after a change. `is_dry`: only plan."""

    rotation: RotationSettings
    wait: float = 120.0
    is_dry: bool = False
