"""Requests as they arrive: waitress's parser behind checks of our own.

One thread of waitress reads all requests, and its expressions try some lines in as many ways as
the square of their length: 8,000 octets kept everybody waiting for 4 s. What passes the checks
here, each of them one pass, is matched at the first try.
"""

from __future__ import annotations

import re

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.utilities import BadRequest

MAX_FRAMING = 16 * 1024
"""Octets of a body in chunks that are none of its content; 1,000 chunks need 10,000 at most."""

# The longest path of the service is /send/ and 128 characters, each of them perhaps escaped.
_REQUEST_LINE = re.compile(rb"[^ ]{1,20} [^ ]{1,2000} HTTP/1\.[01]")
_FOLDED = re.compile(rb"\r\n[ \t]")  # to be refused or replaced (RFC 9112, section 5.2)
_BLANKS = re.compile(rb"[ \t]{9}")
_CODING = re.compile(rb"\r\ntransfer-encoding:([^\r]*)", re.IGNORECASE)


class Parser(HTTPRequestParser):
    """One request; where `error` is set, that is its answer and the connection's end."""

    path = ""  # waitress tells it of a request that fails, also of one that it could not parse

    def received(self, data: bytes) -> int:
        """Take octets of the request; returns how many of them were part of it."""
        taken: int = super().received(data)
        if self.empty:  # one line end may precede a request; without a bound they come for ever
            self._refuse("there is no request line")
        elif self.chunked and self.body_bytes_received - len(self.body_rcv or b"") > MAX_FRAMING:
            self._refuse("the body has too many chunks, or they say too much of themselves")
        if self.completed:  # nothing is to follow: waitress would ask for it, and answer nothing
            self.expect_continue = False
        return taken

    def parse_header(self, header_plus: bytes) -> None:
        """Take the head as a whole. Raises ParsingError."""
        _check_lines(header_plus)
        try:
            super().parse_header(header_plus)
        except ValueError:  # such as a Content-Length of more digits than Python reads
            raise ParsingError("the head is malformed") from None
        self._check_transfer_encoding(header_plus)

    def _check_transfer_encoding(self, head: bytes) -> None:
        """See that a proxy before us finds the same end of the body (RFC 9112, section 6.1)."""
        codings = [value.strip(b" \t").lower() for value in _CODING.findall(head)]
        if not codings:
            return
        if self.version != "1.1" or codings != [b"chunked"] or "CONTENT_LENGTH" in self.headers:
            raise ParsingError("Transfer-Encoding must be chunked, of HTTP/1.1, without a length")

    def _refuse(self, reason: str) -> None:
        self.empty = False
        self.error = BadRequest(reason)
        self.completed = True


def _check_lines(head: bytes) -> None:
    line = head.partition(b"\r\n")[0]
    if not _REQUEST_LINE.fullmatch(line):
        raise ParsingError("the request line is malformed, too long, or not of HTTP/1.0 or 1.1")
    if _FOLDED.search(head):
        raise ParsingError("a header is folded")
    if _BLANKS.search(head):
        raise ParsingError("a header has too many blanks in a row")
