"""The JSON document, as programs and people read it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from dkimctl.dns.verdicts import Urgency
from dkimctl.models import Alarm, key_of
from dkimctl.notices import MAX_ITEMS, MAX_SUBJECTS, KeyProblem, Notice, notice_document

NOON = datetime(2027, 1, 5, 12, tzinfo=UTC)
SINCE = "2027-01-05T12:00:00+00:00"
SOON = KeyProblem("b.example s1", "signing starts soon: missing", Urgency.SOON, "why", "publish it")
SIGNING = KeyProblem("c.example s1", "signing now without DNS: missing", Urgency.SIGNING)
CALM = KeyProblem("a.example s1", "differs")


def alarm(problem: KeyProblem) -> Alarm:
    return Alarm(*problem[:2], NOON, NOON, NOON)


def pairs(*problems: KeyProblem) -> list[tuple[KeyProblem, Alarm]]:
    return [(problem, alarm(problem)) for problem in problems]


def read(notice: Notice) -> dict:
    return json.loads(notice_document(notice, profile="default", now=NOON))


def test_a_document_has_what_is_new_over_and_still_there():
    assert read(Notice(new=pairs(SOON), over=[alarm(CALM)], still=pairs(SIGNING))) == {
        "version": 1,
        "time": SINCE,
        "profile": "default",
        "text": "dkimctl: 1 new problem: b.example s1 (signing starts soon: missing); "
        "1 problem over: a.example s1 (differs); 1 earlier problem not solved yet",
        "counts": {"new": 1, "over": 1, "still": 1},
        "new": [
            {
                "subject": "b.example s1",
                "problem": "signing starts soon: missing",
                "since": SINCE,
                "count": 1,
                "subjects": ["b.example s1"],
                "urgency": "soon",
                "detail": "why",
                "action": "publish it",
            }
        ],
        "over": [
            {
                "subject": "a.example s1",
                "problem": "differs",
                "since": SINCE,
                "count": 1,
                "subjects": ["a.example s1"],
            }
        ],
        "still": [
            {
                "subject": "c.example s1",
                "problem": "signing now without DNS: missing",
                "since": SINCE,
                "count": 1,
                "subjects": ["c.example s1"],
                "urgency": "signing",
                "detail": "",
                "action": "",
            }
        ],
    }


def test_a_long_list_is_cut_and_counted():
    many = [
        CALM._replace(subject=f"{number:05}.example s1", detail=f"why {number % 1000}")
        for number in range(100_000)
    ]
    document = read(Notice(new=pairs(*many, SIGNING)))
    assert document["counts"]["new"] == 100_001
    assert len(document["new"]) == MAX_ITEMS
    assert document["new"][0]["subject"] == "c.example s1"
    assert document["new"][1]["count"] == 100
    assert sum(len(item["subjects"]) for item in document["new"]) == MAX_SUBJECTS
    assert len(json.dumps(document)) < 200_000


def unanswered(number: int, server: str = "192.0.2.1") -> KeyProblem:
    domain = f"d{number}.example"
    detail = f"{domain}: s1._domainkey.{domain} TXT: {server}: timed out"
    action = f"look at the record: `dkimctl check-dns {domain}`"
    return KeyProblem(f"{domain} s1", "no answer", Urgency.NONE, detail, action, True,
                   key_of(domain, "s1"))  # fmt: skip


def test_problems_of_one_cause_are_one_item():
    dead = [unanswered(number) for number in range(500)]
    document = read(Notice(new=pairs(*dead, unanswered(500, "192.0.2.2"))))
    assert document["counts"]["new"] == 501
    one, other = sorted(document["new"], key=lambda item: -item["count"])
    assert (one["count"], other["count"]) == (500, 1)
    assert sorted(one["subjects"]) == sorted(problem.subject for problem in dead)
    assert one["detail"] == "DOMAIN: FQDN TXT: 192.0.2.1: timed out"
    assert one["action"] == "look at the record: `dkimctl check-dns DOMAIN`"
    assert other["action"] == "look at the record: `dkimctl check-dns d500.example`"
    assert (
        "d0.example s1, d1.example s1, d10.example s1, … and 497 more (no answer)"
        in (document["text"])
    )
    [over] = read(Notice(over=[alarm(problem) for problem in dead]))["over"]
    assert (over["count"], len(over["subjects"])) == (500, 500)


def test_what_began_at_another_time_is_another_item():
    first, second = pairs(unanswered(1), unanswered(2))
    earlier = first[0], first[1]._replace(first_seen=NOON - timedelta(days=1))
    assert len(read(Notice(still=[earlier, second]))["still"]) == 2
    assert len(read(Notice(over=[earlier[1], second[1]]))["over"]) == 2


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "two\nlines", "\x7f", "\u202eevil", "\ud800"])
def test_text_of_others_is_printable_even_when_it_is_decoded(hostile):
    problem = KeyProblem(hostile, hostile, Urgency.NONE, hostile, hostile)
    data = notice_document(Notice(new=pairs(problem)), profile="default", now=NOON)
    assert data.decode("ascii").removesuffix("\n").isprintable()
    item = json.loads(data)["new"][0]
    texts = (*item.values(), *item["subjects"], json.loads(data)["text"])
    assert all(text.isprintable() for text in texts if isinstance(text, str))


def test_a_long_text_is_cut():
    huge = KeyProblem("a.example s1", "x" * 10**6, Urgency.NONE, "y" * 10**6)
    assert len(notice_document(Notice(new=pairs(huge)), profile="default", now=NOON)) < 10_000
