"""DMARC aggregate reports (RFC 7489 appendix C, RFC 9990): what receivers say of signed mail.

All of a report is foreign: it is read in a stream, within limits of size, depth and time, and
anything invalid is ignored.
"""

from __future__ import annotations

import io
import ipaddress
import re
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import IO, Any, NamedTuple
from xml.parsers import expat

from dkimctl.models import (
    MAX_NETWORKS,
    OTHER_NETWORKS,
    DmarcReport,
    RegistrationKey,
    ReportedMail,
    key_of,
)
from dkimctl.text import printable

_MAX_BYTES = 64 << 20  # of an archive inside something else
_MAX_MAIL, _MAX_LINES = 16 << 20, 600_000  # bytes, and line ends
_MAX_FIELDS, _MAX_FIELD = 1000, 2 << 10  # fields of a mail that tell types or names, and bytes
_MAX_REPORT = 256 << 20  # bytes of XML
_MAX_UNPACKED, _MAX_RATIO = 256 << 20, 100  # bytes of all that a file holds, or times its size
_LEAST = 16 << 10  # bytes that a file in another counts, so that there are not too many
_MAX_DEPTH = 4  # a report in a gzip in a zip in a mail
_MAX_MEMBERS = 1000  # of a gzip
_MAX_LIST = 4 << 20  # bytes of the list of files in a zip
_MAX_HEADER = 64 << 10  # bytes of what tar has before a file
_MAX_SEARCH = 20_000_000  # lines of a mail, times boundaries that each may be
_MAX_ROWS, _MAX_OTHER = 2_000_000, 1 << 20  # rows, and bytes without one (of a tag, a text)
_MAX_TEXT = 250  # characters of a name or an ID
_MAX_COUNT = 10**9  # messages in a report
_LONGEST = timedelta(days=31)
_CHUNK = 1 << 16
_GZIP, _UTF_16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")  # what they begin with
# With the lines that continue it. To read one takes time by the square of its length.
_FIELD = re.compile(
    rb"(?i)(?:^|[\r\n])content-(?:type|disposition):[^\r\n]*(?:(?:\r\n|\r|\n)[ \t][^\r\n]*)*"
)
_FAULTS = (
    OSError, EOFError, LookupError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile,
    tarfile.TarError, expat.ExpatError,
)  # fmt: skip
# Gives the key under which mail with a signature counts; None if its domain is not ours.
Known = Callable[[RegistrationKey], RegistrationKey | None]


class UnreadFile(NamedTuple):
    """Why a file, or one in it, gives no report."""

    name: str
    reason: str
    is_other: bool = False  # it does not even seem to be one


class _NoReportError(ValueError):
    """Why something is not a report."""


class _OtherFileError(ValueError):
    """Something that is neither a report nor has one."""


class _TooMuchError(Exception):
    """A file has more in it than may be unpacked: nothing more is read of it."""


class _Unpacked:
    """How many bytes may still be unpacked from a file."""

    def __init__(self, size: int) -> None:
        self.left = max(_MAX_UNPACKED, _MAX_RATIO * size)


class _Stream(io.RawIOBase):
    """A file that counts what is read from it."""

    def __init__(self, file: IO[bytes], unpacked: _Unpacked) -> None:
        self._file = file
        self._unpacked = unpacked
        unpacked.left -= _LEAST

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._unpacked.left -= len(data)
        if self._unpacked.left < 0:
            raise _TooMuchError
        return len(data)


def read_reports(
    name: str, file: IO[bytes], known: Known, now: datetime
) -> Iterator[DmarcReport | UnreadFile]:
    """The reports in a file: XML, gzip, zip, tar, a mail or an mbox, also inside each other."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    try:
        yield from _reports(name, file, known, now, _Unpacked(size), 0)
    except _TooMuchError:
        yield UnreadFile(name, "too much is packed into it")


class _Unzipped:
    """What is in a gzip. What follows it, as the line end of some reporters, is left."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._gzip, self._members = zlib.decompressobj(31), 1

    def read(self, size: int) -> bytes:
        while True:
            packed = self._gzip.unconsumed_tail or self._gzip.unused_data
            if len(packed) < len(_GZIP):
                packed += self._file.read(_CHUNK)
            if self._gzip.eof:
                if not packed.startswith(_GZIP):
                    return b""
                if self._members == _MAX_MEMBERS:
                    raise _NoReportError("it has too many parts")
                self._gzip, self._members = zlib.decompressobj(31), self._members + 1
            if data := self._gzip.decompress(packed, size):
                return data
            if not packed:
                raise EOFError("it is cut off")


class _Zipped:
    """A zip whose list of files, which is read at once, is not too long."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _MAX_LIST:
            raise _NoReportError("there are too many files in it")
        return self._file.read(size)


class _TarEntry(tarfile.TarInfo):
    """A file in a tar. What stands before it, and is read at once, is not too long."""

    @classmethod
    def frombuf(cls, *args: Any) -> _TarEntry:
        entry = super().frombuf(*args)
        if not entry.isreg() and entry.size > _MAX_HEADER:
            raise _NoReportError("a header in it is too long")
        return entry


def _reports(
    name: str, file: IO[bytes], known: Known, now: datetime, unpacked: _Unpacked, depth: int
) -> Iterator[DmarcReport | UnreadFile]:
    """The reports in an open file, which may be a stream."""
    try:
        stream: Any = io.BufferedReader(_Stream(file, unpacked), _CHUNK)
        head = stream.peek()
        if head.startswith(_UTF_16) or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            yield _Parser(known, now).read(stream)
        elif depth >= _MAX_DEPTH:
            raise _NoReportError("too many archives inside each other")
        else:
            is_zip = head.startswith(b"PK\x03\x04")
            if is_zip and depth:  # it is read from its end
                file = io.BytesIO(_limited(stream, _MAX_BYTES))
            has_any = False
            for inner, inside in _in_zip(file) if is_zip else _files(head, stream):
                inner_name = f"{name}/{inner[:_MAX_TEXT]}" if inner else name
                for item in _reports(inner_name, inside, known, now, unpacked, depth + 1):
                    # Mail has other attachments, too: nothing to tell.
                    if not (isinstance(item, UnreadFile) and item.is_other):
                        has_any = True
                        yield item
            if not has_any:
                raise _OtherFileError("there is no report in it")
    except _FAULTS as error:
        reason = printable(str(error))[:_MAX_TEXT] or type(error).__name__
        yield UnreadFile(name, reason, isinstance(error, _OtherFileError))


def _in_zip(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(_Zipped(file)) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise _NoReportError("it is packed in a way that no reporter uses")
                with archive.open(info) as member:
                    yield info.filename, member


def _files(head: bytes, stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """The files in an archive or in mails, each with its name."""
    if head.startswith(_GZIP):
        yield "", _Unzipped(stream)
    elif head[257:262] == b"ustar":
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarEntry) as tar:
            while (entry := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]
                if entry.isreg() and (extracted := tar.extractfile(entry)) is not None:
                    yield entry.name, extracted
    elif head.startswith(b"From "):
        for number, mail in enumerate(_mails(stream), start=1):
            yield str(number), io.BytesIO(mail)
    else:
        import email

        data = _limited(stream, _MAX_MAIL)
        lines = data.count(b"\n") + data.count(b"\r")
        if lines > _MAX_LINES or lines * data.lower().count(b"boundary") > _MAX_SEARCH:
            raise _NoReportError("the mail has too many parts or lines")
        fields = [len(field) for field in _FIELD.findall(data)]
        if len(fields) > _MAX_FIELDS or max(fields, default=0) > _MAX_FIELD:
            raise _NoReportError("the mail has too many fields, or one that is too long")
        for part in email.message_from_bytes(data).walk():
            kind, filename = part.get_content_type(), part.get_filename()
            if filename or kind.startswith(("application/", "text/xml")):
                payload = part.get_payload(decode=True)
                yield filename or "", io.BytesIO(payload if isinstance(payload, bytes) else b"")


def _limited(stream: IO[bytes], most: int) -> bytes:
    data = stream.read(most + 1)
    if len(data) > most:
        raise _NoReportError(f"it is larger than {most >> 20} MiB")
    return data


def _mails(stream: IO[bytes]) -> Iterator[bytes]:
    """The mails of an mbox (RFC 4155), without the lines between them."""
    mail = bytearray()
    for line in iter(lambda: stream.readline(_CHUNK), b""):
        if line.startswith(b"From "):
            if mail:
                yield bytes(mail)
            mail.clear()
        else:
            mail += line
            if len(mail) > _MAX_MAIL:
                raise _NoReportError(f"a mail in it is larger than {_MAX_MAIL >> 20} MiB")
    if mail:
        yield bytes(mail)


class _Parser:
    """Reads the XML of one report in a stream.

    A handler for the start of elements would take a third of the time. Without one, the text of an
    element comes with the space before it.
    """

    def __init__(self, known: Known, now: datetime) -> None:
        self._now = now
        self._key_of = lru_cache(maxsize=1000)(
            lambda domain, selector: known(key_of(domain.rstrip("."), selector.rstrip(".")))
        )
        self._mail: dict[RegistrationKey, ReportedMail] = {}
        self._others = self._wrong = self._rows = 0
        self._left = _MAX_COUNT
        self._domain, self._about = "", dict[str, str]()  # of the policy, and the metadata

    def read(self, stream: IO[bytes]) -> DmarcReport:
        """Raises one of _FAULTS."""
        fields, of_result, text = dict[str, str](), dict[str, str](), list[str]()
        signatures: list[tuple[str, str, str]] = []
        places = dict.fromkeys(_FIELDS, fields) | dict.fromkeys(_OF_RESULT, of_result)

        def end(name: str) -> None:  # eighteen times a row
            if (place := places.get(name)) is not None:
                place[name] = "".join(text).strip()
            elif name == "record":
                self._add(fields, signatures)
                fields.clear()
                signatures.clear()
            elif name in _WITH_RESULT:
                if domain := of_result.get("domain"):  # in the evaluation is none
                    if name == "dkim":
                        of_dkim = domain, of_result.get("selector", ""), of_result.get("result", "")
                        signatures.append(of_dkim)
                    elif name == "policy_published":
                        self._domain = domain
                of_result.clear()
            elif name == "report_metadata":
                self._about = fields.copy()
                fields.clear()
            text.clear()

        def start_root(name: str, _: object) -> None:
            parser.StartElementHandler = None
            if name.rpartition(":")[2] != "feedback":
                raise _OtherFileError("it is not a report")
            if prefix := name[: name.find(":") + 1]:  # of the namespace
                parser.EndElementHandler = lambda name: end(name.removeprefix(prefix))

        def refuse_doctype(name: str, *_: object) -> None:
            if name.lower() == "html":
                raise _OtherFileError("it is not a report")
            raise _NoReportError("no report: it declares a document type")

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = refuse_doctype
        parser.StartElementHandler = start_root
        parser.EndElementHandler = end
        parser.CharacterDataHandler = text.append
        self._feed(parser, stream)
        return self._made()

    def _feed(self, parser: expat.XMLParserType, stream: IO[bytes]) -> None:
        size = rows = seen_at = 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > _MAX_REPORT:
                raise _NoReportError(f"the report is larger than {_MAX_REPORT >> 20} MiB")
            parser.Parse(chunk)
            if self._rows > rows:
                rows, seen_at = self._rows, size
            if rows > _MAX_ROWS or size - seen_at > _MAX_OTHER:
                raise _NoReportError("no report: too many rows, or too much without one")
        parser.Parse(b"", True)

    def _made(self) -> DmarcReport:
        about = {name: printable(text)[:_MAX_TEXT] for name, text in self._about.items()}
        # Without the name of a person.
        reporter = (about.get("org_name") or about.get("email", "")).rpartition("@")[2]
        report_id = about.get("report_id")
        if not (reporter and report_id):
            raise _NoReportError("no report: its metadata lacks org_name or report_id")
        # Some write them with a fraction.
        begin, end = (
            _number(self._about.get(name, "").partition(".")[0]) for name in ("begin", "end")
        )
        latest = self._now + timedelta(days=1)
        if not 0 < begin <= end <= latest.timestamp() or end - begin > _LONGEST.total_seconds():
            raise _NoReportError("the dates of the report cannot be right")
        day = datetime.fromtimestamp(max(end - 1, begin), UTC).date()
        # Some give an ID again, for another domain or day.
        domain = printable(self._domain)[:_MAX_TEXT].rstrip(".").lower()
        name = f"{report_id} {domain} {begin}"
        ours = self._key_of(domain, "")
        if ours is not None and all(key.sign_domain != domain for key in self._mail):
            self._mail[ours] = ReportedMail(Counter(), Counter())  # its mail has no signature
        return DmarcReport(reporter, name, day, self._mail, self._others, self._wrong)

    def _add(self, row: Mapping[str, str], signatures: Sequence[tuple[str, str, str]]) -> None:
        """Count the signatures of a row; several with one key are one, which passed if any did."""
        self._rows += 1
        count = _number(row.get("count", ""))
        if not 0 < count <= self._left:
            self._wrong += 1
            return
        self._left -= count
        results: dict[RegistrationKey, bool] = {}
        for domain, selector, result in signatures[:_MAX_TEXT]:
            ours = self._key_of(domain, selector)
            if ours is None:
                self._others += count
            elif result.lower() in _RESULTS:
                results[ours] = results.get(ours, False) or result.lower() == "pass"
        for key, is_good in results.items():
            if key not in self._mail:
                self._mail[key] = ReportedMail(Counter(), Counter())
            counts = self._mail[key][not is_good]
            network = _network(row.get("source_ip", ""))
            if network not in counts and len(counts) >= MAX_NETWORKS:
                network = OTHER_NETWORKS
            counts[network] += count


_FIELDS = ("org_name", "email", "report_id", "begin", "end", "source_ip", "count")
_OF_RESULT = ("domain", "selector", "result")
_WITH_RESULT = frozenset(("dkim", "spf", "policy_published"))
_RESULTS = frozenset(("pass", "fail", "policy", "neutral", "permerror"))  # of those that say one


def _number(text: str) -> int:
    """0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0


@lru_cache(maxsize=4096)
def _network(address: str) -> str:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return OTHER_NETWORKS
    return str(ipaddress.ip_network((ip, 24 if ip.version == 4 else 48), strict=False))
