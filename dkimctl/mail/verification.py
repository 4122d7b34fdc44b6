"""Verify the signatures of a mail, as receivers do, and compare their keys with the ledger."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from dkimctl.dkim import KeyRecordError, parse_public_key, parse_tag_list, record_fault, tag_items
from dkimctl.dns.check import Checker
from dkimctl.dns.messages import MAX_ALIASES, TXT, Question, make_question, make_txt_question
from dkimctl.dns.nameserver import NameServer, NoAnswer
from dkimctl.dns.queries import Source, ask, gather
from dkimctl.dns.verdicts import Finding, Verdict
from dkimctl.errors import UsageError
from dkimctl.mail import message as mail
from dkimctl.mail.message import MailVerdict, Message, Signature
from dkimctl.models import Registration, RegistrationKey, key_of
from dkimctl.text import install_beside, quoted

MAX_SIGNATURES = 20  # that are verified
_MAX_READ = 20_000  # that are read, to find those of registered domains
_MAX_RECORDS = 5  # that are tried
_MIN_BITS, _RECOMMENDED_BITS = 1024, 2048  # RFC 8301 section 3.2
# Longer ones take long to verify with; these are the limits of OpenSSL.
_MAX_BITS = 16_384
_MAX_EXPONENT_BITS = 64
_MAX_VALUE = 8_192  # characters


def require_dkimpy() -> None:
    """Raise UsageError without dkimpy."""
    try:
        import dkim  # noqa: F401
    except ImportError:
        what = "verifying mail needs dkimpy, which is not installed"
        raise UsageError(what, hint=install_beside("dkimpy")) from None


def verify_mail(
    message: Message, file: str, receiver: Source, checked_at: Source,
    read_known: Callable[[Collection[str]], Mapping[RegistrationKey, mail.KnownKey]], now: float,
) -> mail.MailReport:  # fmt: skip
    """Verify at most MAX_SIGNATURES signatures, those of registered domains first.

    Keys are looked up at `receiver`, and registered ones `checked_at` the other source.
    `read_known` gives what the ledger has of the keys of some domains; `now` is in seconds since
    1970. Not for use within an event loop.
    """
    fields, senders = message.all(b"dkim-signature"), mail.from_domains(message)
    signatures = [mail.read_signature(field, now) for field in fields[:_MAX_READ]]
    known = read_known({*senders, *(signature.sign_domain for signature in signatures)})
    domains = {  # that this account has
        name.registration.key.sign_domain
        for name in known.values()
        if name.registration and not name.registration.is_taken
    }
    signatures.sort(key=lambda signature: signature.sign_domain not in domains)
    chosen, rest = signatures[:MAX_SIGNATURES], signatures[MAX_SIGNATURES:]
    names = [signature.record_name for signature in chosen if not signature.fault]
    lookups = asyncio.run(_look_up_keys(names, receiver))
    # What check-dns finds for the registered keys.
    keys = [key_of(signature.sign_domain, signature.selector) for signature in chosen]
    registered = [known[key].registration for key in dict.fromkeys(keys) if key in known]
    sound = [item for item in registered if item is not None and not record_fault(item)]
    in_dns = {check.key: check.finding for check in Checker(checked_at).check(sound)}
    checked = []
    for signature, key in zip(chosen, keys, strict=True):
        judged = _judge(message, signature, lookups.get(signature.record_name, ()))
        registration = known[key].registration if key in in_dns else None
        notes = [*_notes(message, signature, judged, registration, in_dns.get(key))]
        signs_again = _signs_again(message, signature, known.get(key))
        if signs_again:
            notes.append("it is valid with the removed key, which signs mail again")
        checked.append(
            mail.CheckedSignature(
                signature.sign_domain, signature.selector, signature.algorithm, judged.verdict,
                judged.reason, judged.key.key_len if judged.key else None, notes,
                mail.alignment(signature.sign_domain, senders), signature.sign_domain in domains,
                known.get(key), in_dns.get(key), signs_again,
            )
        )  # fmt: skip
    # The registered domains of the From field that no signature is aligned with.
    signed = {signature.sign_domain for signature in signatures}
    aligned = {sender for sender in senders for domain in signed
               if mail.alignment(domain, [sender]) in mail.ALIGNED}  # fmt: skip
    missing = [sender for sender in senders if sender in domains and sender not in aligned]
    return mail.MailReport(
        file, senders, checked, missing, unverified=len(fields) - len(chosen),
        of_ours=any(signature.sign_domain in domains for signature in rest),
    )  # fmt: skip


def _signs_again(message: Message, signature: Signature, known: mail.KnownKey | None) -> bool:
    """Whether the mail proves that a removed key signs: anybody can name it, so it must be valid.

    A mail that was kept since before the key was replaced proves nothing.
    """
    if known is None or known.removed is None or known.removed.record is None or signature.fault:
        return False
    made_at = int(signature.tags.get("t", mail.LATEST))
    if known.replaced_at is not None and made_at < known.replaced_at.timestamp():
        return False
    return _judge_by(message, signature, known.removed.record.value).verdict is MailVerdict.PASS


# The TXT values at a name, or why they are not known.
_Lookup: TypeAlias = tuple[str, ...] | NoAnswer


async def _look_up_keys(names: Iterable[str], source: Source) -> dict[str, _Lookup]:
    """What is at each of the names, with plain labels (names.is_name), as receivers find it."""

    async def look_up(name: str) -> _Lookup:
        try:
            zone = await source.zone_with(name)
        except NoAnswer as error:
            return error
        question = make_txt_question(name)
        lookups = await gather(_look_up(source, server, question) for server in zone.servers)
        known = {values for values in lookups if not isinstance(values, NoAnswer)}
        if len(known) > 1:
            return NoAnswer("the servers have different records")
        return known.pop() if known else lookups[0]

    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, await gather(map(look_up, distinct)), strict=True))


async def _look_up(source: Source, server: NameServer, question: Question) -> _Lookup:
    """What a server has at a name, or where its aliases lead."""
    for _ in range(MAX_ALIASES):
        response = await ask(source, server, question)
        answer = response.answer
        if answer is None:
            return NoAnswer(f"{server.label}: {response.failure}")
        if answer.bogus:
            return NoAnswer(answer.bogus)
        if answer.values or not answer.alias:
            return tuple(sorted(answer.texts))
        question = make_question(answer.alias, TXT)
    return NoAnswer(f"more than {MAX_ALIASES} aliases (CNAME) in a row")


class MailKey(NamedTuple):
    """A public key."""

    value: bytes  # a key record with it alone
    key_len: int  # in bits
    flags: frozenset[str]


class Judgement(NamedTuple):
    verdict: MailVerdict
    reason: str = ""  # of a bad verdict
    key: MailKey | None = None  # the one in DNS, if it can be used


def _judge(message: Message, signature: Signature, lookup: _Lookup) -> Judgement:
    """What a receiver finds. Of several TXT records, each has to verify: it may take any."""
    if signature.fault:
        return Judgement(MailVerdict.FAIL, signature.fault)
    if isinstance(lookup, NoAnswer):
        return Judgement(MailVerdict.UNKNOWN, f"the key could not be looked up: {lookup}")
    name = signature.record_name
    if not lookup:
        return Judgement(MailVerdict.FAIL, f"there is no key record at {name}")
    judged = [_judge_by(message, signature, value) for value in lookup[:_MAX_RECORDS]]
    bad = [judgement for judgement in judged if judgement.verdict is not MailVerdict.PASS]
    if not bad or len(lookup) == 1:
        return judged[0]
    reason = f"receivers may take any of {len(lookup)} TXT records at {name}: {bad[0].reason}"
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
    verifier.body = mail.squeezed(message.body) if is_relaxed else message.body
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
        if str(error).startswith("body hash mismatch"):
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
    (kind, _, hash_name), key_type = signature.algorithm.partition("-"), tags.get("k", "rsa")
    text, flags = re.sub(r'[\s"]', "", tags.get("p", "")), tag_items(tags.get("t", ""))
    agent = signature.tags.get("i", "").rpartition("@")[2].lower()
    is_in_subdomain = agent not in ("", signature.tags["d"].lower())
    faults = (
        ("p" not in tags or tags.get("v", "DKIM1") != "DKIM1", "is not a DKIM key record"),
        (not text, "is revoked: its key is empty (p=)"),
        (not text.isascii(), "is malformed: its p= is not base64"),
        (key_type != kind, f"has a key of another type, k={quoted(key_type)}"),
        (hash_name not in tag_items(tags.get("h", hash_name)), f"does not allow {hash_name} (h=)"),
        (not tag_items(tags.get("s", "*")) & {"*", "email"}, "is not for mail (s=)"),
        ("s" in flags and is_in_subdomain, "does not allow i= to be in a subdomain (t=s)"),
    )
    for is_fault, what in faults:
        if is_fault:
            raise KeyRecordError(what)
    if signature.algorithm == mail.ED25519:
        try:
            size = len(base64.b64decode(text, validate=True))
        except ValueError:
            size = 0
        if size != 32:
            raise KeyRecordError("is malformed: its p= is not an Ed25519 key")
        key_len = 8 * size
    else:
        try:
            key = parse_public_key(text, may_have_more=True)
        except KeyRecordError as error:
            raise KeyRecordError(f"is malformed or truncated: {error}") from None
        key_len = key.key_len
        if key_len < _MIN_BITS:
            accepted = f"receivers accept {_MIN_BITS} or more (RFC 8301)"
            raise KeyRecordError(f"has a weak key of {key_len} bits: {accepted}")
        if key_len > _MAX_BITS or key.exponent.bit_length() > _MAX_EXPONENT_BITS:
            raise KeyRecordError("has a key that is too long")
    return MailKey(f"v=DKIM1; k={kind}; p={text}".encode(), key_len, flags)


def _notes(
    message: Message, signature: Signature, judged: Judgement, registration: Registration | None,
    finding: Finding | None,
) -> Iterator[str]:  # fmt: skip
    """What weakens a signature; what check-dns says of a registered key; and where the fault is."""
    if "l" in signature.tags and not signature.fault:
        size = signature.tags["l"].lstrip("0") or "0"
        yield f"only the first {size} bytes of the body are signed (l=): anyone can add to it"
    if judged.key and "y" in judged.key.flags:
        yield "the key is for testing (t=y): receivers treat such mail like unsigned mail"
    is_rsa = signature.algorithm.startswith("rsa")
    if judged.key and is_rsa and judged.key.key_len < _RECOMMENDED_BITS:
        yield f"the key is short: {_RECOMMENDED_BITS} bits are recommended"
    if registration is None or registration.record is None or finding is None:
        return
    is_published = finding.verdict is Verdict.PUBLISHED
    if not is_published and finding.verdict is not Verdict.NO_ANSWER:
        yield "check-dns: " + ": ".join(filter(None, (finding.verdict, finding.reason)))
    is_unknown = judged.verdict is MailVerdict.UNKNOWN
    if signature.fault or judged.verdict is MailVerdict.PASS or (is_published and not is_unknown):
        return  # it needs no other key, or it was that very key
    if _judge_by(message, signature, registration.record.value).verdict is MailVerdict.PASS:
        yield "it is valid with the registered key" + ("" if is_unknown else ": DNS is at fault")
    else:
        yield "it is not valid with the registered key" + ("" if is_unknown else " either")
