"""Send a notice to a webhook."""

from __future__ import annotations

from dkimctl.client.http import HttpClient, HttpRequest
from dkimctl.client.unreachable import origin_of
from dkimctl.errors import ServiceError

_MAX_BODY = 1024 * 1024  # bytes of the response, which is not read any further
_HINT = "check notify: webhook in the config file"


def post_notice(http: HttpClient, url: str, document: bytes) -> None:
    """Send a JSON document to a webhook. Raises ServiceError unless it answers 2xx.

    No error has more of the URL, which may hold a token, than its scheme, host and port.
    """
    request = HttpRequest(
        "POST", url, None, "application/json", document, max_body=_MAX_BODY, has_secret_url=True
    )
    try:
        status = http.send(request).status
    except ServiceError as error:
        # With another hint: it may name an option that does not set this URL.
        raise ServiceError(f"the webhook failed: {error.message}", hint=_HINT) from None
    if not 200 <= status < 300:
        hint = "redirects are not followed: write the URL it leads to" if status < 400 else _HINT
        raise ServiceError(f"the webhook at {origin_of(url)} answered {status}", hint=hint)
