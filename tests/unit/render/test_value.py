from __future__ import annotations

from collections.abc import Callable

from dkimctl.models.registration import DnsRecord, Outcome, Result
from dkimctl.render.formats import open_renderer
from dkimctl.render.renderer import Format, render_all


def values_of(*results: Result) -> str:
    return "".join(render_all(open_renderer(Format.VALUE), results))


def test_one_record_is_its_bare_value(result: Callable[..., Result]) -> None:
    only = result()
    assert values_of(only) == f"{only.registration.record.value}\n"


def test_a_record_among_others_that_have_none_is_alone(result: Callable[..., Result]) -> None:
    only = result()
    none = result(Outcome.TAKEN, record=None)
    unusable = result(Outcome.UNUSABLE)
    assert values_of(none, only, unusable) == f"{only.registration.record.value}\n"


def test_several_records_have_their_names_before_them(result: Callable[..., Result]) -> None:
    results = [result(sign_domain=f"{name}.example") for name in "abc"]
    lines = values_of(*results).splitlines()
    assert [line.split("\t") for line in lines] == [
        [r.registration.record.fqdn, r.registration.record.value] for r in results
    ]


def test_no_record_is_nothing(result: Callable[..., Result]) -> None:
    assert values_of() == ""
    assert values_of(result(Outcome.TAKEN, record=None)) == ""


def test_no_value_breaks_its_line(result: Callable[..., Result]) -> None:
    hostile = result(record=DnsRecord("a\tb", "TXT", "x\ny\x1b[2J"))
    assert values_of(hostile) == "x\\x0ay\\x1b[2J\n"
    assert values_of(hostile, hostile).splitlines()[0] == "a\\x09b\tx\\x0ay\\x1b[2J"
