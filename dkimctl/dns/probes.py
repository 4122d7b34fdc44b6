"""Further questions to a server, which explain what it answered."""

from __future__ import annotations

import os

from dkimctl.dkim import MAX_NAME
from dkimctl.dns.findings import texts
from dkimctl.dns.messages import Answer, make_txt_question
from dkimctl.dns.nameserver import NameServer
from dkimctl.dns.queries import QueryRunner
from dkimctl.dns.verdicts import Finding, Verdict
from dkimctl.models.registration import DnsRecord

_RANDOM_BYTES = 8  # of a label that does not exist


async def find_at_doubled_name(
    queries: QueryRunner, server: NameServer, record: DnsRecord, zone: str
) -> Finding:
    """Whether the missing record is at a name with the zone twice: a final dot was left out."""
    doubled = f"{record.fqdn}.{zone}"
    if zone not in ("", ".") and len(doubled) <= MAX_NAME:
        (response,) = await queries.ask([server], make_txt_question(doubled))
        if response.answer is not None and record.value in texts(response.answer):
            reason = f"it is at {doubled}: a final dot is missing, so the zone is there twice"
            return Finding(Verdict.MALFORMED, reason)
    return Finding(Verdict.MISSING)


async def is_from_wildcard(
    queries: QueryRunner, server: NameServer, record: DnsRecord, answer: Answer
) -> bool:
    """Whether a name beside the record's, which does not exist, has the same (RFC 4592)."""
    _, _, above = record.fqdn.partition(".")
    sibling = f"{os.urandom(_RANDOM_BYTES).hex()}.{above}"
    if len(sibling) > MAX_NAME:
        return False
    (response,) = await queries.ask([server], make_txt_question(sibling))
    return response.answer is not None and _data(response.answer) == _data(answer)


async def zone_served(queries: QueryRunner, server: NameServer, record: DnsRecord) -> str:
    """The zone that the server has around a record, or "" if it does not tell."""
    _, _, above = record.fqdn.partition(".")
    (response,) = await queries.ask([server], make_txt_question(above))
    return response.answer.zone if response.answer is not None else ""


def _data(answer: Answer) -> tuple[str, list[bytes]]:
    return answer.alias, sorted(answer.values)
