"""Checks of records in DNS, and of the signatures of mails, in every format."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from dkimctl.dns.verdicts import ACCEPTED, Check, Urgency, Verdict, is_good
from dkimctl.formats.data import JsonRenderer, open_data
from dkimctl.formats.monitoring import NO_RUN, NagiosRenderer, PrometheusRenderer, Run
from dkimctl.formats.renderer import CheckFormat, Renderer, TableLayout, render_all
from dkimctl.formats.table import Row, Style, below, hidden_rows, table, wrapped
from dkimctl.mail.message import ALIGNED, CheckedSignature, MailReport, MailVerdict
from dkimctl.names import readable
from dkimctl.text import Grouping, and_more, counted, printable, without_names

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
            return open_data(fmt, check_fields, "count", columns=CHECK_COLUMNS)


def check_fields(check: Check) -> dict[str, object]:
    """The values of CHECK_COLUMNS by name."""
    servers = [
        {"server": server, "verdict": finding.verdict, "reason": finding.reason}
        for server, finding in check.servers
    ]
    row = (
        check.sign_domain, check.selector, check.fqdn, check.finding.verdict, check.finding.reason,
        check.alias, check.urgency, check.start_date, check.enable, servers,
    )  # fmt: skip
    return dict(zip(CHECK_COLUMNS, row, strict=True))


class CheckTable(Renderer[Check]):
    """For each check its row, reason and alias, the most urgent first.

    Good rows that are left out are counted below the table, unless it is `quiet`.
    """

    def __init__(self, layout: TableLayout, *, wanted: Verdict, quiet: bool = False) -> None:
        self._layout = layout
        self._wanted = wanted
        self._quiet = quiet
        self._checks: list[Check] = []
        self._hidden = 0
        self._alike = 0

    def add(self, check: Check) -> str:
        if self._layout.only_attention and is_good(check.finding.verdict, self._wanted):
            self._hidden += 1
        else:
            self._checks.append(check)
        return ""

    def end(self) -> Iterator[str]:
        checks = sorted(self._checks, key=self._rank)
        groups = ([*same] for _, same in itertools.groupby(checks, self._rank))
        rows = [*itertools.chain.from_iterable(map(self._rows, groups))]  # which counts the others
        yield from table(["DOMAIN", "SELECTOR", "IN DNS", "START", "URGENCY"], rows, self._layout)
        hidden = 0 if self._quiet else self._hidden
        yield from hidden_rows(hidden, self._layout, alike=self._alike)

    def _rank(self, check: Check) -> tuple[int, bool]:
        return _ORDER.index(check.urgency), is_good(check.finding.verdict, self._wanted)

    def _rows(self, checks: Sequence[Check]) -> Iterator[Row]:
        """The rows of checks of the same rank; the bad ones may be counted by their kind."""
        layout, style = self._layout, ""
        are_good = is_good(checks[0].finding.verdict, self._wanted)
        grouping = Grouping[str](None if are_good else layout.most_alike)
        for check in checks:
            if layout.most_alike is None or are_good or grouping.shows(_kind(check)):
                style = self._style(check)
                yield self._row(check, style)
        for kind, count in grouping.rest():
            self._alike += count
            yield Row(below=below(and_more(count, kind), layout, style))

    def _row(self, check: Check, style: str) -> Row:
        verdict, reason, _ = check.finding
        urgency = _URGENCIES[check.urgency]
        lines = [*below(reason, self._layout, style)]
        if check.alias:
            alias = f"{printable(check.fqdn)} is an alias of {printable(check.alias)}"
            lines += below(alias, self._layout, Style.DIM)
        cells = (check.sign_domain, check.selector, verdict, check.start_date, urgency)
        return Row(cells, ["", "", style, "", style], lines)

    def _style(self, check: Check) -> str:
        if check.urgency is Urgency.SIGNING:
            return Style.BOLD_RED
        if is_good(check.finding.verdict, self._wanted):
            return Style.GREEN
        return Style.YELLOW if check.finding.verdict in _NOT_BAD else Style.RED


def _kind(check: Check) -> str:
    """What is said of a check and those that are alike."""
    verdict, reason, _ = check.finding
    urgency = f", {_URGENCIES[check.urgency]}" if check.urgency else ""
    names = without_names(printable(reason), check.sign_domain, check.selector)
    return ": ".join(filter(None, (f"{verdict}{urgency}", names)))


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
        yield from table(
            columns, (_mail_row(signature, layout) for signature in report.signatures), layout
        )
        for text, style in _conclusions(report, layout):
            yield from wrapped(text, layout, style)


def _mail_fields(report: MailReport) -> dict[str, object]:
    names = ("file", "from_domains", "verdict", "missing", "unverified")
    fields = {name: getattr(report, name) for name in names}
    return fields | {
        "signatures": [_signature_fields(signature) for signature in report.signatures]
    }


def _signature_fields(checked_signature: CheckedSignature) -> dict[str, object]:
    registration = checked_signature.known.registration if checked_signature.known else None
    names = (
        "sign_domain", "selector", "algorithm", "verdict", "reason", "notes", "alignment", "key_len"
    )  # fmt: skip
    return {name: getattr(checked_signature, name) for name in names} | {
        "registered": registration is not None,
        "registered_key_len": registration.key_len if registration else None,
        "stage": checked_signature.known.stage if checked_signature.known else None,
        "in_dns": checked_signature.in_dns.verdict if checked_signature.in_dns else None,
        "in_dns_reason": checked_signature.in_dns.reason if checked_signature.in_dns else "",
    }


def _mail_row(checked_signature: CheckedSignature, layout: TableLayout) -> Row:
    style, of_dns = _MAIL_STYLES[checked_signature.verdict], ""
    if checked_signature.in_dns:
        of_dns = Style.GREEN if checked_signature.in_dns.verdict in ACCEPTED else Style.RED
    lines = [*below(checked_signature.reason, layout, style)]
    for note in checked_signature.notes:
        lines += below(note, layout, Style.DIM)
    cells = (
        readable(checked_signature.sign_domain, layout.encoding)[:_MAX_NAME],
        checked_signature.selector[:_MAX_NAME],
        checked_signature.verdict,
        " ".join(
            filter(
                None,
                (
                    checked_signature.algorithm.partition("-")[0][:10],
                    str(checked_signature.key_len or ""),
                ),
            )
        ),
        checked_signature.known.stage if checked_signature.known else "not registered",
        checked_signature.in_dns.verdict if checked_signature.in_dns else "",
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
        text = "No valid signature is aligned with From: for DMARC, it is as if unsigned."
        yield text, Style.YELLOW
