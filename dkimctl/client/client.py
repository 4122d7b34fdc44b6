"""The client of the messaging service: one method per endpoint (interface section 4)."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Collection, Sequence
from typing import Self

from dkimctl.client.http import MAX_BODY, HttpClient, HttpRequest, HttpResponse
from dkimctl.client.redaction import quotes, without
from dkimctl.client.wire import (
    DecodeError,
    Reply,
    decode_error,
    decode_reply,
    decode_token,
    encode_registration,
)
from dkimctl.errors import (
    AuthenticationError,
    MaybeProcessed,
    NoService,
    NotProcessed,
    RequestRefused,
    ServiceError,
    Throttled,
    TokenRejected,
)
from dkimctl.models.registration import DomainSpec
from dkimctl.models.secret import Secret, Token

__all__ = ["Client", "HttpClient", "HttpRequest", "HttpResponse", "Reply"]

_LARGEST_TOKEN = 1024 * 1024  # bytes of an answer
# Bytes of an answer to a registration: in itself, and for each entry, which has about 700. What is
# decoded takes 50 times as much, where it is made to.
_LARGEST_REPLY, _LARGEST_ITEM = 64 * 1024, 16 * 1024
_LONGEST_ERROR = 1000  # characters; more is no message for people
TOKEN_LIFETIME = 3600.0  # seconds, unless the answer tells (interface 3.1)

# There is nothing at that address that could have registered anything. Other 4xx may come
# from a gateway that gave up on a request which goes on.
_TURNED_AWAY = (404, 405, 406, 407, 410, 411, 415)


class Client:
    """Speaks to one service: tokens at `auth_url`, everything else at `base_url`.

    Closing it closes `http`.
    """

    def __init__(
        self,
        *,
        auth_url: str,
        base_url: str,
        http: HttpClient,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._auth_url = auth_url
        self._base_url = base_url
        self._clock = clock
        self._http = http
        # What an answer may quote, to that request or a later one; threads share it.
        self._sent: frozenset[Secret] = frozenset()

    def issue_token(self, client_id: str, secret: Secret) -> Token:
        """Obtain an access token (interface 4.1).

        Raises AuthenticationError when the service refuses (400, 405), NotProcessed when it
        gives no usable answer: tokens may coexist, so nothing hangs on whether it made one.
        """
        basic = _basic(client_id, secret)
        self._sent |= {secret, basic}
        url = f"{self._auth_url}/oauth2/token"
        asked_at = self._clock()
        try:
            response = self._http.send(
                HttpRequest(
                    "POST",
                    url,
                    Secret(f"Basic {basic.reveal()}"),
                    "application/x-www-form-urlencoded",
                    b"grant_type=client_credentials",
                    largest=_LARGEST_TOKEN,
                )
            )
        except MaybeProcessed as error:
            raise NotProcessed(error.message, hint=error.hint) from None
        if response.status != 200:
            raise _token_error(url, response, self._sent)
        try:
            token, lifetime = decode_token(response.body)
        except DecodeError as error:
            raise NotProcessed(
                f"the answer of {url} holds no token: {error}", hint="check --auth-url"
            ) from None
        return Token(token, asked_at + (lifetime or TOKEN_LIFETIME))

    def register(self, token: Secret, specs: Sequence[DomainSpec]) -> Reply:
        """Register domains for DKIM signing (interface 4.2).

        Raises TokenRejected (401, 403), RequestRefused when the batch as a whole is refused,
        NotProcessed when it had no effect (NoService: nor will it have any), MaybeProcessed
        when nobody can tell.
        """
        response = self._send(
            token,
            HttpRequest(
                "POST",
                f"{self._base_url}/domain/dkim",
                _bearer(token),
                "application/json",
                encode_registration(specs),
                is_last=False,
                largest=min(MAX_BODY, _LARGEST_REPLY + _LARGEST_ITEM * len(specs)),
            ),
        )
        if response.status not in (200, 400, 500):
            raise _request_error(response)
        try:
            reply = decode_reply(response.body)
        except DecodeError as error:
            if response.status == 200:
                raise MaybeProcessed(
                    f"the service's answer is not usable: {error}", hint="check --base-url"
                ) from None
            raise _request_error(response) from None
        if response.status != 200 and not reply.items:
            raise _request_error(response)
        return reply

    def request(
        self,
        token: Secret,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str | None = None,
    ) -> HttpResponse:
        """Send any bearer-protected request (interface 5.2) and give its answer.

        Where the answer quotes a secret or token that was sent, `***` stands in its place. Raises
        TokenRejected for 401 and 403; every other status is the caller's to judge.
        """
        url = f"{self._base_url}{path}"
        return self._send(token, HttpRequest(method, url, _bearer(token), content_type, body))

    def _send(self, token: Secret, request: HttpRequest) -> HttpResponse:
        self._sent |= {token}
        answer = self._http.send(request)
        # What the request itself says, such as a domain's name that is in a secret, is no echo.
        said = (request.body or b"").decode("utf-8", "replace")
        secrets = [secret for secret in self._sent if not quotes(said, [secret])]
        response = answer._replace(body=without(secrets, answer.body))
        if response.status in (401, 403):
            raise _token_rejected(response, self._sent)
        return response

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _basic(client_id: str, secret: Secret) -> Secret:
    """The credentials of HTTP Basic (RFC 7617 section 2)."""
    return Secret(base64.b64encode(f"{client_id}:{secret.reveal()}".encode()).decode())


def _bearer(token: Secret) -> Secret:
    return Secret(f"Bearer {token.reveal()}")


def _token_error(
    url: str, response: HttpResponse, secrets: Collection[Secret]
) -> AuthenticationError | NotProcessed:
    """Interface 7.1: what another status than 200 means at the token endpoint."""
    said = _said(response, secrets)
    if response.status in (400, 401, 403):
        return AuthenticationError(
            f"the service refused the client ID or secret{said}",
            hint="the secret is wrong or the client was deleted; run `dkimctl login` again",
        )
    if response.status == 405:
        return AuthenticationError(
            f"{url} does not issue tokens (405){said}", hint="check --auth-url"
        )
    kind = NoService if _is_no_service(response.status) else NotProcessed
    return kind(
        f"{url} answered {response.status}{said}",
        hint="try again later, and check --auth-url if it persists",
        retry_after=response.retry_after,
    )


def _token_rejected(response: HttpResponse, secrets: Collection[Secret]) -> TokenRejected:
    """Interface 7.2."""
    said = _said(response, secrets)
    if response.status == 401:
        hint = "the service saw no token; check --base-url and any proxy in between"
    else:
        hint = (
            "a temporarily disabled client still gets tokens, but their use is forbidden: "
            "ask the service's operator whether the client is active"
        )
    return TokenRejected(
        f"the service refused the access token ({response.status}){said}",
        hint=hint,
        body=response.body,
    )


def _request_error(response: HttpResponse) -> ServiceError | RequestRefused:
    """Interface 7.3 and 7.4: what a registration request without items came to."""
    status, said = response.status, _said(response)
    if status in (400, 413, 422):
        return RequestRefused(str(status), _shortened(decode_error(response.body)))
    if status == 429:
        return Throttled(
            f"the service asks for fewer requests (429){said}",
            hint="try again later, with a lower --concurrency if it persists",
            retry_after=response.retry_after,
        )
    if _is_no_service(status):
        return NoService(f"the service answered {status}{said}", hint="check --base-url")
    return MaybeProcessed(
        f"the service answered {status}{said}",
        hint="try again later; check --base-url",
        retry_after=response.retry_after,
    )


def _is_no_service(status: int) -> bool:
    return status in _TURNED_AWAY or 300 <= status < 400


def _said(response: HttpResponse, secrets: Collection[Secret] = ()) -> str:
    """What an error says, unless it quotes one of `secrets`, as some services do."""
    text = decode_error(response.body)
    # Of a text that was shortened first, half a secret could be left.
    return "" if not text or quotes(text, secrets) else f": {_shortened(text)}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..."
