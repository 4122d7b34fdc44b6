"""Tokens are reused, renewed in time, and renewed once if rejected (interface 3.1, 5.2)."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from dkimctl.client import tokens
from dkimctl.client.tokens import TokenProvider
from dkimctl.errors import NotProcessed, TokenRejected
from dkimctl.models import Secret, Token
from fakes import Clock, TokenService

NOW = 1_000_000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The monotonic clock; the other stands still."""
    clock = Clock(5.0)
    times = SimpleNamespace(time=lambda: NOW, monotonic=clock, sleep=time.sleep)
    monkeypatch.setattr(tokens, "time", times)
    return clock


def cached(seconds_left: float) -> Token:
    return Token(Secret("cached"), NOW + seconds_left)


@pytest.mark.interface("3.1", "reuse", "expiry")
@pytest.mark.interface("5.1", "bearer")
@pytest.mark.parametrize(
    ("seconds_left", "used"), [(61, "cached"), (60, "new1"), (0, "new1"), (-3600, "new1")]
)
def test_a_token_is_reused_and_renewed_when_a_minute_is_left(seconds_left, used):
    service, persisted = TokenService(NOW), []
    provider = TokenProvider(
        issue=service.issue, cached=cached(seconds_left), persist=persisted.append
    )
    assert [provider.call(service.request) for _ in range(2)] == ["answer"] * 2
    assert service.used == [used] * 2
    assert [token.access_token.reveal() for token in persisted] == (
        [] if used == "cached" else [used]
    )


@pytest.mark.interface("3.1", "expired")
@pytest.mark.interface("7.2", "401")
@pytest.mark.parametrize(
    ("rejected", "status", "used", "discarded"),
    [(["cached"], 403, ["cached", "new1"], ["cached"]),
     (["cached", "new1"], 403, ["cached", "new1"], ["cached", "new1"]),
     # 401 says that no token is set: a proxy may have removed it.
     (["cached", "new1"], 401, ["cached", "new1"], [])],
)  # fmt: skip
def test_a_rejected_token_is_discarded_and_replaced_once(rejected, status, used, discarded):
    service, gone = TokenService(NOW, rejected=rejected, status=status), []
    provider = TokenProvider(issue=service.issue, cached=cached(3600), discard=gone.append)
    if "new1" in rejected:
        with pytest.raises(TokenRejected):
            provider.call(service.request)
    else:
        assert provider.call(service.request) == "answer"
    assert service.used == used
    assert [token.access_token.reveal() for token in gone] == discarded


class TestManyThreads:
    """One thread renews, and the others share its token or its error."""

    @staticmethod
    def call_concurrently(provider, request, count=8):
        barrier = threading.Barrier(count)

        def wait_for_all(token):
            if token.reveal() == "cached":
                barrier.wait(20)  # all have the token before the first is rejected
            return request(token)

        with ThreadPoolExecutor(count) as pool:
            return [pool.submit(provider.call, wait_for_all) for _ in range(count)]

    def test_the_rejection_of_a_new_token_is_final_for_all_threads(self):
        service = TokenService(NOW, rejected=("cached", "new1"))
        provider = TokenProvider(issue=service.issue, cached=cached(3600))
        calls = self.call_concurrently(provider, service.request)
        assert all(isinstance(call.exception(), TokenRejected) for call in calls)
        assert service.issued == 1

    def test_threads_that_wait_for_a_renewal_share_its_error(self):
        issued = []

        def issue():
            issued.append(1)
            time.sleep(0.3)  # meanwhile the others start to wait
            raise NotProcessed("cannot reach it")

        provider = TokenProvider(issue=issue)
        calls = self.call_concurrently(provider, lambda token: "answer")
        assert all(isinstance(call.exception(), NotProcessed) for call in calls)
        assert len(issued) == 1


def test_a_token_is_renewed_after_an_hour_although_the_clock_stands_still(clock):
    service = TokenService(NOW)
    provider = TokenProvider(issue=service.issue)
    provider.call(service.request)
    clock.now += 3539
    provider.call(service.request)
    clock.now += 1
    provider.call(service.request)
    assert service.used == ["new1", "new1", "new2"]
