"""JSON to models and back (interface section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from dkimctl.models import DnsRecord, DomainSpec, Registration


class _Result(msgspec.Struct):
    code: str | int
    message: str | None = None


class _SettingValues(msgspec.Struct):
    fqdn: str | None = None
    type: str | None = None
    value: str | None = None


class _Item(msgspec.Struct):
    result: _Result
    sign_domain: str
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None
    default: int | None = None
    enable: bool | None = None
    setting_values: _SettingValues | None = None
    regist_date: str | None = None


class _Body(msgspec.Struct):
    items: list[msgspec.Raw]
    count: int | None = None
    total: int | None = None


class _TokenBody(msgspec.Struct):
    access_token: str
    expires_in: object = None


class _ErrorBody(msgspec.Struct):
    """Any error body: {error} (7.1), {message} (7.2, 7.3), or what gateways write."""

    error: object = None
    message: object = None
    gateway_message: object = msgspec.field(name="Message", default=None)


_item_decoder = msgspec.json.Decoder(_Item)
_body_decoder = msgspec.json.Decoder(_Body)


class DecodeError(ValueError):
    """An answer has not the documented shape; the text names the JSON path."""


class Reply(NamedTuple):
    """An answer to a registration request: its usable items, and what is wrong with others.

    `faults` are sentences; `total` is the service's own count of results, where given.
    """

    items: tuple[Registration, ...]
    faults: tuple[str, ...] = ()
    total: int | None = None


def encode_registration(specs: Sequence[DomainSpec]) -> bytes:
    """The body of a registration request (interface 2.3): only what the entries state."""
    fields = ("sign_domain", "selector", "key_len", "start_date", "default", "enable")
    entries: list[dict[str, Any]] = [
        {name: value for name in fields if (value := getattr(spec, name)) is not None}
        for spec in specs
    ]
    return msgspec.json.encode({"domains": entries})


def decode_reply(body: bytes) -> Reply:
    """Decode shape 2.4. Items are decoded one by one: a bad one is a fault and spoils itself alone.

    Raises DecodeError when the body as a whole has another shape.
    """
    try:
        decoded = _body_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(_explained(error, "")) from None
    items, faults = [], []
    for index, raw in enumerate(decoded.items):
        try:
            items.append(_to_registration(_item_decoder.decode(raw)))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            faults.append(_explained(error, f".items[{index}]"))
    if decoded.total is not None and decoded.total > len(decoded.items):
        faults.append(
            f"the service found {decoded.total} results and returned {len(decoded.items)} of them"
        )
    return Reply(tuple(items), tuple(faults), decoded.total)


def decode_token(body: bytes) -> tuple[str, float | None]:
    """The access token of an answer (interface 2.1) and its lifetime in seconds, where given.

    Raises DecodeError for another shape, never quoting the body.
    """
    try:
        decoded = msgspec.json.decode(body, type=_TokenBody)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(_explained(error, "")) from None
    lifetime = decoded.expires_in
    if isinstance(lifetime, bool) or not isinstance(lifetime, int | float):
        return decoded.access_token, None
    return decoded.access_token, float(lifetime) if 0 < lifetime < math.inf else None


def decode_error(body: bytes) -> str:
    """What an error body says ({error} or {message}); "" when it says nothing readable."""
    try:
        decoded = msgspec.json.decode(body, type=_ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    texts = (decoded.error, decoded.message, decoded.gateway_message)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _to_registration(item: _Item) -> Registration:
    values = item.setting_values
    record = None
    if values is not None and values.value is not None:
        fqdn = (values.fqdn or "").removesuffix(".")
        record = DnsRecord(fqdn, values.type or "", values.value)
    domain = item.sign_domain.removesuffix(".").lower()
    return Registration(
        sign_domain=domain,
        selector=item.selector or _selector_of(record, domain),
        key_len=item.key_len,
        start_date=item.start_date,
        default=item.default,
        enable=item.enable,
        record=record,
        regist_date=item.regist_date,
        code=str(item.result.code),
        message=item.result.message,
    )


def _selector_of(record: DnsRecord | None, domain: str) -> str | None:
    """The selector that a record's name tells, for an item that leaves it out."""
    suffix = f"._domainkey.{domain}"
    if record is None or not record.fqdn.lower().endswith(suffix):
        return None
    return record.fqdn[: -len(suffix)] or None


def _explained(error: Exception, path: str) -> str:
    """msgspec's message, with the JSON path as seen from the whole body."""
    text = str(error)
    if "`$" in text:
        return text.replace("`$", f"`${path}")
    return f"{text} - at `${path}`"
