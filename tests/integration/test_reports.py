"""`dkimctl reports`, with what mailboxes have, and beside another reader of reports."""

from __future__ import annotations

import gzip
import io
import json
import mailbox
import os
import random
import re
import shutil
import threading
import time
import zipfile
from collections import Counter
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path

import pytest

from dkimctl.mail.reports import read_reports
from dkimctl.models import DmarcReport
from documents import example

SAMPLES = Path(__file__).parents[1] / "fixtures" / "reports"
SPECS = """
domains:
- {sign_domain: example.com, selector: s1}
- {sign_domain: example.com, selector: s2}
- {sign_domain: mail.example.net, selector: s1}
"""
DOMAINS = ("example.com", "mail.example.net", "esp.example")
RESULTS = ("pass", "fail", "neutral", "policy", "permerror")


@pytest.fixture
def home(cli):
    """A home with three keys; returns how `reports` is run."""
    assert cli("register", "--sandbox", "-", stdin=SPECS).status == 0

    def run(*words: object, stdin: bytes = b""):
        return cli("reports", "--sandbox", *words, stdin=stdin)

    return run


def made(number: int, rows: int = 3, age: int = 2) -> bytes:
    """A report of a few days ago, of a receiver that writes it in a way of its own."""
    chosen = random.Random(number)
    is_new = number % 2 == 0
    end = int(datetime.now(UTC).timestamp()) // 86400 * 86400 - age * 86400 - chosen.randint(0, 1)
    records = []
    for _ in range(rows):
        signatures = []
        for _ in range(chosen.choice([0, 1, 1, 1, 2, 3])):
            result = chosen.choice(["pass", *RESULTS])
            fields = [
                f"<domain>{chosen.choice(DOMAINS)}</domain>",
                f"<result>{chosen.choice([result, result.title()])}</result>",
            ]
            if is_new or chosen.random() < 0.8:
                fields.append(f"<selector>{chosen.choice(['s1', 's2', 'S1'])}</selector>")
            if chosen.random() < 0.3:
                fields.append("<human_result>what it means</human_result>")
            chosen.shuffle(fields)
            signatures.append(f"<dkim>{''.join(fields)}</dkim>")
        address = chosen.choice(["192.0.2.", "198.51.100.", "2001:db8::"])
        records.append(
            f"<record><row><source_ip>{address}{chosen.randint(1, 99)}</source_ip>"
            f"<count>{chosen.choice([1, 2, 1000, 123456])}</count><policy_evaluated><disposition>"
            f"{'pass' if is_new else 'none'}</disposition><dkim>pass</dkim><spf>fail</spf>"
            "</policy_evaluated></row><identifiers><header_from>example.com</header_from>"
            f"</identifiers>\n<auth_results>{''.join(signatures)}<spf><domain>example.com</domain>"
            "<result>fail</result></spf></auth_results></record>\n"
        )
    space = ' xmlns="urn:ietf:params:xml:ns:dmarc-2.0"' if is_new else ""
    policy = "<np>none</np><testing>n</testing>" if is_new else "<pct>100</pct>"
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<feedback{space}><version>1.0</version>'
        f"<report_metadata><org_name>Reporter {number % 7}</org_name>"
        f"<email>dmarc@reporter.example</email><report_id>{number}.1</report_id>"
        f"<date_range><begin>{end - 86399}</begin><end>{end}</end></date_range></report_metadata>"
        f"<policy_published><domain>example.com</domain><p>none</p>{policy}</policy_published>\n"
        f"{''.join(records)}</feedback>\n"
    ).encode()


def mailed(data: bytes, name: str = "report.xml.gz") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"] = "noreply@reporter.example", "dmarc@example.com"
    mail["Subject"] = "Report domain: example.com"
    mail.set_content("A report.\n")
    mail.add_attachment(data, maintype="application", subtype="gzip", filename=name)
    return mail


def packed(number: int) -> tuple[str, bytes]:
    """A made report as a file: XML, gzip, zip or a mail."""
    data = made(number)
    if number % 4 == 0:
        return f"{number}.xml", data
    if number % 4 == 1:
        return f"{number}.xml.gz", gzip.compress(data)
    if number % 4 == 2:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(f"{number}.xml", data)
        return f"{number}.zip", archive.getvalue()
    return f"{number}.eml", mailed(gzip.compress(data)).as_bytes()


def signed(rows) -> Counter[tuple[str, str, str]]:
    """Messages by domain, selector and result; of several with one key, one that passed counts."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for count, signatures in rows:
        passed: dict[tuple[str, str], bool] = {}
        for domain, selector, result in signatures:
            passed[domain, selector] = passed.get((domain, selector), False) or result == "pass"
        for key, is_good in passed.items():
            counted[*key, "pass" if is_good else "fail"] += count
    return counted


def test_parsedmarc_counts_the_same(tmp_path):
    """The judge needs 40 MB, and is no requirement: `pip install parsedmarc` to run it."""
    parsedmarc = pytest.importorskip("parsedmarc", reason="pip install parsedmarc: it judges ours")
    files = sorted(SAMPLES.iterdir())
    for number in range(200):
        name, data = packed(number)
        files.append(tmp_path / name)
        files[-1].write_bytes(data)
    for path in files:
        theirs = parsedmarc.parse_report_file(
            str(path), offline=True, normalize_timespan_threshold_hours=1000
        )["report"]
        with path.open("rb") as file:
            [ours] = read_reports(path.name, file, lambda key: key, datetime.now(UTC))
        assert isinstance(ours, DmarcReport), ours
        expected = signed(
            (
                record["count"],
                [
                    (
                        signature["domain"].lower(),
                        signature["selector"].replace("none", "").lower(),
                        signature["result"].lower(),
                    )
                    for signature in record["auth_results"]["dkim"]
                    if signature["result"] != "invalid"  # not a result: it says nothing
                ],
            )
            for record in theirs["records"]
        )
        got = Counter(
            {
                (*key, result): counts.total()
                for key, mail in ours.mail.items()
                for result, counts in zip(("pass", "fail"), mail, strict=True)
                if counts
            }
        )
        assert got == expected, path.name
        assert ours.wrong == ours.others == 0


def table(done) -> dict[tuple[str, str | None], tuple[int, int, int]]:
    """Passed, failed and reporters by domain and selector."""
    return {
        (item["sign_domain"], item["selector"]): (
            item["passed"],
            item["failed"],
            item["reporters"],
        )
        for item in json.loads(done.out)["items"]
    }


def summary(done) -> dict[str, int]:
    """The counts that are not 0."""
    counts = json.loads(done.err)["summary"]
    return {name: count for name, count in counts.items() if count}


def summed(numbers) -> dict[tuple[str, str | None], tuple[int, int]]:
    """What the made reports say of the keys of SPECS."""
    sums: dict[tuple[str, str | None], list[int]] = {}
    keys = {("example.com", "s1"), ("example.com", "s2"), ("mail.example.net", "s1")}

    def ours(key):
        if key in keys or key.sign_domain == "esp.example":
            return key if key in keys else None
        return key._replace(selector="")

    for number in numbers:
        [report] = read_reports("", io.BytesIO(made(number)), ours, datetime.now(UTC))
        for (domain, selector), (passed, failed) in report.mail.items():
            both = sums.setdefault((domain, selector or None), [0, 0])
            both[0] += passed.total()
            both[1] += failed.total()
    return {key: (passed, failed) for key, (passed, failed) in sums.items()}


def test_the_shape_of_each_reporter_in_a_directory(cli, home):
    done = home(SAMPLES, "--format", "json")
    assert done.status == 0
    assert table(done) == {
        ("example.com", None): (6, 0, 1),
        ("example.com", "s1"): (95, 5, 6),
        ("example.com", "s2"): (127, 3, 3),
    }
    assert summary(done) == {"new": 9, "messages of other domains": 86}


def test_a_maildir_an_mbox_a_directory_and_standard_input_give_the_same(cli, home, tmp_path):
    numbers = range(40)
    box = mailbox.Maildir(tmp_path / "maildir")
    mbox = mailbox.mbox(tmp_path / "mbox")
    for number in numbers:
        mail = mailed(gzip.compress(made(number)))
        mail["X-Number"] = str(number)
        if number < 20:
            box.add(mail)
        mbox.add(mail)
    mbox.close()
    (tmp_path / "maildir" / "tmp" / "1.half").write_bytes(mail.as_bytes()[:700])
    (tmp_path / "maildir" / "dovecot.index.log").write_bytes(b"\x01\x02")
    first = home(tmp_path / "maildir", "--format", "json")
    assert first.status == 0
    assert (summary(first)["new"], summary(first)["other files"]) == (20, 1)
    second = home("-", "--format", "json", stdin=(tmp_path / "mbox").read_bytes())
    assert second.status == 0
    assert (summary(second)["new"], summary(second)["known before"]) == (20, 20)
    got = Counter()
    for done in (first, second):
        for key, (passed, failed, _) in table(done).items():
            got[*key, 0] += passed
            got[*key, 1] += failed
    expected = summed(numbers)
    assert +got == +Counter({(*k, at): both[at] for k, both in expected.items() for at in (0, 1)})
    place = tmp_path / "files"
    place.mkdir()
    for number in numbers:
        name, data = packed(number)
        (place / name).write_bytes(data)
    again = home(place, tmp_path / "mbox", tmp_path / "maildir", "--format", "json")
    assert (again.status, table(again)) == (0, {})
    assert summary(again)["known before"] == 100
    assert summary(again).keys() == {"known before", "other files", "messages of other domains"}


def test_an_id_that_is_given_again_for_another_domain_or_day_is_another_report(home, tmp_path):
    first = made(1)
    earlier = re.sub(rb"(?<=<begin>)\d+", lambda begin: b"%d" % (int(begin[0]) - 3600), first)
    about = first.replace(b"<policy_published><domain>", b"<policy_published><domain>mail.")
    for data in (first, earlier, about):
        path = tmp_path / "report.xml"
        path.write_bytes(data)
        assert [summary(home(path, "--format", "json")).get("new") for _ in range(2)] == [1, None]


def test_a_report_counts_once_its_domain_is_registered(cli, home, tmp_path):
    path = tmp_path / "report.xml"
    path.write_bytes(re.sub(rb"example\.com|mail\.example\.net", b"later.example", made(1)))
    before = home(path, "--format", "json")
    assert (table(before), summary(before)["about other domains"]) == ({}, 1)
    entry = '[{"sign_domain": "later.example", "selector": "s1", "key_len": 1024}]'
    assert cli("register", "--sandbox", "-", stdin=entry).status == 0
    assert summary(home(path, "--format", "json"))["new"] == 1


def test_mail_without_a_signature_is_a_report_about_its_domain(cli, home, tmp_path):
    """Then nobody signs, which is known."""

    def mail():
        items = cli("list", "--sandbox", "--format", "json").json["items"]
        return {(item["sign_domain"], item["mail_passed"]) for item in items}

    path = tmp_path / "report.xml"
    path.write_bytes(re.sub(rb"(?s)<dkim>\s*<.*?</dkim>", b"", made(1)))
    assert {passed for _, passed in mail()} == {None}
    done = home(path, "--format", "json")
    assert (table(done), summary(done)["new"]) == ({}, 1)
    assert ("example.com", 0) in mail()


def test_what_is_no_report_in_a_directory_keeps_nothing_from_being_read(home, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as document:
        document.writestr("a.xml", "<document/>")
    mail = mailed((tmp_path / "a.docx").read_bytes(), "a.docx")
    mail.add_attachment(b"<!DOCTYPE html><p>Hello", "text", "html", filename="a.html")
    mail.add_attachment(b"<svg xmlns='x'/>", "image", "svg+xml", filename="a.svg")
    (place / "1.eml").write_bytes(mail.as_bytes())
    os.mkfifo(place / "2")
    (place / "3").symlink_to(place / "3")
    (place / "4").write_bytes(made(1))
    done = home(place)
    assert (done.status, "1 new" in done.err, "warning" in done.err) == (0, True, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_in_a_directory_is_told_and_the_rest_is_read(home, tmp_path):
    place = tmp_path / "place"
    (place / "closed").mkdir(parents=True)
    (place / "a").write_bytes(made(1))
    (place / "b").write_bytes(made(2))
    for path in (place / "a", place / "closed"):
        path.chmod(0)
    done = home(place)
    (place / "closed").chmod(0o700)
    assert (done.status, "1 new" in done.err) == (1, True)
    assert done.err.count("cannot be read: Permission denied") == 2
    (place / "b").chmod(0)
    done = home(place / "b")
    assert (done.status, "b: Permission denied" in done.err) == (2, True)


def test_a_named_pipe_is_read_like_standard_input(home, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=[mailed(made(1)).as_bytes()])
    writing.start()
    done = home(pipe)
    writing.join()
    assert (done.status, "1 new" in done.err) == (0, True)


def test_exit_codes(cli, home, tmp_path):
    good = tmp_path / "good.xml"
    good.write_bytes(made(1))
    bad = tmp_path / "bad.xml.gz"
    bad.write_bytes(gzip.compress(made(2))[:-20])
    done = home(good, bad)
    assert done.status == 1
    assert "bad.xml.gz: it is cut off" in done.err
    assert "1 new" in done.err
    text = tmp_path / "letter.txt"
    text.write_text("Dear all,\n")
    done = home(text)
    assert (done.status, done.out) == (1, "")
    assert "letter.txt: there is no report in it" in done.err
    place = tmp_path / "place"
    place.mkdir()
    done = home(place)
    assert (done.status, done.err) == (0, "dkimctl: reports: none\n")
    shutil.copy(text, place)
    assert home(place).status == 0
    done = home(tmp_path / "missing.xml")
    assert done.status == 2
    assert "missing.xml" in done.err
    assert home("-", stdin=b"").status == 1
    assert home().status == 2


def test_names_in_reports_are_printed_escaped(cli, home, tmp_path):
    evil = tmp_path / "evil.zip"
    with zipfile.ZipFile(evil, "w") as archive:
        archive.writestr("\x1b[31m\u202e.xml", "<feedback/>")
    done = home(evil)
    assert done.status == 1
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err


def test_the_mailbox_and_the_pipe_of_the_page(cli, shell, account, tmp_path):
    """From a real maildir: a new mail is read once, and deleted when it is a week old."""
    assert cli("register", "-", stdin=SPECS, env=account).status == 0
    place = tmp_path / "mail dir"
    box = mailbox.Maildir(place)
    names = [box.add(mailed(gzip.compress(made(number)))) for number in (1, 2)]
    box.add(b"Subject: hello\n\nno report\n")
    week_ago = time.time() - 8 * 86400
    os.utime(place / "new" / names[0], (week_ago, week_ago))
    block = example('dkimctl reports --quiet --output /dev/null "$MAILDIR"')
    done = shell(block, account | {"MAILDIR": str(place)})
    assert done.stdout + done.stderr == ""
    assert {mail for mail in names if mail in mailbox.Maildir(place)} == {names[1]}
    counted = [cli("reports", str(place), env=account).err]
    pipe = example("exec dkimctl reports --quiet --output /dev/null -")
    mail = mailed(gzip.compress(made(3))).as_string()
    for _ in range(2):
        shell(pipe, account, input=mail)
    with pytest.raises(AssertionError, match="there is no report in it"):
        shell(pipe, account, input="Subject: hello\n\nno report\n")
    counted.append(cli("reports", "-", stdin=mail.encode(), env=account).err)
    assert ["1 known before" in err and "new" not in err for err in counted] == [True, True]
