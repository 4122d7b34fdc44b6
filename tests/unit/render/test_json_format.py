"""JSON and JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.models.registration import DnsRecord, Outcome, Registration, Result
from dkimctl.render.renderer import Format
from rendering import render_text


def parsed(*results: Result) -> Any:
    return json.loads(render_text(Format.JSON, results))


def test_an_item_has_the_shape_of_the_service(result: Callable[..., Result]) -> None:
    created = result()
    assert parsed(created) == {
        "items": [
            {
                "result": {"code": "201", "message": "created"},
                "sign_domain": "example.com",
                "selector": "s1",
                "key_len": 2048,
                "start_date": "2026-03-01T00:00+09:00",
                "default": 0,
                "enable": True,
                "setting_values": {
                    "fqdn": "s1._domainkey.example.com",
                    "type": "TXT",
                    "value": created.registration.record.value,
                },
                "regist_date": "2026-02-01T10:00:00+09:00",
                "outcome": "created",
            }
        ],
        "count": 1,
        "total": 1,
    }


def test_fields_that_the_service_omitted_are_omitted() -> None:
    taken = Result(Registration("example.com", "s1", code="409"), Outcome.TAKEN)
    assert parsed(taken)["items"] == [
        {
            "result": {"code": "409"},
            "sign_domain": "example.com",
            "selector": "s1",
            "outcome": "taken",
        }
    ]


def test_without_an_answer_result_is_null() -> None:
    unknown = Result(Registration("example.com"), Outcome.UNKNOWN, "no answer came")
    assert parsed(unknown)["items"] == [
        {"result": None, "sign_domain": "example.com", "outcome": "unknown"}
    ]


def test_an_answer_with_an_empty_code_is_not_null() -> None:
    failed = Result(Registration("example.com", "s1", code="", message="?"), Outcome.FAILED)
    (item,) = parsed(failed)["items"]
    assert item["result"] == {"code": "", "message": "?"}


def test_without_results_the_list_is_empty() -> None:
    assert parsed() == {"items": [], "count": 0, "total": 0}


def test_every_outcome_has_an_item(every_outcome: list[Result]) -> None:
    document = parsed(*every_outcome)
    assert [item["outcome"] for item in document["items"]] == list(Outcome)
    assert document["count"] == document["total"] == len(Outcome)


def test_jsonl_has_the_same_items_one_on_each_line(every_outcome: list[Result]) -> None:
    lines = render_text(Format.JSONL, every_outcome).splitlines()
    assert [json.loads(line) for line in lines] == parsed(*every_outcome)["items"]


@pytest.mark.parametrize("fmt", [Format.JSON, Format.JSONL])
@given(text=st.text(st.characters()))
def test_any_text_is_read_back_and_output_is_printable_ascii(
    result: Callable[..., Result], fmt: Format, text: str
) -> None:
    record = DnsRecord(text, text, text)
    [*lines] = render_text(fmt, [result(message=text, record=record)]).split("\n")
    assert all(char.isascii() and char.isprintable() for line in lines for char in line)
    item = json.loads(lines[1] if fmt is Format.JSON else lines[0])
    assert item["result"]["message"] == text
    assert item["setting_values"] == {"fqdn": text, "type": text, "value": text}
