"""Lists from spreadsheets, several files, and domains on the command line."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime, timedelta

import pytest

from documents import example
from spec_files import load_specs

SPECS = "- {sign_domain: a.example, selector: s1}\n- b.example\n"
TABLE = "sign_domain;selector;key_len;enable\r\nc.example;s1;2048;FALSE\r\nd.example;;;\r\n"


def domains(done) -> list[str]:
    return [item["sign_domain"] for item in json.loads(done.out)["items"]]


def test_files_and_domains_are_registered_together_and_once(cli):
    cli.write("a.yaml", SPECS)
    cli.write("b.csv", TABLE)
    words = ["register", "--sandbox", "a.yaml", "b.csv", "--domain", "e.example"]
    plan = cli(*words, "--dry-run", "--format", "json")
    assert (plan.status, domains(plan)) == (0, [f"{letter}.example" for letter in "abcde"])
    done = cli(*words, "--format", "json")
    assert json.loads(done.err)["summary"] == {"created": 5}
    done = cli(*words, "--format", "csv", "--output", "out.csv")
    assert "already there 5" in done.err
    rows = list(csv.DictReader(io.StringIO((cli.home / "out.csv").read_text())))
    assert [row["outcome"] for row in rows] == ["exists"] * 5
    assert (rows[2]["key_len"], rows[2]["enable"]) == ("2048", "false")
    again = cli("register", "--sandbox", "out.csv")
    assert (again.status, "already there 5" in again.err) == (0, True)


def test_every_output_in_csv_is_a_list_of_the_same_keys(cli):
    cli.write("b.csv", TABLE)
    assert cli("register", "--sandbox", "b.csv").status == 0
    shown = cli("show-dns", "--sandbox", "--format", "csv").out.encode()
    keys = {spec.key for spec in load_specs(shown, "shown.csv", warn=pytest.fail)}
    assert len(keys) == 2
    listed = cli("list", "--sandbox", "--format", "csv").out.encode()
    assert {spec.key for spec in load_specs(listed, "list.csv", warn=pytest.fail)} == keys
    (cli.home / "list.csv").write_bytes(listed)
    assert cli("register", "--sandbox", "--dry-run", "list.csv").status == 0


def test_a_domain_without_a_file_has_a_sound_key_that_signs_in_a_week(cli):
    words = ["register", "--sandbox", "--domain", "a.example"]
    plan = cli(*words, "--dry-run")
    assert "by default, new keys have 2048 bits and sign from " in plan.err
    [item] = cli(*words, "--format", "json").json["items"]
    start = datetime.fromisoformat(item["start_date"])
    assert (item["key_len"], start.date()) == (2048, date.today() + timedelta(days=7))
    later = cli(*words, "--format", "json", env={"TZ": "Asia/Tokyo"})
    assert (later.status, later.json["items"][0]["start_date"]) == (0, item["start_date"])
    assert "by default" not in cli(*words).err
    # What is stated has to be so.
    words += ["--key-len", "1024", "--start-date", "2027-07-01T00:00+09:00"]
    differs = cli(*words, "--dry-run", "--format", "json")
    message = json.loads(differs.err)["warnings"][0]["message"]
    assert differs.status == 1
    assert "key_len: asked for 1024, registered 2048; start_date: asked for 2027-07-01" in message
    assert "the service has no call to change a key" in message
    [item] = cli(*words, "--selector", "s1", "--format", "json").json["items"]
    assert (item["selector"], item["key_len"]) == ("s1", 1024)


def test_a_start_in_the_past_or_far_away_is_named_with_its_line(cli):
    cli.write("a.yaml", "defaults:\n  start_date: 2020-01-01T00:00+09:00\ndomains: [a.example]\n")
    cli.write("b.csv", "sign_domain,start_date\nb.example,\nc.example,9999-12-31T00:00+09:00\n")
    words = ["register", "--sandbox", "a.yaml", "b.csv"]
    done = cli(*words)
    assert "warning: a.yaml:2: start_date 2020-01-01T00:00+09:00 is in the past, so" in done.err
    assert "warning: b.csv:3: start_date 9999-12-31T00:00+09:00 is more than ten" in done.err
    assert "warning" not in cli(*words).err


def test_selectors_are_assigned_in_all_files(cli):
    cli.write("a.yaml", SPECS)
    cli.write("b.csv", TABLE)
    words = ["register", "--sandbox", "--assign-selector", "x%Y", "--dry-run", "--format", "json"]
    items = json.loads(cli(*words, "a.yaml", "b.csv", "--domain", "e.example").out)["items"]
    chosen = [item["sign_domain"] for item in items if item["selector"].startswith("x2")]
    assert chosen == ["b.example", "d.example", "e.example"]


def test_mistakes_of_all_files_are_reported_in_one_run(cli):
    cli.write("a.yaml", SPECS + "- a_b.example\n")
    cli.write("b.csv", "sign_domain,start_date,selectr\na.example,46204,\nb.example,,\n")
    done = cli("register", "--sandbox", "a.yaml", "b.csv")
    errors = [line for line in done.err.splitlines() if line.startswith("dkimctl: error: ")]
    assert (done.status, done.out) == (2, "")
    assert [error.split(":", 2)[2].split(": ")[0].strip() for error in errors] == [
        "a.yaml:3:3", "b.csv:2:1", "b.csv:2:11", "b.csv:3:1",
    ]  # fmt: skip
    assert "is already on line 2 of a.yaml\nhint: remove one of the two" in done.err
    assert 'dkimctl: warning: b.csv: unknown columns are left out: "selectr"' in done.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "missing argument 'FILE', or option '--domain'"),
        (
            ["a.yaml", "--domain", "x.example", "--key-len", "2048"],
            "--key-len is for --domain and plain",
        ),
        (["--domain", "x.example", "--start-date", "2027-07-01"], "in --start-date: "),
        (["a.yaml", "a.yaml"], "a.yaml is named twice"),
        (["--domain", "x_y.example"], 'in --domain: "x_y.example" contains'),
        (["a.yaml", "--domain", "B.example."], 'in --domain: "b.example" is already on line 2 of'),
    ],
)
def test_what_the_command_line_may_not_say(cli, words, error):
    cli.write("a.yaml", SPECS)
    done = cli("register", "--sandbox", *words)
    assert done.status == 2
    assert f"dkimctl: error: {error}" in done.err
    assert "hint: " in done.err


def test_the_examples_of_the_pages(cli, shell):
    env = {"DKIMCTL_PROFILE": "sandbox"}
    plan = shell(example("cat > domains.csv"), env).stdout
    assert "mail.example.com" in plan
    plan = shell(example("> customers.txt"), env).stdout
    assert plan.count("s2027     pending  2048") == 2
    cli.write("domains.yaml", SPECS)
    cli.write("more.csv", TABLE)
    assert "example.net" in shell(example("domains.yaml more.csv"), env).stdout


def test_a_plan_as_markdown(cli):
    cli.write("b.csv", TABLE)
    cli("register", "--sandbox", "b.csv")
    cli.write("c.csv", TABLE.replace("2048", "1024") + "new.example;;;\r\n")
    words = ["register", "--sandbox", "--format", "markdown", "c.csv"]
    plan = cli(*words, "--dry-run", "--output", "plan.md")
    text = (cli.home / "plan.md").read_text(encoding="utf-8")
    assert plan.status == 1
    assert text.startswith("### DKIM registrations: differs 1, to create 1, exists 1\n")
    assert "| `c.example` | `s1` |" in text
    done = cli(*words)
    assert done.out.startswith("### DKIM registrations: differs 1, created 1, exists 1\n")
    wrong = cli("register", "--sandbox", "--dry-run", "--format", "csv", "c.csv")
    assert (wrong.status, "use --format table, json or markdown" in wrong.err) == (2, True)
