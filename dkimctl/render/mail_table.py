"""The signatures of mails as a table, for people."""

from __future__ import annotations

from collections.abc import Iterator

from dkimctl.dns.verdicts import ACCEPTED
from dkimctl.mail.report import (
    ALIGNED,
    CheckedSignature,
    MailReport,
    MailVerdict,
)
from dkimctl.render.grid import BOLD, DIM, GREEN, RED, YELLOW, Grid, styled, wrapped
from dkimctl.render.renderer import Renderer, TableLayout
from dkimctl.text.escaping import printable
from dkimctl.text.grouping import counted
from dkimctl.text.idn import readable

_HEADER = ("DOMAIN", "SELECTOR", "VERDICT", "KEY", "LEDGER", "IN DNS")
_WORDY = (4,)
_MIN_LAST = len("inconsistent")
_STYLES = {MailVerdict.PASS: GREEN, MailVerdict.FAIL: RED, MailVerdict.UNKNOWN: YELLOW}
_MAX_NAME = 100  # characters; a malformed signature may have any text in d= or s=


class MailTableRenderer(Renderer[MailReport]):
    """For each mail its file, a row for each signature, and what they mean together."""

    def __init__(self, layout: TableLayout) -> None:
        self._layout = layout
        self._reports: list[MailReport] = []

    def add(self, item: MailReport) -> str:
        self._reports.append(item)
        return ""

    def end(self) -> Iterator[str]:
        cells = [
            _cells(one, self._layout.encoding)
            for report in self._reports
            for one in report.signatures
        ]
        grid = self._grid(cells) if cells else None
        for number, report in enumerate(self._reports):
            if number:
                yield "\n"
            yield from self._line(_title(report, self._layout.encoding), BOLD)
            if grid is not None and report.signatures:
                yield from _table(grid, report, self._layout.encoding)
            for text, style in _conclusions(report, self._layout.encoding):
                yield from self._line(text, style)

    def _grid(self, cells: list[tuple[str, ...]]) -> Grid:
        layout = self._layout
        return Grid(
            _HEADER, cells, layout.width, min_last=_MIN_LAST, colour=layout.colour, wordy=_WORDY
        )

    def _line(self, text: str, style: str) -> Iterator[str]:
        for line in wrapped(text, self._layout.width):
            yield styled(line.rstrip("\n"), style if self._layout.colour else "") + "\n"


def _title(report: MailReport, encoding: str) -> str:
    senders = ", ".join(readable(one, encoding) for one in report.from_domains) or "no domain"
    return f"{printable(report.file)}: from {senders}"


def _table(grid: Grid, report: MailReport, encoding: str) -> Iterator[str]:
    yield from grid.header()
    for one in report.signatures:
        style = _STYLES[one.verdict]
        yield from grid.row(_cells(one, encoding), ["", "", style, "", "", _style_in_dns(one)])
        if one.reason:
            yield from grid.below(printable(one.reason), style)
        for note in one.notes:
            yield from grid.below(printable(note), DIM)


def _cells(one: CheckedSignature, encoding: str) -> tuple[str, ...]:
    texts = (
        readable(one.sign_domain, encoding)[:_MAX_NAME],
        one.selector[:_MAX_NAME],
        one.verdict,
        " ".join(filter(None, (one.algorithm.partition("-")[0][:10], str(one.key_len or "")))),
        one.known.stage if one.known else "not registered",
        one.in_dns.verdict if one.in_dns else "",
    )
    return tuple(printable(text) if text else "-" for text in texts)


def _style_in_dns(one: CheckedSignature) -> str:
    if one.in_dns is None:
        return ""
    return GREEN if one.in_dns.verdict in ACCEPTED else RED


def _conclusions(report: MailReport, encoding: str) -> Iterator[tuple[str, str]]:
    """What the signatures mean together; each text with its style."""
    if not report.signatures:
        yield "It has no DKIM signature.", RED
    for domain in report.missing:
        yield f"{readable(domain, encoding)} is registered, but has not signed this mail.", RED
    if report.unverified:
        unverified = counted(report.unverified, "signature")
        yield f"{unverified} more not verified: there are too many.", YELLOW
    valid = [one for one in report.signatures if one.verdict is MailVerdict.PASS]
    aligned = [one for one in valid if one.alignment in ALIGNED]
    if aligned:
        best = min(aligned, key=lambda one: ALIGNED.index(one.alignment))
        name = readable(best.sign_domain, encoding)
        yield f"Aligned with From, as DMARC asks: {name} ({best.alignment}).", GREEN
    elif valid:
        yield "No valid signature is aligned with From: for DMARC, it is as if unsigned.", YELLOW
