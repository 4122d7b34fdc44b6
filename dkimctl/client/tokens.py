"""Gives every request a valid bearer token (interface 3.1, 5.2)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from dkimctl.errors import CredentialsError, TokenRejected
from dkimctl.models import Secret, Token

_RENEWAL_MARGIN = 60.0  # seconds before its expiry that a token is renewed

T = TypeVar("T")


class TokenProvider:
    """Holds one token, and renews it when it is about to expire or was rejected.

    `issue` obtains a new token, and raises CredentialsError if there is no secret for it; `cached`
    is a token of an earlier run; `persist` receives each new token, `discard` each that the service
    refuses. Tokens may coexist (interface 3.1), so another process that renews at the same time
    does no harm.

    Thread-safe: one thread renews, and those that waited for it share its token or its error.
    """

    def __init__(
        self,
        *,
        issue: Callable[[], Token],
        cached: Token | None = None,
        persist: Callable[[Token], object] = lambda token: None,
        discard: Callable[[Token], object] = lambda token: None,
    ) -> None:
        self._issue = issue
        self._persist = persist
        self._discard = discard
        self._token, self._taken_at = cached, (time.time(), time.monotonic())
        self._discarded: Token | None = None
        self._lock = threading.Lock()
        self._renewals = 0
        self._renewal_error: Exception | None = None  # of the last renewal
        # Whether no request with the token has succeeded yet: then a rejection is final.
        self._is_unproven = False

    def call(self, request: Callable[[Secret], T]) -> T:
        """Call `request` with a token and, if that is rejected, a new one. Raises TokenRejected."""
        token = self._current()
        try:
            response = self._try(request, token)
        except TokenRejected as rejection:
            token = self._replace(token, rejection)
            response = self._try(request, token)
        if token is self._token:
            self._is_unproven = False
        return response

    def token(self) -> Secret:
        """A token that is valid for longer than the margin. Raises what `issue` raises."""
        return self._current().access_token

    def _current(self) -> Token:
        renewals = self._renewals
        with self._lock:
            token = self._token
            # The clock may be set during a run; the monotonic time may stand still in sleep.
            taken_at, monotonic_then = self._taken_at
            by_time_passed = taken_at + time.monotonic() - monotonic_then
            if token is not None and all(
                token.is_valid(now) and now < token.expires_at - _RENEWAL_MARGIN
                for now in (time.time(), by_time_passed)
            ):
                return token
            return self._renew(renewals)

    def _try(self, request: Callable[[Secret], T], token: Token) -> T:
        """Call `request`. 403 refuses `token`, which is discarded; 401: none arrived (7.2)."""
        try:
            return request(token.access_token)
        except TokenRejected as rejection:
            with self._lock:
                if rejection.status == 403 and token is not self._discarded:
                    self._discarded = token
                    self._discard(token)
            raise

    def _replace(self, rejected: Token, rejection: TokenRejected) -> Token:
        """A token to use instead of `rejected`; another thread may have renewed it already."""
        renewals = self._renewals
        with self._lock:
            if self._token is not None and self._token is not rejected:
                return self._token
            if self._is_unproven:
                raise rejection
            try:
                return self._renew(renewals)
            except CredentialsError as error:
                message, status = rejection.message, rejection.status
                hint = (
                    "the token may have expired, and a new one cannot be obtained: "
                    f"{error.message}; {error.hint}"
                )
                if rejected.obtained_at is None and status == 403:
                    message = "the service refused the token in DKIMCTL_ACCESS_TOKEN (403)"
                    hint = "set the variable to a valid token, or unset it and run `dkimctl login`"
                raise TokenRejected(
                    message, hint=hint, status=status, body=rejection.body
                ) from None

    def _renew(self, renewals: int) -> Token:
        """Obtain a token. `renewals` is their number before the caller waited for the lock.

        A caller that waited while another thread's renewal failed does not try again.
        """
        if self._renewals != renewals and self._renewal_error is not None:
            raise self._renewal_error
        self._renewal_error = None
        try:
            token = self._issue()
        except Exception as error:
            self._renewal_error = error
            raise
        finally:
            self._renewals += 1
        self._token, self._taken_at = token, (time.time(), time.monotonic())
        self._is_unproven = True
        self._persist(token)
        return token
