"""Tokens are reused, renewed in time, and renewed once if rejected (interface 3.1, 5.2)."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dkimctl.client.tokens import TokenProvider
from dkimctl.errors import CredentialsError, NotProcessed, TokenRejected
from dkimctl.models import Secret, Token
from fakes import Clock, TokenService

NOW = 1_000_000.0


def cached(seconds_left: float) -> Token:
    return Token(Secret("cached"), NOW + seconds_left)


@pytest.mark.interface("3.1", "reuse")
def test_a_cached_token_is_used_without_issuing_one():
    service = TokenService(NOW)
    provider = TokenProvider(issue=service.issue, cached=cached(61), clock=lambda: NOW)
    assert provider.call(service.request) == "answer"
    assert (service.issued, service.used) == (0, ["cached"])


@pytest.mark.interface("3.1", "expiry")
@pytest.mark.interface("5.1", "bearer")
@pytest.mark.parametrize("seconds_left", [60, 0, -3600])
def test_a_token_with_a_minute_left_is_renewed_and_persisted(seconds_left):
    service, persisted = TokenService(NOW), []
    provider = TokenProvider(
        issue=service.issue,
        cached=cached(seconds_left),
        persist=persisted.append,
        clock=lambda: NOW,
    )
    provider.call(service.request)
    provider.call(service.request)
    assert service.used == ["new1", "new1"]
    assert [token.access_token.reveal() for token in persisted] == ["new1"]


@pytest.mark.interface("3.1", "expired")
def test_a_rejected_cached_token_is_replaced_once():
    service = TokenService(NOW, rejected=("cached",))
    provider = TokenProvider(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
    assert provider.call(service.request) == "answer"
    assert service.used == ["cached", "new1"]


def test_a_client_that_is_disabled_gets_one_token_and_no_more():
    """Each of the threads asks again; a token is issued nevertheless (interface 3.2)."""
    service = TokenService(NOW, rejected=("cached", "new1", "new2"))
    provider = TokenProvider(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
    for _ in range(3):
        with pytest.raises(TokenRejected):
            provider.call(service.request)
    assert service.issued == 1


def test_a_refused_token_is_discarded_before_a_new_one_is_obtained():
    calls = []

    def without_network() -> Token:
        calls.append("issue")
        raise NotProcessed("cannot reach it")

    service = TokenService(NOW, rejected=("cached",))
    provider = TokenProvider(
        issue=without_network,
        cached=cached(3600),
        discard=lambda token: calls.append(token.access_token.reveal()),
        clock=lambda: NOW,
    )
    with pytest.raises(NotProcessed):
        provider.call(service.request)
    assert calls == ["cached", "issue"]


def test_a_refused_new_token_is_discarded_as_well():
    service, discarded = TokenService(NOW, rejected=("cached", "new1")), []
    provider = TokenProvider(
        issue=service.issue, cached=cached(3600), discard=discarded.append, clock=lambda: NOW
    )
    with pytest.raises(TokenRejected):
        provider.call(service.request)
    assert [token.access_token.reveal() for token in discarded] == ["cached", "new1"]


@pytest.mark.interface("7.2", "401")
def test_a_token_that_did_not_arrive_is_not_discarded():
    """401 says that no token is set: a proxy may have removed it."""
    service, discarded = TokenService(NOW, rejected=("cached", "new1"), status=401), []
    provider = TokenProvider(
        issue=service.issue, cached=cached(3600), discard=discarded.append, clock=lambda: NOW
    )
    with pytest.raises(TokenRejected):
        provider.call(service.request)
    assert discarded == []


def without_secret() -> Token:
    raise CredentialsError("no secret")


def test_without_a_secret_the_rejection_of_a_cached_token_is_raised():
    service = TokenService(NOW, rejected=("cached",))
    provider = TokenProvider(issue=without_secret, cached=cached(math.inf), clock=lambda: NOW)
    with pytest.raises(TokenRejected):
        provider.call(service.request)
    assert service.used == ["cached"]


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

    def test_a_rejected_token_is_renewed_once_for_all_threads(self):
        service, discarded = TokenService(NOW, rejected=("cached",)), []
        provider = TokenProvider(
            issue=service.issue, cached=cached(3600), discard=discarded.append, clock=lambda: NOW
        )
        calls = self.call_concurrently(provider, service.request)
        assert [call.result() for call in calls] == ["answer"] * 8
        assert service.issued == 1
        assert len(discarded) == 1
        assert sorted(service.used) == ["cached"] * 8 + ["new1"] * 8

    def test_the_rejection_of_a_new_token_is_final_for_all_threads(self):
        service = TokenService(NOW, rejected=("cached", "new1"))
        provider = TokenProvider(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
        calls = self.call_concurrently(provider, service.request)
        assert all(isinstance(call.exception(), TokenRejected) for call in calls)
        assert service.issued == 1

    def test_threads_that_wait_for_a_renewal_share_its_error(self):
        issued = []

        def issue():
            issued.append(1)
            time.sleep(0.3)  # meanwhile the others start to wait
            raise NotProcessed("cannot reach it")

        provider = TokenProvider(issue=issue, clock=lambda: NOW)
        calls = self.call_concurrently(provider, lambda token: "answer")
        assert all(isinstance(call.exception(), NotProcessed) for call in calls)
        assert len(issued) == 1


def test_a_token_is_renewed_after_an_hour_although_the_clock_stands_still():
    monotonic, service = Clock(5.0), TokenService(NOW)
    provider = TokenProvider(issue=service.issue, clock=lambda: NOW, monotonic=monotonic)
    provider.call(service.request)
    monotonic.now += 3539
    provider.call(service.request)
    monotonic.now += 1
    provider.call(service.request)
    assert service.used == ["new1", "new1", "new2"]
