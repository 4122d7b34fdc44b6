"""Verify the signatures of a mail, as receivers do, and compare their keys with the ledger."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from dkimctl.dkim import KeyRecordError, parse_public_key, parse_tag_list, record_fault
from dkimctl.dns.check import Checker
from dkimctl.dns.messages import MAX_ALIASES, TXT, Question, make_question, make_txt_question
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.queries import Source, ask, gather, texts
from dkimctl.dns.verdicts import Finding, Verdict
from dkimctl.errors import UsageError
from dkimctl.mail.message import (
    ALIGNED,
    ED25519,
    CheckedSignature,
    KnownKey,
    MailReport,
    MailVerdict,
    Message,
    Signature,
    alignment,
    from_domains,
    read_signature,
)
from dkimctl.models import Registration, RegistrationKey, key_of
from dkimctl.text import quoted

MAX_SIGNATURES = 20  # that are verified
_MAX_READ = 20_000  # that are read, to find those of registered domains
_MAX_RECORDS = 5  # that are tried
_MIN_BITS = 1024  # RFC 8301 section 3.2
_RECOMMENDED_BITS = 2048  # by the same section
# Longer ones take long to verify with; these are the limits of OpenSSL.
_MAX_BITS = 16_384
_MAX_EXPONENT_BITS = 64
_ED25519_BYTES = 32
_MAX_VALUE = 8_192  # characters
_BODY_DIFFERS = "body hash mismatch"  # what dkimpy's message begins with


def require_dkimpy() -> None:
    """Raise UsageError without dkimpy."""
    try:
        import dkim  # noqa: F401
    except ImportError:
        raise UsageError(
            "verifying mail needs dkimpy, which is not installed",
            hint="run `pip install 'dkimctl[mail]'`",
        ) from None


def verify_mail(
    message: Message,
    file: str,
    receiver: Source,
    checked_at: Source,
    read_known: Callable[[Collection[str]], Mapping[RegistrationKey, KnownKey]],
    now: float,
) -> MailReport:
    """Verify at most MAX_SIGNATURES signatures, those of registered domains first.

    Keys are looked up at `receiver`, and registered ones `checked_at` the other source.
    `read_known` gives what the ledger has of the keys of some domains; `now` is in seconds since
    1970. Not for use within an event loop.
    """
    fields, senders = message.all(b"dkim-signature"), from_domains(message)
    signatures = [read_signature(field, now) for field in fields[:_MAX_READ]]
    known = read_known({*senders, *(signature.sign_domain for signature in signatures)})
    ours = [name.registration for name in known.values() if name.registration]
    domains = {
        registration.key.sign_domain for registration in ours if not registration.is_taken
    }  # that this account has
    signatures.sort(key=lambda signature: signature.sign_domain not in domains)
    chosen, rest = signatures[:MAX_SIGNATURES], signatures[MAX_SIGNATURES:]
    names = [signature.record_name for signature in chosen if not signature.fault]
    lookups = asyncio.run(_look_up_keys(names, receiver))
    # What check-dns finds for the registered keys.
    keys = [key_of(signature.sign_domain, signature.selector) for signature in chosen]
    registered = [known[key].registration for key in dict.fromkeys(keys) if key in known]
    sound = [
        registration
        for registration in registered
        if registration is not None and not record_fault(registration)
    ]
    in_dns = {check.key: check.finding for check in Checker(checked_at).check(sound)}
    checked = []
    for result, key in zip(chosen, keys, strict=True):
        judged = _judge(message, result, lookups.get(result.record_name, Lookup()))
        notes = [*_notes(result, judged)]
        registration = known[key].registration if key in in_dns else None
        if registration is not None:
            notes += _notes_on_registered(message, result, judged, registration, in_dns[key])
        checked.append(
            CheckedSignature(
                result.sign_domain, result.selector, result.algorithm, judged.verdict,
                judged.reason,
                judged.key.key_len if judged.key else None, notes,
                alignment(result.sign_domain, senders), result.sign_domain in domains,
                known.get(key), in_dns.get(key),
            )
        )  # fmt: skip
    # The registered domains of the From field that no signature is aligned with.
    signed = {signature.sign_domain for signature in signatures}
    missing = [
        sender
        for sender in senders
        if sender in domains
        and not any(alignment(domain, [sender]) in ALIGNED for domain in signed)
    ]
    return MailReport(
        file, senders, checked, missing, unverified=len(fields) - len(chosen),
        of_ours=any(signature.sign_domain in domains for signature in rest),
    )  # fmt: skip


class Lookup(NamedTuple):
    """The TXT values at a name; `failure`: why they are not known, or ""."""

    values: tuple[str, ...] = ()
    failure: str = ""


async def _look_up_keys(names: Iterable[str], source: Source) -> dict[str, Lookup]:
    """What is at each of the names, with plain labels (names.is_name), as receivers find it."""

    async def look_up(name: str) -> Lookup:
        try:
            zone = await source.zone_with(name)
            question = make_txt_question(name)
            lookups = await gather(_look_up(source, server, question) for server in zone.servers)
        except NoAnswer as error:
            return Lookup(failure=str(error))
        known = {item for item in lookups if not item.failure}
        if len(known) > 1:
            return Lookup(failure="the servers have different records")
        return known.pop() if known else Lookup(failure=lookups[0].failure)

    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, await gather(map(look_up, distinct)), strict=True))


async def _look_up(source: Source, server: NameServer, question: Question) -> Lookup:
    """What a server has at a name, or where its aliases lead."""
    for _ in range(MAX_ALIASES):
        response = await ask(source, server, question)
        answer = response.answer
        if answer is None:
            return Lookup(failure=f"{server.label}: {response.failure}")
        if answer.bogus:
            return Lookup(failure=answer.bogus)
        if answer.values or not answer.alias:
            return Lookup(tuple(sorted(texts(answer))))
        question = make_question(answer.alias, TXT)
    return Lookup(failure=f"more than {MAX_ALIASES} aliases (CNAME) in a row")


class MailKey(NamedTuple):
    """A public key. `value` is a key record with it alone, `key_len` in bits."""

    value: bytes
    key_len: int
    flags: frozenset[str]


class Judgement(NamedTuple):
    """A verdict; `reason` explains a bad one, and `key` is the one in DNS, if it can be used."""

    verdict: MailVerdict
    reason: str = ""
    key: MailKey | None = None


def _judge(message: Message, signature: Signature, lookup: Lookup) -> Judgement:
    """What a receiver finds. Of several TXT records, each has to verify: it may take any."""
    if signature.fault:
        return Judgement(MailVerdict.FAIL, signature.fault)
    name, values = signature.record_name, lookup.values
    if lookup.failure:
        return Judgement(MailVerdict.UNKNOWN, f"DNS does not tell the key: {lookup.failure}")
    if not values:
        return Judgement(MailVerdict.FAIL, f"there is no key record at {name}")
    judged = [_judge_by(message, signature, value) for value in values[:_MAX_RECORDS]]
    bad = [check for check in judged if check.verdict is not MailVerdict.PASS]
    if not bad or len(values) == 1:
        return judged[0]
    reason = f"receivers may take any of {len(values)} TXT records at {name}: {bad[0].reason}"
    return bad[0]._replace(reason=reason)


def _judge_by(message: Message, signature: Signature, value: str) -> Judgement:
    """What a receiver finds that takes this TXT value. The signature has no fault."""
    try:
        key = read_key(value, signature)
    except KeyRecordError as error:
        return Judgement(MailVerdict.FAIL, f"the key record {error}")
    import dkim

    verifier = dkim.DKIM()
    # Not through its own parser, which takes time with the square of a header's length.
    names = {name.encode("utf-8", "surrogateescape") for name in signature.signed_names}
    fields = [field for field in message.fields if field is signature.field or field.key in names]
    verifier.headers = [[field.name, field.value] for field in fields]
    is_relaxed = signature.tags.get("c", "").endswith("/relaxed")
    verifier.body = message.squeezed_body if is_relaxed else message.body
    signatures = [field for field in fields if field.key == signature.field.key]
    at = next(number for number, field in enumerate(signatures) if field is signature.field)
    try:
        if verifier.verify(at, dnsfunc=lambda name, timeout: key.value):
            return Judgement(MailVerdict.PASS, key=key)
        reason = "a signed header field was changed on its way, or another key has signed it"
    except dkim.NaClNotFoundError:
        reason = "Ed25519 signatures need PyNaCl: `pip install pynacl`"
        return Judgement(MailVerdict.UNKNOWN, reason, key)
    except dkim.ValidationError as error:
        reason = "malformed: dkimpy refuses its tags"
        if str(error).startswith(_BODY_DIFFERS):
            reason = "the body was changed on its way: its hash differs (bh=)"
    except Exception:  # noqa: BLE001 - it raises other errors than its own at malformed data
        reason = "malformed: dkimpy cannot read it"
    return Judgement(MailVerdict.FAIL, reason, key)


def read_key(value: str, signature: Signature) -> MailKey:
    """The key in a TXT value. Raises KeyRecordError, whose text completes "the key record …"."""
    if len(value) > _MAX_VALUE:
        raise KeyRecordError(f"has {len(value):,} characters, more than {_MAX_VALUE:,}")
    try:
        tags = parse_tag_list(value, tolerant=True)
    except KeyRecordError as error:
        raise KeyRecordError(f"is malformed: {error}") from None
    if fault := next(_key_faults(tags, signature), ""):
        raise KeyRecordError(fault)
    key = re.sub(r"\s", "", tags["p"])
    kind = signature.algorithm.partition("-")[0]
    if signature.algorithm == ED25519:
        key_len = 8 * _ED25519_BYTES
        try:
            is_sound = len(base64.b64decode(key, validate=True)) == _ED25519_BYTES
        except ValueError:
            is_sound = False
        if not is_sound:
            raise KeyRecordError("is malformed: its p= is not an Ed25519 key")
    else:
        key_len = _rsa_bits(key)
    return MailKey(f"v=DKIM1; k={kind}; p={key}".encode(), key_len, _items(tags.get("t", "")))


def _key_faults(tags: Mapping[str, str], signature: Signature) -> Iterator[str]:
    if tags.get("v", "DKIM1") != "DKIM1" or "p" not in tags:
        yield "is not a DKIM key record"
    if not tags["p"]:
        yield "is revoked: its key is empty (p=)"
    if not tags["p"].isascii():
        yield "is malformed: its p= is not base64"
    kind, _, hash_name = signature.algorithm.partition("-")
    if tags.get("k", "rsa") != kind:
        yield f"has a key of another type, k={quoted(tags.get('k', 'rsa'))}"
    if "h" in tags and hash_name not in _items(tags["h"]):
        yield f"does not allow {hash_name} (h=)"
    if "s" in tags and not _items(tags["s"]) & {"*", "email"}:
        yield "is not for mail (s=)"
    agent = signature.tags.get("i", "").rpartition("@")[2].lower()
    if "s" in _items(tags.get("t", "")) and agent not in ("", signature.tags["d"].lower()):
        yield "does not allow i= to be in a subdomain (t=s)"


def _rsa_bits(text: str) -> int:
    try:
        key = parse_public_key(text)
    except KeyRecordError as error:
        raise KeyRecordError(f"is malformed or truncated: {error}") from None
    if key.key_len < _MIN_BITS:
        raise KeyRecordError(
            f"has a weak key of {key.key_len} bits: receivers accept {_MIN_BITS} or more (RFC 8301)"
        )
    if key.key_len > _MAX_BITS or key.exponent.bit_length() > _MAX_EXPONENT_BITS:
        raise KeyRecordError("has a key that is too long")
    return key.key_len


def _items(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"\s", "", text).split(":"))


def _notes(signature: Signature, judged: Judgement) -> Iterator[str]:
    """What weakens a signature that has no fault."""
    if signature.fault:
        return
    if "l" in signature.tags:
        yield (
            f"only the first {signature.tags['l'].lstrip('0') or '0'} bytes of the body are "
            "signed (l=): anyone can add to it"
        )
    if judged.key is None:
        return
    if "y" in judged.key.flags:
        yield "the key is for testing (t=y): receivers treat such mail like unsigned mail"
    if signature.algorithm.startswith("rsa") and judged.key.key_len < _RECOMMENDED_BITS:
        yield f"the key is short: {_RECOMMENDED_BITS} bits are recommended"


def _notes_on_registered(
    message: Message,
    signature: Signature,
    judged: Judgement,
    registration: Registration,
    finding: Finding,
) -> Iterator[str]:
    """What check-dns says of the key, and where the fault is if the signature is not valid."""
    if finding.verdict not in (Verdict.PUBLISHED, Verdict.NO_ANSWER):
        yield "check-dns: " + ": ".join(filter(None, (finding.verdict, finding.reason)))
    if signature.fault or judged.verdict is MailVerdict.PASS or registration.record is None:
        return
    is_unknown = judged.verdict is MailVerdict.UNKNOWN
    if finding.verdict is Verdict.PUBLISHED and not is_unknown:
        return  # it was that very key
    if _judge_by(message, signature, registration.record.value).verdict is MailVerdict.PASS:
        yield "it is valid with the registered key" + ("" if is_unknown else ": DNS is at fault")
    else:
        yield "it is not valid with the registered key" + ("" if is_unknown else " either")
