"""DMARC reports: what those of several reporters say, and what bad ones do not do."""

from __future__ import annotations

import base64
import gzip
import io
import random
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.mail import reports
from dkimctl.mail.reports import UnreadFile, read_reports
from dkimctl.models import RegistrationKey, key_of

PLACE = Path(__file__).parents[2] / "fixtures" / "reports"
NOW = datetime(2026, 1, 20, tzinfo=UTC)
BEGIN, END = 1768435200, 1768521599  # 2026-01-15
KEYS = {key_of("example.com", selector) for selector in ("s1", "s2")}
NETWORK = "192.0.2.0/24"


def known(key: RegistrationKey) -> RegistrationKey | None:
    """Keys of example.com, as the command does it."""
    if key in KEYS:
        return key
    return key._replace(selector="") if key.sign_domain == "example.com" else None


def read(data: bytes, name: str = "report"):
    return list(read_reports(name, io.BytesIO(data), known, NOW))


def counts(report) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
    """By selector: the messages that passed, and that failed."""
    return {key.selector: tuple(map(dict, mail)) for key, mail in report.mail.items()}


def signature(selector: str = "s1", result: str = "pass", domain: str = "example.com") -> str:
    return (
        f"<dkim><domain>{domain}</domain><selector>{selector}</selector>"
        f"<result>{result}</result></dkim>"
    )


def row(*signatures: str, count: object = 1, address: str = "192.0.2.1") -> str:
    return (
        f"<record><row><source_ip>{address}</source_ip><count>{count}</count><policy_evaluated>"
        "<disposition>none</disposition><dkim>pass</dkim><spf>pass</spf></policy_evaluated></row>"
        "<identifiers><header_from>example.com</header_from></identifiers>"
        f"<auth_results>{''.join(signatures or [signature()])}<spf><domain>other.example</domain>"
        "<result>pass</result></spf></auth_results></record>"
    )


def xml(
    *rows: str, begin: object = BEGIN, end: object = END, start: str = "", about: str = ""
) -> str:
    return (
        f"{start}<feedback><version>1.0</version><report_metadata><org_name>A reporter</org_name>"
        f"<email>a@example.net</email>{about}<report_id>1</report_id><date_range><begin>{begin}"
        f"</begin><end>{end}</end></date_range></report_metadata><policy_published><domain>"
        f"example.com</domain><p>none</p></policy_published>{''.join(rows or [row()])}</feedback>"
    )


def zipped(*files: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    done = io.BytesIO()
    with zipfile.ZipFile(done, "w", kind) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return done.getvalue()


def tarred(*files: tuple[str, bytes]) -> bytes:
    done = io.BytesIO()
    with tarfile.open(fileobj=done, mode="w") as archive:
        for name, data in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return done.getvalue()


def mailed(*files: bytes, kind: str = "application/gzip") -> bytes:
    parts = "".join(
        f'--b\nContent-Type: {kind}; name="f"\nContent-Transfer-Encoding: base64\n\n'
        f"{base64.encodebytes(data).decode()}"
        for data in files
    )
    start = (
        'From: a@example.net\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
    )
    return f"{start}{parts}--b--\n".encode()


REPORTERS = {
    "amazon-ses.eml": ("AMAZON-SES", 6, {"": ({NETWORK: 6}, {})}),  # names no selector
    "fastmail.xml": ("Fastmail Pty Ltd", 0, {"s1": ({NETWORK: 1}, {})}),
    "google.eml": ("google.com", 40, {"s1": ({NETWORK: 40}, {"2001:db8:1::/48": 2})}),
    "mailru.xml": ("Mail.Ru", 0, {"s2": ({NETWORK: 4}, {})}),  # a signature of no domain
    "microsoft.xml.gz": ("Enterprise Outlook", 0, {"s1": ({NETWORK: 7}, {})}),
    "mimecast.eml": ("mimecast.org", 40, {"s1": ({NETWORK: 40}, {})}),  # a line end after the gzip
    "opendmarc.zip": ("mx.example.org", 0, {"s1": ({NETWORK: 2}, {})}),  # no org_name
    "rfc9990.xml": ("Reporter of RFC 9990", 0, {"s2": ({NETWORK: 123}, {})}),
    "yahoo.xml": (
        "Yahoo! Inc.",
        0,
        {"s1": ({NETWORK: 5}, {"203.0.113.0/24": 3}), "s2": ({}, {"203.0.113.0/24": 3})},
    ),
}


@pytest.mark.parametrize("name", sorted(path.name for path in PLACE.iterdir()))
def test_reports_in_the_shape_of_each_reporter(name):
    [report] = read((PLACE / name).read_bytes(), name)
    assert (report.reporter, report.others, counts(report)) == REPORTERS[name]
    assert (report.day, report.wrong) == (date(2026, 1, 15), 0)


REPORT = xml().encode()
CONTAINERS = {
    "XML": REPORT,
    "gzip": gzip.compress(REPORT),
    "gzip in two parts": gzip.compress(REPORT[:100]) + gzip.compress(REPORT[100:]) + b"\r\n",
    "zip": zipped(("a.xml", REPORT)),
    "tar": tarred(("a.xml", REPORT)),
    "tar.gz": gzip.compress(tarred(("a.xml", REPORT))),
    "gzip in zip": zipped(("a.xml.gz", gzip.compress(REPORT))),
    "mail": mailed(gzip.compress(REPORT)),
    "mail with XML": mailed(REPORT, kind="text/xml"),
    "mail with zip": mailed(zipped(("a.xml", REPORT)), kind="application/octet-stream"),
    "mail with pictures": mailed(b"\x89PNG", b"\xff\xd8\xff\xe0", gzip.compress(REPORT)),
    "mbox": b"From a@example.net Thu Jan 15 00:00:00 2026\n" + mailed(REPORT, kind="text/xml"),
    "zip with a note": zipped(("readme.txt", b"hello"), ("a.xml", REPORT)),
    "a byte order mark": b"\xef\xbb\xbf" + REPORT,
    "a prefix": REPORT.replace(b"</", b"</d:").replace(b"<", b"<d:").replace(b"<d:/d:", b"</d:")
    .replace(b"<d:feedback>", b'<d:feedback xmlns:d="urn:ietf:params:xml:ns:dmarc-2.0">'),
    "comments and CDATA": xml(row(signature("<!-- x --><![CDATA[s1]]>"))).encode(),
    "UTF-16": b"\xff\xfe" + REPORT.decode().encode("utf-16-le"),
    "UTF-16, declared": xml(start='<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
    "ISO-8859-1": xml(
        start='<?xml version="1.0" encoding="ISO-8859-1"?>', about="<contact>é</contact>"
    ).encode("latin-1"),
    "Windows-1252": xml(
        start='<?xml version="1.0" encoding="windows-1252"?>', about="<contact>€</contact>"
    ).encode("cp1252"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_report_may_be_in(name):
    [report] = read(CONTAINERS[name])
    assert counts(report) == {"s1": ({NETWORK: 1}, {})}


def test_many_reports_in_one_file():
    mbox = b"".join(
        b"From a@example.net Thu Jan 15 00:00:00 2026\n" + mailed(gzip.compress(REPORT)) + b"\n"
        for _ in range(50)
    )
    assert len(read(mbox)) == 50
    assert len(read(tarred(*[(str(number), REPORT) for number in range(50)]))) == 50


def entities(*lines: str) -> bytes:
    return xml(start=f'<?xml version="1.0"?><!DOCTYPE feedback [{"".join(lines)}]>').encode()


def nested(data: bytes, times: int) -> bytes:
    for _ in range(times):
        data = zipped(("a.zip", data))
    return data


def encrypted(data: bytes) -> bytes:
    """A zip that says of its file that it is encrypted."""
    done = bytearray(data)
    done[6] |= 1
    done[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(done)


def long_tar_header() -> bytes:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 900 << 20
    return gzip.compress(entry.tobuf() + bytes(1 << 20))


def long_zip_list() -> bytes:
    """A zip that says that the list of its files has 5 MiB."""
    size = 5 << 20
    end = b"PK\x05\x06" + bytes(8) + size.to_bytes(4, "little") + bytes(6)
    return b"PK\x03\x04" + bytes(size - 4) + end


def deep_mail() -> bytes:
    parts = "".join(
        f"Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n"
        for number in range(250)
    )
    return (parts + "\n" * 100_000).encode()


BILLION = [f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9)]
HOSTILE = {
    "nothing": (b"", "there is no report in it"),
    "a picture": (b"\x89PNG\r\n", "there is no report in it"),
    "text": (b"Dear all,\n", "there is no report in it"),
    "another XML": (b"<html><body>x</body></html>", "not a report"),
    "no XML": (b"<feedback><record>", "no element found"),
    "an entity": (entities('<!ENTITY x SYSTEM "file:///etc/passwd">'), "document type"),
    "a billion laughs": (entities('<!ENTITY a0 "ha">', *BILLION), "document type"),
    "an undeclared entity": (xml(about="&x;").encode(), "undefined entity"),
    "an unknown encoding": (xml(start='<?xml version="1.0" encoding="x-1"?>').encode(), "encoding"),
    "UTF-7": (xml(start='<?xml version="1.0" encoding="utf-7"?>').encode(), "encodings"),
    "a bad byte": (xml(about="<x>\xff</x>").encode("latin-1"), "not well-formed"),
    "HTML": (b"<!DOCTYPE html><p>x", "not a report"),
    "many levels": (b"<feedback>" + b"<a>" * (1 << 20), "too much without"),
    "a huge tag": (b"<feedback x='" + b"a" * (3 << 20) + b"'/>", "too much without"),
    "a huge text": (b"<feedback><email>" + b"a" * (2 << 20) + b"</email>", "too much without"),
    "many elements": (b"<feedback>" + b"<a/>" * (2 << 20), "too much without"),
    "a huge name": (b"<" + b"a" * (3 << 20) + b"/>", "too much without"),
    "a truncated gzip": (gzip.compress(REPORT)[:-20], "cut off"),
    "a gzip of many parts": (gzip.compress(b"") * 100_000, "too many parts"),
    "two reports in a gzip": (gzip.compress(REPORT) * 2, "junk after document element"),
    "a broken gzip": (gzip.compress(REPORT)[:-6] + b"123456", "incorrect data check"),
    "a truncated zip": (zipped(("a.xml", REPORT))[:-30], "zip"),
    "a broken zip": (zipped(("a.xml", REPORT)).replace(b"PK\x01\x02", b"PK\x01\x03"), "directory"),
    "an encrypted zip": (encrypted(zipped(("a.xml", REPORT))), "encrypted"),
    "a zip with LZMA": (zipped(("a.xml", REPORT), kind=zipfile.ZIP_LZMA), "no reporter"),
    "a zip with a long list": (long_zip_list(), "too many files"),
    "a tar with a long header": (long_tar_header(), "header"),
    "a truncated tar": (tarred(("a.xml", REPORT))[:900], "unexpected end"),
    "zip in zip in zip": (nested(zipped(("a.xml", REPORT)), 4), "inside each other"),
    "a mail with many levels": (deep_mail(), "parts or lines"),
    "a mail with many levels, and other line ends": (
        deep_mail().replace(b"\n", b"\r"), "parts or lines"
    ),
    "a mail of many lines": (gzip.compress(b"\n" * (15 << 20)), "parts or lines"),
    "a huge mail": (gzip.compress(b"a" * (17 << 20)), "larger than 16 MiB"),
    "a huge mail in an mbox": (gzip.compress(b"From a\n" + b"a\n" * (9 << 20)), "larger than 16"),
    "a mail with many fields": (b"\n".join([b"Content-Type: a/b;" + b";" * 2000] * 1001), "fields"),
    "a mail with a long field": (b"Content-Type: a/b" + b";a" * 200_000 + b"\n\n", "too long"),
    "dates in the future": (xml(begin=BEGIN + 10**7, end=END + 10**7).encode(), "dates"),
    "dates that end before": (xml(begin=END, end=BEGIN).encode(), "dates"),
    "a report of years": (xml(begin=0).encode(), "dates"),
    "dates that are none": (xml(end="tomorrow").encode(), "dates"),
    "huge dates": (xml(begin="9" * 11, end="9" * 5000).encode(), "dates"),
    "no ID": (REPORT.replace(b"<report_id>1</report_id>", b""), "lacks org_name or report_id"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_told_in_time(name):
    data, reason = HOSTILE[name]
    started = time.process_time()
    faults = read(data)
    assert time.process_time() - started < 5
    assert len({fault.reason for fault in faults}) == 1
    assert isinstance(faults[0], UnreadFile)
    assert reason in faults[0].reason


@pytest.mark.parametrize("size", [50, 150])
def test_what_is_unpacked_from_a_file_is_limited(monkeypatch, size):
    """As 10 GB out of 10 MB, with smaller numbers."""
    monkeypatch.setattr(reports, "_MAX_UNPACKED", 10 << 20)
    empty = b"<feedback>" + (b"<record>" + b" " * 1000 + b"</record>") * 1000 * size
    for data in gzip.compress(empty), zipped(*[(str(n), empty[: 20 << 20]) for n in range(5)]):
        tracemalloc.start()
        faults = read(data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert "too much" in faults[-1].reason
        assert len(faults) < 3
        assert peak < 5 << 20


def test_many_empty_files_are_limited(monkeypatch):
    monkeypatch.setattr(reports, "_MAX_UNPACKED", 10 << 20)
    data = gzip.compress(tarred(*[("x", b"")] * 5000, ("a.xml", REPORT)))
    [fault] = read(data)
    assert "too much" in fault.reason


def test_many_rows_need_no_memory():
    generator = random.Random(1)
    rows = [
        row(signature(f"x{number}"), address=f"{generator.randrange(1, 224)}.{number % 250}.1.1")
        for number in range(10_000)
    ]
    data = gzip.compress(xml(*rows).encode())
    del rows
    reports._network.cache_clear()
    tracemalloc.start()
    [report] = read(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 << 20
    [(passed, failed)] = counts(report).values()
    assert sum(passed.values()) == 10_000
    assert not failed
    assert len(passed) <= 101
    assert passed["others"] > 1000


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "", "1e9", "x", "9" * 30, "٣", "0x10", "1_0"])
def test_a_row_with_a_wrong_count_is_left(count):
    [report] = read(xml(row(count=count), row(count=3)).encode())
    assert (report.wrong, counts(report)) == (1, {"s1": ({NETWORK: 3}, {})})


def test_so_many_messages_that_no_sum_holds_them_are_left():
    [report] = read(xml(row(count=10**9), row(count=1)).encode())
    assert (report.wrong, counts(report)) == (1, {"s1": ({NETWORK: 10**9}, {})})


def test_several_signatures_of_one_message_count_once_each_key():
    same = row(signature(result="fail"), signature(result="pass"), count=5)
    both = row(signature(), signature("s2", "fail"), count=2)
    neither = row(signature(result="none"), signature(result="temperror"), count=7)
    other = row(signature(domain="other.example"), count=11)
    [report] = read(xml(same, both, neither, other).encode())
    assert counts(report) == {"s1": ({NETWORK: 7}, {}), "s2": ({}, {NETWORK: 2})}
    assert report.others == 11


@pytest.mark.parametrize("address", ["", "x", "192.0.2.1.1", "1" * 1000, "192.0.2.1/24", "\x85"])
def test_an_address_that_is_none(address):
    [report] = read(xml(row(address=address)).encode())
    assert counts(report) == {"s1": ({"others": 1}, {})}


def test_names_with_escapes_are_not_ours_and_are_printed_escaped():
    escape = "\x1b[31m\u202e".replace("\x1b", "\x9b")
    text = xml(row(signature(escape)), row(signature("a\nb"))).replace("A reporter", escape * 500)
    [report] = read(text.encode())
    assert counts(report) == {"": ({NETWORK: 2}, {})}
    assert report.reporter.isprintable()
    assert len(report.reporter) <= 250
    [fault] = read(zipped(("\x1b[31m" + "a" * 9000, b"<x")))
    assert len(fault.name) < 300


def test_elements_of_others_change_nothing():
    text = xml(row().replace("<row>", "<row><x:count xmlns:x='urn:x'>99</x:count>"))
    [report] = read(text.encode())
    assert counts(report) == {"s1": ({NETWORK: 1}, {})}


_PIECES = st.sampled_from([
    "<feedback>", "</feedback>", "<record>", "</record>", "<row>", "</row>", "<count>5</count>",
    "<dkim>", "</dkim>", "<auth_results>", "</auth_results>", signature(), row(), "<dkim/>", "&lt;",
    "<record/>", "<count>", "</count>", "text", "<auth_results/>", "<begin>1</begin>", "<spf/>",
])  # fmt: skip


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_no_order_of_elements_ends_in_a_traceback(text):
    for item in (read(text.encode()), read(xml(text).encode())):
        assert item


@given(st.sampled_from(sorted(CONTAINERS)), st.data())
def test_no_changed_byte_ends_in_a_traceback(name, data):
    changed = bytearray(CONTAINERS[name])
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(changed)))
    read(bytes(changed))
    read(bytes(changed[:end]))


@given(st.binary())
def test_no_data_ends_in_a_traceback(data):
    read(data)
    read(zlib.compress(data, wbits=31))
    read(zipped(("x", data)))
    read(b"From \n" + data)
    read(mailed(data))


SIGNATURES = st.tuples(st.sampled_from(["s1", "s2"]), st.sampled_from(["pass", "fail", "neutral"]))


@given(st.lists(st.tuples(st.integers(1, 10**6), st.lists(SIGNATURES, max_size=3)), min_size=1))
def test_the_sums_are_those_of_the_rows(rows):
    expected = {True: Counter(), False: Counter()}
    for count, signatures in rows:
        passed = {selector for selector, result in signatures if result == "pass"}
        for selector in {selector for selector, _ in signatures}:
            expected[selector in passed][selector] += count
    text = xml(*[
        row(*[signature(*each) for each in signatures] or ["<x/>"], count=count)
        for count, signatures in rows
    ])  # fmt: skip
    [report] = read(text.encode())
    for is_good, sums in expected.items():
        for selector, mail in counts(report).items():
            assert sum(mail[not is_good].values()) == sums[selector]
