"""After ten failed logins a client ID is slowed down at that address."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from falcon.testing import Result, TestClient
from sqlalchemy import func, select

from description import assert_described, operation_of
from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database import Store, open_store
from dkimctl.service.http.addresses import TrustedProxies
from dkimctl.service.http.failed_logins import WINDOW, _increment, purge
from dkimctl.service.http.monitoring import Monitoring
from dkimctl.service.schema import failed_logins
from fakes import Clock

FREE = 10


@pytest.fixture
def client(store: Store, clock: Clock) -> TestClient:
    """Behind a trusted proxy."""
    monitoring = Monitoring(proxies=TrustedProxies.parse(["127.0.0.1"]))
    return TestClient(create_app(store, clock=clock, monitoring=monitoring))


@pytest.fixture
def login(
    client: TestClient, basic: Callable[[str, str], str]
) -> Callable[[ClientCredentials, str], Result]:
    def send(credentials: ClientCredentials, address: str = "192.0.2.1") -> Result:
        headers = {
            "Authorization": basic(credentials.client_id, credentials.secret),
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Forwarded-For": address,
        }
        body = "grant_type=client_credentials"
        return client.simulate_post(
            "/oauth2/token", body=body, headers=headers, remote_addr="127.0.0.1"
        )

    return send


@pytest.fixture
def wrong(credentials: ClientCredentials) -> ClientCredentials:
    return ClientCredentials(credentials.client_id, "wrong")


@pytest.fixture(params=["known", "unknown", "strange"])
def guessed(request: pytest.FixtureRequest, wrong: ClientCredentials) -> ClientCredentials:
    ids = {"known": wrong.client_id, "unknown": "nobody", "strange": "é\n" * 5000}
    return ClientCredentials(ids[request.param], "wrong")


def rows(store: Store) -> int:
    with store.reading() as connection:
        return connection.execute(select(func.count()).select_from(failed_logins)).scalar_one()


@pytest.mark.interface("7.4", "other-statuses")
@pytest.mark.interface("8", "rate")
def test_from_the_tenth_failure_on_each_blocks_twice_as_long(login, guessed, clock):
    for _ in range(FREE):
        assert login(guessed).status_code == 400
    for seconds in (1, 2, 4, 8, 16, 32, 60, 60):
        blocked = login(guessed)
        assert blocked.status_code == 429
        operation = operation_of("POST", "/oauth2/token")
        assert_described(operation, 429, blocked.headers, blocked.json)
        assert blocked.headers["Retry-After"] == str(seconds)
        assert blocked.headers["Cache-Control"] == "no-store"
        assert blocked.headers["Content-Type"] == "application/json;charset=UTF-8"
        assert blocked.json == {
            "error": "slow_down",
            "message": f"Too many failed logins; try again in {seconds} s.",
        }
        clock.now += seconds - 0.25
        assert login(guessed).headers["Retry-After"] == "1"
        clock.now += 0.25
        refused = login(guessed)
        assert (refused.status_code, refused.json) == (400, {"error": "invalid_client"})


def test_during_a_block_not_even_the_right_secret_is_looked_at(
    login, wrong, credentials, clock, store
):
    for _ in range(FREE):
        login(wrong)
    before = rows(store)
    assert login(credentials).status_code == 429
    assert rows(store) == before
    clock.now += 1
    assert login(credentials).status_code == 200


def test_a_success_forgets_the_failures(login, wrong, credentials, store):
    for _ in range(3):
        for _ in range(FREE - 1):
            assert login(wrong).status_code == 400
        assert login(credentials).status_code == 200
        assert rows(store) == 0


def test_others_are_not_affected(login, wrong, credentials, other_credentials):
    for _ in range(FREE + 1):
        last = login(wrong)
    assert last.status_code == 429
    assert login(other_credentials).status_code == 200
    assert login(credentials, "192.0.2.2").status_code == 200


def test_a_customers_network_of_ipv6_counts_as_one_address(login, wrong, credentials):
    for number in range(FREE):
        login(wrong, f"2001:db8::{number:x}:1")
    assert login(credentials, "2001:db8::ffff").status_code == 429
    assert login(credentials, "2001:db8:0:1::1").status_code == 200


def test_failures_are_forgotten_after_a_quarter_of_an_hour(login, wrong, clock):
    for _ in range(FREE):
        login(wrong)
    clock.now += WINDOW
    for _ in range(FREE):
        assert login(wrong).status_code == 400
    assert login(wrong).status_code == 429


def test_a_clock_that_was_wrong_blocks_nobody(login, wrong, credentials, clock):
    clock.now += 1e6
    for _ in range(FREE):
        login(wrong)
    clock.now -= 1e6
    assert login(credentials).status_code == 200


def test_several_processes_count_together(login, wrong, store, clock, basic, request):
    if store.path:
        other = open_store(store.path)
    else:
        other = open_store(request.getfixturevalue("postgresql_database"))
    elsewhere = TestClient(create_app(other, clock=clock))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    headers["Authorization"] = basic(wrong.client_id, wrong.secret)
    answers = [
        elsewhere.simulate_post(
            "/oauth2/token", body="grant_type=client_credentials", headers=headers,
            remote_addr="192.0.2.1",
        )
        for _ in range(FREE)
    ]  # fmt: skip
    other.close()
    assert {answer.status_code for answer in answers} == {400}
    assert login(wrong).status_code == 429


def test_failures_at_the_same_time_are_all_counted(login, wrong, store):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: login(wrong).status_code, range(40)))
    refused = answers.count(400)
    assert refused < FREE + 8, "at most those that had begun before the tenth was counted"
    with store.reading() as connection:
        assert connection.execute(select(failed_logins.c.failures)).scalars().all() == [refused]


def test_the_first_failures_at_the_same_time_are_all_counted(store, clock):
    started = threading.Barrier(6)

    def fail(_number: int) -> None:
        started.wait(10)
        _increment(store, b"key", clock())

    with ThreadPoolExecutor(6) as pool:
        for round_ in range(1, 11):
            clock.now += WINDOW + 1
            list(pool.map(fail, range(6)))
            with store.reading() as connection:
                assert connection.execute(select(failed_logins.c.failures)).scalar() == 6, round_


def test_logins_without_readable_credentials_are_not_counted_but_logged(client, store, caplog):
    for header in ("Basic !", "Bearer x", "Basic bmFtZQ=="):
        answer = client.simulate_post(
            "/oauth2/token", headers={"Authorization": header},
            body="grant_type=client_credentials",
            content_type="application/x-www-form-urlencoded", remote_addr="127.0.0.1",
        )  # fmt: skip
        assert answer.status_code == 400
    assert rows(store) == 0
    assert [record.fields for record in warnings(caplog)] == [{"address": "127.0.0.1"}] * 3


def test_each_failure_and_block_is_in_the_log_without_the_secret(login, guessed, caplog):
    for _ in range(FREE + 1):
        login(ClientCredentials(guessed.client_id, "hush-hush"))
    *failures, block = warnings(caplog)
    assert [record.getMessage() for record in failures] == ["failed login"] * FREE
    assert block.getMessage() == "login blocked"
    assert failures[-1].fields["failures"] == FREE
    assert block.fields["retry_after"] == 1
    for record in (*failures, block):
        assert record.fields["address"] == "192.0.2.1"
        assert record.fields["client_id"].isprintable()
        assert 0 < len(record.fields["client_id"]) <= 128
    assert "hush-hush" not in str([vars(record) for record in caplog.records])


def test_the_table_does_not_grow_beyond_its_limit(store, clock):
    now = clock()
    moments = [now - WINDOW - 1, now - WINDOW, *(now - 500 + i for i in range(500))]
    random.Random(1).shuffle(moments)
    entries = [
        {"key": number.to_bytes(32, "big"), "failures": 1, "last_at": moment}
        for number, moment in enumerate(moments)
    ]
    with store.writing() as connection:
        connection.execute(failed_logins.insert(), entries)
        purge(connection, now)
    assert rows(store) == 500
    with store.writing() as connection:
        purge(connection, now, max_rows=100)
        kept = connection.execute(select(failed_logins.c.last_at)).scalars().all()
    assert sorted(kept) == sorted(moments)[-100:]


def test_many_client_ids_do_not_fill_the_table(login, store, clock):
    """Rows of the past go when new ones come."""
    for number in range(300):
        login(ClientCredentials(f"guess{number}", "wrong"))
        clock.now += 60
    assert rows(store) < 300


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno == logging.WARNING]
