"""Whether what a provider raised says that it is not allowed to do something."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from dkimctl.text.dns_names import parents

_REFUSED_STATUS = frozenset((401, 403))
# Each provider has exceptions of its own; most have one of these words in name or text.
_REFUSAL = re.compile(
    r"unauthori[sz]ed|forbidden|authenticat|authori[sz]ation|access ?denied|not ?authori[sz]ed|"
    r"permission|credential|signature|invalid.{0,20}(key|token)|\bBAD(SIG|KEY|TIME)\b|"
    r"\b(NOTAUTH|REFUSED)\b|tsig|peer didn.t know the key",
    re.IGNORECASE,
)
_DOMAIN_NAME = re.compile(r"(?<![\w-])[\w-]+(?:\.[\w-]+){1,127}")  # as many labels as DNS allows
_NO_CONNECTION = re.compile(
    r"connection ?(\w+ )?(refused|error|aborted|reset)|errno", re.IGNORECASE
)


def is_refusal(failure: Exception, text: str, names: Collection[str]) -> bool:
    """Whether `failure` is one, by its text, status and type; `names` in the text say nothing."""
    text = _without_names(text, names)
    if (status := http_status(failure)) is not None:
        return status in _REFUSED_STATUS or (status < 500 and _REFUSAL.search(text) is not None)
    text = f"{type(failure).__name__} {text}"
    return _NO_CONNECTION.search(text) is None and _REFUSAL.search(text) is not None


def http_status(failure: Exception) -> int | None:
    """The status in an exception of requests or botocore."""
    response = getattr(failure, "response", None)
    if isinstance(response, Mapping):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _without_names(text: str, names: Collection[str]) -> str:
    """`text` without `names`, and without those above and below them: they can have any word.

    Some providers name a record without its zone.
    """
    pairs = [(name.lower(), parent) for name in names for parent in parents(name)]
    above = {parent for _, parent in pairs}
    relative = {name.removesuffix(f".{parent}") for name, parent in pairs}
    known = {name for name in above | relative if "." in name}
    return _DOMAIN_NAME.sub(
        lambda match: match[0] if known.isdisjoint(parents(match[0])) else "", text
    )
