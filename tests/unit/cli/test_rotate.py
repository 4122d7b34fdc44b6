"""Specs as YAML, read back by the reader of `register`, and by PyYAML."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.cli.commands.rotate import render_spec_yaml
from dkimctl.errors import InputError
from dkimctl.models import DomainSpec
from dkimctl.specs.entries import parse_start_date
from spec_files import load_specs

ODD = ("on", "No", "y", "null", "NULL", "0123", "1e3", "20260101", "0x1F", "1-2", "12", "e3",
       "s-1", "a.b", "1.5", "1.e3", "2026-01-01", "true", "nan", "inf")  # fmt: skip
LABELS = st.sampled_from(ODD) | st.from_regex(
    r"[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?", fullmatch=True
)
DOMAINS = st.sampled_from(
    ("example.com", "on.example", "1e3.example", "20260101.e3", "1.e3", "0x.1f.no", "null.no",
     "xn--bcher-kva.example", "xn--fiqs8s.xn--55qx5d", "-".join("abc") + ".example")
)  # fmt: skip
SPECS = st.lists(
    st.builds(
        DomainSpec,
        DOMAINS,
        st.lists(LABELS, min_size=1, max_size=3).map(".".join),
        st.none() | st.sampled_from((1024, 2048)),
        st.none() | st.just("2026-11-24T15:05+00:00").map(parse_start_date),
        st.none() | st.integers(0, 999_999_999),
        st.none() | st.booleans(),
        st.none() | LABELS | st.just("k_1"),
        st.just(()),
    ).filter(lambda spec: (spec.replaces or "").lower() != spec.selector.lower()),
    max_size=5,
    unique_by=lambda spec: (spec.sign_domain, spec.selector.lower()),
)


def text_of(specs) -> str:
    return "".join(render_spec_yaml(specs, "what it is"))


@given(SPECS)
def test_register_reads_the_same_specs_back(specs):
    text = text_of(specs)
    assert text.startswith("# what it is\n")
    assert load_specs(text.encode(), "x") == specs


@pytest.mark.parametrize("field", ["sign_domain", "selector", "start_date", "replaces"])
@given(
    text=st.text(max_size=40)
    | st.sampled_from(
        ("a\n- b.example", 'a"\n- b.example', "a: {", "[", "&a", "*a", "!!x", "a #", "# a", "- b",
         "a.example\r- b.example", "a\u2028- b.example", "\ud800", "\x85", "\ufeff", "|", ">")
    )
)  # fmt: skip
def test_no_text_starts_a_second_entry(field, text):
    written = text_of([DomainSpec("a.example", "s1")._replace(**{field: text})])
    assert written.isascii()
    assert written.count("\n- ") == 1
    with contextlib.suppress(InputError):
        assert len(load_specs(written.encode(), "x")) == 1
