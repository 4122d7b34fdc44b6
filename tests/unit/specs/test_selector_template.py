"""Selectors from a template (--assign-selector)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.errors import UsageError
from dkimctl.models.registration import DomainSpec
from dkimctl.specs.names import SelectorTemplate, parse_domain

NOW = datetime(2026, 11, 21, 15, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("template", "selector"),
    [
        ("s%Y%m%d", "s20261121"),
        ("s%y%m", "s2611"),
        ("k%j-%H%M%S", "k325-150405"),
        ("w%G.%V", "w2026.47"),
        ("s{domain}", "sa379a6f6"),
        ("s%Y-{domain}", "s2026-a379a6f6"),
        ("mail", "mail"),
    ],
)
def test_selector_from_template(template, selector):
    spec = DomainSpec("example.com", key_len=2048)
    assert SelectorTemplate(template, NOW).assign(spec) == spec._replace(selector=selector)


@pytest.mark.parametrize(
    ("template", "what"),
    [
        ("s%", '"%"'),
        ("s%-d", "%-"),
        ("s%A", "%A"),
        ("s%%", "%%"),
        ("s{sign_domain}", "brace"),
        ("s{domain", "brace"),
        ("", "empty"),
        ("s_%Y", "_"),
        ("s %Y", '" "'),
        ("a..b", "empty label"),
        ("-%Y", "hyphen"),
        ("x" * 64, "64 octets"),
        ("sé%Y", "é"),
        ("s%Y\n", "\\x0a"),
        ("s._domainkey", "_domainkey"),
    ],
)
def test_invalid_templates_are_refused_with_the_reason(template, what):
    with pytest.raises(UsageError) as caught:
        SelectorTemplate(template, NOW)
    assert "--assign-selector" in caught.value.message
    assert what in caught.value.message
    assert caught.value.hint


def test_errors_name_the_option():
    with pytest.raises(UsageError, match="in --selector: the template is empty"):
        SelectorTemplate("", NOW, option="--selector")
    long = parse_domain(".".join(["a" * 60] * 3 + ["b" * 50]))
    with pytest.raises(UsageError, match="in --selector: SELECTOR"):
        SelectorTemplate("s%Y%m%d-01", NOW, option="--selector").check([DomainSpec(long)])


def test_the_hash_differs_between_domains():
    template = SelectorTemplate("s{domain}", NOW)
    domains = [f"d{number}.example" for number in range(1000)]
    assert len({template.assign(DomainSpec(domain)).selector for domain in domains}) == 1000


def test_all_domains_with_too_long_names_are_listed():
    long = parse_domain(".".join(["a" * 60] * 3 + ["b" * 50]))
    specs = [DomainSpec(long), DomainSpec("example.com"), DomainSpec(long, "s1")]
    SelectorTemplate("s", NOW).check(specs)
    with pytest.raises(UsageError, match=long):
        SelectorTemplate("s%Y%m%d-0123456789", NOW).check(specs)


@given(st.text(max_size=12))
def test_any_text_is_a_selector_or_a_usage_error(text):
    try:
        selector = SelectorTemplate(text, NOW).assign(DomainSpec("example.com")).selector
    except UsageError:
        return
    assert selector.isascii()
    assert not set(selector) & set("%{} ;\"'\\\n")
