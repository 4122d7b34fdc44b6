"""Fault injection over a real server: what the client gets, and what the store then has."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, RemoteDisconnected
from typing import Any, NamedTuple, NoReturn

import pytest
from falcon.testing import TestClient
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.service import registrations
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database.store import Store
from dkimctl.service.faults.kinds import KINDS
from dkimctl.service.faults.middleware import FaultInjector
from dkimctl.service.faults.plan import Plan
from dkimctl.service.keys.pairs import KeyMaker
from dkimctl.service.registrations import RegistrationName
from dkimctl.service.server.server import hang_up
from fakes import Clock
from running import running

NAMES = [f"d{number}.example" for number in range(6)]
REGISTRATIONS = {RegistrationName(name, "s1") for name in NAMES}
BODY = json.dumps({"domains": [{"sign_domain": name, "selector": "s1"} for name in NAMES]}).encode()
NOT_PROCESSED = {"drop-before", "429", "500-before", "502-before", "503-before", "504-before"}
REFUSALS = {
    "429": "Too Many Requests",
    "500": "Internal Server Error",
    "502": "Bad Gateway",
    "503": "Service Unavailable",
    "504": "Endpoint request timed out",
}
GATEWAY_KINDS = [kind for kind in KINDS if kind[:3] in REFUSALS]


class Received(NamedTuple):
    """An answer as the client received it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.body)["items"]
        return items


Send = Callable[..., Received]
Serve = Callable[..., int]
Registered = Callable[[], set[tuple[str, str]]]


def certain(kind: str, seed: int = 7, **settings: Any) -> Plan:
    """A plan with this fault for every request."""
    return Plan(seed, {kind: 1.0}, **settings)


@pytest.fixture
def app(store: Store, clock: Clock, make_key: KeyMaker) -> Any:
    return create_app(store, clock=clock, make_key=make_key)


@pytest.fixture
def serve(app: Any) -> Iterator[Serve]:
    """Serve the app with the faults of a plan; returns the port."""
    with contextlib.ExitStack() as stack:

        def start(plan: Plan, **options: Any) -> int:
            return stack.enter_context(running(FaultInjector(app, plan, hang_up, **options), 8))

        yield start


@pytest.fixture
def send(token: str) -> Send:
    """Send a registration request on a new connection, or on the given one."""

    def send(port: int, body: bytes = BODY, connection: Any = None, token: str = token) -> Received:
        if connection is None:
            with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                return send(port, body, connection, token)
        connection.request("POST", "/domain/dkim", body, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return Received(response.status, dict(response.getheaders()), response.read())

    return send


@pytest.fixture
def registered(store: Store) -> Registered:
    """The registered ones of REGISTRATIONS."""
    return lambda: set(registrations.find_all(store, REGISTRATIONS))


# --- what each kind does ---------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_processed_or_not_as_the_kind_says(
    serve: Serve, send: Send, registered: Registered, kind: str
) -> None:
    port = serve(certain(kind), sleep=lambda seconds: None)
    try:
        send(port)
    except RemoteDisconnected:
        assert kind.startswith("drop-")
    assert registered() == (set() if kind in NOT_PROCESSED else REGISTRATIONS)


@pytest.mark.parametrize("kind", ["drop-before", "drop-after"])
def test_a_dropped_connection_closes_without_a_byte(serve: Serve, send: Send, kind: str) -> None:
    with pytest.raises(RemoteDisconnected):
        send(serve(certain(kind)))


@pytest.mark.parametrize("kind", GATEWAY_KINDS)
def test_a_refusal_looks_like_that_of_a_gateway(serve: Serve, send: Send, kind: str) -> None:
    received = send(serve(certain(kind)))
    assert received.status == int(kind[:3])
    assert json.loads(received.body) == {"message": REFUSALS[kind[:3]]}
    assert received.headers["Content-Type"] == "application/json"
    assert "Retry-After" not in received.headers


@pytest.mark.parametrize("kind", GATEWAY_KINDS)
def test_retry_after_is_sent_only_with_429_and_503(serve: Serve, send: Send, kind: str) -> None:
    received = send(serve(certain(kind, retry_after=0)))
    assert received.headers.get("Retry-After") == ("0" if kind[:3] in {"429", "503"} else None)


def test_a_slow_answer_is_complete_and_its_request_is_processed_first(
    serve: Serve, send: Send, registered: Registered
) -> None:
    slept = []

    def sleep(seconds: float) -> None:
        slept.append((seconds, registered()))

    received = send(serve(certain("slow", slow=2.5), sleep=sleep))
    assert slept == [(2.5, REGISTRATIONS)]
    assert [item["result"]["code"] for item in received.items] == ["201"] * 6


def test_a_truncated_answer_is_a_whole_http_message_without_valid_json(
    serve: Serve, send: Send
) -> None:
    received = send(serve(certain("truncated")))
    assert (received.status, int(received.headers["Content-Length"])) == (200, len(received.body))
    with pytest.raises(json.JSONDecodeError):
        json.loads(received.body)


def test_an_answer_with_the_wrong_content_type_is_otherwise_unchanged(
    serve: Serve, send: Send
) -> None:
    received = send(serve(certain("content-type")))
    assert (received.status, received.headers["Content-Type"]) == (200, "text/html")
    assert len(received.items) == 6


def test_reordered_items_are_the_same_in_another_order(serve: Serve, send: Send) -> None:
    names = [item["sign_domain"] for item in send(serve(certain("reordered"))).items]
    assert names != NAMES
    assert sorted(names) == NAMES


def test_two_items_are_always_swapped(serve: Serve, send: Send) -> None:
    port = serve(certain("reordered"))
    entries = [{"sign_domain": name, "selector": "s1"} for name in NAMES[:2]]
    for _ in range(5):
        received = send(port, json.dumps({"domains": entries}).encode())
        assert [item["sign_domain"] for item in received.items] == NAMES[1::-1]


def test_missing_items_are_left_out_of_the_count_but_not_of_the_total(
    serve: Serve, send: Send
) -> None:
    port = serve(certain("missing-items"))
    lengths = set()
    for _ in range(20):
        answer = json.loads(send(port).body)
        names = [item["sign_domain"] for item in answer["items"]]
        assert names == [name for name in NAMES if name in names]
        assert (answer["count"], answer["total"]) == (len(names), 6)
        lengths.add(len(names))
    assert 6 not in lengths
    assert len(lengths) > 2


def test_a_failed_item_has_no_data_though_it_was_registered(serve: Serve, send: Send) -> None:
    port = serve(certain("item-500"))
    for _ in range(20):
        received = send(port)
        failed = [item for item in received.items if item["result"]["code"] == "500"]
        assert failed
        for item in failed:
            assert set(item) == {"result", "sign_domain", "selector"}
        assert [item["sign_domain"] for item in received.items] == NAMES


# --- what is not affected --------------------------------------------------------------


def test_only_registration_requests_are_affected(
    app: Any, credentials: ClientCredentials, basic: Callable[[str, str], str]
) -> None:
    client = TestClient(FaultInjector(app, certain("500-before"), hang_up))
    headers = {
        "Authorization": basic(credentials.client_id, credentials.secret),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    result = client.simulate_post(
        "/oauth2/token", body="grant_type=client_credentials", headers=headers
    )
    assert result.status_code == 200
    bearer = {"Authorization": f"Bearer {result.json['access_token']}"}
    assert client.simulate_delete("/send/1", headers=bearer).status_code == 404
    assert client.simulate_get("/domain/dkim", headers=bearer).status_code == 405
    assert client.simulate_post("/domain/dkim", headers=bearer).status_code == 500


@pytest.mark.parametrize("kind", ["429", "content-type", "missing-items"])
def test_a_connection_can_be_used_for_the_next_request(serve: Serve, send: Send, kind: str) -> None:
    port = serve(certain(kind))
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        first = send(port, BODY, connection)
        socket = connection.sock
        second = send(port, BODY, connection)
        assert connection.sock is socket
    assert first.status == second.status == (429 if kind == "429" else 200)


@pytest.mark.parametrize("kind", ["reordered", "missing-items", "item-500"])
def test_an_answer_without_items_is_not_changed(serve: Serve, send: Send, kind: str) -> None:
    port = serve(certain(kind))
    assert send(port, b"{").status == 400
    assert send(port, b'{"domains": []}').status == 400
    assert send(port, token="").status == 401
    assert send(port, token="expired").status == 403
    assert send(port, b" " * (1024 * 1024)).status == 413


@pytest.mark.parametrize("kind", ["truncated", "content-type"])
def test_an_error_can_be_truncated_and_mislabelled_too(serve: Serve, send: Send, kind: str) -> None:
    received = send(serve(certain(kind)), token="expired")
    assert received.status == 403
    assert (received.headers["Content-Type"] == "text/html") == (kind == "content-type")
    assert int(received.headers["Content-Length"]) == len(received.body)


# --- which requests are affected -------------------------------------------------------


class Stub:
    """A fast application with a constant answer, for tests of the drawing alone."""

    def __init__(self) -> None:
        self.items = [{"sign_domain": name} for name in NAMES]
        self.closed = 0

    def __call__(self, environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", "application/json"), ("X-From", "stub")])
        return self

    def __iter__(self) -> Iterator[bytes]:
        yield json.dumps({"items": self.items}).encode()

    def close(self) -> None:
        self.closed += 1


class Outcome(NamedTuple):
    """What one request results in."""

    status: str  # or "dropped"
    content_type: str
    body: bytes


class Dropped(Exception):
    """Raised instead of closing the connection."""


def drop() -> NoReturn:
    raise Dropped


def answer_of(faulty: Any) -> Outcome:
    """Send one request."""
    started: list[Any] = []
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/domain/dkim"}
    try:
        body = faulty(environ, lambda *arguments: started.append(arguments))
    except Dropped:
        return Outcome("dropped", "", b"")
    (status, headers), whole = started[0], b"".join(body)
    if hasattr(body, "close"):
        body.close()
    return Outcome(status, dict(headers)["Content-Type"], whole)


def sequence(plan: Plan, length: int = 100) -> list[Outcome]:
    faulty = FaultInjector(Stub(), plan, drop, sleep=lambda seconds: None)
    return [answer_of(faulty) for _ in range(length)]


EVERY_KIND = dict.fromkeys(KINDS, 1 / len(KINDS))


def test_the_same_seed_gives_the_same_answers_to_the_byte() -> None:
    assert sequence(Plan(7, EVERY_KIND)) == sequence(Plan(7, EVERY_KIND))
    assert sequence(Plan(7, EVERY_KIND)) != sequence(Plan(8, EVERY_KIND))


def test_concurrent_requests_get_the_same_faults_as_sequential_ones() -> None:
    faulty = FaultInjector(Stub(), Plan(7, EVERY_KIND), drop, sleep=lambda seconds: None)
    with ThreadPoolExecutor(8) as pool:
        received = list(pool.map(lambda _: answer_of(faulty), range(400)))
    assert Counter(received) == Counter(sequence(Plan(7, EVERY_KIND), 400))


def test_each_kind_occurs_with_its_probability() -> None:
    probabilities = {"429": 0.2, "500-after": 0.05, "drop-before": 0.01}
    total = 5000
    received = Counter(outcome.status[:3] for outcome in sequence(Plan(7, probabilities), total))
    expected = {"429": 0.2, "500": 0.05, "dro": 0.01, "200": 0.74}
    assert set(received) == set(expected)
    for status, share in expected.items():
        deviation = math.sqrt(total * share * (1 - share))
        assert abs(received[status] - total * share) < 4 * deviation


def test_without_probabilities_there_are_no_faults() -> None:
    for faults in ({}, {"429": 0.0}):
        assert {outcome.status for outcome in sequence(Plan(7, faults))} == {"200 OK"}


def test_the_answer_of_the_service_is_closed_and_keeps_other_headers() -> None:
    stub = Stub()
    started: list[Any] = []
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/domain/dkim"}
    FaultInjector(stub, certain("reordered"), drop)(environ, lambda *given: started.append(given))
    assert stub.closed == 1
    assert ("X-From", "stub") in started[0][1]


@given(seed=st.integers(0, 999_999_999), count=st.integers(1, 60), kind=st.sampled_from([*KINDS]))
def test_any_seed_and_number_of_items_gives_an_answer(seed: int, count: int, kind: str) -> None:
    stub = Stub()
    stub.items = [{"sign_domain": str(number % 3)} for number in range(count)]
    faulty = FaultInjector(stub, certain(kind, seed), drop, sleep=lambda seconds: None)
    status, _, body = answer_of(faulty)
    assert status[:3] in {"dro", "200", *REFUSALS}
    if kind == "missing-items":
        assert len(json.loads(body)["items"]) < count
    elif kind == "item-500":
        assert sum("result" in item for item in json.loads(body)["items"]) >= 1
    elif kind == "reordered":
        assert sorted(map(str, json.loads(body)["items"])) == sorted(map(str, stub.items))
