from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dkimctl.text import Grouping, without_names, without_values


@given(st.lists(st.sampled_from("abc")), st.integers(0, 5))
def test_nothing_is_lost(kinds, most):
    grouping = Grouping[str](most)
    shown = Counter(kind for kind in kinds if grouping.shows(kind))
    assert all(count <= most for count in shown.values())
    assert shown + Counter(dict(grouping.rest())) == Counter(kinds)


def test_messages_of_a_kind_differ_in_quoted_words_and_numbers():
    first = without_values('"a b.example" contains a space, on line 7')
    second = without_values('"c d.example" contains a space, on line 12')
    assert first == second
    assert without_values('"a" contains a space') != without_values('"a" is a URL or a path')


def test_reasons_of_a_kind_differ_in_the_names_of_the_record():
    texts = {
        without_names(
            f"{domain}: TXT s1._domainkey.{domain}: ns1.{domain} (192.0.2.1): it answers REFUSED",
            domain,
            "S1",
        )
        for domain in ("a.example", "b.example")
    }
    assert texts == {"DOMAIN: TXT FQDN: ns1.DOMAIN (192.0.2.1): it answers REFUSED"}


def test_the_zone_above_a_domain_is_one_of_its_names():
    assert without_names("DNS has no zone for Example.org.", "mail.example.org", None) == (
        "DNS has no zone for ZONE."
    )


def test_other_names_stay():
    text = "ns1.example.net (192.0.2.1), notexample.com, com: it does not answer"
    assert without_names(text, "example.com", "s1") == text


def test_a_name_with_its_zone_twice():
    text = "it is at s1._domainkey.example.com.example.com: a final dot is missing"
    expected = "it is at FQDN.DOMAIN: a final dot is missing"
    assert without_names(text, "example.com", "s1") == expected
