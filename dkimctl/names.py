"""Signing domains and selectors: checked, in the form that DNS uses, or from a template."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NoReturn, TypeVar

from dkimctl.addresses import to_a_labels
from dkimctl.errors import UsageError, naming
from dkimctl.models import Named, RegistrationKey, key_of
from dkimctl.text import listed, printable, quoted

_T = TypeVar("_T")
_NamedT = TypeVar("_NamedT", bound=Named)

MAX_LABEL = 63
MAX_NAME = 253  # RFC 1035 2.3.4 allows 255 octets on the wire, which are 253 characters of text
_NAME_LABEL = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
_NAME = rf"{_NAME_LABEL}(?:\.{_NAME_LABEL})*"

# Needs no further check: two labels or more, no A-label among them, and the last not a number.
_ORDINARY = re.compile(
    r"(?:(?!xn--|-)[a-z0-9-]{1,63}(?<!-)\.)+(?!xn--|-)(?![0-9]+\Z)[a-z0-9-]{1,63}(?<!-)"
)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SELECTOR = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE | re.ASCII)

# These patterns are text, which `re` compiles only if there is a mistake.
_OTHER_THINGS = (
    (r"[\s,;]", "is not one domain name", "write each by itself, without spaces or commas"),
    (r":", "contains a colon", "write only the name; after the colon of a YAML key, put a space"),
    (r"/", "is a URL or a path", "write only the domain name, such as example.com"),
    (r"@", "is an email address", "write only the part after the @"),
    (r"\*", "is a wildcard, which cannot be a signing domain", "list each signing domain"),
)
# A URL; its host is all of it that may be shown, since the rest can hold a password.
_URL = r"([a-z][a-z0-9+.-]*://)(?:[^/?#]*@)?([^/?#@:]*)"
_KEY_NAME = r"(?:.*\.)?_domainkey\.(.+)"
_DIRECTIVES = "YymdHMSjGV"  # of strftime: those that give only digits, on every platform
_PLACEHOLDER = "{domain}"
_TEMPLATE_HINT = (
    f"write a template such as s%Y%m; it may contain %{' %'.join(_DIRECTIVES)} for the date, and "
    f"{_PLACEHOLDER}"
)


def is_name(text: str) -> bool:
    """Whether `text` is a DNS name of letters, digits, hyphens and underscores; no final dot."""
    return len(text) <= MAX_NAME and re.fullmatch(_NAME, text) is not None


def parse_domain(text: str) -> str:
    """A signing domain as A-labels (IDNA 2008), lower case, no final dot. Raises UsageError."""
    name = text.lower().removesuffix(".")
    if _ORDINARY.fullmatch(name) and len(name) <= MAX_NAME:
        return name
    _check_length(text, name)
    if url := re.match(_URL, name):
        host = f": {url[2]}" if is_ordinary(url[2]) else ""
        _refuse(url[1] + url[2], "is a URL", f"write only the domain name{host}")
    if key := re.fullmatch(_KEY_NAME, name):
        domain = f": {key[1]}" if is_ordinary(key[1]) else ""
        _refuse(text, "is the name of a key record", f"write only the signing domain{domain}")
    for pattern, what, hint in _OTHER_THINGS:
        if re.search(pattern, name):
            _refuse(text, what, hint)
    if not name.isascii() or "xn--" in name:
        try:
            name = to_a_labels(name)
        except UnicodeError as error:
            what = f"is not a valid internationalized domain name: {printable(str(error))}"
            _refuse(text, what, "see RFC 5891 for what is valid")
    _check_labels(text, name)
    if "." not in name or name.rpartition(".")[2].isdigit():
        what = "ends in a number" if "." in name else "is a single label"
        _refuse(text, what, "write the full domain name, such as example.com")
    return name


def parse_zone(text: str) -> str:
    """A zone's name, which may be one label, or hold an underscore. Raises UsageError."""
    name = text.lower().removesuffix(".")
    is_number = name.rpartition(".")[2].isdigit()  # of an address
    return name if is_name(name) and not is_number else parse_domain(text)


def parse_selector(text: str) -> str:
    """A selector as written: DNS labels joined by dots (RFC 6376 3.1). Raises UsageError."""
    _check_length(text, text)
    if "_domainkey" in text.lower():
        _refuse(text, "contains _domainkey", "write only the part before ._domainkey")
    if not _SELECTOR.fullmatch(text):
        _check_labels(text, text)
    return text


def selector_template(
    template: str, now: datetime, *, option: str = "--assign-selector"
) -> Callable[[str], str]:
    """A function that gives the selector for a signing domain.

    In `template`, %Y and the like stand for `now`, and {domain} for a hash of the domain. Raises
    UsageError, which names the `option`, if it does not give a selector.
    """
    allowed = template.replace(_PLACEHOLDER, "")
    wrong = re.search(rf"[^\0-\x7f]|%(?![{_DIRECTIVES}]).?|[{{}}]", allowed)
    if wrong or not template:
        what = f"{quoted(template)} contains {quoted(wrong[0])}" if wrong else ""
        raise UsageError(f"in {option}: {what or 'the template is empty'}", hint=_TEMPLATE_HINT)
    text = now.strftime(template)

    def selector_for(sign_domain: str) -> str:
        import hashlib  # few commands need it, and it loads OpenSSL

        digest = hashlib.sha256(sign_domain.encode("utf-8", "surrogatepass")).hexdigest()
        return text.replace(_PLACEHOLDER, digest[:8])  # hexadecimal digits

    with naming(option):
        parse_selector(selector_for("example.com"))
    return selector_for


def is_ordinary(name: str) -> bool:
    """Whether `name` is a signing domain that is written as `parse_domain` returns it."""
    return _ORDINARY.fullmatch(name) is not None


def _check_length(text: str, name: str) -> None:
    if len(name) > MAX_NAME:
        hint = f"a DNS name has at most {MAX_NAME} octets"
        _refuse(text, f"is longer than {MAX_NAME} octets", hint)


def _check_labels(text: str, name: str) -> None:
    for label in name.split("."):
        if not label:
            _refuse(text, "has an empty label", "remove the extra dot")
        if len(label) > MAX_LABEL:
            hint = f"a label has at most {MAX_LABEL} octets"
            _refuse(text, f"has a label of {len(label)} octets", hint)
        if bad := re.search(r"[^A-Za-z0-9-]", label):
            _refuse(text, f"contains {quoted(bad[0])}", "use only letters, digits and hyphens")
        if label[0] == "-" or label[-1] == "-":
            hint = "a label cannot start or end with a hyphen"
            _refuse(text, "has a label with a hyphen at its start or end", hint)


def _refuse(text: str, what: str, hint: str) -> NoReturn:
    raise UsageError(f"{quoted(text)} {what}", hint=hint)


def zone_finder(zones: Iterable[str]) -> Callable[[str], str | None]:
    """What finds the longest of `zones` that contains a name, or None; as fast for many zones."""
    by_name = {zone.lower(): zone for zone in zones}

    def find(fqdn: str) -> str | None:
        return next((by_name[name] for name in parents(fqdn) if name in by_name), None)

    return find


def outside_zones(names: Sequence[str], zones: Sequence[str]) -> UsageError:
    """The error that lists `names`, which are outside all of `zones`."""
    which = f"the zone {zones[0]}" if len(zones) == 1 else "any of the zones given"
    hint = "select only the domains of that zone, or name the other zones too"
    return UsageError(f"not in {which}: {listed([*map(printable, names)])}", hint=hint)


def parents(fqdn: str) -> Iterator[str]:
    """`fqdn` in lower case, and each name above it but the root."""
    name = fqdn.lower()
    while name:
        yield name
        name = name.partition(".")[2]


def is_glob(name: str) -> bool:
    """Whether it is a pattern for names, as fnmatch has them."""
    return not frozenset("*?[").isdisjoint(name)


def first_match(entries: Iterable[tuple[Sequence[str], _T]]) -> Callable[[str], _T | None]:
    """A function that finds the first entry for a signing domain, fast also among many.

    Before each entry stand its domains: names or globs, in lower case, as A-labels.
    """
    compiled = []
    for domains, entry in entries:
        globs = "|".join(map(fnmatch.translate, filter(is_glob, domains)))
        compiled.append((frozenset(domains), re.compile(globs or r"(?!)"), entry))

    def find(sign_domain: str) -> _T | None:
        for names, globs, entry in compiled:
            if sign_domain in names or globs.match(sign_domain):
                return entry
        return None

    return find


def is_file(word: str) -> bool:
    """Whether a word of a selection is the name of a spec file; a URL is none."""
    is_named_so = word == "-" or word.lower().endswith((".yaml", ".yml", ".json", ".csv", ".txt"))
    return "://" not in word and (is_named_so or "/" in word or os.sep in word)


class Selection:
    """The registrations with one of these names, or whose domain a glob matches.

    A name is a signing domain or a key. Without names (None), everything is selected.
    """

    def __init__(
        self, names: Iterable[str | RegistrationKey] | None = None, globs: Iterable[str] = ()
    ) -> None:
        self._is_all = names is None
        self._globs = {glob: re.compile(fnmatch.translate(glob.lower())) for glob in globs}
        # What `unmatched` calls each name.
        self._names: dict[str | RegistrationKey, str] = {}
        for name in names or ():
            if isinstance(name, str):
                self._names[name] = name
            else:  # as it was typed, in any case
                self._names[key_of(*name)] = f"{name.sign_domain} (selector {name.selector})"
        self._matched: set[str] = set()

    @property
    def is_empty(self) -> bool:
        """Whether it selects nothing, whatever is registered: no name and no glob."""
        return not (self._is_all or self._globs or self._names)

    @property
    def domains(self) -> list[str]:
        """The signing domains that it names, registered or not."""
        names = (name if isinstance(name, str) else name.sign_domain for name in self._names)
        return list(dict.fromkeys(names))

    def pick(self, keys: Iterable[_NamedT]) -> Iterator[_NamedT]:
        """The registrations, intents or keys that are selected."""
        return iter(keys) if self._is_all else filter(self._has, keys)

    def unmatched(self) -> list[str]:
        """The words that have selected nothing, once `pick` is exhausted."""
        return [word for word in (*self._globs, *self._names.values()) if word not in self._matched]

    def _has(self, item: Named) -> bool:
        domain = item.sign_domain
        words = [word for word, glob in self._globs.items() if glob.match(domain)]
        keys = (domain, key_of(domain, item.selector))
        words += [self._names[key] for key in keys if key in self._names]
        self._matched.update(words)
        return bool(words)
