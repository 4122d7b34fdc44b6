from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dkimctl.models import DnsRecord, Outcome, Registration, Result

KEY_2048 = "v=DKIM1; g=*; k=rsa; p=" + "MIIBIjANBgkqhkiG" * 24 + "IDAQAB=="


def make_result(outcome: Outcome = Outcome.CREATED, *, reason: str = "", **changes: Any) -> Result:
    """A result as from the service, with `changes` to the registration."""
    domain = changes.get("sign_domain", "example.com")
    fields: dict[str, Any] = {
        "sign_domain": domain,
        "selector": "s1",
        "key_len": 2048,
        "start_date": "2026-03-01T00:00+09:00",
        "default": 0,
        "enable": True,
        "record": DnsRecord(f"s1._domainkey.{domain}", "TXT", KEY_2048),
        "regist_date": "2026-02-01T10:00:00+09:00",
        "code": "201",
        "message": "created",
    }
    return Result(Registration(**(fields | changes)), outcome, reason)


@pytest.fixture(scope="session")
def result() -> Callable[..., Result]:
    return make_result


@pytest.fixture(scope="session")
def every_outcome() -> list[Result]:
    """One result of each outcome; those that answered have a record."""
    unanswered = dict.fromkeys(("record", "code", "message"))
    bad = DnsRecord("s1._domainkey.unusable.example", "TXT", "v=DKIM1; p=\x1b[2J")
    changes: dict[Outcome, dict[str, Any]] = {
        Outcome.PENDING: unanswered,
        Outcome.TAKEN: {"record": None},
        Outcome.INVALID: {"record": None, "code": "400"},
        Outcome.UNUSABLE: {"record": bad, "reason": "its p= is not base64"},
        Outcome.FAILED: {"record": None, "code": "500"},
        Outcome.UNKNOWN: unanswered | {"reason": "no answer came"},
    }
    return [
        make_result(outcome, sign_domain=f"{outcome}.example", **changes.get(outcome, {}))
        for outcome in Outcome
    ]


@pytest.fixture(scope="session")
def results(result) -> Callable[[Sequence[DnsRecord]], list[Result]]:
    return lambda records: [
        result(sign_domain=record.fqdn.partition("._domainkey.")[2], record=record)
        for record in records
    ]
