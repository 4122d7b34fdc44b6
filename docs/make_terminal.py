"""Draw docs/images/terminal.svg: what `register` and `check-dns` print, by the real tables.

The specs, keys and verdicts are fixed, so that the picture changes only when the output does. Only
TXT values are cut, to one line each.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from dkimctl.dkim import record_name
from dkimctl.dns.verdicts import Check, Finding, Urgency, Verdict
from dkimctl.formats.checks import CheckTable
from dkimctl.formats.renderer import TableLayout, render_all
from dkimctl.formats.results import ResultTable
from dkimctl.models import DnsRecord, DomainSpec, Outcome, Registration, Result
from dkimctl.specs.spec_file import read_specs

PICTURE = Path(__file__).parent / "images" / "terminal.svg"
SPECS = Path(__file__).parents[1] / "domains.example.yaml"
_WIDTH = 80  # columns
_SELECTOR = "k4991aac8"  # such as the service chooses
_KEY = "30820122300d06092a864886f70d01010105000382010f003082010a0282010100"  # DER up to the modulus
_EXPONENT = "0203010001"
# Fonts are not fetched: the viewer's own monospace font will do.
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\n\s*\}", re.DOTALL)


def picture() -> str:
    """The SVG."""
    console = Console(
        record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    for line in _lines():
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title="dkimctl", theme=MONOKAI, unique_id="dkimctl")
    return _FONT_FACES.sub("", svg).rstrip() + "\n"


def words(svg: str) -> list[str]:
    """The text of a picture, without how the version of rich at hand draws it."""
    return re.findall(r"<text [^>]*>(.*?)</text>", svg)


def _lines() -> Iterator[str]:
    specs = read_specs(str(SPECS)).specs
    yield "$ dkimctl register domains.example.yaml"
    layout = TableLayout(_WIDTH, colour=True)
    results = [Result(_registration(spec), Outcome.CREATED, answer="201") for spec in specs]
    yield from _cut(render_all(ResultTable(layout), results))
    yield "$ dkimctl check-dns"
    check_table = CheckTable(layout, wanted=Verdict.PUBLISHED)
    checks = map(_check, specs, (Verdict.PUBLISHED, Verdict.TRUNCATED, Verdict.MISSING))
    yield from _cut(render_all(check_table, checks))


def _registration(spec: DomainSpec) -> Registration:
    selector = spec.selector or _SELECTOR
    name = record_name(selector, spec.sign_domain)
    value = f"v=DKIM1; g=*; k=rsa; p={_public_key(name)}"
    return Registration(
        spec.sign_domain,
        selector,
        spec.key_len,
        spec.start_date,
        record=DnsRecord(name, "TXT", value),
        code="201",
        message="created",
    )


def _check(spec: DomainSpec, verdict: Verdict) -> Check:
    reason = "only the first 255 of 415 characters are published"
    registration = _registration(spec)
    return Check(
        spec.sign_domain,
        registration.selector or "",
        record_name(registration.selector or "", spec.sign_domain),
        spec.start_date,
        spec.enable,
        Finding(verdict, reason if verdict is Verdict.TRUNCATED else ""),
        urgency=Urgency.SOON if verdict is Verdict.TRUNCATED else Urgency.NONE,
    )


def _public_key(name: str) -> str:
    """What looks like an RSA key of 2048 bits; its modulus is made of a hash."""
    modulus = bytearray(hashlib.shake_256(name.encode()).digest(256))
    modulus[0] |= 0x80
    modulus[-1] |= 0x01
    return base64.b64encode(bytes.fromhex(_KEY) + modulus + bytes.fromhex(_EXPONENT)).decode()


def _cut(chunks: Iterable[str]) -> Iterator[str]:
    """The lines of the table. Only those of TXT values are too long; they have no colours."""
    for line in "".join(chunks).splitlines():
        is_value = line.startswith("v=DKIM1") and len(line) > _WIDTH
        yield f"{line[: _WIDTH - 1]}…" if is_value else line


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8", newline="\n")
