"""Judge one signature by what DNS has at the name of its key."""

from __future__ import annotations

from typing import NamedTuple

from dkimctl.dkim import KeyRecordError
from dkimctl.mail.key_record import Key, read_key
from dkimctl.mail.lookups import Lookup
from dkimctl.mail.message import Message
from dkimctl.mail.report import MailVerdict
from dkimctl.mail.signature import Signature
from dkimctl.mail.verifying import NotVerifiable, mismatch

_MAX_RECORDS = 5  # that are tried


class Judgement(NamedTuple):
    """A verdict; `reason` explains a bad one, and `key` is the one in DNS, if it can be used."""

    verdict: MailVerdict
    reason: str = ""
    key: Key | None = None


def judge(message: Message, signature: Signature, lookup: Lookup) -> Judgement:
    """What a receiver finds. Of several TXT records, each has to verify: it may take any."""
    if signature.fault:
        return Judgement(MailVerdict.FAIL, signature.fault)
    name, values = signature.record_name, lookup.values
    if lookup.failure:
        return Judgement(MailVerdict.UNKNOWN, f"DNS does not tell the key: {lookup.failure}")
    if not values:
        return Judgement(MailVerdict.FAIL, f"there is no key record at {name}")
    judged = [judge_by(message, signature, value) for value in values[:_MAX_RECORDS]]
    bad = [one for one in judged if one.verdict is not MailVerdict.PASS]
    if not bad or len(values) == 1:
        return judged[0]
    reason = f"receivers may take any of {len(values)} TXT records at {name}: {bad[0].reason}"
    return bad[0]._replace(reason=reason)


def judge_by(message: Message, signature: Signature, value: str) -> Judgement:
    """What a receiver finds that takes this TXT value. The signature has no fault."""
    try:
        key = read_key(value, signature)
    except KeyRecordError as error:
        return Judgement(MailVerdict.FAIL, f"the key record {error}")
    try:
        reason = mismatch(message, signature, key)
    except NotVerifiable as error:
        return Judgement(MailVerdict.UNKNOWN, str(error), key)
    return Judgement(MailVerdict.FAIL if reason else MailVerdict.PASS, reason, key)
