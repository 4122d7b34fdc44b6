"""The plan of faults, and the strict reader of its file, which reports every problem at once."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from dkimctl.errors import InputError, Problem
from dkimctl.service.faults.kinds import KINDS
from dkimctl.strict_yaml.document import Document
from dkimctl.strict_yaml.nodes import Converter, Node, Scalar, invalid_value
from dkimctl.strict_yaml.source import MAX_CONFIG_BYTES, read_bytes

_WHAT = "a fault file"
_KEYS = ("seed", "slow", "retry_after", "faults", "any")
_EXAMPLE = "write `any: 0.1` for faults in 10% of the requests"
_WHOLE_NUMBER = r"0|[1-9][0-9]{0,8}"
_PROBABILITY = r"0(\.[0-9]{1,9})?|1(\.0{1,9})?"
_SEEDS = 1_000_000  # short enough to type


class Plan(NamedTuple):
    """`faults` maps kinds to probabilities, each from 0 to 1, together at most 1.

    With the same `seed` the same requests get the same faults, counted from the start of the
    service. `slow` and `retry_after` are in seconds; None sends no Retry-After.
    """

    seed: int
    faults: Mapping[str, float]
    slow: float = 5.0
    retry_after: int | None = None


def read_plan(path: str, *, read_duration: Callable[[str], Any]) -> Plan:
    """Read the plan from the file at `path`, or from standard input for `-`.

    `read_duration` parses a text such as `2s` into seconds, or raises UsageError. Without a
    `seed` in the file a random one is chosen. Raises UsageError if the file cannot be read,
    InputError with every problem if it is invalid.
    """
    name = "<stdin>" if path == "-" else path
    with Document(read_bytes(path, largest=MAX_CONFIG_BYTES), name) as document:
        reader = _Reader(document, read_duration)
        root = document.root()
        if root is None:
            raise InputError([Problem(name, 1, 1, "the file is empty", _EXAMPLE)])
        reader.read(root)
    return Plan(**{"seed": secrets.randbelow(_SEEDS), **reader.fields})


class _Reader:
    def __init__(self, document: Document, read_duration: Callable[[str], Any]) -> None:
        self.fields: dict[str, Any] = {}
        self._document = document
        self._readers: Mapping[str, Converter[Any]] = {
            "seed": _whole_number,
            "slow": lambda text, _is_plain: read_duration(text),
            "retry_after": _whole_number,
        }

    def read(self, root: Node) -> None:
        sources = []
        for key, value in self._document.pairs(root, _WHAT):
            if key.value in {"faults", "any"}:
                sources.append(key)
                self._read_faults(key, value)
            elif reader := self._readers.get(key.value):
                self.fields[key.value] = self._document.value(value, key.value, reader)
            else:
                self._document.unknown_key(key, _WHAT, _KEYS)
        if len(sources) > 1:
            self._document.problem(
                sources[1], "a fault file cannot have both faults and any", "remove one"
            )
        elif not sources and self._document.is_mapping(root):
            self._document.problem(root, f"{_WHAT} has neither faults nor any", _EXAMPLE)

    def _read_faults(self, key: Scalar, value: Node) -> None:
        if key.value == "faults":
            self.fields["faults"] = dict(self._probabilities(value))
            # fsum rounds only once: ten times 0.1 is exactly 1.
            if math.fsum(self.fields["faults"].values()) > 1:
                message = "the probabilities add up to more than 1"
                self._document.problem(value, message, "reduce some of them")
        else:
            share = self._document.value(value, key.value, _probability) or 0.0
            self.fields["faults"] = dict.fromkeys(KINDS, share / len(KINDS))

    def _probabilities(self, node: Node) -> Iterator[tuple[str, float]]:
        for kind, value in self._document.pairs(node, "faults"):
            if kind.value not in KINDS:
                self._document.unknown_key(kind, "faults", KINDS)
            elif probability := self._document.value(value, kind.value, _probability):
                yield kind.value, probability


def _whole_number(text: str, is_plain: bool) -> int:
    if is_plain and re.fullmatch(_WHOLE_NUMBER, text):
        return int(text)
    expected = "a whole number from 0 to 999999999"
    raise invalid_value(text, is_plain, expected, "write decimal digits, such as 7")


def _probability(text: str, is_plain: bool) -> float:
    if is_plain and re.fullmatch(_PROBABILITY, text):
        return float(text)
    expected = "a probability from 0 to 1"
    raise invalid_value(text, is_plain, expected, "write a decimal number, such as 0.01")
