"""What was found in a mail, as an item of JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dkimctl.mail.report import CheckedSignature, MailReport
from dkimctl.render.json_format import json_line


class _Signature(msgspec.Struct, gc=False):
    sign_domain: str
    selector: str
    algorithm: str
    verdict: str
    reason: str
    notes: Sequence[str]
    alignment: str
    key_len: int | None
    registered: bool
    registered_key_len: int | None
    stage: str | None
    in_dns: str | None
    in_dns_reason: str


class _Mail(msgspec.Struct, gc=False):
    file: str
    from_domains: Sequence[str]
    verdict: str
    missing: Sequence[str]
    unverified: int
    signatures: Sequence[_Signature]


def mail_line(report: MailReport) -> str:
    """`report` as a JSON object on one line of printable ASCII."""
    return json_line(
        _Mail(
            report.file, report.from_domains, report.verdict, report.missing, report.unverified,
            [_signature(one) for one in report.signatures],
        )
    )  # fmt: skip


def _signature(one: CheckedSignature) -> _Signature:
    registration = one.known.registration if one.known else None
    return _Signature(
        one.sign_domain, one.selector, one.algorithm, one.verdict, one.reason, one.notes,
        one.alignment, one.key_len,
        registered=registration is not None,
        registered_key_len=registration.key_len if registration else None,
        stage=one.known.stage if one.known else None,
        in_dns=one.in_dns.verdict if one.in_dns else None,
        in_dns_reason=one.in_dns.reason if one.in_dns else "",
    )  # fmt: skip
