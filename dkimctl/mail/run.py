"""Verify the signatures of a mail, as receivers do, and compare their keys with the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from dkimctl.dkim import record_fault
from dkimctl.dns.check import Checker
from dkimctl.dns.queries import Source
from dkimctl.dns.verdicts import Finding
from dkimctl.mail.judging import Judgement, judge
from dkimctl.mail.lookups import KeyLookups, Lookup
from dkimctl.mail.message import Message
from dkimctl.mail.notes import notes_on, notes_on_registered
from dkimctl.mail.report import (
    ALIGNED,
    CheckedSignature,
    KnownKey,
    MailReport,
    alignment,
)
from dkimctl.mail.sender import from_domains
from dkimctl.mail.signature import Signature, read_signature
from dkimctl.models.registration import RegistrationKey, key_of

MAX_SIGNATURES = 20  # that are verified
_MAX_READ = 20_000  # that are read, to find those of registered domains


class KnownKeys(NamedTuple):
    """What the ledger has of some domains: their keys."""

    keys: Mapping[RegistrationKey, KnownKey]

    @property
    def domains(self) -> set[str]:
        """The domains that are registered by this account."""
        registered = (one.registration for one in self.keys.values())
        return {one.key.sign_domain for one in registered if one and not one.is_taken}


class Sources(NamedTuple):
    """Where keys are looked up, as a receiver does; and where registered keys are checked."""

    receiver: Source
    check: Source


def verify_mail(
    message: Message,
    file: str,
    sources: Sources,
    read_known: Callable[[Collection[str]], KnownKeys],
    now: float,
) -> MailReport:
    """Verify at most MAX_SIGNATURES signatures, those of registered domains first.

    `read_known` gets domains; `now` is in seconds since 1970. Not for use within an event loop.
    """
    fields, senders = message.signatures, from_domains(message)
    signatures = [read_signature(field, now) for field in fields[:_MAX_READ]]
    known = read_known({*senders, *(one.sign_domain for one in signatures)})
    signatures.sort(key=lambda one: one.sign_domain not in known.domains)
    chosen, rest = signatures[:MAX_SIGNATURES], signatures[MAX_SIGNATURES:]
    lookups = _look_up(chosen, sources.receiver)
    in_dns = _check(chosen, known, sources.check)
    checked = []
    for one in chosen:
        judged = judge(message, one, lookups.get(one.record_name, Lookup()))
        remarks = [*notes_on(one, judged), *_remarks(message, one, judged, known, in_dns)]
        checked.append(_checked(one, judged, senders, known, in_dns)._replace(notes=remarks))
    return MailReport(
        file, senders, checked, _missing(senders, signatures, known.domains),
        unverified=len(fields) - len(chosen),
        of_ours=any(one.sign_domain in known.domains for one in rest),
    )  # fmt: skip


def _look_up(signatures: Iterable[Signature], source: Source) -> dict[str, Lookup]:
    names = [one.record_name for one in signatures if not one.fault]
    return asyncio.run(KeyLookups(source).find(names))


def _check(
    signatures: Iterable[Signature], known: KnownKeys, source: Source
) -> dict[RegistrationKey, Finding]:
    """What check-dns finds for the registered keys of signatures."""
    keys = {_key(one): None for one in signatures}
    registered = [known.keys[key].registration for key in keys if key in known.keys]
    sound = [one for one in registered if one is not None and not record_fault(one)]
    with Checker(source) as checker:
        return {check.key: check.finding for check in checker.check(sound)}


def _remarks(
    message: Message,
    signature: Signature,
    judged: Judgement,
    known: KnownKeys,
    in_dns: Mapping[RegistrationKey, Finding],
) -> Iterable[str]:
    key = _key(signature)
    if key not in in_dns or (registration := known.keys[key].registration) is None:
        return ()
    return notes_on_registered(message, signature, judged, registration, in_dns[key])


def _checked(
    signature: Signature,
    judged: Judgement,
    senders: Sequence[str],
    known: KnownKeys,
    in_dns: Mapping[RegistrationKey, Finding],
) -> CheckedSignature:
    key = _key(signature)
    return CheckedSignature(
        signature.sign_domain, signature.selector, signature.algorithm,
        judged.verdict, judged.reason, judged.key.key_len if judged.key else None,
        alignment=alignment(signature.sign_domain, senders),
        is_ours=signature.sign_domain in known.domains,
        known=known.keys.get(key), in_dns=in_dns.get(key),
    )  # fmt: skip


def _missing(
    senders: Sequence[str], signatures: Iterable[Signature], registered: Collection[str]
) -> list[str]:
    """The registered domains of the From field that no signature is aligned with."""
    domains = {one.sign_domain for one in signatures}
    return [
        sender
        for sender in senders
        if sender in registered
        and not any(alignment(domain, [sender]) in ALIGNED for domain in domains)
    ]


def _key(signature: Signature) -> RegistrationKey:
    return key_of(signature.sign_domain, signature.selector)
