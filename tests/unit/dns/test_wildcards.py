"""What a new name would take from a wildcard, by servers that answer in their own ways."""

from __future__ import annotations

import pytest

from dkimctl.dns.messages import HTTPS, TYPE_NAMES, A
from dkimctl.dns.wildcards import Records, find_shadowed

NAME = "s1._domainkey.shop.example.com"
WILD = "192.0.2.1"
ADD_FIRST = (f"shop.example.com. 60 IN A {WILD}", f"*.shop.example.com. 60 IN A {WILD}")


def by_name(name: str) -> str:
    return f"192.0.2.{len(name)}"


CASES = {
    "usual": (lambda name, rdtype: WILD, ADD_FIRST),
    "nothing": (lambda name, rdtype: None, "whole"),
    "silent": (lambda name, rdtype: "silent", None),
    "without HTTPS": (lambda name, rdtype: WILD if rdtype == A else "silent", ADD_FIRST),
    "nothing but HTTPS fails": (lambda _, rdtype: None if rdtype != HTTPS else "silent", "whole"),
    "fails below the host": (lambda name, rdtype: "silent" if ".*." in name else WILD, None),
    "answers none at the host": (
        lambda name, rdtype: None if name == "shop.example.com" else WILD, "whole"
    ),
    "own copies of it": (lambda name, rdtype: None if ".*." in name else WILD, "whole"),
    # As PowerDNS does by Lua records; below the host stands what a sibling of it has.
    "data made from the name": (
        lambda name, rdtype: by_name(name),
        ("shop.example.com. 60 IN A 192.0.2.16", "*.shop.example.com. 60 IN A 192.0.2.20"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_to_add_first(case):
    data_at, expected = CASES[case]

    def look(queries):
        found = {query: data_at(*query[1:]) for query in queries}
        return {
            query: (data and query[2] == A and Records(TYPE_NAMES[A], 60, (data,))) or None
            for query, data in found.items()
            if data != "silent"
        }

    # At the zone itself, nothing is lost; nor, where an alias leads, at the name of the record.
    names = (NAME, "key.shop.example.com", "s1._domainkey.example.com", "key.example.com")
    shadowed = find_shadowed(dict.fromkeys(names, "example.com"), look)
    assert shadowed == ({} if expected == "whole" else dict.fromkeys(names[:2], expected))


def test_names_of_one_zone_share_their_questions():
    asked = []

    def look(queries):
        asked.extend(queries)
        return dict.fromkeys(asked)

    names = [f"s{number % 3}._domainkey.d{number}.example.com" for number in range(1000)]
    assert find_shadowed(dict.fromkeys(names, "example.com"), look) == {}
    assert len(asked) == 5
