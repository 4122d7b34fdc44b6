"""Give every request a bearer token that works (interface 3.1 and 5.2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from dkimctl.errors import CredentialsError, TokenRejected
from dkimctl.models import Secret, Token

MARGIN = 60.0  # seconds; a token with less left is not used any more

T = TypeVar("T")


class Authorizer:
    """Holds one token and renews it when it is about to expire or is refused.

    `issue` obtains a new token, and raises CredentialsError where there is no secret to do
    so; `cached` is a token of an earlier run; `keep` is told of each new one. Tokens may
    coexist (interface 3.1), so another process that renews at the same time does no harm.
    """

    def __init__(
        self,
        *,
        issue: Callable[[], Token],
        cached: Token | None = None,
        keep: Callable[[Token], object] = lambda token: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issue = issue
        self._token = cached
        self._keep = keep
        self._clock = clock
        self._is_new = False

    def call(self, request: Callable[[Secret], T]) -> T:
        """Give `request` a token; when one from the cache is refused, once more with a new one.

        Raises TokenRejected when a new token is refused too, or none can be had.
        """
        token = self._token
        if token is None or token.expires_at - MARGIN <= self._clock():
            token = self._renew()
        try:
            answer = request(token.access_token)
        except TokenRejected as rejection:
            if self._is_new:
                raise
            answer = request(self._replace(rejection).access_token)
        self._is_new = False
        return answer

    def _replace(self, rejection: TokenRejected) -> Token:
        try:
            return self._renew()
        except CredentialsError:
            raise TokenRejected(
                rejection.message,
                hint="the token may have expired, and there is no secret to obtain another with",
                body=rejection.body,
            ) from None

    def _renew(self) -> Token:
        self._token = self._issue()
        self._is_new = True
        self._keep(self._token)
        return self._token
