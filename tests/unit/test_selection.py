"""Which registrations words select."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from dkimctl.cli.selected import _near
from dkimctl.models import Registration, RegistrationKey
from dkimctl.names import Selection, is_file

KNOWN = [
    Registration("example.com", "s1"),
    Registration("example.com", "S2"),
    Registration("mail.example.com", "s1"),
    Registration("xn--bcher-kva.example", "s1"),
]
FILE = [RegistrationKey("example.com", "s2"), "mail.example.com", "gone.example"]


@pytest.mark.parametrize(
    ("names", "globs", "selected", "unmatched"),
    [(None, [], [0, 1, 2, 3], []), (["example.com"], [], [0, 1], []),
     (["example.com", "absent.example"], [], [0, 1], ["absent.example"]),
     ([], ["*.example.com"], [2], []), ([], ["*.EXAMPLE.Com"], [2], []),
     ([], ["*.example.co"], [], ["*.example.co"]), ([], ["*"], [0, 1, 2, 3], []),
     ([], ["[xm]*", "?.example"], [2, 3], ["?.example"]),
     (FILE, [], [1, 2], ["gone.example"]),
     ([RegistrationKey("example.com", "S3")], [], [], ["example.com (selector S3)"]),
     (["example.com", *FILE], [], [0, 1, 2], ["gone.example"]), ([], [], [], [])],
)  # fmt: skip
def test_names_and_globs_select(names, globs, selected, unmatched):
    selection = Selection(names, globs)
    assert [KNOWN.index(registration) for registration in selection.pick(KNOWN)] == selected
    assert selection.unmatched() == unmatched
    assert selection.is_empty is (names == [] and not globs)


@pytest.mark.parametrize("typed", ["custmer-000001.example", "customer-000010.exampel", "x" * 9999])
def test_a_near_domain_is_found_among_many_at_once(typed):
    known = {(f"customer-{number:06d}.example", "s1") for number in range(100_000)}
    session = SimpleNamespace(open_ledger=lambda **_: SimpleNamespace(known_keys=lambda: known))
    started = time.process_time()
    near = _near(session, [typed])
    assert time.process_time() - started < 1
    fixed = typed.replace("custm", "custom").replace("pel", "ple")
    assert near == ("" if typed[0] == "x" else f"did you mean {fixed}?")


@pytest.mark.parametrize(
    ("word", "expected"),
    [("-", True), ("a.yaml", True), ("A.YML", True), ("x.json", True), ("B.CSV", True),
     ("./domains", True),
     ("example.com", False), ("*.example.com", False), ("yaml", False)],
)  # fmt: skip
def test_only_what_looks_like_a_file_is_one(word, expected):
    assert is_file(word) is expected
