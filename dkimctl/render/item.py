"""One result as one line of JSON, in the service's own response shape (interface 2.4)."""

from __future__ import annotations

import json

import msgspec

from dkimctl.models.registration import DnsRecord, Registration, Result


class _Answer(msgspec.Struct, omit_defaults=True, gc=False):
    code: str
    message: str | None = None


class _SettingValues(msgspec.Struct, gc=False):
    fqdn: str
    type: str
    value: str


class _Item(msgspec.Struct, omit_defaults=True, gc=False):
    """What the service left out is left out; `result` is null where no answer came."""

    result: _Answer | None
    sign_domain: str
    selector: str | None = None
    key_len: int | None = None
    start_date: str | None = None
    default: int | None = None
    enable: bool | None = None
    setting_values: _SettingValues | None = None
    regist_date: str | None = None
    outcome: str = ""


_encoder = msgspec.json.Encoder()


def item_line(result: Result) -> str:
    """`result` as a JSON object on one line of printable ASCII."""
    registration = result.registration
    item = _Item(
        _answer(registration),
        registration.sign_domain,
        registration.selector,
        registration.key_len,
        registration.start_date,
        registration.default,
        registration.enable,
        _setting_values(registration.record),
        registration.regist_date,
        result.outcome,
    )
    return json_line(item)


def json_line(item: object) -> str:
    """What msgspec makes of `item`, as one line of printable ASCII."""
    try:
        line = _encoder.encode(item)
        if line.isascii() and b"\x7f" not in line:
            return line.decode()
    except UnicodeEncodeError:  # half of a surrogate pair
        pass
    # DEL is ASCII and needs no escape in JSON, but terminals act on it.
    plain = json.dumps(msgspec.to_builtins(item), separators=(",", ":"))
    return plain.replace("\x7f", "\\u007f")


def _answer(registration: Registration) -> _Answer | None:
    if registration.code is None:
        return None
    return _Answer(registration.code, registration.message)


def _setting_values(record: DnsRecord | None) -> _SettingValues | None:
    return None if record is None else _SettingValues(record.fqdn, record.type, record.value)
