"""A ledger of many customers' domains, with keys in all situations of their lives."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dkimctl.dns.verdicts import Verdict
from dkimctl.ledger.ledger import Ledger
from dkimctl.models import DnsRecord, Registration, RegistrationKey, key_of

ACCOUNT = {"base_url": "https://api.example", "client_id": "agency"}
ENVIRONMENT = {"DKIMCTL_BASE_URL": ACCOUNT["base_url"], "DKIMCTL_CLIENT_ID": ACCOUNT["client_id"]}
_LONG = 400  # days
_NAMES = ("shop", "mail", "news", "xn--r8jz45g", "xn--mnchen-3ya", "blog", "store", "ticket")


class Portfolio:
    """Fills an account's ledger in a state directory; ages and times are in days before now."""

    def __init__(
        self,
        state_dir: Path,
        key: str,
        now: datetime | None = None,
        account: Mapping[str, str] = ACCOUNT,
    ) -> None:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = state_dir / "ledger.db"
        self._key = key
        self._account = account
        self._now = now or datetime.now(UTC)
        self._registrations: list[Registration] = []
        self._looks: dict[float, dict[RegistrationKey, str]] = {}
        self._replaced: dict[RegistrationKey, str] = {}

    def add(
        self, domain: str, selector: str = "s1", *, age: float, starts: float | None = None,
        looks: Mapping[float, Verdict] | None = None, replaces: str = "", **fields: object
    ) -> None:  # fmt: skip
        """A key that is `age` days old, and starts then or `starts` days ago."""
        made = self._at(age)
        start = made if starts is None else self._at(starts)
        record = DnsRecord(
            f"{selector}._domainkey.{domain}", "TXT", f"v=DKIM1; k=rsa; p={self._key}"
        )
        one = Registration(
            domain, selector, 2048, start.isoformat(timespec="minutes"), 0, True, record,
            made.isoformat(timespec="seconds"), "201", "created",
        )._replace(**fields)  # fmt: skip
        self._registrations.append(one)
        for when, verdict in (looks or {}).items():
            self._looks.setdefault(when, {})[key_of(domain, selector)] = verdict
        if replaces:
            self._replaced[key_of(domain, selector)] = replaces

    def save(self) -> None:
        """Write the ledger, look by look."""
        for when in sorted({*self._looks, _LONG}, reverse=True):
            clock = self._at(when).timestamp
            with Ledger.open(self._path, **self._account, clock=clock) as ledger:
                if when == _LONG:
                    ledger.record(self._registrations)
                    ledger.note_replacements(self._replaced)
                ledger.note_looks(self._looks.get(when, {}))

    def _at(self, days: float) -> datetime:
        return self._now - timedelta(days=days)


def fill(portfolio: Portfolio, domains: int) -> None:
    """Add so many domains: most are well, some are old, weak, missing, new or replaced."""
    rng = random.Random(19)  # the same each time
    for number in range(domains):
        domain = f"{_NAMES[number % len(_NAMES)]}.customer{number:03}.example"
        age = rng.randrange(5, 170)
        seen = {age - 1: Verdict.PUBLISHED, 0.2: Verdict.PUBLISHED}
        match number % 25:
            case 3:
                portfolio.add(domain, age=age, looks=seen, key_len=1024)
            case 7:
                portfolio.add(domain, age=rng.randrange(170, 178), looks={0.2: Verdict.PUBLISHED})
            case 11:
                portfolio.add(domain, age=190, looks={0.2: Verdict.PUBLISHED})
                starts = -rng.randrange(1, 25)
                portfolio.add(domain, "s2", age=8, starts=starts, looks={0.2: Verdict.PUBLISHED},
                              replaces="s1")  # fmt: skip
            case 17:
                portfolio.add(domain, age=3, starts=-rng.randrange(5, 28))
            case 23:
                portfolio.add(domain, age=age, looks=seen, enable=False)
            case _:
                portfolio.add(domain, age=age, looks=seen)
    for number, verdict in enumerate((Verdict.MISSING, Verdict.MISMATCH, Verdict.MISSING)):
        portfolio.add(f"harmed{number}.example", age=30, looks={2: verdict})
    portfolio.save()
