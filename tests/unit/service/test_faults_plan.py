"""The fault file: its keys, and every mistake with its place."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dkimctl.errors import InputError, UsageError
from dkimctl.service.faults.kinds import KINDS
from dkimctl.service.faults.plan import Plan, read_plan

DOCUMENTED_KINDS = (
    "drop-before drop-after 429 500-before 500-after 502-before 502-after 503-before 503-after "
    "504-before 504-after slow truncated content-type reordered missing-items item-500"
)


def duration(text: str) -> float:
    if not text.endswith("s"):
        raise UsageError("invalid duration", hint="write 30s")
    return float(text[:-1])


Read = Callable[[str], Plan]
Refused = Callable[[str], list[str]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str) -> Plan:
        path = tmp_path / "faults.yaml"
        path.write_text(text, encoding="utf-8")
        return read_plan(str(path), read_duration=duration)

    return read


@pytest.fixture
def refused(read: Read, tmp_path: Path) -> Refused:
    """The problems of a file, without its directory; each must have a hint."""

    def refused(text: str) -> list[str]:
        with pytest.raises(InputError) as caught:
            read(text)
        assert all(problem.hint for problem in caught.value.problems)
        return [
            str(problem).removeprefix(f"{tmp_path}{os.sep}") for problem in caught.value.problems
        ]

    return refused


def test_a_file_can_have_every_key(read: Read) -> None:
    plan = read(
        "seed: 7\nslow: 2.5s\nretry_after: 1\nfaults:\n  drop-before: 0.01\n  429: 0.5\n  slow: 0\n"
    )
    assert plan == Plan(7, {"drop-before": 0.01, "429": 0.5}, slow=2.5, retry_after=1)


def test_omitted_keys_have_defaults(read: Read) -> None:
    plan = read("faults: {}")
    assert plan == Plan(plan.seed, {}, slow=5.0, retry_after=None)


def test_without_a_seed_a_random_one_is_chosen_that_a_file_can_have(read: Read) -> None:
    seeds = {read("any: 0.1").seed for _ in range(5)}
    assert len(seeds) > 1
    for seed in seeds:
        assert read(f"{{seed: {seed}, any: 0.1}}").seed == seed


def test_the_kinds_are_the_documented_ones() -> None:
    assert " ".join(KINDS) == DOCUMENTED_KINDS


def test_any_is_divided_evenly_between_all_kinds(read: Read) -> None:
    plan = read("any: 0.34")
    assert list(plan.faults) == list(KINDS)
    assert all(math.isclose(share, 0.02) for share in plan.faults.values())


@pytest.mark.parametrize("text", ["0", "0.0", "0.5", "1", "1.0", "0.000000001"])
def test_a_probability_is_a_decimal_number_from_0_to_1(read: Read, text: str) -> None:
    assert read(f"faults: {{slow: {text}}}").faults.get("slow", 0.0) == float(text)


def test_probabilities_may_add_up_to_1_exactly(read: Read) -> None:
    ten = ", ".join(f"{kind}: 0.1" for kind in list(KINDS)[:10])
    assert len(read(f"faults: {{{ten}}}").faults) == 10
    assert len(read("faults: {429: 0.7, slow: 0.2, truncated: 0.1}").faults) == 3


MALFORMED = {
    "": ["1:1: the file is empty"],
    "# nothing\n": ["1:1: the file is empty"],
    "- any\n": ["1:1: a fault file must be a mapping, not a list"],
    "seed: 7\n": ["1:1: a fault file has neither faults nor any"],
    "any: 0.1\nfaults: {}\n": ["2:1: a fault file cannot have both faults and any"],
    "fault: {}\n": [
        '1:1: a fault file has no key "fault"',
        "1:1: a fault file has neither faults nor any",
    ],
    "faults:\n": ["1:8: faults must be a mapping, not a single value"],
    "faults: [slow]\n": ["1:9: faults must be a mapping, not a list"],
    "faults:\n  429-before: 0.1\n  Slow: 0.1\n": [
        '2:3: faults has no key "429-before"',
        '3:3: faults has no key "Slow"',
    ],
    "faults:\n  slow: 0.1\n  slow: 0.2\n": ['3:3: the key "slow" is already on line 2'],
    "faults:\n  slow: 0.6\n  429: 0.400000001\n": ["2:3: the probabilities add up to more than 1"],
    "faults:\n  slow: [0.1]\n": ["2:9: slow must be a single value, not a list"],
    "any: 2\n": ['1:6: any: "2" is not a probability from 0 to 1'],
    "any: 1.1\n": ['1:6: any: "1.1" is not a probability from 0 to 1'],
    "any: -0.1\n": ['1:6: any: "-0.1" is not a probability from 0 to 1'],
    "any: 1e-3\n": ['1:6: any: "1e-3" is not a probability from 0 to 1'],
    "any: .5\n": ['1:6: any: ".5" is not a probability from 0 to 1'],
    "any: 10%\n": ['1:6: any: "10%" is not a probability from 0 to 1'],
    "any: nan\n": ['1:6: any: "nan" is not a probability from 0 to 1'],
    "any: '0.1'\n": ['1:6: any: "0.1" in quotes is not a probability from 0 to 1'],
    "any: ~\n": ["1:6: any has no value"],
    "seed: x\nslow: 2\nretry_after: 1.5\nany: 0.1\n": [
        '1:7: seed: "x" is not a whole number from 0 to 999999999',
        "2:7: slow: invalid duration",
        '3:14: retry_after: "1.5" is not a whole number from 0 to 999999999',
    ],
    "seed: '7'\nretry_after: 1000000000\nany: 0.1\n": [
        '1:7: seed: "7" in quotes is not a whole number from 0 to 999999999',
        '2:14: retry_after: "1000000000" is not a whole number from 0 to 999999999',
    ],
    "seed: &a 7\nany: 0.1\n": ["1:7: YAML anchors (&) are not supported"],
    "any: 0.1\n---\nany: 0.1\n": ["2:1: a second YAML document"],
}


@pytest.mark.parametrize(("text", "problems"), MALFORMED.items(), ids=repr)
def test_every_mistake_is_reported_with_its_place(
    refused: Refused, text: str, problems: list[str]
) -> None:
    assert refused(text) == [f"faults.yaml:{problem}" for problem in problems]


def test_a_misspelt_kind_is_suggested(read: Read) -> None:
    with pytest.raises(InputError) as caught:
        read("faults: {dropbefore: 0.1}")
    assert caught.value.hint == "did you mean drop-before?"


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_plan(str(tmp_path / "none.yaml"), read_duration=duration)
