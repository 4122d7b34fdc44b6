"""What a signing domain and a selector may be, as people write them and as DNS has them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn

from dkimctl.errors import UsageError
from dkimctl.text.escaping import printable
from dkimctl.text.wording import shown

MAX_NAME = 253  # RFC 1035 2.3.4 allows 255 octets on the wire: this is their text
MAX_LABEL = 63

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# What needs no second look: at least two labels, none of them an A-label, the last no number.
_ORDINARY = re.compile(rf"(?:(?!xn--){_LABEL}\.)+(?!xn--)(?![0-9]+\Z){_LABEL}")
_SELECTOR = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE | re.ASCII)
_NOT_LDH = r"[^A-Za-z0-9-]"

# Patterns for mistakes alone stay text: `re` compiles them when there is one.
_OTHER_THINGS = (
    (r"\s", "holds a space or line break", "write the domain name alone"),
    (r"/", "is a URL or a path", "write the domain name alone, such as example.com"),
    (r"@", "is an e-mail address", "write only what follows the @"),
    (r"\*", "is a wildcard", "DKIM has none: list each signing domain"),
    (
        r"_",
        "holds an underscore",
        "write the domain itself, without _domainkey",
    ),
)


def parse_domain(text: str) -> str:
    """A signing domain as A-labels (IDNA 2008), lower case, without trailing dot.

    Raises UsageError that says what the text is instead.
    """
    name = text.lower().removesuffix(".")
    if len(name) > MAX_NAME:
        _refuse(text, f"is longer than {MAX_NAME} octets", "DNS holds no longer name")
    if _ORDINARY.fullmatch(name):
        return name
    _refuse_other_things(name, text)
    labels = _to_ascii(name, text).split(".")
    for label in labels:
        _check_label(label, text)
    if len(labels) == 1:
        _refuse(text, "is a single label", "write the whole domain name, such as example.com")
    if labels[-1].isdigit():
        _refuse(text, "ends in a number", "no top-level domain is a number")
    return ".".join(labels)


def _refuse_other_things(name: str, text: str) -> None:
    for pattern, what, hint in _OTHER_THINGS:
        if re.search(pattern, name):
            _refuse(text, what, hint)
    if _is_address(name):
        _refuse(text, "is an IP address", "write the name of the signing domain")


@lru_cache(maxsize=64)  # the entries of a file share few selectors
def parse_selector(text: str) -> str:
    """A selector as it is written: DNS labels joined by dots (RFC 6376 3.1). Raises UsageError."""
    if "_domainkey" in text.lower():
        _refuse(text, "holds _domainkey", "write only what stands before ._domainkey")
    if not _SELECTOR.fullmatch(text):
        for label in text.split("."):
            _check_label(label, text)
    return text


def key_name_length(domain: str, selector: str | None) -> int:
    """The octets of `selector._domainkey.domain`, as text without trailing dot.

    A selector that the service will choose counts as one octet.
    """
    return len(selector or "s") + len("._domainkey.") + len(domain)


def _to_ascii(name: str, text: str) -> str:
    if name.isascii() and "xn--" not in name:
        return name
    import idna

    try:
        labels = idna.uts46_remap(name).removesuffix(".").split(".")
        return ".".join(idna.alabel(label).decode() if label else "" for label in labels)
    except UnicodeError as error:
        what = f"is no internationalised domain name: {printable(str(error))}"
        _refuse(text, what, "RFC 5891 says which are")


def _is_address(name: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _check_label(label: str, text: str) -> None:
    if not label:
        _refuse(text, "has an empty label", "remove the dot that is too many")
    if len(label) > MAX_LABEL:
        _refuse(text, f"has a label of {len(label)} octets", f"a label has at most {MAX_LABEL}")
    if bad := re.search(_NOT_LDH, label):
        _refuse(text, f"holds {shown(bad[0])}", "a label has letters, digits and hyphens alone")
    if label[0] == "-" or label[-1] == "-":
        _refuse(text, "has a label with a hyphen at its end", "hyphens stand within a label")


def _refuse(text: str, what: str, hint: str) -> NoReturn:
    raise UsageError(f"{shown(text)} {what}", hint=hint)
