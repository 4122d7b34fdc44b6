"""Give every request a bearer token that works (interface 3.1 and 5.2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from dkimctl.errors import CredentialsError, TokenRejected
from dkimctl.models.secret import Secret, Token

MARGIN = 60.0  # seconds; a token with less left is not used any more

T = TypeVar("T")


class Authorizer:
    """Holds one token and renews it when it is about to expire or is refused.

    `issue` obtains a new token, and raises CredentialsError where there is no secret to do
    so; `cached` is a token of an earlier run; `keep` is told of each new one. Tokens may
    coexist (interface 3.1), so another process that renews at the same time does no harm.

    Any number of threads may call: one renews, and those that waited for it take what it
    got, be it a token or an error.
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
        self._renewing = threading.Lock()
        self._renewals = 0
        self._failure: Exception | None = None  # of the last renewal
        # Whether the token has been new to the service until now: then a refusal is final.
        self._is_new = False

    def call(self, request: Callable[[Secret], T]) -> T:
        """Give `request` a token; when an old one is refused, once more with a new one.

        Raises TokenRejected when a new token is refused too, or none can be had.
        """
        token = self._current()
        try:
            answer = request(token.access_token)
        except TokenRejected as rejection:
            token = self._replace(token, rejection)
            answer = request(token.access_token)
        if token is self._token:
            self._is_new = False
        return answer

    def token(self) -> Secret:
        """A token with more than the margin left. Raises what `issue` raises."""
        return self._current().access_token

    def _current(self) -> Token:
        seen = self._renewals
        with self._renewing:
            token = self._token
            if token is None or token.expires_at - MARGIN <= self._clock():
                token = self._renew(seen)
            return token

    def _replace(self, refused: Token, rejection: TokenRejected) -> Token:
        """The token to use after `refused`: another thread may have it already."""
        seen = self._renewals
        with self._renewing:
            if self._token is not None and self._token is not refused:
                return self._token
            if self._is_new:
                raise rejection
            try:
                return self._renew(seen)
            except CredentialsError as error:
                raise TokenRejected(
                    rejection.message,
                    hint="the token may have expired, and no other can be obtained: "
                    f"{error.message}; {error.hint}",
                    body=rejection.body,
                ) from None

    def _renew(self, seen: int) -> Token:
        """Obtain a token; no second time for those that waited while it failed.

        `seen` is how many renewals had ended when the caller came.
        """
        if self._renewals != seen and self._failure is not None:
            raise self._failure
        self._failure = None
        try:
            self._token = self._issue()
        except Exception as error:
            self._failure = error
            raise
        finally:
            self._renewals += 1
        self._is_new = True
        self._keep(self._token)
        return self._token
