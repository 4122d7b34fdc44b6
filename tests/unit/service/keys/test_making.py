"""Keys are made for waiting requests, whatever threads there are, and none waits too long."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dkimctl.service.keys.making import KeyMaking, KeysNotInTime
from dkimctl.service.keys.pairs import KeyPair
from thread_limits import FewThreads


def _pair(key_len: int) -> KeyPair:
    return KeyPair(str(key_len), b"")


def _slow(key_len: int) -> KeyPair:
    time.sleep(0.05)
    return _pair(key_len)


def _making(make=_pair, **changes) -> KeyMaking:
    return KeyMaking(make, **{"max_waiting": 6, "limit": 5.0, "threads": 2, **changes})


@pytest.mark.parametrize("allowed", [0, 1, 99])
def test_all_keys_are_made_with_the_threads_there_are(allowed) -> None:
    making = _making(start_thread=FewThreads(allowed))
    made = making.make_all("me", [1024, 2048, 1024])
    assert [made[position].value for position in range(3)] == ["1024", "2048", "1024"]


@pytest.mark.parametrize("allowed", [0, 1])
def test_several_requests_share_the_threads_there_are(allowed) -> None:
    making = _making(_slow, start_thread=FewThreads(allowed))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda name: making.make_all(name, [1024] * 3), "abcd"))
    assert [len(made) for made in results] == [3] * 4


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_key_that_fails_is_told_for_itself(allowed) -> None:
    def fail(key_len: int) -> KeyPair:
        if key_len == 2048:
            raise OSError("no randomness")
        return _pair(key_len)

    made = _making(fail, start_thread=FewThreads(allowed)).make_all("me", [1024, 2048])
    assert isinstance(made[0], KeyPair)
    assert isinstance(made[1], OSError)


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_request_gets_what_was_made_in_time(allowed) -> None:
    making = _making(_slow, limit=0.4, threads=1, start_thread=FewThreads(allowed))
    started = time.monotonic()
    made = making.make_all("me", [1024] * 100)
    assert 1 <= len(made) < 100
    assert time.monotonic() - started < 5


def test_the_threads_end_when_there_is_nothing_to_do() -> None:
    names = {thread.name for thread in threading.enumerate()}
    making = _making()
    making.make_all("me", [1024] * 10)
    deadline = time.monotonic() + 5
    while {thread.name for thread in threading.enumerate()} - names:
        assert time.monotonic() < deadline
        time.sleep(0.01)


class _Held:
    """A maker whose keys are made when the test says so."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def __call__(self, key_len: int) -> KeyPair:
        self.release.wait(10)
        return _pair(key_len)


def _wait_until(condition) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_too_many_requests_are_refused_at_once() -> None:
    held = _Held()
    making = _making(held, max_waiting=2)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(making.make_all, name, [1024]) for name in "ab"]
        _wait_until(lambda: making.waiting == 2)
        with pytest.raises(KeysNotInTime) as caught:
            making.make_all("c", [2048] * 50)
        held.release.set()
        assert [len(one.result()) for one in waiting] == [1, 1]
    assert caught.value.retry_after >= 1


def test_requests_that_are_answered_soon_may_be_many() -> None:
    held = _Held()
    making = _making(held, max_waiting=2)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(making.make_all, "me", [1024]) for _ in range(8)]
        _wait_until(lambda: making.waiting == 8)
        held.release.set()
        assert [len(one.result()) for one in waiting] == [1] * 8


def test_what_cannot_be_made_in_time_is_refused_at_once_and_told_when_to_come_back() -> None:
    held = _Held()
    making = _making(held, threads=1, limit=5.0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(making.make_all, "a", [2048] * 2)
        _wait_until(lambda: making.waiting == 1)
        with pytest.raises(KeysNotInTime) as caught:
            making.make_all("b", [2048] * 200)
        held.release.set()
        assert len(waiting.result()) == 2
    assert 1 <= caught.value.retry_after <= 5


def test_one_client_leaves_room_for_others() -> None:
    held = _Held()
    making = _making(held, threads=1, max_waiting=4)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(making.make_all, "greedy", [1024] * 2) for _ in range(3)]
        _wait_until(lambda: making.waiting == 3)
        with pytest.raises(KeysNotInTime):
            making.make_all("greedy", [2048] * 50)
        waiting.append(pool.submit(making.make_all, "modest", [1024]))
        _wait_until(lambda: making.waiting == 4)
        held.release.set()
        assert [len(one.result()) for one in waiting] == [2, 2, 2, 1]
