"""Responses of the service: the client decodes each, or reports why it cannot."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dkimctl.client.client import Client
from dkimctl.client.http import HttpClient, HttpResponse
from dkimctl.client.wire import DecodeError, Reply, decode_reply
from dkimctl.errors import (
    AuthenticationError,
    DkimctlError,
    NotProcessed,
    RequestRefused,
    ServiceError,
    TokenRejected,
)
from dkimctl.formats.renderer import PER_ZONE, Format
from dkimctl.models import DomainSpec, Secret, Token
from dkimctl.registration import outcomes
from dkimctl.registration.outcomes import match
from dkimctl.text import printable
from mutations import JSON_SCALARS, documents, flow, json_tree
from rendering import render_table
from terminals import is_harmless

API = Path(__file__).parents[1] / "fixtures" / "api"
ANSWERS = [json.loads(path.read_bytes()) for path in sorted(API.glob("*.json"))]
ITEMS = [item for answer in ANSWERS for item in answer.get("items", [])]
SECRET = "iT-iS-a-sEcReT-of-somebody/and+no=one"
SCALARS = (
    *JSON_SCALARS, '"201"', "201", "409", '"409"', '"400"', '"TXT"', '"cname"', '"example.com."',
    '"EXAMPLE.com"', r'"a\u0020b"', '"s1._domainkey.example.com"', '"v=DKIM1; p="', '";"',
    '"$(id)"', '"p=\\";\\n\\u0000"', '"_"', '"a..b"', json.dumps(SECRET), json.dumps("a" * 300),
    json.dumps(f"Bearer {SECRET} {SECRET.encode().hex()}"), "9007199254740993", "1e16",
)  # fmt: skip
LISTS = st.lists(st.sampled_from(ITEMS), max_size=3).map(
    lambda items: {"items": items, "count": len(items), "total": len(items)}
)
TREES = (LISTS | st.sampled_from(ANSWERS)).map(json_tree)
BODIES = documents(TREES, scalars=SCALARS, writers=(flow,))
ZONES = ("com", "org", "net", "jp", "example")
SPECS = [
    DomainSpec("example.com", "sample0001", 2048, "2027-07-01T00:00+09:00", 0, True),
    DomainSpec("example.com", "s1"),
    DomainSpec("example.org"),
]
STATUSES = st.sampled_from((200, 200, 200, 400, 500)) | st.integers(200, 599)
HEADER_TEXT = st.text(st.characters(codec="latin-1", categories=["L", "N", "P", "S", "Zs"]))
RETRY_AFTER = HEADER_TEXT | st.sampled_from(
    ("1", "9" * 400, "-1", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 0000 07:28:00 -9999",
     "Fri, 31 Dec 9999 23:59:59 -2359", "21 Oct 15", "Wed, 21 Oct 2015 07:28:00 +999999999")
)  # fmt: skip
HEADERS = st.fixed_dictionaries(
    {}, optional={"Retry-After": RETRY_AFTER, "Date": RETRY_AFTER, "Content-Encoding": HEADER_TEXT}
)


def decoded(body: bytes, *, is_saved: bool) -> Reply | DecodeError:
    """The reply, or why the body could not be decoded."""
    try:
        return decode_reply(body, is_saved=is_saved)
    except DecodeError as error:
        return error


@given(body=BODIES, is_saved=st.booleans())
@example(body=b"[" * 100_000, is_saved=True)
@example(body=b'{"items":[' + b"[" * 50_000, is_saved=True)
@example(body=b'{"items":[],"total":' + b"9" * 4301 + b"}", is_saved=False)
@example(body=b'{"items":[{"a":' * 5000, is_saved=False)
def test_a_body_is_decoded_or_refused_with_a_reason(body, is_saved):
    reply = decoded(body, is_saved=is_saved)
    if isinstance(reply, DecodeError):
        assert str(reply)
        assert is_harmless(printable(str(reply)))
        return
    assert all(is_harmless(printable(fault)) for fault in reply.faults)
    for item in reply.items:
        assert item.sign_domain == item.sign_domain.lower()
        assert is_saved or item.code is not None
        for number in (item.key_len, item.default):
            assert number is None or (type(number) is int and abs(number) <= 2**53)
        item.sign_domain.encode()  # it can be written anywhere


class AnyService:
    """Gives the response that was set last to every request."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 200, {}, b""
        self.client = Client(
            auth_url="http://auth.invalid",
            base_url="http://service.invalid",
            http=HttpClient.in_process(self),
        )

    def __call__(self, environ, start_response):
        start_response(f"{self.status} Whatever", list(self.headers.items()))
        return [self.body]

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> Client:
        self.status, self.headers, self.body = status, headers, body
        return self.client


@pytest.fixture(scope="session")
def service() -> AnyService:
    return AnyService()


def asked(ask):
    """The answer, or one of our errors, which is safe to print."""
    try:
        return ask()
    except DkimctlError as error:
        said = f"{error.message} {error.hint}"
        assert is_harmless(printable(said))
        assert SECRET not in said
        retry_after = getattr(error, "retry_after", None)
        assert retry_after is None or 0 <= retry_after < math.inf
        return error


@given(status=STATUSES, headers=HEADERS, body=BODIES)
def test_a_registration_has_results_or_an_error(service, status, headers, body):
    client = service.answer(status, headers, body)
    reply = asked(lambda: client.register(Secret(SECRET), SPECS))
    if isinstance(reply, Exception):
        assert isinstance(reply, ServiceError | RequestRefused | TokenRejected)
        return
    assert status in {200, 400, 500}
    answers, strays = match(SPECS, reply.items)
    assert len(answers) == len(SPECS)
    assert len(strays) + sum(map(bool, answers)) == len(reply.items)
    results = [
        outcomes.of_answer(spec, answer)
        for spec, answer in zip(SPECS, answers, strict=True)
        if answer is not None
    ]
    for result in results:
        assert SECRET not in str(result)
        assert is_harmless(printable(result.reason))
    lines = render_table(results, width=100).split("\n")
    assert all(map(is_harmless, lines))


@given(status=STATUSES, headers=HEADERS, body=BODIES)
def test_a_token_is_usable_or_there_is_none(service, status, headers, body):
    client = service.answer(status, headers, body)
    token = asked(lambda: client.issue_token("me", Secret(SECRET)))
    if isinstance(token, Exception):
        assert isinstance(token, AuthenticationError | NotProcessed | ServiceError)
        return
    assert isinstance(token, Token)
    assert status == 200
    f"Bearer {token.access_token.reveal()}".encode("ascii")
    assert 0 < token.expires_at < math.inf


@given(status=STATUSES, headers=HEADERS, body=BODIES)
def test_any_other_request_gets_a_response_or_an_error(service, status, headers, body):
    client = service.answer(status, headers, body)
    outcome = asked(lambda: client.request(Secret(SECRET), "DELETE", "/send/1"))
    if isinstance(outcome, HttpResponse):
        assert outcome.status == status
        assert SECRET.encode() not in outcome.body
    else:
        assert isinstance(outcome, ServiceError | TokenRejected)


@given(body=BODIES, fmt=st.sampled_from(Format))
def test_a_saved_result_is_shown_or_refused(command_line, tmp_path_factory, body, fmt):
    words = ["show-dns", "--from", "-", "--format", fmt]
    if fmt in PER_ZONE:
        words += ["--output-dir", tmp_path_factory.getbasetemp() / "shown"]
        words += [word for zone in ZONES for word in ("--zone", zone)]
    done = command_line(*words, stdin=body)
    assert done.status in {0, 1, 2}
    assert all(map(is_harmless, done.out.replace("\t", " ").split("\n")))
    if fmt is Format.JSON:
        assert isinstance(json.loads(done.err)["errors"], list)
    else:
        assert all(map(is_harmless, done.err.splitlines()))
        errors = sum(line.startswith("dkimctl: error: ") for line in done.err.splitlines())
        assert errors == (done.status == 2)
    if isinstance(decoded(body, is_saved=True), DecodeError):
        assert (done.status, done.out) == (2, "")
