"""The JSON of requests and responses, to models and back (interface 2)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dkimctl.models import TOKEN_LIFETIME, DnsRecord, DomainSpec, Outcome, Registration, Secret

_Number = int | float  # a JSON number may be written 1024.0
_BEARER = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 section 2.1
_MAX_TOKEN = 8192  # characters; servers accept no longer header fields
_MAX_ITEMS = 10_000  # of one response: no request has more
_MAX_FAULTS = 1_000  # of a saved result: a file with more is something else
_MAX_INTEGER = 2**53  # what every JSON parser reads exactly (RFC 8259 section 6)


class _Result(msgspec.Struct, gc=False):
    code: str | _Number
    message: str | None = None


class _SettingValues(msgspec.Struct, gc=False):
    fqdn: str | None = None
    type: str | None = None
    value: str | None = None


class _Item(msgspec.Struct, gc=False):
    result: _Result | None  # null only in our own output: the service did not answer
    sign_domain: str
    selector: str | None = None
    key_len: _Number | None = None
    start_date: str | None = None
    default: _Number | None = None
    enable: bool | None = None
    setting_values: _SettingValues | None = None
    regist_date: str | None = None
    outcome: object = None  # only in our own output


class _Body(msgspec.Struct):
    items: list[msgspec.Raw]
    total: object = None


class _TokenBody(msgspec.Struct):
    access_token: str
    expires_in: object = None


class _ErrorBody(msgspec.Struct):
    """Any error body: {error} (7.1), {message} (7.2, 7.3), or a gateway's {Message}."""

    error: object = None
    message: object = None
    gateway_message: object = msgspec.field(name="Message", default=None)


_NOT_AS_DOCUMENTED = (msgspec.MsgspecError, UnicodeError, RecursionError)
_item_decoder = msgspec.json.Decoder(_Item)
_body_decoder = msgspec.json.Decoder(_Body)


class DecodeError(ValueError):
    """A response does not have the documented shape; the text names the JSON path."""


class Reply(NamedTuple):
    """A response: usable items, a sentence for each problem, and the items retired when saved."""

    items: tuple[Registration, ...]
    faults: tuple[str, ...] = ()
    retired: frozenset[Registration] = frozenset()


def encode_registration(specs: Sequence[DomainSpec]) -> bytes:
    """The body of a registration request (interface 2.3), with only the fields that are set."""
    names = DomainSpec._fields[:-2]  # without what is never sent
    stated = (zip(names, spec[:-2], strict=True) for spec in specs)
    entries = [{name: value for name, value in pairs if value is not None} for pairs in stated]
    return msgspec.json.encode({"domains": entries})


def decode_reply(body: bytes, *, is_saved: bool = False) -> Reply:
    """Decode shape 2.4, item by item: a malformed item becomes a fault and affects no other.

    With `is_saved`, `body` may be the output of `--format json`, whose items may have no result.
    Raises DecodeError if the body as a whole has another shape.
    """
    decoded = _decode_body(body, is_saved)
    if len(decoded.items) > _MAX_ITEMS and not is_saved:
        raise DecodeError(f".items has {len(decoded.items)} entries, far more than were requested")
    items, faults, retired = [], [], set()
    for index, raw in enumerate(decoded.items):
        try:
            item = _item_decoder.decode(raw)
            if item.result is None and not is_saved:
                raise msgspec.ValidationError("Expected `object`, got `null` - at `$.result`")
            items.append(_to_registration(item))
            if is_saved and item.outcome == Outcome.RETIRED:
                retired.add(items[-1])
        except _NOT_AS_DOCUMENTED as error:
            faults.append(_describe(error, f".items[{index}]"))
            if is_saved and len(faults) > _MAX_FAULTS:
                message = f"more than {_MAX_FAULTS:,} items cannot be read: {faults[0]}"
                raise DecodeError(message) from None
    total = decoded.total
    if isinstance(total, int | float) and total > len(decoded.items):
        found = f"the service found {total} results"
        faults.append(f"{found} and returned {len(decoded.items)} of them")
    return Reply(tuple(items), tuple(faults), frozenset(retired))


def decode_token(body: bytes) -> tuple[Secret, float | None]:
    """The access token of a response (interface 2.1), and its lifetime in seconds if stated.

    Raises DecodeError, which never quotes the body, for another shape or a token that no header
    can carry (RFC 6750 section 2.1).
    """
    try:
        decoded = msgspec.json.decode(body, type=_TokenBody)
    except _NOT_AS_DOCUMENTED as error:
        raise DecodeError(_describe(error, "")) from None
    if len(decoded.access_token) > _MAX_TOKEN or not _BEARER.fullmatch(decoded.access_token):
        raise DecodeError("access_token is not a bearer token")
    token, lifetime = Secret(decoded.access_token), decoded.expires_in
    if isinstance(lifetime, bool) or not isinstance(lifetime, int | float):
        return token, None
    return token, float(min(lifetime, TOKEN_LIFETIME)) if lifetime > 0 else None


def decode_error(body: bytes) -> str:
    """The message of an error body ({error} or {message}), or "" if it has none."""
    try:
        decoded = msgspec.json.decode(body, type=_ErrorBody)
    except _NOT_AS_DOCUMENTED:
        return ""
    texts = (decoded.error, decoded.message, decoded.gateway_message)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _decode_body(body: bytes, is_saved: bool) -> _Body:
    try:
        return _body_decoder.decode(body)
    except _NOT_AS_DOCUMENTED as error:
        problem = error
    # msgspec rejects the whole body for one escaped lone surrogate, which JSON allows.
    try:
        # Files may be in UTF-16. In a response, no secret would have been redacted in it.
        text = body if is_saved else body.decode("utf-8-sig", "surrogatepass")
        repaired = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
        return _body_decoder.decode(repaired)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise DecodeError(_describe(problem, "")) from None


def _to_registration(item: _Item) -> Registration:
    values = item.setting_values
    record = None
    if values is not None and values.value is not None:
        fqdn = (values.fqdn or "").removesuffix(".")
        record = DnsRecord(fqdn, values.type or "", values.value)
    domain, selector = item.sign_domain.removesuffix(".").lower(), item.selector
    suffix = f"._domainkey.{domain}"
    if not selector and record is not None and record.fqdn.lower().endswith(suffix):
        selector = record.fqdn[: -len(suffix)]  # that of its record, for an item that omits it
    code = None if item.result is None else item.result.code
    return Registration(
        domain,
        selector or None,
        _integer("key_len", item.key_len),
        item.start_date,
        _integer("default", item.default),
        item.enable,
        record,
        item.regist_date,
        code if code is None or isinstance(code, str) else str(_integer("result.code", code)),
        None if item.result is None else item.result.message,
    )


def _integer(name: str, number: float | None) -> int | None:
    if number is None or (type(number) is int and abs(number) <= _MAX_INTEGER):
        return number
    if number != int(number) or abs(number) > _MAX_INTEGER:
        raise msgspec.ValidationError(f"Expected an integer in range - at `$.{name}`")
    return int(number)


def _describe(error: Exception, path: str) -> str:
    """msgspec's message, with the JSON path from the root of the body."""
    text = str(error)
    return text.replace("`$", f"`${path}") if "`$" in text else f"{text} - at `${path}`"
