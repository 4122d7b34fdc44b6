"""Which registrations words select."""

from __future__ import annotations

import pytest

from dkimctl.models import DomainSpec, Registration
from dkimctl.names import Selection, is_file

KNOWN = [
    Registration("example.com", "s1"),
    Registration("example.com", "S2"),
    Registration("mail.example.com", "s1"),
    Registration("xn--bcher-kva.example", "s1"),
]
FILE = [DomainSpec("example.com", "s2"), DomainSpec("mail.example.com"), DomainSpec("gone.example")]


def select(*words: str) -> tuple[list[int], list[str]]:
    selection = Selection(words, read_specs=lambda name: FILE, to_domain=str.lower)
    found = [KNOWN.index(registration) for registration in selection.pick(KNOWN)]
    return found, selection.unmatched()


@pytest.mark.parametrize(
    ("words", "found", "unmatched"),
    [([], [0, 1, 2, 3], []), (["example.com"], [0, 1], []),
     (["EXAMPLE.com", "absent.example"], [0, 1], ["absent.example"]),
     (["*.example.com"], [2], []), (["*.EXAMPLE.Com"], [2], []),
     (["*.example.co"], [], ["*.example.co"]), (["*"], [0, 1, 2, 3], []),
     (["[xm]*", "?.example"], [2, 3], ["?.example"]),
     (["domains.yaml"], [1, 2], ["gone.example"]),
     (["example.com", "-"], [0, 1, 2], ["gone.example"])],
)  # fmt: skip
def test_words_select(words, found, unmatched):
    assert select(*words) == (found, unmatched)


def test_only_files_without_specs_select_nothing_at_all():
    def is_empty(*words: str) -> bool:
        return Selection(words, read_specs=lambda name: (), to_domain=str.lower).is_empty

    assert is_empty("empty.yaml")
    assert is_empty("empty.yaml", "-")
    assert not is_empty()
    assert not is_empty("empty.yaml", "example.com")
    assert not is_empty("*.example", "empty.yaml")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("-", True), ("a.yaml", True), ("A.YML", True), ("x.json", True), ("B.CSV", True),
     ("./domains", True),
     ("example.com", False), ("*.example.com", False), ("yaml", False)],
)  # fmt: skip
def test_only_what_looks_like_a_file_is_one(word, expected):
    assert is_file(word) is expected
