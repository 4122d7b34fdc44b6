"""The HTTP request parser: waitress's own, behind checks that keep it fast.

One thread at a time reads all requests, and waitress's regular expressions take quadratic time on
some lines: 8,000 octets blocked all clients for 4 s. The checks here take linear time, and what
passes them is matched at the first attempt.
"""

from __future__ import annotations

import re

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.utilities import BadRequest

MAX_HEADERS = 100
"""Each takes a few hundred octets of memory, however short it is."""

MAX_FRAMING = 16 * 1024
"""Octets of a chunked body that are not content; 1,000 chunks need 10,000 at most."""

# The longest path is /send/ and 128 characters, all of which may be escaped.
_REQUEST_LINE = re.compile(rb"[^ ]{1,20} [^ ]{1,2000} HTTP/1\.[01]")
_FOLDED = re.compile(rb"\r\n[ \t]")  # obsolete (RFC 9112, section 5.2)
_BLANKS = re.compile(rb"[ \t]{9}")
_CODING = re.compile(rb"\r\ntransfer-encoding:([^\r]*)", re.IGNORECASE)


class Parser(HTTPRequestParser):
    """One request. If `error` is set, it is answered with that, and the connection is closed."""

    path = ""  # waitress logs it for a failed request, even for one that it could not parse

    def received(self, data: bytes) -> int:
        """Parse the next octets; returns how many of them belong to the request."""
        taken: int = super().received(data)
        if self.empty:  # only one line end may precede a request, or they could come forever
            self._refuse("there is no request line")
        elif self.chunked and self.body_bytes_received - len(self.body_rcv or b"") > MAX_FRAMING:
            self._refuse("the body has too many chunks, or they say too much of themselves")
        if self.completed:  # or waitress would ask for more, and never answer
            self.expect_continue = False
        return taken

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the request line and all headers. Raises ParsingError."""
        _check_lines(header_plus)
        try:
            super().parse_header(header_plus)
        except (ParsingError, ValueError):  # its message may quote a header
            raise ParsingError("the head is malformed") from None
        self._check_transfer_encoding(header_plus)

    def _check_transfer_encoding(self, head: bytes) -> None:
        """Require an unambiguous end of the body, against request smuggling (RFC 9112, 6.1)."""
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
    if head.count(b"\n") > MAX_HEADERS + 2:  # with the request line and the empty one
        raise ParsingError(f"there are more than {MAX_HEADERS} headers")
    if _FOLDED.search(head):
        raise ParsingError("a header is folded")
    if _BLANKS.search(head):
        raise ParsingError("a header has too many blanks in a row")
