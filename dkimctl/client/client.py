"""The client of the messaging service: one method for each endpoint (interface 4)."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from dkimctl.client import failures, wire
from dkimctl.client.http import MAX_BODY, HttpClient, HttpRequest, HttpResponse
from dkimctl.client.redaction import Redactor
from dkimctl.errors import MaybeProcessed, NotProcessed
from dkimctl.models import TOKEN_LIFETIME, DomainSpec, Secret, Token
from dkimctl.text import utf8

# Bytes of a registration's response: a base and a share for each entry, which has about 700.
# Decoding crafted JSON can take 50 times as much memory.
_MAX_REPLY_BASE, _MAX_REPLY_ITEM = 64 * 1024, 16 * 1024
_MAX_DETAIL = 1000  # characters of the service's error message


class Client:
    """Talks to one service: tokens at `auth_url`, everything else at `base_url`."""

    def __init__(self, *, auth_url: str, base_url: str, http: HttpClient) -> None:
        self._auth_url = auth_url
        self._base_url = base_url
        self._http = http
        # Of all secrets of this run, since a later response can quote them too.
        self._redactor = Redactor()
        #: How far the service's clock is ahead of ours, in seconds, by its last answer that says.
        self.offset = 0.0

    def redact_credentials(self, client_id: str, secret: Secret) -> Secret:
        """Redact what proves the client ID, and return its HTTP Basic form (RFC 7617 section 2)."""
        public = f"{client_id}:"
        joined = Secret(public + secret.reveal())
        credentials = Secret(b64encode(utf8(joined.reveal())).decode())
        self._redactor.add(secret)
        self._redactor.add(joined, public)
        self._redactor.add(credentials, b64encode(utf8(public)).decode())
        return credentials

    def issue_token(self, client_id: str, secret: Secret) -> Token:
        """Obtain an access token (interface 4.1).

        Raises AuthenticationError if the service refuses (400, 405), NotProcessed if there is no
        usable response: tokens may coexist, so one that was issued but lost does no harm.
        """
        credentials = self.redact_credentials(client_id, secret)
        url = f"{self._auth_url}/oauth2/token"
        requested_at = time.time()
        basic = Secret(f"Basic {credentials.reveal()}")
        body, form = b"grant_type=client_credentials", "application/x-www-form-urlencoded"
        request = HttpRequest("POST", url, basic, form, body, max_body=1 << 20)
        try:
            response = self._http.send(request)
        except MaybeProcessed as error:
            raise NotProcessed(error.message, hint=error.hint) from None
        if response.status != 200:
            detail = self._detail(self._redactor.redact(response.body))
            raise failures.token_error(url, response.status, detail, response.retry_after)
        try:
            token, lifetime = wire.decode_token(response.body)
        except wire.DecodeError as error:
            told = failures.unusable(url, error, response.body)
            raise NotProcessed(told, hint="check --auth-url") from None
        self._redactor.add(token)
        return Token(token, requested_at + (lifetime or TOKEN_LIFETIME), requested_at)

    def register(self, token: Secret, specs: Sequence[DomainSpec]) -> wire.Reply:
        """Register domains for DKIM signing (interface 4.2).

        Raises TokenRejected (401, 403), RequestRefused if the batch as a whole is refused,
        NotProcessed if it had no effect (NoService: and never will), MaybeProcessed if that is
        unknown.
        """
        url = f"{self._base_url}/domain/dkim"
        largest = min(MAX_BODY, _MAX_REPLY_BASE + _MAX_REPLY_ITEM * len(specs))
        body, json = wire.encode_registration(specs), "application/json"
        request = HttpRequest("POST", url, None, json, body, is_last=False, max_body=largest)
        response = self._send(token, request)
        reply = None
        if response.status in (200, 400, 500):
            try:
                reply = wire.decode_reply(response.body)
            except wire.DecodeError as error:
                if response.status == 200:
                    told = failures.unusable(url, error, response.body)
                    raise MaybeProcessed(told, hint="check --base-url") from None
        if reply is None or (response.status != 200 and not reply.items):
            detail = self._detail(response.body)
            raise failures.registration_error(url, response.status, detail, response.retry_after)
        return reply

    def request(
        self, token: Secret, method: str, path: str, body: bytes | None = None
    ) -> HttpResponse:
        """Send any bearer-protected request (interface 5.2), whose body is JSON.

        Secrets and tokens that the response echoes are replaced by `***`. Raises TokenRejected for
        401 and 403; every other status is left to the caller.
        """
        content_type = None if body is None else "application/json"
        request = HttpRequest(method, f"{self._base_url}{path}", None, content_type, body)
        return self._send(token, request)

    def ask_time(self) -> datetime | None:
        """The service's time; None: it does not say. Raises ServiceError if it does not answer."""
        request = HttpRequest("GET", f"{self._base_url}{failures.TEST_PATH}", None)
        if self._timed(request).sent_at is not None:
            with suppress(OverflowError):
                return datetime.now(UTC) + timedelta(seconds=self.offset)
        return None

    def _timed(self, request: HttpRequest) -> HttpResponse:
        """Send a request, and note how far the service's clock is from ours (RFC 9110, 6.6.1)."""
        begun = time.time()
        response = self._http.send(request)
        if (sent_at := response.sent_at) is not None:
            # It has seconds only, and is of a moment between the two of ours.
            self.offset = sent_at + 0.5 - (begun + time.time()) / 2
        return response

    def _send(self, token: Secret, request: HttpRequest) -> HttpResponse:
        self._redactor.add(token)
        bearer = Secret(f"Bearer {token.reveal()}")
        response = self._timed(request._replace(authorization=bearer))
        # Text of the request itself, such as a domain that is part of a secret, does not leak.
        body = self._redactor.redact(response.body, exempt=request.body or b"")
        response = response._replace(body=body)
        if response.status in (401, 403):
            raise failures.token_rejected(response.status, self._detail(body), body)
        return response

    def _detail(self, redacted: bytes) -> str:
        """The message of an error response, or "" if it has none or contains a short secret."""
        text = wire.decode_error(redacted)
        # Checked before it is shortened: the cut could leave half a secret.
        if self._redactor.has_short_secret(text):
            return ""
        return text if len(text) <= _MAX_DETAIL else f"{text[:_MAX_DETAIL]}..."
