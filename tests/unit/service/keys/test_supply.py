"""Requests get their keys from the pool or newly made, or are refused and find them there later."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from falcon.testing import Result, TestClient

from dkimctl.service.app import create_app
from dkimctl.service.clients import ClientCredentials
from dkimctl.service.database.store import Store
from dkimctl.service.keys import pool
from dkimctl.service.keys.encryption import PrivateKeyEncryptor
from dkimctl.service.keys.making import KeysNotInTime
from dkimctl.service.keys.pairs import KeyPair
from dkimctl.service.keys.supply import KeySupply
from fakes import Clock
from thread_limits import FewThreads


class Maker:
    """Makes keys that can be told apart; `seconds` is how long one takes."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.made: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, key_len: int) -> KeyPair:
        time.sleep(self.seconds)
        with self._lock:
            self.made[key_len] += 1
            return KeyPair(f"{key_len} {self.made[key_len]}", b"-----BEGIN PRIVATE KEY-----")


@pytest.fixture
def supply(store: Store) -> Iterator[Callable[..., KeySupply]]:
    made: list[KeySupply] = []

    def make(make_key, **changes) -> KeySupply:
        options = {"ahead": 0, "max_waiting": 6, "limit": 5.0, "threads": 2, **changes}
        made.append(KeySupply(store, make_key, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_pool_is_filled_to_its_size_and_used_first(store, supply) -> None:
    maker = Maker()
    keys = supply(maker, ahead=3)
    _wait_until(lambda: pool.depth(store) == {1024: 3, 2048: 3})
    ahead = Counter(maker.made)
    keys.close()
    taken = keys.make_all("me", [2048, 1024, 2048, 2048, 2048])
    assert [key.value.split()[0] for key in taken] == ["2048", "1024", "2048", "2048", "2048"]
    assert maker.made[2048] == ahead[2048] + 1
    assert pool.depth(store) == {1024: 2}


def test_a_key_of_the_pool_is_given_once(store, supply) -> None:
    pool.put(store, [(1024, KeyPair(str(number), b"")) for number in range(40)])
    keys = supply(Maker())
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda name: keys.make_all(name, [1024] * 5), "abcdefgh"))
    assert len({key.value for some in taken for key in some}) == 40


def test_keys_that_come_too_late_are_there_for_the_next_try(store, supply) -> None:
    maker = Maker(0.05)
    keys = supply(maker, threads=1, limit=0.4)
    wanted = [1024] * 12
    with pytest.raises(KeysNotInTime):
        keys.make_all("me", wanted)
    kept = pool.depth(store)[1024]
    assert kept >= 1
    _wait_until(lambda: _succeeds(keys, wanted))
    assert maker.made[1024] <= 12 + 6  # at most the one being made is lost by a try


def _succeeds(keys: KeySupply, wanted: list[int]) -> bool:
    try:
        return len(keys.make_all("me", wanted)) == len(wanted)
    except KeysNotInTime:
        return False


def test_without_threads_keys_are_made_all_the_same(supply) -> None:
    keys = supply(Maker(), start_thread=FewThreads(0), ahead=3)
    assert len(keys.make_all("me", [1024, 2048])) == 2


def test_keys_of_the_pool_are_encrypted(store: Store) -> None:
    store.encryptor = PrivateKeyEncryptor(b"ours")
    key = KeyPair("v", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    store.marker = None
    pool.put(store, [(1024, key)])
    (taken,) = pool.take(store, Counter([1024]))[1024]
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in taken.private_key
    assert store.seal(taken.private_key) == taken.private_key


def test_a_store_that_fails_is_told_and_tried_again(store, supply, caplog) -> None:
    def fail(key_len: int) -> KeyPair:
        raise OSError(f"-----BEGIN PRIVATE KEY {key_len}")

    keys = supply(fail, ahead=1)
    _wait_until(lambda: bool(caplog.records))
    assert caplog.records[0].getMessage().startswith("keys cannot be made ahead: OSError at ")
    assert [type(key) for key in keys.make_all("me", [1024])] == [OSError]


def _register(client: TestClient, token: str, count: int) -> Result:
    domains = [{"sign_domain": f"d{number}.example", "key_len": 2048} for number in range(count)]
    headers = {"Authorization": f"Bearer {token}"}
    return client.simulate_post("/domain/dkim", body=json.dumps({"domains": domains}),
                                headers=headers)  # fmt: skip


def test_a_request_whose_keys_take_too_long_is_429_and_registers_nothing(
    store: Store,
    clock: Clock,
    get_token: Callable[[ClientCredentials], str],
    credentials: ClientCredentials,
    other_credentials: ClientCredentials,
) -> None:
    release = threading.Event()

    def slow(key_len: int) -> KeyPair:
        release.wait(20)
        return KeyPair("v=DKIM1; g=*; k=rsa; p=AAAA", b"")

    app = create_app(store, clock=clock, make_key=slow, key_threads=1, max_domains=5000)
    client = TestClient(app)
    tokens = [get_token(credentials), get_token(other_credentials)]
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(_register, client, tokens[0], 1)
        time.sleep(0.2)
        started = time.monotonic()
        refused = _register(client, tokens[1], 1000)
        taken = time.monotonic() - started
        release.set()
        assert first.result().json["items"][0]["result"]["code"] == "201"
    assert (refused.status_code, list(refused.json)) == (429, ["message"])
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert taken < 2
    with store.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM registrations").scalar() == 1
