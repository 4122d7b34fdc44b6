"""Measure `dkimctl reports` with 100,000 reports, and with hostile ones.

Run: python tests/bench/reports.py [REPORTS [ROWS]]

Half of the reports are in each schema, each in a gzip of its own, as receivers send them; a third
of them is in mails. Then comes what is to be bounded: 1,000,000 rows in one report, 10 GB out of
10 MB, many files in a zip and in a tar, and a billion laughs.
"""

from __future__ import annotations

import base64
import gzip
import io
import random
import tarfile
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

from dkimctl.models import Registration
from load import TOOL, arguments, environment, measure, open_ledger, registrations

ROW = """  <record>
    <row>
      <source_ip>{address}</source_ip>
      <count>{count}</count>
      <policy_evaluated>
        <disposition>none</disposition>
        <dkim>{result}</dkim>
        <spf>pass</spf>
      </policy_evaluated>
    </row>
    <identifiers>
      <header_from>{domain}</header_from>
    </identifiers>
    <auth_results>
      <dkim>
        <domain>{domain}</domain>
        <result>{result}</result>
        <selector>{selector}</selector>
      </dkim>
      <spf>
        <domain>bounce.{domain}</domain>
        <result>pass</result>
      </spf>
    </auth_results>
  </record>
"""
START = """<?xml version="1.0" encoding="UTF-8" ?>
<feedback{space}>
  <version>1.0</version>
  <report_metadata>
    <org_name>receiver{reporter}.example</org_name>
    <email>dmarc@receiver{reporter}.example</email>
    <report_id>{number}</report_id>
    <date_range>
      <begin>{begin}</begin>
      <end>{end}</end>
    </date_range>
  </report_metadata>
  <policy_published>
    <domain>{domain}</domain>
    <p>none</p>
  </policy_published>
"""
MAIL = """From: dmarc@receiver.example
Subject: Report domain: {number}
MIME-Version: 1.0
Content-Type: application/gzip; name="report.xml.gz"
Content-Disposition: attachment; filename="report.xml.gz"
Content-Transfer-Encoding: base64

"""


def head(number: int, domain: str = "example.com") -> str:
    end = int(time.time()) // 86400 * 86400 - number % 20 * 86400 - 1
    space = ' xmlns="urn:ietf:params:xml:ns:dmarc-2.0"' if number % 2 else ""
    return START.format(
        space=space, reporter=number % 50, number=number, begin=end - 86399, end=end, domain=domain
    )


def fill(place: Path, keys: list[Registration], reports: int, rows: int) -> int:
    """Write the reports; returns how many bytes of XML are in them."""
    chosen = random.Random(1)
    variants = []  # of rows: most of the time would go into making them
    for _ in range(200):
        key = chosen.choice(keys)  # a report is about one domain
        variants.append("".join(
            ROW.format(
                address=f"192.0.2.{chosen.randrange(256)}" if chosen.random() < 0.8 else
                f"{chosen.randrange(1, 224)}.{chosen.randrange(256)}.2.1",
                count=chosen.randint(1, 99), result=chosen.choice(["pass"] * 9 + ["fail"]),
                domain=key.sign_domain, selector=key.selector,
            )
            for _ in range(rows)
        ))  # fmt: skip
    size = 0
    for number in range(reports):
        text = head(number) + variants[number % 200] + "</feedback>\n"
        size += len(text)
        data = gzip.compress(text.encode(), 1)
        if number % 3 == 0:
            data = MAIL.format(number=number).encode() + base64.encodebytes(data)
        folder = place / str(number // 1000)
        folder.mkdir(exist_ok=True)
        (folder / str(number)).write_bytes(data)
    return size


def bomb(text: bytes, times: int) -> bytes:
    """A gzip of a text so many times, whose end nobody reaches."""
    packer = zlib.compressobj(9, wbits=31)
    start = packer.compress(b"<feedback>") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * times


def many_rows(count: int) -> bytes:
    packed = io.BytesIO()
    with gzip.open(packed, "wb", 1) as file:
        file.write(head(10**9).encode())
        for number in range(count):
            file.write(
                b"<record><row><source_ip>10.%d.%d.1</source_ip><count>1</count></row>"
                b"<auth_results><dkim><domain>x.example</domain><selector>s%d</selector>"
                b"<result>pass</result></dkim></auth_results></record>"
                % (number >> 8 & 255, number & 255, number)
            )
        file.write(b"</feedback>")
    return packed.getvalue()


def hostile(place: Path) -> None:
    (place / "a million rows.xml.gz").write_bytes(many_rows(1_000_000))
    for name, text in [
        ("text", b" " * (1 << 20)),
        ("elements", b"<a/>" * (1 << 18)),
        ("rows", b"<record/>" * (1 << 17)),
    ]:
        data = bomb(text, (10 << 30) // len(text))
        (place / f"10 GiB of {name}.xml.gz").write_bytes(data)
    with zipfile.ZipFile(place / "300,000 files.zip", "w") as archive:
        for number in range(300_000):
            archive.writestr(f"{number}.xml", b"<a/>")
    with tarfile.open(place / "200,000 files.tar.gz", "w:gz", compresslevel=1) as tar:
        for number in range(200_000):
            tar.addfile(tarfile.TarInfo(f"{number}.xml"))
    for name, data in [
        ("16 MiB of lines.eml.gz", b"a\n" * (8 << 20)),
        ("lines as many as may be.eml.gz", b"a: b\n" * 599_999),
        ("an mbox of lines.gz", b"From a\n" + b"a\n" * (31 << 20)),
        ("fields as many and long as may be.eml.gz",
         b"\n".join([b"--a\nContent-Type: multipart/a;" + b";" * 2000 + b"\n"] * 1000)),
    ]:  # fmt: skip
        (place / name).write_bytes(gzip.compress(data))
    laughs = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    (place / "laughs.xml").write_text(
        f'<!DOCTYPE feedback [<!ENTITY a0 "ha">{laughs}]><feedback>&a9;</feedback>'
    )


def main() -> None:
    reports, rows = arguments(100_000, 50)
    with tempfile.TemporaryDirectory() as home:
        place = Path(home, "mail")
        place.mkdir()
        keys = list(registrations(1000))
        with open_ledger(Path(home)) as ledger:
            ledger.record(keys)
        size = fill(place, keys, reports, rows)
        print(f"{reports:,} reports of {rows} rows, {size >> 20:,} MiB of XML")
        for what in "first", "again":
            seconds, mib = measure([TOOL, "reports", str(place)], environment(Path(home)))
            print(f"{what}: {seconds:.1f} s, {mib:.0f} MiB")
        bad = Path(home, "bad")
        bad.mkdir()
        hostile(bad)
        for path in sorted(bad.iterdir()):
            words = ["sh", "-c", f"'{TOOL}' reports \"$0\"; true", str(path)]
            seconds, mib = measure(words, environment(Path(home)))
            print(
                f"{path.name} ({path.stat().st_size >> 10:,} KiB): {seconds:.1f} s, {mib:.0f} MiB"
            )


if __name__ == "__main__":
    main()
