"""What one response means for a record, and what has no answer."""

from __future__ import annotations

from dkimctl.dns.authorities import Zone
from dkimctl.dns.comparison import compare_values
from dkimctl.dns.messages import Answer, Question
from dkimctl.dns.queries import ServerResponse
from dkimctl.dns.verdicts import Finding, ServerFinding, Verdict
from dkimctl.models.registration import DnsRecord


def direct_finding(response: ServerResponse, record: DnsRecord) -> ServerFinding:
    """What a response says, whatever else might be looked up."""
    if response.answer is None:
        finding = Finding(Verdict.NO_ANSWER, str(response.failure))
    else:
        finding = compare_values(record.value, texts(response.answer))
    return ServerFinding(response.server.label, finding)


def no_zone(name: str) -> Finding:
    return Finding(Verdict.MISSING, f"DNS has no zone for {name}")


def located(finding: Finding, zone: Zone, question: Question) -> Finding:
    """The finding; if there is no answer, its reason names the zone and the question."""
    if finding.verdict is not Verdict.NO_ANSWER:
        return finding
    where = f"{zone.name}: {question}" if zone.name else str(question)
    return finding._replace(reason=f"{where}: {finding.reason}")


def texts(answer: Answer) -> list[str]:
    return [value.decode("utf-8", "surrogateescape") for value in answer.values]
