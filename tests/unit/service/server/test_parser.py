"""Parsing takes linear time, since one thread reads all requests."""

from __future__ import annotations

import time

import pytest
from waitress.adjustments import Adjustments

from dkimctl.service.server.parser import MAX_FRAMING, Parser
from dkimctl.service.server.server import MAX_BODY, MAX_HEAD

PIECE = 8192  # what waitress reads at once
N = MAX_HEAD - 200
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

# The worst case of each regular expression that waitress uses on requests.
WORST_HEADS = {
    "authority": b"GET a://" + b"1" * N + b" x\r\n\r\n",
    "authority that ends": b"GET a://" + b"1" * 1990 + b" HTTP/1.1\r\n\r\n",
    "scheme": b"GET " + b"a" * N + b": HTTP/1.1 x\r\n\r\n",
    "scheme that ends": b"GET " + b"a" * 1990 + b":// HTTP/1.1\r\n\r\n",
    "method": b"A" * N + b"\r\n\r\n",
    "blanks of the line": b"GET /" + b" " * N + b"HTTP/1.1\r\n\r\n",
    "percent signs": b"GET /" + b"%" * 1990 + b" HTTP/1.1\r\n\r\n",
    "brackets": b"GET //" + b"[" * 1990 + b" HTTP/1.1\r\n\r\n",
    "blanks": HEAD + b"a:" + b" " * N + b"\x01\r\n\r\n",
    "tabs": HEAD + b"a:" + b"\t " * (N // 2) + b"\x01\r\n\r\n",
    "blanks before": HEAD + b"a:" + b" " * N + b"b\r\n\r\n",
    "blanks after": HEAD + b"a:b" + b" " * N + b"\r\n\r\n",
    "short blanks": HEAD + b"a:" + b"        x" * (N // 9) + b"\x01\r\n\r\n",
    "words": HEAD + b"a:" + b" b" * (N // 2) + b"\x01\r\n\r\n",
    "name": HEAD + b"a" * N + b"\r\n\r\n",
    "folds": HEAD + b"a: b" + b"\r\n " * (N // 3) + b"\r\n\r\n",
    "many headers": HEAD + b"a:\r\n" * (N // 4) + b"\r\n",
    "codings": HEAD + b"Transfer-Encoding: " + b"chunked," * (N // 8) + b"\r\n\r\n",
    "digits": HEAD + b"Content-Length: " + b"1" * 4200 + b"\r\n\r\n",
    "line ends": b"\r\n" * (N // 2),
    "extensions": CHUNKED + b"1" + b";a" * (N // 2) + b"\x01\r\n",
    "quoted": CHUNKED + b'1;a="' + b'\\"' * (N // 2) + b"\r\n",
    "size": CHUNKED + b"f" * N + b"\r\n",
    "chunks": CHUNKED + b"1\r\nx\r\n" * 200_000,
    "lines": CHUNKED + b"\r\n" * 500_000,
    "trailer": CHUNKED + b"0\r\n" + b"x" * 1_000_000,
}


@pytest.fixture
def parser() -> Parser:
    return Parser(Adjustments(max_request_header_size=MAX_HEAD, max_request_body_size=MAX_BODY))


def _feed(parser: Parser, data: bytes) -> int:
    """Feed the data in pieces, as the channel does; returns how much was fed until the end."""
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        while piece and not parser.completed:
            piece = piece[parser.received(piece) :]
        if parser.completed:
            return start + PIECE
    return len(data)


def _error_status(parser: Parser, data: bytes) -> int | None:
    """The error status of a whole request; None if it goes to the application."""
    _feed(parser, data)
    assert parser.completed
    assert not parser.empty
    return parser.error.code if parser.error is not None else None


@pytest.mark.parametrize("head", WORST_HEADS.values(), ids=WORST_HEADS)
def test_the_worst_case_of_each_regular_expression_is_fast(parser: Parser, head: bytes) -> None:
    started = time.process_time()
    _feed(parser, head)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "head",
    [b"GET / HTTP/1.1\r\nX: a\r\n b\r\n\r\n", b"GET / HTTP/1.1\r\nX: a\r\n\tb\r\n\r\n",
     b"GET / HTTP/1.1\r\nX:" + b" \t" * 5 + b"a\r\n\r\n", b"GET /\r\n\r\n",
     b"GET / HTTP/2.0\r\n\r\n", b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\n\r\n",
     b"GET  / HTTP/1.1\r\n\r\n", b"\r\n\r\n"],
)  # fmt: skip
def test_requests_that_could_be_slow_are_refused(parser: Parser, head: bytes) -> None:
    assert _error_status(parser, head) == 400


def test_an_ordinary_request_is_parsed(parser: Parser) -> None:
    delivery = b"/send/" + b"%7E" * 128
    token = b"t" * 1200
    head = b"\r\nDELETE %b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\nX:  a  b \t\r\n\r\n"
    _feed(parser, head % (delivery, token))
    assert (parser.completed, parser.error, parser.version) == (True, None, "1.1")
    assert parser.path == "/send/" + "~" * 128
    assert parser.headers["AUTHORIZATION"] == "Bearer " + token.decode()
    assert parser.headers["X"] == "a  b"


@pytest.mark.parametrize(
    "head",
    [b"GET http://[ HTTP/1.1\r\n\r\n", b"GET http://[x]y HTTP/1.1\r\n\r\n",
     b"GET http://\xff/ HTTP/1.1\r\n\r\n",
     b"POST / HTTP/1.1\r\nContent-Length: " + b"1" * 5000 + b"\r\n\r\n"],
)  # fmt: skip
def test_a_request_that_python_cannot_parse_is_refused(parser: Parser, head: bytes) -> None:
    assert _error_status(parser, head) == 400


@pytest.mark.parametrize(
    ("fields", "code"),
    [(b"", None), (b"Content-Length: 0\r\n", None),
     (b"Content-Length: 9999999\r\n", 413), (b"Content-Length: x\r\n", 400)],
)  # fmt: skip
def test_a_request_that_is_complete_is_not_continued(
    parser: Parser, fields: bytes, code: int | None
) -> None:
    assert _error_status(parser, HEAD + b"Expect: 100-continue\r\n" + fields + b"\r\n") == code
    assert not parser.expect_continue


def test_a_request_whose_body_follows_is_continued(parser: Parser) -> None:
    _feed(parser, HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert (parser.completed, parser.expect_continue) == (False, True)


@pytest.mark.parametrize(
    ("version", "fields", "code"),
    [(b"1.1", b"Transfer-Encoding: Chunked \r\n", None),
     (b"1.0", b"Transfer-Encoding: chunked\r\n", 400),
     (b"1.0", b"transfer-encoding: chunked\r\nContent-Length: 3\r\n", 400),
     (b"1.1", b"Content-Length: 3\r\nTRANSFER-ENCODING: chunked\r\n", 400),
     (b"1.1", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
     (b"1.1", b"Transfer-Encoding: chunked, chunked\r\n", 400),
     (b"1.1", b"Transfer-Encoding:\r\nContent-Length: 3\r\n", 400),
     (b"1.1", b"Transfer-Encoding : chunked\r\n", 400),
     (b"1.1", b"Transfer-Encoding: gzip, chunked\r\n", 501)],
)  # fmt: skip
def test_an_ambiguous_end_of_the_body_is_refused(
    parser: Parser, version: bytes, fields: bytes, code: int | None
) -> None:
    assert _error_status(parser, b"POST / HTTP/%b\r\n%b\r\n0\r\n\r\n" % (version, fields)) == code


@pytest.mark.parametrize(
    "endless", [b"1" * 99_999, b"\r\n" * 9999, b"1\r\nx\r\n" * 9999, b"0\r\n" + b"x: y\r\n" * 9999]
)
def test_the_framing_of_chunks_is_limited(parser: Parser, endless: bytes) -> None:
    taken = _feed(parser, CHUNKED + endless)
    assert parser.error is not None
    assert parser.error.code == 400
    assert taken < 3 * MAX_FRAMING


def test_a_body_in_many_chunks_is_accepted(parser: Parser) -> None:
    chunk = b"400\r\n" + b"x" * 0x400 + b"\r\n"
    assert _error_status(parser, CHUNKED + 400 * chunk + b"0\r\n\r\n") is None
    assert parser.get_body_stream().read() == b"x" * 409_600
