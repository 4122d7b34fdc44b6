"""Items find their entries by domain and selector."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkimctl.models import DomainSpec, Registration
from dkimctl.registration.outcomes import match


@pytest.mark.interface("2.3", "selector-optional")
@pytest.mark.interface("2.4", "items")
def test_order_does_not_matter():
    specs = [DomainSpec("a.example", "s"), DomainSpec("b.example"), DomainSpec("a.example", "t")]
    items = [
        Registration("a.example", "t"),
        Registration("b.example", "chosen"),
        Registration("a.example", "s"),
    ]
    matched = match(specs, items)
    assert [answer.selector for answer in matched.answers] == ["s", "chosen", "t"]
    assert matched.strays == []


@pytest.mark.interface("2.3", "selector-unique")
def test_case_does_not_matter():
    matched = match([DomainSpec("a.example", "S1")], [Registration("A.Example", "s1")])
    assert matched.answers == [Registration("a.example", "s1")]


def test_an_item_without_selector_belongs_to_the_only_entry_of_its_domain():
    specs = [
        DomainSpec("a.example", "s"),
        DomainSpec("b.example", "s"),
        DomainSpec("b.example", "t"),
    ]
    matched = match(specs, [Registration("a.example"), Registration("b.example")])
    assert matched.answers == [Registration("a.example", "s"), None, None]
    assert matched.strays == [Registration("b.example")]


@pytest.mark.interface("2.4", "sign_domain")
def test_items_that_were_not_requested_are_strays():
    specs = [DomainSpec("a.example", "s")]
    items = [Registration("c.example", "s"), Registration("a.example", "other")]
    matched = match(specs, items)
    assert matched.answers == [None]
    assert matched.strays == items


def test_of_two_items_for_an_entry_the_first_with_a_record_counts(make_registration):
    """Neither a later key, nor an error beside it, may take its place."""
    specs = [DomainSpec("a.example", "s")]
    error = Registration("a.example", "s", code="500")
    first = make_registration("a.example", "s")
    second = first._replace(record=first.record._replace(value="another"))
    for items in ([first, second], [error, first, second], [first, error, second]):
        matched = match(specs, items)
        assert matched.answers == [first]
        assert sorted(matched.strays, key=str) == sorted((i for i in items if i != first), key=str)
    assert match(specs, [error, error._replace(code="400")]).answers == [error]


names = st.sampled_from(["a.example", "A.example", "b.example", ""])
selectors = st.sampled_from([None, "s", "S", "t"])


@given(
    st.sets(
        st.tuples(st.sampled_from(["a.example", "b.example"]), st.sampled_from([None, "s", "t"]))
    ),
    st.lists(st.tuples(names, selectors)),
)
def test_every_item_is_an_answer_or_a_stray_and_answers_are_for_their_domain(pairs, answered):
    specs = [DomainSpec(domain, selector) for domain, selector in sorted(pairs, key=str)]
    items = [Registration(domain, selector) for domain, selector in answered]
    matched = match(specs, items)
    answers = [answer for answer in matched.answers if answer is not None]
    assert len(answers) + len(matched.strays) == len(items)
    for spec, answer in zip(specs, matched.answers, strict=True):
        if answer is not None:
            assert answer.sign_domain == spec.sign_domain
            assert spec.selector in (None, (answer.selector or "").lower())
