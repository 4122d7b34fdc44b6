"""check-dns calls a key published if, and only if, verifiers accept mail that is signed with it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import key_record_cases
import server_cases
import verifiers
import zone_cases
from delegation import Zone
from dkimctl.dns.verdicts import ACCEPTED, Urgency, Verdict
from needs import give_up
from network import running
from odd_servers import __file__ as odd_servers
from zone_case import Case, Mail, with_records

_RECORDS = "records.example"
KEY_RECORDS = [
    Case(
        f"r{number}.{_RECORDS}", case.verdict, key_len=2048, write=case.write,
        mail=Mail.ACCEPTED if case.verifies else Mail.REFUSED, because=case.note, about=case.name,
    )
    for number, case in enumerate(key_record_cases.CASES)
]  # fmt: skip
CASES = [*KEY_RECORDS, *zone_cases.CASES, *server_cases.CASES]
ZONES = [Zone(_RECORDS, zone_cases.HOSTS), *zone_cases.ZONES, *server_cases.ZONES]


@pytest.mark.nightly
def test_published_means_that_verifiers_accept_the_mail(cli, needs_tool, tmp_path):
    needs_tool("opendkim")
    needs_mail_dkim(needs_tool("perl"))
    values = register(cli, CASES)
    hosts, zones = with_records(server_cases.HOSTS_OF_NETWORK, ZONES, CASES, values)
    (directory := tmp_path / "network").mkdir()
    with running(directory, needs_tool, hosts=hosts, zones=zones) as network:
        start_odd_servers(network)
        answers = verifiers.ask_all(network, cli.home)
        network.restart_resolver()  # with an empty cache, as for the verifiers
        done = network.inside(cli)("check-dns", "--sandbox", "--format", "json")
    assert done.status == 1, done.err
    mail = {f"{selector}._domainkey.{domain}".lower(): said
            for (domain, selector), said in answers.items()}  # fmt: skip
    items = {item["fqdn"].lower(): item for item in done.json["items"]}
    assert len(items) == len(CASES) >= 150
    wrong = [problem for case in CASES for problem in problems(case, items[case.name], mail)]
    assert not wrong, "\n".join(wrong)


def needs_mail_dkim(perl: str) -> None:
    done = subprocess.run([perl, "-MMail::DKIM", "-e1"], capture_output=True, check=False)
    if done.returncode:
        give_up("Mail::DKIM is not installed: CONTRIBUTING.md says what to install")


def register(cli, cases: list[Case]) -> dict[str, str]:
    """Register the keys of all cases; returns their values by name."""
    specs = [
        {
            "sign_domain": case.spelled or case.domain,
            "selector": case.selector,
            "key_len": case.key_len,
        }
        for case in cases
    ]
    done = cli(
        "register", "--sandbox", "-", "--format", "json", stdin=json.dumps({"domains": specs})
    )
    assert done.status == 0, done.err
    records = [item["setting_values"] for item in done.json["items"]]
    return {record["fqdn"].lower(): record["value"] for record in records}


def start_odd_servers(network) -> None:
    addresses = [
        f"{host.addresses[0]}={host.name.partition('.')[0]}" for host in server_cases.odd_hosts()
    ]
    network.start("odd", sys.executable, odd_servers, server_cases.UPSTREAM_ADDRESS, *addresses)
    network.wait_for("cat", "odd.log", shows="ready")


def problems(case: Case, item, mail: dict[str, list[str]]) -> list[str]:
    """What is not as the case says."""
    text = f"{case.name} {case.about}: {item['verdict']} ({item['reason']}), {mail[case.name]}"
    found = []
    if item["verdict"] != case.verdict:
        found.append(f"not {case.verdict}: {text}")
    said = Mail.REFUSED if any(mail[case.name]) else Mail.ACCEPTED
    if case.expected_mail not in (said, Mail.DEPENDS):
        found.append(f"mail not {case.expected_mail}: {text}")
    if item["verdict"] == Verdict.DIFFERS:  # which verifiers accept it is said
        named = {name: name in item["reason"].partition("accept it")[0] for name in verifiers.NAMES}
        if named != dict(zip(verifiers.NAMES, (not said for said in mail[case.name]), strict=True)):
            found.append(f"not said by whom: {text}")
    if item["urgency"] == Urgency.SIGNING and said is Mail.ACCEPTED and not case.because:
        found.append(f"must not be urgent: {text}")
    return found


def test_each_difference_from_verifiers_has_a_reason():
    for case in CASES:
        accepted = case.verdict in ACCEPTED
        agrees = case.expected_mail is (Mail.ACCEPTED if accepted else Mail.REFUSED)
        assert agrees or case.because.startswith("RFC "), case
