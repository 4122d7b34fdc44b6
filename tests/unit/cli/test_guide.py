"""What the keys of a profile need next, by their stages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dkimctl.cli.guide import guide_of
from dkimctl.models import KeyHistory, Registration
from dkimctl.rotation.life import Key, KeyDates, KeyStage, NextAction
from dkimctl.settings.config import DnsTarget

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def key(name: str, stage=KeyStage.SIGNING, action=NextAction.REGISTER, due=None, **more):
    registration = Registration(f"{name}.example", "s1")
    return Key(registration, KeyHistory(), stage, None, action, due, KeyDates(), **more)


def commands(*statuses, by_target: bool = False, by_timer: bool = False) -> list[str]:
    targets = [DnsTarget("rfc2136", zones=("*.example",))] if by_target else []
    guide = guide_of(statuses, NOW, targets, by_timer=by_timer)
    return [command.strip("`") for command in guide.steps]


OLD = key("old", due=NOW - timedelta(days=1))
GONE = key("gone", KeyStage.RETIRED, NextAction.REMOVE, due=NOW)
FINE = key("fine", due=NOW + timedelta(days=30))
UNSEEN = key("new", KeyStage.REGISTERED, NextAction.PUBLISH, due=NOW + timedelta(days=5))
LOST = key("lost", KeyStage.UNANSWERED, NextAction.REGISTER_AGAIN, due=NOW)


def test_due_keys_are_replaced_by_hand_or_by_a_timer():
    assert commands(OLD, FINE) == ["dkimctl rotate old.example"]
    assert commands(OLD, GONE) == ["dkimctl rotate old.example", "dkimctl rotate --retired"]
    assert commands(GONE, FINE) == ["dkimctl rotate --retired"]
    assert commands(OLD, GONE, by_target=True) == ["dkimctl rotate run", "dkimctl timer"]
    assert commands(FINE, by_target=True)[0] == "dkimctl timer"
    for keys in ((OLD, GONE), (UNSEEN,), (FINE,)):
        left = commands(*keys, by_target=True, by_timer=True)
        assert left == ["dkimctl overview", "dkimctl check-dns"], "the timer does the rest"


def test_what_is_well_counts_what_is_in_use_and_all_that_starts_on_a_day():
    waits = [key(f"k{at}", action=NextAction.WAIT, due=NOW + timedelta(days=5)) for at in range(3)]
    gone = key("gone", KeyStage.REMOVED, NextAction.NONE)
    well, summary = guide_of([*waits, FINE, gone], NOW, by_timer=True).lines
    assert "Next: 2027-01-06, signing starts, 3 keys (k0.example (selector s1), k1." in well
    assert summary == "4 keys of 4 domains: signing 4. Not in use: removed 1."
    summary = guide_of([gone], NOW, by_timer=True).lines[1]
    assert summary == "0 keys of 0 domains. Not in use: removed 1."


def test_what_matters_more_comes_first():
    assert commands(OLD, UNSEEN)[0] == "dkimctl show-dns new.example"
    assert commands(OLD, UNSEEN, by_target=True)[0] == "dkimctl publish new.example"
    assert commands(OLD, UNSEEN, LOST) == ["dkimctl list --sort-by due"]


def test_what_no_target_has_is_published_by_hand():
    other = DnsTarget("rfc2136", zones=("old.example",))
    covered, by_hand, _ = guide_of([OLD._replace(action=NextAction.PUBLISH), UNSEEN], NOW, [other],
                                   by_timer=True).steps  # fmt: skip
    assert (covered, by_hand) == ("`dkimctl publish old.example`", "`dkimctl handoff new.example`")
    steps = guide_of([UNSEEN], NOW, [DnsTarget("rfc2136")], by_timer=False).steps
    assert [step.split()[1] for step in steps] == ["publish", "handoff", "check-dns"]
