"""Tokens are reused, renewed in time, and renewed once when refused (interface 3.1, 5.2)."""

from __future__ import annotations

import math

import pytest

from dkimctl.authorizing import Authorizer
from dkimctl.errors import CredentialsError, TokenRejected
from dkimctl.models import Secret, Token

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


def test_a_cached_token_is_used_without_asking_for_one():
    service = Service()
    authorizer = Authorizer(issue=service.issue, cached=cached(61), clock=lambda: NOW)
    assert authorizer.call(service.request) == "answer"
    assert (service.issued, service.used) == (0, ["cached"])


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
