"""The bare TXT value."""

from __future__ import annotations

from collections.abc import Callable

from dkimctl.models.registration import DnsRecord, Outcome, Result
from dkimctl.render.renderer import Format
from rendering import render_text


def values_of(*results: Result) -> str:
    return render_text(Format.VALUE, results)


def test_one_record_is_a_bare_value(result: Callable[..., Result]) -> None:
    only = result()
    assert values_of(only) == f"{only.registration.record.value}\n"


def test_results_without_a_publishable_record_do_not_count(result: Callable[..., Result]) -> None:
    only = result()
    none = result(Outcome.TAKEN, record=None)
    unusable = result(Outcome.UNUSABLE)
    assert values_of(none, only, unusable) == f"{only.registration.record.value}\n"


def test_each_of_several_values_follows_its_name(
    result: Callable[..., Result],
) -> None:
    results = [result(sign_domain=f"{name}.example") for name in "abc"]
    lines = values_of(*results).splitlines()
    assert [line.split("\t") for line in lines] == [
        [r.registration.record.fqdn, r.registration.record.value] for r in results
    ]


def test_without_records_there_is_no_output(result: Callable[..., Result]) -> None:
    assert values_of() == ""
    assert values_of(result(Outcome.TAKEN, record=None)) == ""


def test_control_characters_are_escaped(result: Callable[..., Result]) -> None:
    hostile = result(record=DnsRecord("a\tb", "TXT", "x\ny\x1b[2J"))
    assert values_of(hostile) == "x\\x0ay\\x1b[2J\n"
    assert values_of(hostile, hostile).splitlines()[0] == "a\\x09b\tx\\x0ay\\x1b[2J"
