"""What DMARC reports say of the mail with each key, in every command that shows keys."""

from __future__ import annotations

import time

import dkim
import pytest
from prometheus_client.parser import text_string_to_metric_families

from damaged_mail import MAIL
from dns_servers import serving
from published import APEX, private_keys, published, register

GOOD, BAD, SILENT = "example.com", "mail.example.com", "silent.example"
DAY = 86400


def report(number: int, ago: int, *rows: tuple[str, str, int]) -> str:
    """A report of the day so many days ago: domains with the selector s1, results and counts."""
    end = int(time.time()) - ago * DAY
    records = "".join(
        f"<record><row><source_ip>192.0.2.7</source_ip><count>{count}</count></row><identifiers>"
        f"<header_from>{domain}</header_from></identifiers><auth_results><dkim><domain>{domain}"
        f"</domain><selector>s1</selector><result>{result}</result></dkim></auth_results></record>"
        for domain, result, count in rows
    )
    return (
        "<feedback><report_metadata><org_name>receiver.example</org_name>"
        f"<report_id>{number}</report_id><date_range><begin>{end - DAY}</begin><end>{end}</end>"
        f"</date_range></report_metadata>{records}</feedback>"
    )


@pytest.fixture
def values(cli):
    """The TXT values of three domains, of which two have reports of this week."""
    values = register(cli, GOOD, BAD, SILENT, more="enable: true")
    assert not any("MAIL" in line for line in cli("list", "--sandbox", "--wide").out.splitlines())
    assert "Mail" not in cli("overview", "--sandbox").out
    week = report(1, 1, (GOOD, "pass", 20_000), (GOOD, "fail", 2), (BAD, "pass", 60),
                  (BAD, "fail", 20))  # fmt: skip
    for text in (week, report(2, 20, (SILENT, "pass", 7), (BAD, "fail", 1_000))):
        done = cli("reports", "--sandbox", "-", stdin=text)
        assert done.status == 0, done
    return values


def day(ago: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() - ago * DAY))


def test_list_has_it_if_asked(cli, values):
    rows = [line.split() for line in cli("list", "--sandbox").out.splitlines()]
    assert rows[0][-4:] == ["PASSED", "ON", "MAIL", "FAILED"]
    assert [row[-3:] for row in rows[1:3]] == [
        [day(1), "20,002", "<0.1%"], [day(1), "80", "25.0%"]
    ]  # fmt: skip
    assert rows[3][-4:] == [day(20), "no", "reports", "-"]
    items = cli("list", "--sandbox", "--format", "json").json["items"]
    assert [(item["mail_passed_on"], item["mail_passed"], item["mail_failed"]) for item in items
            ] == [(day(1), 20_000, 2), (day(1), 60, 20), (day(20), None, None)]  # fmt: skip


def test_the_overview_tells_what_fails(cli, values):
    text = cli("overview", "--sandbox").out
    assert "\nMail 20,060 passed, 22 failed in 7 days, by DMARC reports\n" in text
    assert "\n  over 5% failed  1 key  mail.example.com (s1)\n" in text
    document = cli("overview", "--sandbox", "--format", "json").json
    assert document["mail"] == {"passed": 20_060, "failed": 22, "domains_without_reports": 0}
    assert [key["sign_domain"] for key in document["failing"]] == [BAD]
    cli("overview", "--sandbox", "--html", "page.html")
    page = (cli.home / "page.html").read_text(encoding="utf-8")
    assert page.index('aria-label="60 passed, 20 failed"') < page.index("20,000 passed, 2 failed")


def test_monitors_and_verify_have_it(cli, values, needs_tool, tmp_path):
    for domain in (GOOD, SILENT):
        key = private_keys(cli.home)[domain, "s1"]
        (cli.home / f"{domain}.eml").write_bytes(
            dkim.sign(MAIL, b"s1", domain.encode(), key) + MAIL
        )
    zone = tmp_path / "zone"
    zone.write_text(APEX + published({name: values[name] for name in (GOOD, BAD)}))
    with serving("named", zone, tmp_path, needs_tool) as server:
        options = ("--sandbox", "--server", server)
        metrics = cli("check-dns", *options, "--format", "prometheus").out
        [verified] = cli("verify", *options, "--format", "json", f"{GOOD}.eml").json["items"]
        told = cli("verify", *options, f"{GOOD}.eml", f"{SILENT}.eml").out
    mail = {
        (sample.labels["sign_domain"], sample.labels.get("result")): sample.value
        for family in text_string_to_metric_families(metrics)
        if family.name in ("dkimctl_key_messages", "dkimctl_key_passed_timestamp_seconds")
        for sample in family.samples
    }
    days = [time.strftime("%Y-%m-%d", time.gmtime(mail.pop((name, None)))) for name in (GOOD, BAD)]
    assert days == [day(1), day(1)]
    assert mail == {(GOOD, "passed"): 20_000, (GOOD, "failed"): 2,
                    (BAD, "passed"): 60, (BAD, "failed"): 20}  # fmt: skip
    [signature] = verified["signatures"]
    mail = [signature[name] for name in ("mail_passed_on", "mail_passed", "mail_failed")]
    assert mail == [day(1), 20_000, 2]
    assert "DMARC reports: 20,002 messages with this key in 7 days, <0.1% failed" in told
    assert "DMARC reports: none of its domain in the last 14 days" in told
