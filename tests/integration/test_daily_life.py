"""The questions of docs/daily.md, each asked with the command that it names."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dkim
import pytest

from damaged_mail import MAIL
from delegation import Host, Zone
from dkimctl.dns.verdicts import Verdict
from documents import PAGES
from network import running
from portfolio import ENVIRONMENT, Portfolio, fill
from published import name_of, private_keys, register, txt

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
        command = COMMANDS[question]
        status = 1 if command.startswith("dkimctl overview") else 0  # some keys are urgent
        return shell(f"status=0; {command} || status=$?; test $status = {status}", environment)

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
    answer = ask("Who still signs with 1024 bits?")
    bits = [line.split()[2] for line in answer.stdout.splitlines()[1:]]
    assert bits.count("1024") == 21
    assert bits == sorted(bits)
    assert "news.customer.example" in domains(answer)[:21]


def test_what_falls_due_first(ask):
    answer = ask("What falls due first?")
    assert set(domains(answer)[:4]) == {"shop.customer.example"} | {
        f"harmed{number}.example" for number in range(3)
    }, "they are urgent"
    due = [line.split()[-1] for line in answer.stdout.splitlines()[5:] if line[-1] != "-"]
    assert due == sorted(due)


def test_what_is_registered_and_not_in_dns(ask):
    found = domains(ask("What is registered, and not in DNS?"))
    assert {"shop.customer.example", "harmed0.example", "harmed1.example"} <= set(found)
    assert "mail.customer.example" not in found


def test_what_was_not_checked_for_long(ask):
    found = domains(ask("Which records were not checked for a long time?"))
    assert found.index("old.example") < 21  # after those that are new
    assert found.index("mail.customer.example") > 21


def test_which_keys_are_old(ask, cli, shell):
    answer = ask("Which keys are the oldest?")
    assert (domains(answer)[0], len(domains(answer))) == ("old.example", 527)
    rows = answer.stdout.splitlines()[1:]
    assert all(re.search(r" (\d{4}-\d\d-\d\d|-)$", row) for row in rows)
    state = {"DKIMCTL_STATE_DIR": str(cli.home / "state"), "COLUMNS": "60"}
    wide = shell("dkimctl list --wide --stage signing", ENVIRONMENT | state)
    below = [line for line in wide.stdout.splitlines() if "._domainkey." in line]
    assert below
    assert all(line.startswith("  s1._domainkey.") for line in below)


def test_a_start_is_on_the_day_that_was_registered_in_every_view(cli):
    day = datetime.now(UTC).date() + timedelta(days=6)
    start = f"{day}T00:00+09:00"  # the day before, in UTC
    cli.write("d.yaml", f"- {{sign_domain: a.example, selector: s1, start_date: '{start}'}}\n")
    assert cli("register", "--sandbox", "d.yaml").status == 0
    assert f" {day} " in cli("list", "--sandbox").out
    assert f"  {day}  signing starts  1 key  a.example (s1)\n" in cli("overview", "--sandbox").out
    cli("overview", "--sandbox", "--html", "page.html")
    assert f">{day}</span>" in (cli.home / "page.html").read_text(encoding="utf-8")
    sheet = cli("handoff", "--sandbox", "--zone", "a.example").out
    assert f"{day.day} {day:%B %Y}, 00:00 (UTC+09:00)" in sheet


def test_a_page_for_the_boss(ask, cli):
    ask("What do I show my boss?")
    assert "keys published in DNS" in (cli.home / "overview.html").read_text(encoding="utf-8")


def test_a_spreadsheet(ask, cli):
    ask("What do I put into a spreadsheet?")
    text = (cli.home / "keys.csv").read_text(encoding="utf-8")
    assert len([*csv.DictReader(io.StringIO(text))]) == 527


@pytest.fixture
def customer(cli, needs_tool, tmp_path):
    """The customer's domains in the sandbox and in DNS: the record of one is another's."""
    mail, news, shop = (f"{name}.customer.example" for name in ("mail", "news", "shop"))
    values = register(cli, mail, news, shop)
    values[shop] = values[mail]
    records = "".join(txt(name_of(domain), value) for domain, value in values.items())
    hosts = [Host("ns.customer.example", ("127.0.0.2",), "nsd")]
    zones = [Zone("customer.example", (hosts[0].name,), records=records)]
    with running(tmp_path, needs_tool, hosts=hosts, zones=zones) as network:
        cli.prefix = network.prefix(cli.home)
        yield


@pytest.fixture
def ask_dns(customer, shell):
    """Asks one of the questions about the customer; gives the answer, which ends with `status`."""

    def ask(question: str, status: int):
        block = f"status=0; {COMMANDS[question]} || status=$?; test $status = {status}"
        return shell(block, {"DKIMCTL_PROFILE": "sandbox"})

    return ask


def test_which_of_the_customers_domains_is_wrong(ask_dns):
    answer = ask_dns("Which of the customer's three domains is wrong?", 1)
    verdicts = re.findall(r"^(\w+)\.customer\.example +s1 +(\w+)", answer.stdout, re.MULTILINE)
    assert verdicts == [("shop", "mismatch"), ("mail", "published"), ("news", "published")]


def test_a_sheet_for_the_customer(ask_dns, cli):
    ask_dns("What do I send him, if a record is not in DNS yet?", 0)
    page = (cli.home / "sheet.html").read_text(encoding="utf-8")
    for name in ("mail", "news", "shop"):
        assert f">s1._domainkey.{name}</code>" in page


def test_why_the_customers_mail_does_not_verify(ask_dns, cli):
    sender = b"shop.customer.example"
    key = private_keys(cli.home)[sender.decode(), "s1"]
    mail = MAIL.replace(b"example.com", sender)
    (cli.home / "mail.eml").write_bytes(dkim.sign(mail, b"s1", sender, key) + mail)
    answer = ask_dns("Why does his mail not verify?", 1)
    assert "DNS is at fault" in answer.stdout


def test_what_is_wrong_with_the_setup(ask_dns, cli):
    config = cli.home / ".config" / "dkimctl" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("profile: sandbox\n")
    answer = ask_dns("Something is wrong with my set-up. What?", 1)
    assert "resolver          ok           127.0.0.1 answers" in answer.stdout
    [wrong] = re.findall(r"^(.+?)  +wrong ", answer.stdout, re.MULTILINE)
    assert wrong == "config file"


def test_every_question_of_the_page_is_asked():
    tests = Path(__file__).read_text(encoding="utf-8")
    assert len(COMMANDS) > 10
    assert [question for question in COMMANDS if f'"{question}"' not in tests] == []
