"""Records and checks of DNS to render, and the text of each format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import dns.rdata
from hypothesis import strategies as st

from dkimctl.dns.verdicts import Check, Finding, ServerFinding, Verdict
from dkimctl.formats.checks import open_checks
from dkimctl.formats.dns_tools import ZoneFile
from dkimctl.formats.renderer import CheckFormat, Format, TableLayout, render_all
from dkimctl.formats.results import open_results
from dkimctl.models import DnsRecord, Result

# Values of sound records (RFC 6376: printable ASCII), with keys of over 4,096 bits.
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=900)
LABELS = st.from_regex(r"[a-z0-9]([a-z0-9_-]{0,20}[a-z0-9])?", fullmatch=True)
SELECTORS = st.lists(LABELS, min_size=1, max_size=3).map(".".join)
LONGEST = "as long as possible"
SUBDOMAINS = st.sampled_from(("", "mail.", "xn--mnchen-3ya.", LONGEST))


def fqdn_of(selector: str, subdomain: str) -> str:
    """The name of a key record in example.com, of 253 octets for LONGEST."""
    if subdomain == LONGEST:
        left, subdomain = 253 - len(f"{selector}._domainkey.example.com"), ""
        while left:
            length = left - 1 if left <= 64 else min(63, left - 3)
            subdomain += f"{'x' * length}."
            left -= length + 1
    return f"{selector}._domainkey.{subdomain}example.com"


# Key records in example.com.
RECORDS = st.lists(
    st.builds(DnsRecord, st.builds(fqdn_of, SELECTORS, SUBDOMAINS), st.just("TXT"), VALUES),
    min_size=1,
    max_size=5,
    unique_by=lambda record: record.fqdn,
)


def name_and_value(records: Iterable[DnsRecord]) -> set[tuple[str, str]]:
    return {(record.fqdn, record.value) for record in records}


def txt_value(presentation: str) -> str:
    """The value of a TXT record's data, as dnspython reads it."""
    rdata = dns.rdata.from_text("IN", "TXT", presentation)
    assert max(map(len, rdata.strings)) <= 255
    return b"".join(rdata.strings).decode()


def render_text(fmt: Format, results: Iterable[Result], **options: object) -> str:
    """`results` in a format that is one text."""
    return "".join(render_all(open_results(fmt, **options), results))


def render_table(results: Iterable[Result], **layout) -> str:
    """`results` as a table with such a TableLayout."""
    return render_text(Format.TABLE, results, layout=TableLayout(**layout))


def render_files(
    fmt: Format, results: Iterable[Result], zones: Sequence[str], **options: object
) -> list[ZoneFile]:
    """`results` in a format that has files for each zone."""
    renderer = open_results(fmt, zones=zones, **options)
    for result in results:
        renderer.add(result)
    return list(renderer.files())


def render_file(fmt: Format, results: Iterable[Result], **options: object) -> str:
    """The text of the one file for example.com."""
    [file] = render_files(fmt, results, ["example.com"], **options)
    return "".join(file.chunks)


HOSTILE = "[red]x[/] :smile: \x1b[2J\x9b1m\n\r\u202eevil\x7f\udcff 日本語の [link=x]y"


def check_of(verdict: Verdict = Verdict.PUBLISHED, reason: str = "", **changes) -> Check:
    """A check with this verdict, and `changes` to its other fields."""
    domain = changes.get("sign_domain", "example.com")
    fields = {
        "sign_domain": domain,
        "selector": "s1",
        "fqdn": f"s1._domainkey.{domain}",
        "start_date": "2026-03-01T00:00+09:00",
        "enable": True,
        "finding": Finding(verdict, reason),
    }
    return Check(**(fields | changes))


HOSTILE_CHECK = check_of(
    Verdict.MISMATCH, HOSTILE, sign_domain=HOSTILE, selector=HOSTILE, fqdn=HOSTILE,
    start_date=HOSTILE, alias=HOSTILE,
    servers=(ServerFinding(HOSTILE, Finding(Verdict.MISMATCH, HOSTILE)),),
)  # fmt: skip


def render_checks(
    fmt: CheckFormat,
    checks: Iterable[Check],
    *,
    wanted: Verdict = Verdict.PUBLISHED,
    quiet: bool = False,
    **layout,
) -> str:
    renderer = open_checks(fmt, wanted=wanted, layout=TableLayout(**layout), quiet=quiet)
    return "".join(render_all(renderer, checks))
