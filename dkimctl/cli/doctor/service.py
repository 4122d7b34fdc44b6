"""The service: connections, the clock, the credentials and a token."""

from __future__ import annotations

import time
from collections.abc import Iterator

from dkimctl.cli.commands.login import TEST_PATH, strange_answer
from dkimctl.cli.doctor.findings import Finding, State
from dkimctl.cli.session import Session
from dkimctl.credentials.sources import IN_ENVIRONMENT
from dkimctl.errors import TokenRejected
from dkimctl.text.durations import format_duration

_CONNECT_SECONDS = 10.0
# A start date is a matter of days; but a signed DNS update is refused if clocks differ by more
# than five minutes (RFC 8945 section 10).
_NOTE_SECONDS, _WRONG_SECONDS = 30, 300


def check_auth_url(session: Session) -> Iterator[Finding]:
    finding, _ = _try_url(session, "auth URL", f"{session.profile.auth_url}/oauth2/token")
    yield finding


def check_base_url(session: Session) -> Iterator[Finding]:
    """Also the clock, by the time that the answer names."""
    begun = time.time()
    url = f"{session.profile.base_url}{TEST_PATH}"
    finding, sent_at = _try_url(session, "base URL", url)
    yield finding
    yield clock_finding(sent_at, begun, time.time())


def check_credentials(session: Session) -> Iterator[Finding]:
    check, credentials = "credentials", session.credentials
    source = credentials.secret_source(session.stored_account)
    if source is None and credentials.get_token(session.stored_account) is None:
        yield Finding(check, State.WRONG, "no secret is stored", "run `dkimctl login`")
    elif source is None:
        hint = "run `dkimctl login`, or set DKIMCTL_CLIENT_SECRET"
        yield Finding(check, State.WARNING, "there is a token, but no secret to renew it", hint)
    elif source != IN_ENVIRONMENT and session.credential_store.is_plaintext_keyring:
        hint = "`dkimctl login --credential-store file` stores it where only you can read it"
        yield Finding(check, State.WARNING, f"the {source} does not encrypt the secret", hint)
    else:
        yield Finding(check, State.OK, f"the secret is in the {source}")


def check_token(session: Session) -> Iterator[Finding]:
    """Obtain a token, which is not stored, and see whether it may be used."""
    secret = session.credentials.get_secret(session.stored_account)
    if secret is not None:
        token = session.client.issue_token(session.account.client_id, secret).access_token
        what = "the service issues a token, and accepts it"
    else:
        token = session.token_provider.token()
        what = "the service accepts the token"
    try:
        session.client.request(token, "GET", TEST_PATH)
    except TokenRejected as error:
        yield Finding("token", State.WRONG, error.message, error.hint)
    else:
        yield Finding("token", State.OK, what)


def clock_finding(sent_at: float | None, begun: float, ended: float) -> Finding:
    """The clock against the time of an answer, in whole seconds, between these two local times."""
    if sent_at is None:
        return Finding("clock", State.UNKNOWN, "the service does not say what time it is")
    ahead, behind = begun - (sent_at + 1), sent_at - ended
    seconds, word = max((ahead, "ahead of"), (behind, "behind"))
    if seconds <= 1:
        return Finding("clock", State.OK, "as that of the service")
    text = f"{format_duration(seconds)} {word} the service's"
    hint = "set the clock of this machine, such as by NTP"
    if seconds > _WRONG_SECONDS:
        return Finding("clock", State.WRONG, text, hint)
    if seconds > _NOTE_SECONDS:
        return Finding("clock", State.NOTE, text, hint)
    return Finding("clock", State.OK, text)


def _try_url(session: Session, check: str, url: str) -> tuple[Finding, float | None]:
    """Whether something answers there, and the time that it says it is."""
    from dkimctl.client.http import HttpClient, HttpRequest

    profile = session.profile
    with HttpClient.over_network(
        url,
        timeout=min(profile.timeout, _CONNECT_SECONDS),
        ca_bundle=profile.ca_bundle,
        proxy=profile.proxy,
    ) as http:
        response = http.send(HttpRequest("GET", url, None))
    base = url.removesuffix(TEST_PATH).removesuffix("/oauth2/token")
    if strange := strange_answer(response):
        text = f"{base} answered {strange} to a test request, as if it were not the service"
        finding = Finding(check, State.WARNING, text, "check the URL: `dkimctl status` shows it")
    elif response.status >= 500:
        text = f"{base} answered {response.status} to a test request"
        finding = Finding(check, State.WARNING, text, "try again later")
    else:
        secure = " over TLS" if url.startswith("https:") else ""
        finding = Finding(check, State.OK, f"{base} answers{secure}")
    return finding, response.sent_at
