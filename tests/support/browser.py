"""What a browser makes of a page in a file."""

from __future__ import annotations

import html
import json
import re
import subprocess
import zlib
from pathlib import Path
from typing import NamedTuple

_LIMIT = 120.0  # seconds
_COMPLAINT = re.compile(r"CONSOLE.*|.*violates the following.*")
# Selects elements one after the other, and writes what is selected to an element of its own.
_COPY = """<output></output><script>
const texts = [];
for (const element of document.querySelectorAll("{}")) {{
  getSelection().selectAllChildren(element);
  texts.push(getSelection().toString());
}}
document.querySelector("output").textContent = JSON.stringify(texts);
</script></body>"""


class Look(NamedTuple):
    """The colour of the first pixel of a page, and what the browser complains of."""

    background: tuple[int, int, int]
    complaints: list[str]


class Browser:
    """Headless Chromium, whose profile is in `directory`."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self._directory = directory

    def look(self, page: Path, *, dark: bool = False, width: int = 1000) -> Look:
        """Show a page, with the colours that the system prefers."""
        picture = self._directory / "page.png"
        done = self._run(
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={width},1400", "--hide-scrollbars", f"--screenshot={picture}",
            page.as_uri(),
        )  # fmt: skip
        return Look(_first_pixel(picture.read_bytes()), _COMPLAINT.findall(done.stderr))

    def print_pdf(self, page: Path, pdf: Path) -> None:
        self._run("--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri())

    def copied(self, page: Path, selector: str) -> list[str]:
        """What copying gets of each element that a CSS selector names, once a click selects it."""
        copy = self._directory / "copied.html"
        text = re.sub("<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
        copy.write_text(text.replace("</body>", _COPY.format(selector)), encoding="utf-8")
        dom = self._run("--dump-dom", copy.as_uri()).stdout
        return json.loads(html.unescape(dom.partition("<output>")[2].partition("</output>")[0]))

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        common = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                  f"--user-data-dir={self._directory / 'profile'}")  # fmt: skip
        done = subprocess.run(
            [self._program, *common, *words],
            capture_output=True, text=True, timeout=_LIMIT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done


def _first_pixel(png: bytes) -> tuple[int, int, int]:
    """The first pixel of a PNG of 8 bits; each of its filters leaves that one as it is."""
    data, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    red, green, blue = zlib.decompressobj().decompress(data, 4)[1:]
    return red, green, blue
