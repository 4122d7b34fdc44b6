"""Checks of records in DNS, and of the signatures of mails, in every format."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from dkimctl.dns.verdicts import ACCEPTED, Check, Urgency, Verdict, is_good
from dkimctl.formats.data import JsonRenderer, open_data
from dkimctl.formats.keys import MAIL_FIELDS, mail_row
from dkimctl.formats.monitoring import NO_RUN, NagiosRenderer, PrometheusRenderer, Run
from dkimctl.formats.renderer import CheckFormat, Renderer, TableLayout, render_all
from dkimctl.formats.table import Row, Style, below, hidden_rows, table, wrapped
from dkimctl.mail.message import ALIGNED, CheckedSignature, MailReport, MailVerdict
from dkimctl.text import and_more, counted, printable, readable, without_names

CHECK_COLUMNS = (
    "sign_domain", "selector", "fqdn", "verdict", "reason", "alias", "urgency", "start_date",
    "enable", "servers",
)  # fmt: skip

_ORDER = list(Urgency)
_URGENCIES = {
    Urgency.SIGNING: "SIGNING NOW WITHOUT DNS",
    Urgency.PARTLY: "partly in DNS",
    Urgency.SOON: "starts soon",
    Urgency.NONE: "-",
}
_NOT_BAD = (Verdict.DIFFERS, Verdict.NO_ANSWER)
_MAIL_STYLES = {
    MailVerdict.PASS: Style.GREEN,
    MailVerdict.FAIL: Style.RED,
    MailVerdict.UNKNOWN: Style.YELLOW,
}
_MAX_NAME = 100  # characters; a malformed signature may have any text in d= or s=


def open_checks(
    fmt: CheckFormat,
    *,
    wanted: Verdict,  # the good one
    layout: TableLayout,
    quiet: bool = False,
    run: Run = NO_RUN,  # for monitoring
) -> Renderer[Check]:
    """The renderer of checks in `fmt`."""
    match fmt:
        case CheckFormat.TABLE:
            return CheckTable(layout, wanted=wanted, quiet=quiet)
        case CheckFormat.PROMETHEUS:
            return PrometheusRenderer(wanted, run)
        case CheckFormat.NAGIOS:
            return NagiosRenderer(wanted, run)
        case _:
            return open_data(fmt, CHECK_COLUMNS, _check_row, "count")


def _check_row(check: Check) -> tuple[object, ...]:
    servers = [
        {"server": server, "verdict": finding.verdict, "reason": finding.reason}
        for server, finding in check.servers
    ]
    return (
        check.sign_domain, check.selector, check.fqdn, check.finding.verdict, check.finding.reason,
        check.alias, check.urgency, check.start_date, check.enable, servers,
    )  # fmt: skip


class CheckTable(Renderer[Check]):
    """For each check its row, reason and alias, the most urgent first.

    A reason that several have stands once, below their rows. Good rows that are left out are
    counted below the table, unless it is `quiet`.
    """

    def __init__(self, layout: TableLayout, *, wanted: Verdict, quiet: bool = False) -> None:
        self._layout = layout
        self._wanted = wanted
        self._quiet = quiet
        self._checks: list[Check] = []

    def add(self, item: Check) -> str:
        self._checks.append(item)
        return ""

    def end(self) -> Iterator[str]:
        layout, checks = self._layout, sorted(self._checks, key=self._rank)
        is_long = layout.most_rows is not None and len(checks) > layout.most_rows
        only_attention = layout.only_attention or is_long
        rows: list[Row] = []
        hidden = alike = 0
        for (_, are_good), same in itertools.groupby(checks, self._rank):
            if are_good and only_attention:
                hidden += len([*same])
                continue
            groups: dict[tuple[str, str], list[Check]] = {}
            for check in same:
                groups.setdefault(("", "") if are_good else _kind(check), []).append(check)
            for (what, why), group in groups.items():
                most = None if are_good else layout.most_alike
                reasons = {check.finding.reason for check in group}
                is_shared = why and len(group) > 1 and (len(reasons) == 1 or most is not None)
                style = _style(group[0], is_good=are_good)
                rows += [
                    _row(each, style, layout, has_reason=not is_shared) for each in group[:most]
                ]
                text = f"{len(group)} keys: {reasons.pop() if len(reasons) == 1 else why}"
                if more := len(group) - len(group[:most]):
                    alike += more
                    text = and_more(more, ": ".join(filter(None, (what, why))))
                if is_shared or more:
                    rows.append(Row(below=below(text, layout, style)))
        columns = ["DOMAIN", "SELECTOR", "IN DNS", "START", "URGENCY"]
        if not any(check.start_date or check.urgency for check in checks):  # as of delegations
            del columns[3:]
            rows = [row._replace(cells=row.cells[:3], styles=row.styles[:3]) for row in rows]
        yield from table(columns, rows, layout)
        yield from hidden_rows(0 if self._quiet else hidden, layout, alike=alike)

    def _rank(self, check: Check) -> tuple[int, bool]:
        return _ORDER.index(check.urgency), is_good(check.finding.verdict, self._wanted)


def _row(check: Check, style: str, layout: TableLayout, *, has_reason: bool) -> Row:
    verdict, reason, _ = check.finding
    urgency = _URGENCIES[check.urgency]
    lines = [*below(reason, layout, style)] if has_reason else []
    if check.alias:
        alias = f"{printable(check.fqdn)} is an alias of {printable(check.alias)}"
        if check.alias_end not in ("", check.alias):
            alias += f", which leads to {printable(check.alias_end)}"
        lines += below(alias, layout, Style.DIM)
    domain = readable(check.sign_domain, layout.encoding)
    cells = (domain, check.selector or "all", verdict, check.start_date, urgency)
    return Row(cells, ["", "", style, "", style], lines)


def _style(check: Check, *, is_good: bool) -> str:
    if check.urgency is Urgency.SIGNING:
        return Style.BOLD_RED
    if is_good:
        return Style.GREEN
    return Style.YELLOW if check.finding.verdict in _NOT_BAD else Style.RED


def _kind(check: Check) -> tuple[str, str]:
    """What is said of a check and those that are alike, and why."""
    verdict, reason, _ = check.finding
    urgency = f", {_URGENCIES[check.urgency]}" if check.urgency else ""
    return f"{verdict}{urgency}", without_names(printable(reason), *check.key)


def render_mails(
    reports: Iterable[MailReport], layout: TableLayout, *, is_json: bool
) -> Iterator[str]:
    """What was found in mails: for each its file, its signatures, and what they mean together."""
    if is_json:
        yield from render_all(JsonRenderer(_mail_fields, "count"), reports)
        return
    for number, report in enumerate(reports):
        senders = ", ".join(readable(domain, layout.encoding) for domain in report.from_domains)
        if number:
            yield "\n"
        yield from wrapped(f"{report.file}: from {senders or 'no domain'}", layout, Style.BOLD)
        columns = ["DOMAIN", "SELECTOR", "VERDICT", "KEY", "LEDGER", "IN DNS"]
        rows = (_mail_row(signature, layout) for signature in report.signatures)
        yield from table(columns, rows, layout)
        for text, style in _conclusions(report, layout):
            yield from wrapped(text, layout, style)


def _mail_fields(report: MailReport) -> dict[str, object]:
    names = ("file", "from_domains", "verdict", "missing", "unverified")
    fields = {name: getattr(report, name) for name in names}
    return fields | {"signatures": [*map(_signature_fields, report.signatures)]}


def _signature_fields(signature: CheckedSignature) -> dict[str, object]:
    known, in_dns = signature.known, signature.in_dns
    registration = known.registration if known else None
    names = (
        "sign_domain", "selector", "algorithm", "verdict", "reason", "notes", "alignment", "key_len"
    )  # fmt: skip
    return {name: getattr(signature, name) for name in names} | {
        "registered": registration is not None,
        "registered_key_len": registration.key_len if registration else None,
        "stage": known.stage if known else None,
        "in_dns": in_dns.verdict if in_dns else None,
        "in_dns_reason": in_dns.reason if in_dns else "",
        **dict(zip(MAIL_FIELDS, mail_row(known.mail if known else None), strict=True)),
    }


def _mail_row(signature: CheckedSignature, layout: TableLayout) -> Row:
    style, in_dns, of_dns = _MAIL_STYLES[signature.verdict], signature.in_dns, ""
    if in_dns:
        of_dns = Style.GREEN if in_dns.verdict in ACCEPTED else Style.RED
    lines = [*below(signature.reason, layout, style)]
    mail = signature.known.mail if signature.known else None
    for note in (*signature.notes, *([f"DMARC reports: {mail}"] if mail else ())):
        lines += below(note, layout, Style.DIM)
    cells = (
        readable(signature.sign_domain, layout.encoding)[:_MAX_NAME],
        signature.selector[:_MAX_NAME],
        signature.verdict,
        f"{signature.algorithm.partition('-')[0][:10]} {signature.key_len or ''}".strip(),
        signature.known.stage if signature.known else "not registered",
        in_dns.verdict if in_dns else "",
    )
    return Row(cells, ["", "", style, "", "", of_dns], lines)


def _conclusions(report: MailReport, layout: TableLayout) -> Iterator[tuple[str, str]]:
    """What the signatures mean together; each text with its style."""
    if not report.signatures:
        yield "It has no DKIM signature.", Style.RED
    for domain in report.missing:
        name = readable(domain, layout.encoding)
        yield f"{name} is registered, but has not signed this mail.", Style.RED
    if report.unverified:
        unverified = counted(report.unverified, "signature")
        yield f"{unverified} more not verified: there are too many.", Style.YELLOW
    valid = [signature for signature in report.signatures if signature.verdict is MailVerdict.PASS]
    aligned = [signature for signature in valid if signature.alignment in ALIGNED]
    if aligned:
        best = min(aligned, key=lambda signature: ALIGNED.index(signature.alignment))
        name = readable(best.sign_domain, layout.encoding)
        yield f"Aligned with From, as DMARC asks: {name} ({best.alignment}).", Style.GREEN
    elif valid:
        text = "No valid signature is aligned with From: for DMARC, the mail counts as unsigned."
        yield text, Style.YELLOW
