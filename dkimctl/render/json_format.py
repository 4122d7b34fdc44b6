"""JSON and JSON Lines; a result has the shape of the service's own response (interface 2.4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from dkimctl.models.registration import DnsRecord, Registration, Result
from dkimctl.render.renderer import ItemT, Renderer


class JsonRenderer(Renderer[ItemT]):
    """One object: `items`, one on each line, then their number under each key in `counted_as`."""

    def __init__(self, line: Callable[[ItemT], str], counted_as: Sequence[str]) -> None:
        self._line = line
        self._counted_as = counted_as
        self._count = 0

    def begin(self) -> str:
        return '{"items": ['

    def add(self, item: ItemT) -> str:
        self._count += 1
        return f"{',' if self._count > 1 else ''}\n{self._line(item)}"

    def end(self) -> Iterator[str]:
        yield "\n]"
        for key in self._counted_as:
            yield f', "{key}": {self._count}'
        yield "}\n"


class JsonlRenderer(Renderer[ItemT]):
    """One item on each line."""

    def __init__(self, line: Callable[[ItemT], str]) -> None:
        self._line = line

    def add(self, item: ItemT) -> str:
        return f"{self._line(item)}\n"


class _Answer(msgspec.Struct, omit_defaults=True, gc=False):
    code: str
    message: str | None = None


class _SettingValues(msgspec.Struct, gc=False):
    fqdn: str
    type: str
    value: str


class _Item(msgspec.Struct, omit_defaults=True, gc=False):
    """Fields that the service omitted are omitted; `result` is null without an answer."""

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


def result_line(result: Result) -> str:
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
    """`item`, which msgspec can encode, as one line of printable ASCII."""
    try:
        line = _encoder.encode(item)
        if line.isascii() and b"\x7f" not in line:
            return line.decode()
    except UnicodeEncodeError:  # a lone surrogate
        pass
    # JSON does not escape DEL, but terminals act on it.
    plain = json.dumps(msgspec.to_builtins(item), separators=(",", ":"))
    return plain.replace("\x7f", "\\u007f")


def _answer(registration: Registration) -> _Answer | None:
    if registration.code is None:
        return None
    return _Answer(registration.code, registration.message)


def _setting_values(record: DnsRecord | None) -> _SettingValues | None:
    return None if record is None else _SettingValues(record.fqdn, record.type, record.value)
