"""What octoDNS providers raise, as errors of ours: without secrets, and refusals from failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dkimctl.client.redaction import Redactor
from dkimctl.errors import DkimctlError, DnsRefused, ServiceError, UsageError
from dkimctl.models import Secret
from dkimctl.names import parents
from dkimctl.settings.values import values_in
from dkimctl.text import printable

_MAX_TEXT = 300  # characters
_MAX_READ = 100 * _MAX_TEXT
# What Python raises by itself: the text alone can be as short as the name of a missing key.
_BY_PYTHON = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
# Each provider has exceptions of its own; most have one of these words in name or text.
_REFUSAL = (
    r"(?i)unauthori[sz]ed|forbidden|authenticat|authori[sz]ation|access ?denied|not ?authori[sz]ed|"
    r"permission|credential|signature|invalid.{0,20}(key|token)|\bBAD(SIG|KEY|TIME)\b|"
    r"\b(NOTAUTH|REFUSED)\b|tsig|peer didn.t know the key"
)
_NO_CONNECTION = r"(?i)connection ?(\w+ )?(refused|error|aborted|reset)|errno"


class Failures:
    """Makes the errors of one provider, with the secrets in `settings` to be kept out of them."""

    def __init__(self, label: str, settings: Mapping[str, object]) -> None:
        self._label = label
        self._redactor = Redactor()
        for secret in values_in(settings):
            # Some providers remove spaces and line breaks around it.
            if isinstance(secret, Secret) and (text := secret.reveal().strip()):
                self._redactor.add(secret)
                self._redactor.add(Secret(text))

    def trying(
        self, doing: str, work: Callable[[], Any], names: Collection[str] = (), *,
        is_opening: bool = False,
    ) -> Any:  # fmt: skip
        """Let a provider work on `names`, or open it. Raises DkimctlError in place of its own."""
        kind: type[DkimctlError] = ServiceError
        try:
            return work()
        except DkimctlError:
            raise
        except Exception as failure:  # noqa: BLE001 - each provider raises its own
            shown, settings = self._shown(failure), "`settings` of `dns` in the config file"
            message = f"{self._label} cannot {doing}: {shown}"
            hint = f"check the provider, and its {settings}; then run the same command again"
            if is_opening and isinstance(failure, (TypeError, ValueError)):
                kind, hint = UsageError, f"check {settings}: the class documents what it takes"
                message = f"cannot use {self._label} with these settings: {shown}"
            elif is_refusal(failure, _text_of(failure), names):
                kind, allow = DnsRefused, "that they allow to read and change the zone"
                hint = f"check the credentials in {settings}, and {allow}"
        # Raised here so that the failure, which can quote a secret, is not its context.
        raise kind(message, hint=hint)

    def _shown(self, failure: Exception) -> str:
        """What it says, without secrets; its kind alone if it contains a short one, or is empty."""
        text = _text_of(failure)
        if not text or self._redactor.has_short_secret(text):
            return type(failure).__name__
        data = text.encode("utf-8", "surrogatepass")
        return short_line(self._redactor.redact(data).decode("utf-8", "replace"))


def short_line(text: str) -> str:
    """The beginning of `text` on one line, safe for a terminal."""
    line = " ".join(text.split())
    return printable(line[:_MAX_TEXT] + "…" if len(line) > _MAX_TEXT else line)


def _text_of(failure: Exception) -> str:
    """What a failure says; it can quote a secret."""
    # The text of this one quotes a character of what has no form, such as a secret in a header.
    text = failure.reason if isinstance(failure, UnicodeEncodeError) else str(failure)
    if isinstance(failure, _BY_PYTHON):
        text = f"{type(failure).__name__}: {text}"
    status = http_status(failure)
    if status is not None and str(status) not in text:
        text = f"{text} (HTTP {status})"
    # The JSON that came with an error of requests, whose text has the status alone.
    content = getattr(getattr(failure, "response", None), "content", None)
    if isinstance(content, bytes) and content.startswith(b"{"):
        text = f"{text}: {content[:_MAX_READ].decode('utf-8', 'replace')}"
    return text[:_MAX_READ]


def is_refusal(failure: Exception, text: str, names: Collection[str]) -> bool:
    """Whether `failure` is one, by its text, status and type; `names` in the text say nothing."""
    # A name can have any word: without it, and those above it, the longest first.
    above = {parent for name in names for parent in parents(name) if "." in parent}
    for known in sorted(above, key=len, reverse=True):
        text = text.lower().replace(known, "")
    if (status := http_status(failure)) is not None:
        return status in (401, 403) or (status < 500 and bool(re.search(_REFUSAL, text)))
    text = f"{type(failure).__name__} {text}"
    return not re.search(_NO_CONNECTION, text) and bool(re.search(_REFUSAL, text))


def http_status(failure: Exception) -> int | None:
    """The status in an exception of requests or botocore."""
    response = getattr(failure, "response", None)
    if isinstance(response, Mapping):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None
