"""Remarks on a signature, whatever its verdict is."""

from __future__ import annotations

from collections.abc import Iterator

from dkimctl.dns.verdicts import Finding, Verdict
from dkimctl.mail.judging import Judgement, judge_by
from dkimctl.mail.message import Message
from dkimctl.mail.report import MailVerdict
from dkimctl.mail.signature import Signature
from dkimctl.models.registration import Registration

_SHORT = 2048  # bits; RFC 8301 section 3.2 recommends them


def notes_on(signature: Signature, judged: Judgement) -> Iterator[str]:
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
    if signature.algorithm.startswith("rsa") and judged.key.key_len < _SHORT:
        yield f"the key is short: {_SHORT} bits are recommended"


def notes_on_registered(
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
    if judge_by(message, signature, registration.record.value).verdict is MailVerdict.PASS:
        yield "it is valid with the registered key" + ("" if is_unknown else ": DNS is at fault")
    else:
        yield "it is not valid with the registered key" + ("" if is_unknown else " either")
