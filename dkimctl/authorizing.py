"""Give every request a bearer token that works (interface 3.1 and 5.2)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from dkimctl.errors import TokenRejected
from dkimctl.models import Secret, Token

MARGIN = 60.0  # seconds; a token with less left is not used any more

T = TypeVar("T")


class Authorizer:
    """Holds one token and renews it when it is about to expire or is refused.

    `issue` obtains a new token, or is None where there is no secret to obtain one with;
    `cached` is a token of an earlier run; `keep` is told of each new one. Tokens may
    coexist (interface 3.1), so another process that renews at the same time does no harm.
    """

    def __init__(
        self,
        *,
        issue: Callable[[], Token] | None,
        cached: Token | None = None,
        keep: Callable[[Token], object] = lambda token: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issue = issue
        self._token = cached
        self._keep = keep
        self._clock = clock
        self._fresh = False

    def call(self, request: Callable[[Secret], T]) -> T:
        """Give `request` a token; when one from the cache is refused, once more with a new one.

        Raises TokenRejected when a new token is refused too, or none can be had.
        """
        token = self._usable()
        try:
            return request(token.access_token)
        except TokenRejected:
            if self._fresh or self._issue is None:
                raise
        return request(self._renew(self._issue).access_token)

    def _usable(self) -> Token:
        if self._token is not None and self._token.expires_at - MARGIN > self._clock():
            return self._token
        if self._issue is None:
            if self._token is None:
                raise ValueError("neither a token nor a way to obtain one")
            return self._token
        return self._renew(self._issue)

    def _renew(self, issue: Callable[[], Token]) -> Token:
        self._token = issue()
        self._fresh = True
        self._keep(self._token)
        return self._token
