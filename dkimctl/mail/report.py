"""What is said of a mail and its signatures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from dkimctl.dns.verdicts import Finding
from dkimctl.models.registration import Registration


class MailVerdict(StrEnum):
    """Whether a signature is valid."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    UNKNOWN = "unknown"  # no answer of DNS, or nothing here can verify it


class Alignment(StrEnum):
    """How a signing domain relates to that of the From field (RFC 7489 section 3.1.1).

    `RELAXED`: one is below the other. `POSSIBLE`: they are below the same name, which may be
    their organizational domain, or a public suffix such as co.uk.
    """

    STRICT = "strict"
    RELAXED = "relaxed"
    POSSIBLE = "possible"
    NONE = "none"


ALIGNED = (Alignment.STRICT, Alignment.RELAXED)


class KnownKey(NamedTuple):
    """What the ledger has of a key. `registration` is None of one that was removed."""

    stage: str
    registration: Registration | None = None


class CheckedSignature(NamedTuple):
    """A signature, and what was found. `reason` explains a bad verdict; `notes` are remarks.

    `key_len` is that of the key in DNS (None: not known). `is_ours`: its domain is registered.
    `known` is None if the key is not in the ledger; else `in_dns` is what check-dns says of it, if
    it has a record.
    """

    sign_domain: str
    selector: str
    algorithm: str
    verdict: MailVerdict
    reason: str = ""
    key_len: int | None = None
    notes: Sequence[str] = ()
    alignment: Alignment = Alignment.NONE
    is_ours: bool = False
    known: KnownKey | None = None
    in_dns: Finding | None = None


class MailReport(NamedTuple):
    """The signatures of a mail, those of registered domains first.

    `from_domains` are those of its From field. `missing` are those of them that are registered,
    although no signature is aligned with them. `unverified` is how many signatures were left out,
    since there are so many; `of_ours`: some of them are of registered domains.
    """

    file: str
    from_domains: Sequence[str]
    signatures: Sequence[CheckedSignature]
    missing: Sequence[str] = ()
    unverified: int = 0
    of_ours: bool = False

    @property
    def verdict(self) -> MailVerdict:
        """PASS if all signatures of registered domains pass, and at least one of all."""
        verdicts = {one.verdict for one in self.signatures}
        registered = {one.verdict for one in self.signatures if one.is_ours}
        if MailVerdict.FAIL in registered or self.of_ours:
            return MailVerdict.FAIL
        if MailVerdict.UNKNOWN in registered:
            return MailVerdict.UNKNOWN
        order = (MailVerdict.PASS, MailVerdict.UNKNOWN)
        return next((verdict for verdict in order if verdict in verdicts), MailVerdict.FAIL)


def alignment(sign_domain: str, from_domains: Sequence[str]) -> Alignment:
    """How a signing domain is aligned with the From field."""
    found = set()
    for domain in from_domains:
        labels = zip(reversed(sign_domain.split(".")), reversed(domain.split(".")), strict=False)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], labels))
        if sign_domain == domain:
            found.add(Alignment.STRICT)
        elif sign_domain.endswith(f".{domain}") or domain.endswith(f".{sign_domain}"):
            found.add(Alignment.RELAXED)
        elif common > 1:
            found.add(Alignment.POSSIBLE)
    return next((one for one in Alignment if one in found), Alignment.NONE)
