"""Tokens are reused, renewed in time, and renewed once when refused (interface 3.1, 5.2)."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from dkimctl.client.tokens import Authorizer
from dkimctl.errors import CredentialsError, NotProcessed, TokenRejected
from dkimctl.models.secret import Secret, Token

NOW = 1_000_000.0


class Service:
    """Issues numbered tokens, and refuses those in `refused`."""

    def __init__(self, refused: tuple[str, ...] = ()) -> None:
        self.refused = refused
        self.issued = 0
        self.used: list[str] = []

    def issue(self) -> Token:
        self.issued += 1
        return Token(Secret(f"new{self.issued}"), NOW + 3600)

    def request(self, token: Secret) -> str:
        self.used.append(token.reveal())
        if token.reveal() in self.refused:
            raise TokenRejected("no")
        return "answer"


def cached(seconds_left: float) -> Token:
    return Token(Secret("cached"), NOW + seconds_left)


@pytest.mark.interface("3.1", "reuse")
def test_a_cached_token_is_used_without_asking_for_one():
    service = Service()
    authorizer = Authorizer(issue=service.issue, cached=cached(61), clock=lambda: NOW)
    assert authorizer.call(service.request) == "answer"
    assert (service.issued, service.used) == (0, ["cached"])


@pytest.mark.interface("3.1", "expiry")
@pytest.mark.interface("5.1", "bearer")
@pytest.mark.parametrize("seconds_left", [60, 0, -3600])
def test_a_token_with_a_minute_left_is_renewed_and_the_new_one_kept(seconds_left):
    service, kept = Service(), []
    authorizer = Authorizer(
        issue=service.issue, cached=cached(seconds_left), keep=kept.append, clock=lambda: NOW
    )
    authorizer.call(service.request)
    authorizer.call(service.request)
    assert service.used == ["new1", "new1"]
    assert [token.access_token.reveal() for token in kept] == ["new1"]


@pytest.mark.interface("3.1", "expired")
def test_a_refused_cached_token_is_replaced_once():
    service = Service(refused=("cached",))
    authorizer = Authorizer(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
    assert authorizer.call(service.request) == "answer"
    assert service.used == ["cached", "new1"]


def test_a_refused_new_token_is_not_replaced():
    service = Service(refused=("cached", "new1"))
    authorizer = Authorizer(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
    with pytest.raises(TokenRejected):
        authorizer.call(service.request)
    assert service.used == ["cached", "new1"]


def test_a_new_token_that_expires_in_the_run_is_renewed():
    now, service = [NOW], Service()
    authorizer = Authorizer(issue=service.issue, clock=lambda: now[0])
    authorizer.call(service.request)
    now[0] += 3541
    authorizer.call(service.request)
    assert service.used == ["new1", "new2"]


def without_secret() -> Token:
    raise CredentialsError("no secret")


def test_without_a_secret_a_given_token_is_used_and_its_refusal_told():
    service = Service(refused=("cached",))
    authorizer = Authorizer(issue=without_secret, cached=cached(math.inf), clock=lambda: NOW)
    with pytest.raises(TokenRejected):
        authorizer.call(service.request)
    assert service.used == ["cached"]


def test_without_a_secret_and_a_token_the_missing_secret_is_told():
    service = Service()
    with pytest.raises(CredentialsError):
        Authorizer(issue=without_secret, clock=lambda: NOW).call(service.request)
    assert service.used == []


class TestManyThreads:
    """One renews, and the others take what it got."""

    @staticmethod
    def call_at_once(authorizer, request, count=8):
        everybody = threading.Barrier(count)

        def at_once(token):
            if token.reveal() == "cached":
                everybody.wait(20)  # all of them have it, before the first is refused
            return request(token)

        with ThreadPoolExecutor(count) as pool:
            return [pool.submit(authorizer.call, at_once) for _ in range(count)]

    def test_a_token_that_is_refused_is_renewed_once_for_all(self):
        service = Service(refused=("cached",))
        authorizer = Authorizer(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
        calls = self.call_at_once(authorizer, service.request)
        assert [call.result() for call in calls] == ["answer"] * 8
        assert service.issued == 1
        assert sorted(service.used) == ["cached"] * 8 + ["new1"] * 8

    def test_a_new_token_that_is_refused_too_is_final_for_all(self):
        service = Service(refused=("cached", "new1"))
        authorizer = Authorizer(issue=service.issue, cached=cached(3600), clock=lambda: NOW)
        calls = self.call_at_once(authorizer, service.request)
        assert all(isinstance(call.exception(), TokenRejected) for call in calls)
        assert service.issued == 1

    def test_who_waits_for_a_token_takes_the_failure_as_well(self):
        asked = []

        def issue():
            asked.append(1)
            time.sleep(0.3)  # while which the others come to wait
            raise NotProcessed("cannot reach it")

        authorizer = Authorizer(issue=issue, clock=lambda: NOW)
        calls = self.call_at_once(authorizer, lambda token: "answer")
        assert all(isinstance(call.exception(), NotProcessed) for call in calls)
        assert len(asked) == 1

    def test_and_the_next_try_asks_again(self):
        answers = [NotProcessed("cannot reach it"), Token(Secret("new"), NOW + 3600)]

        def issue():
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        authorizer = Authorizer(issue=issue, clock=lambda: NOW)
        with pytest.raises(NotProcessed):
            authorizer.call(lambda token: "answer")
        assert authorizer.call(lambda token: "answer") == "answer"


@pytest.mark.parametrize("jump", [-3600, 3600])
def test_a_clock_that_jumps_costs_one_token_at_most(jump):
    clock = SimpleNamespace(now=NOW)
    service = Service()
    authorizer = Authorizer(
        issue=lambda: service.issue()._replace(expires_at=clock.now + 3600),
        clock=lambda: clock.now,
    )
    authorizer.call(service.request)
    clock.now += jump
    for _ in range(3):
        assert authorizer.call(service.request) == "answer"
    assert service.issued == (2 if jump > 0 else 1)
    service.refused = ("new1",)  # the service's own clock goes on
    assert authorizer.call(service.request) == "answer"
    assert service.issued == 2
