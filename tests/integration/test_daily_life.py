"""The questions of docs/daily.md, each asked with the command that it names."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from dkimctl.publication.verdicts import Verdict
from documents import PAGES
from portfolio import ENVIRONMENT, Portfolio, fill

COMMANDS = dict(
    re.findall(r"^\| ([^|]+\?) \| `(dkimctl [^`]+)` \|$", PAGES["daily.md"], re.MULTILINE)
)
SEEN = {0.2: Verdict.PUBLISHED}


@pytest.fixture
def ask(cli, shell, key_records):
    """Asks one of the questions, about 503 domains and three of a customer; gives the answer."""
    portfolio = Portfolio(cli.home / "state", key_records[2048].partition("p=")[2])
    portfolio.add("mail.customer.example", age=100, looks=SEEN)
    portfolio.add("news.customer.example", age=100, looks=SEEN, key_len=1024)
    portfolio.add("shop.customer.example", age=30, looks={0.2: Verdict.MISSING})
    portfolio.add("old.example", age=300, looks={10: Verdict.PUBLISHED})
    fill(portfolio, 500)
    environment = ENVIRONMENT | {"DKIMCTL_STATE_DIR": str(cli.home / "state")}

    def ask(question: str):
        return shell(COMMANDS[question], environment)

    return ask


def domains(answer) -> list[str]:
    return [line.split()[0] for line in answer.stdout.splitlines()[1:]]


def test_what_matters_today(ask):
    answer = ask("What matters today?")
    assert answer.stdout.startswith("507 domains, 527 keys on ")
    assert "signing now without DNS  4 keys  harmed0.example (s1)" in answer.stdout
    assert "register successor" in answer.stdout
    assert "next: `dkimctl show-dns" in answer.stderr


def test_who_signs_with_1024_bits(ask):
    found = domains(ask("Who still signs with 1024 bits?"))
    assert len(found) == 21
    assert "news.customer.example" in found


def test_what_falls_due_in_a_month(ask, cli, shell):
    answer = ask("What falls due in March?")
    every = json.loads(
        shell("dkimctl list --format json",
              ENVIRONMENT | {"DKIMCTL_STATE_DIR": str(cli.home / "state")}).stdout
    )["items"]  # fmt: skip
    due = {one["name"] for one in every if (one["due"] or "").startswith("2027-03")}
    assert set(domains(answer)) == due


def test_what_signs_soon_and_is_not_in_dns(ask):
    found = domains(ask("What signs within a week, and is not in DNS?"))
    assert {"shop.customer.example", "harmed0.example", "harmed1.example"} <= set(found)
    assert "mail.customer.example" not in found


def test_what_was_not_checked_for_a_week(ask):
    found = domains(ask("Which records were not checked for a week?"))
    assert "old.example" in found
    assert len(found) == 21  # and those that are new


def test_which_keys_are_old(ask):
    found = domains(ask("Which keys are older than half a year?"))
    assert found[0] == "old.example"
    assert len(found) == 21


def test_in_a_pipe_each_key_is_one_line(ask, cli, shell):
    answer = ask("Which keys are older than half a year?")
    state = {"DKIMCTL_STATE_DIR": str(cli.home / "state"), "COLUMNS": "60"}
    wide = shell("dkimctl list --wide --filter 'age>180d'", ENVIRONMENT | state)
    rows, below = wide.stdout.splitlines()[1::2], wide.stdout.splitlines()[2::2]
    assert len(rows) == len(below) == len(domains(answer))
    assert all(re.search(r" \d{4}-\d\d-\d\d$", row) for row in rows)
    assert all(line.startswith("  s1._domainkey.") for line in below)


def test_a_page_for_the_boss(ask, cli):
    ask("What do I show my boss?")
    assert "keys published in DNS" in (cli.home / "overview.html").read_text(encoding="utf-8")


def test_a_spreadsheet(ask, cli):
    ask("What do I put into a spreadsheet?")
    text = (cli.home / "keys.csv").read_text(encoding="utf-8")
    assert len([*csv.DictReader(io.StringIO(text))]) == 527
