"""Compare the TXT values at a record's name with the value that was registered.

A fault is what a verifier refuses: OpenDKIM or dkimpy does, or RFC 6376 says that it must. Both are
more tolerant than the grammar; what they accept `differs` at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dkimctl.dkim import KeyRecordError, is_tag_name, padded, parse_public_key, parse_tag_list
from dkimctl.dns.verdicts import ACCEPTED, Finding, Verdict
from dkimctl.text.escaping import few, quoted

# The values of absent tags (RFC 6376 section 3.6.1, RFC 4871 for g=). Verifiers ignore notes (n=)
# and unknown tags.
_DEFAULTS = {"k": "rsa", "g": "*", "h": None, "s": "*", "t": ""}
_LIST_TAGS = frozenset("hst")
_SERVICES = frozenset(("*", "email"))  # dkimpy refuses lists
_FOLDS = str.maketrans("\t\r\n", "   ")  # white space may fold a record (RFC 6376 section 2.8)
_MAX_READ = 1024  # characters; OpenDKIM ignores the rest


def compare_values(expected: str, values: Sequence[str]) -> Finding:
    """Compare the TXT values at a record's name with the registered value, a sound key record."""
    if not values:
        return Finding(Verdict.MISSING)
    if len(values) > 1:
        is_ours = any(_compare(expected, value).verdict in ACCEPTED for value in values)
        ours = f"{'one' if is_ours else 'none'} of them ours"
        return Finding(Verdict.DUPLICATE, f"{len(values)} TXT records, {ours}; only one is allowed")
    return _compare(expected, values[0])


def _compare(expected: str, value: str) -> Finding:
    if value == expected:
        return Finding(Verdict.PUBLISHED)
    unfolded = value.translate(_FOLDS)
    finding = _compare_unfolded(expected, unfolded)
    if finding.verdict in ACCEPTED and len(unfolded) > _MAX_READ:
        beginning = _compare_unfolded(expected, unfolded[:_MAX_READ])
        if beginning.verdict not in ACCEPTED:
            reason = f"some verifiers read only its first {_MAX_READ} characters, and refuse those"
            return Finding(Verdict.MALFORMED, reason)
    return finding


def _compare_unfolded(expected: str, value: str) -> Finding:
    if not value.strip():
        return Finding(Verdict.MALFORMED, "the TXT record there is empty")
    try:
        return _compare_tags(parse_tag_list(expected), _read_tags(value))
    except KeyRecordError as error:
        reason = _stray_characters(value) or str(error)
        return _truncation(expected, value) or Finding(Verdict.MALFORMED, reason)


def _read_tags(value: str) -> dict[str, str]:
    """The tags of a DKIM key record. Raises KeyRecordError."""
    tags = parse_tag_list(value, tolerant=True)
    if tags.get("v", "DKIM1") != "DKIM1":
        raise KeyRecordError("it is not a DKIM key record")
    if "p" not in tags:
        raise KeyRecordError("it has no tag p=")
    if not (value.isascii() and value.isprintable()):
        raise KeyRecordError("the value holds characters other than printable ASCII")
    return tags


def _stray_characters(value: str) -> str:
    """The fault that copying, or a DNS panel, has left in a value; or ""."""
    for mark, name in (('"', "quotation marks"), ("\\", "backslashes")):
        if mark in value:
            return f"the value itself holds {name}"
    return ""


def _compare_tags(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Finding:
    """Raises KeyRecordError if the key cannot be read."""
    registered, published = _without_spaces(ours["p"]), _without_spaces(theirs["p"])
    if not published:
        return Finding(Verdict.REVOKED, "its key is empty (p=), which revokes it")
    different = [name for name in _DEFAULTS if _meaning(ours, name) != _meaning(theirs, name)]
    refused = [why for name in different if (why := _refusal(name, theirs))]
    if "k" in different:
        return Finding(Verdict.MISMATCH, "; ".join(refused))
    finding = _compare_keys(registered, published)
    if refused and finding.verdict in (*ACCEPTED, Verdict.MISMATCH):
        return Finding(Verdict.MISMATCH, "; ".join(filter(None, (*refused, finding.reason))))
    if finding.verdict not in ACCEPTED:
        return finding
    notes = [*filter(None, [finding.reason]), *_differences(ours, theirs, different)]
    if not notes:
        return finding
    return Finding(Verdict.DIFFERS, f"verifiers accept it, but {'; '.join(notes)}")


def _refusal(name: str, tags: Mapping[str, str]) -> str:
    """Why verifiers refuse the tag, or "" (RFC 6376 sections 3.6.1 and 6.1.2)."""
    if name == "k":
        return f"its key type is k={quoted(tags['k'])}, not rsa"
    if name == "h" and "h" in tags and "sha256" not in _items(tags["h"]):
        return "its h= does not allow sha256, with which mail is signed"
    if name == "s" and "s" in tags and tags["s"] not in _SERVICES:
        return f"some verifiers refuse its s={quoted(tags['s'])}: only email and * are safe"
    return ""


def _differences(
    ours: Mapping[str, str], theirs: Mapping[str, str], different: Sequence[str]
) -> Iterator[str]:
    """What is not as registered, though verifiers accept it."""
    if different:
        yield f"not as registered: {', '.join(f'{name}=' for name in different)}"
    if "t" in different and "y" in _items(theirs.get("t", "")) - _items(ours.get("t", "")):
        yield "t=y is for testing: receivers treat such mail like unsigned mail"
    if "v" in theirs and next(iter(theirs)) != "v":
        yield "v= is not the first tag"
    if names := [quoted(name) for name in theirs if not is_tag_name(name)]:
        yield f"not a valid tag name: {few(names)}"


def _compare_keys(registered: str, published: str) -> Finding:
    """Compare two values of p=, without spaces. Raises KeyRecordError."""
    if published == registered:
        return Finding(Verdict.PUBLISHED)
    if registered.startswith(published):
        return _truncated(len(published), len(registered), "characters of the key")
    sound = padded(published)
    has_more = len(published) > len(sound)  # padding than it needs; less is an error
    key, ours = parse_public_key(sound if has_more else published), parse_public_key(registered)
    if key.der == ours.der and has_more:
        return Finding(Verdict.DIFFERS, "its p= ends in too many equals signs")
    if key.der == ours.der:
        return Finding(Verdict.PUBLISHED)
    if (key.modulus, key.exponent) == (ours.modulus, ours.exponent):
        return Finding(
            Verdict.MALFORMED, "its p= is our key in an encoding that some verifiers cannot read"
        )
    return Finding(Verdict.MISMATCH, f"another key: {key}; registered: {ours}")


def _truncation(expected: str, value: str) -> Finding | None:
    whole, part = _without_spaces(expected), _without_spaces(value)
    if len(part) < len(whole) and whole.startswith(part):
        return _truncated(len(part), len(whole), "characters, without spaces,")
    return None


def _truncated(length: int, whole: int, what: str) -> Finding:
    return Finding(Verdict.TRUNCATED, f"only the first {length} of {whole} {what} are published")


def _meaning(tags: Mapping[str, str], name: str) -> object:
    value = tags.get(name, _DEFAULTS[name])
    return _items(value) if name in _LIST_TAGS and value is not None else value


def _items(value: str) -> frozenset[str]:
    return frozenset(_without_spaces(value).split(":"))


def _without_spaces(text: str) -> str:
    return "".join(text.split())
