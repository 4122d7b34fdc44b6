"""check-dns for monitors: Prometheus, Grafana, Nagios and Icinga."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dns_servers import serving
from documents import PAGES, ROOT, example, unit
from ports import free_port
from published import APEX, published, register, txt

MONITORING = ROOT / "docs" / "monitoring"
RULES = MONITORING / "dkimctl.rules.yml"
PROGRAM = "/opt/dkimctl/bin/dkimctl"
DIRECTORY = "/var/lib/prometheus/node-exporter"
THREE = ("example.com", "a.example.com", "b.example.com")
NAMED = r"\bdkimctl_\w+"


@pytest.fixture
def serve(needs_tool, tmp_path):
    """Serve these records of example.com by BIND."""

    def serve(records: str):
        zone = tmp_path / "zone"
        zone.write_text(APEX + records)
        return serving("named", zone, tmp_path, needs_tool)

    return serve


@pytest.fixture
def check(cli):
    def check(server, fmt, *words):
        return cli("check-dns", "--sandbox", "--server", server, "--format", fmt, *words)

    return check


def samples(text: str) -> dict[tuple[str, ...], float]:
    """The values by name and labels but the profile, read by the library's own parser."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert (family.type, bool(family.documentation)) == ("gauge", True)
        for sample in family.samples:
            assert sample.labels.pop("profile") == "sandbox"
            found[sample.name, *sample.labels.values()] = sample.value
    return found


def promtool(needs_tool, *words, **options) -> str:
    words = [needs_tool("promtool"), *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_metrics_of_what_is_published_missing_and_urgent(cli, serve, check, needs_tool):
    began = time.time()
    values = register(cli, *THREE, more="enable: true")
    records = {name: values[name] for name in THREE[:2]}
    with serve(published(records)) as server:
        done = check(server, "prometheus")
    assert done.status == 1
    assert promtool(needs_tool, "check", "metrics", input=done.out) == ""
    found = samples(done.out)
    assert found["dkimctl_keys", "published"] == 2
    assert found["dkimctl_keys", "missing"] == 1
    assert found["dkimctl_keys", "mismatch"] == 0
    assert found["dkimctl_urgent_keys", "signing"] == 1
    assert found["dkimctl_urgent_keys", "soon"] == 0
    problems = [labels[1:] for labels in found if labels[0] == "dkimctl_key_problem"]
    assert [set(labels) for labels in problems] == [
        {"b.example.com", "s1", "missing", "signing", ""}
    ]
    assert began - 60 < found["dkimctl_oldest_key_timestamp_seconds",] < time.time()
    assert began < found["dkimctl_check_timestamp_seconds",] < time.time()
    assert 0 < found["dkimctl_check_duration_seconds",] < 60
    assert "a.example.com" not in done.out


def test_the_file_of_metrics_can_be_read_by_others_and_stays_on_failure(cli, shell, serve):
    values = register(cli, *THREE)
    metrics = cli.home / "dkimctl.prom"
    with serve(published(values)) as server:
        more = f" --sandbox --server {server}"
        command = example("node-exporter/dkimctl.prom").strip() + more
        shell(f"umask 077; {command.replace('/var/lib/prometheus/node-exporter/', '')}", {})
    assert samples(metrics.read_text())["dkimctl_keys", "published"] == 3
    assert metrics.stat().st_mode & 0o777 == 0o644
    before = metrics.read_bytes()
    failed = cli("check-dns", "--profile", "x", "--format", "prometheus", "-o", "dkimctl.prom")
    assert (failed.status, metrics.read_bytes()) == (2, before)


def plugin_says(done) -> tuple[int, str]:
    """The exit status, and the line, which is as the guidelines ask for."""
    line = done.out
    assert line.endswith("\n")
    assert line.count("\n") == 1
    state = re.match(r"DKIM (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+", line)
    assert ("OK", "WARNING", "CRITICAL", "UNKNOWN").index(state[1]) == done.status
    _, bar, data = line.partition(" | ")
    number = r"-?\d+(\.\d+)?"
    for word in data.split() if bar else ():
        assert re.fullmatch(rf"\w+={number}s?(;({number})?){{0,4}}", word), word
    return done.status, line


def test_a_plugin_that_says_ok_warning_critical_and_unknown(cli, shell, serve, check):
    values = register(cli, *THREE)
    with serve(published(values)) as server:
        command = example("check-dns --format nagios").strip()
        line = shell(f"{command} --sandbox --server {server}", {}).stdout
        assert line.startswith("DKIM OK - 3 of 3 published | published=3;;;0;3 wrong=0;0;;0;3 ")
        status, line = plugin_says(check(server, "nagios", "example.com", "unknown.example"))
        assert (status, "some were not checked" in line) == (1, True)
    with serve(published({name: values[name] for name in THREE[1:]})) as server:
        status, line = plugin_says(check(server, "nagios"))
        assert (status, "2 of 3 published, example.com (selector s1) missing" in line) == (1, True)
    nobody = f"127.0.0.1:{free_port()}"
    assert plugin_says(check(nobody, "nagios"))[0] == 3
    register(cli, "now.example.com", more="enable: true")
    with serve(published(values)) as server:
        status, line = plugin_says(check(server, "nagios"))
    assert (status, "1 signing without DNS" in line) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ["--no-such-option"],
        ["--sandbox"],  # nothing is registered
        ["--sandbox", "--server", "not|an address"],
        [],
    ],
    ids=" ".join,
)
def test_a_plugin_that_fails_is_unknown_and_says_so_on_one_line(cli, words):
    done = cli("check-dns", "--format", "nagios", *words)
    assert plugin_says(done)[0] == 3
    assert "\nhint: " in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_plugin_whose_line_cannot_be_written_is_unknown(cli):
    words = ("check-dns", "--sandbox", "--format", "nagios", cli.write("none.yaml", "[]"))
    assert cli(*words).status == 0
    assert cli(*words, "--output", "/dev/full").status == 3


def test_prometheus_accepts_the_rules_and_they_fire_when_they_should(needs_tool):
    assert "SUCCESS: 10 rules found" in promtool(needs_tool, "check", "rules", RULES)
    tests = ROOT / "tests" / "fixtures" / "monitoring" / "rules.test.yml"
    promtool(needs_tool, "test", "rules", tests)
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())
    assert set(alerts) == set(re.findall(r"alertname: (\w+)", tests.read_text()))


def test_rules_dashboard_and_page_use_only_metrics_and_labels_that_are_written(cli, check):
    register(cli, *THREE, more="enable: true")
    out = check("127.0.0.1:1", "prometheus").out
    written = set(re.findall(r"^# TYPE (\w+)", out, re.MULTILINE))
    texts = RULES.read_text() + (MONITORING / "grafana.json").read_text().replace('\\"', '"')
    labels = set(re.findall(r'((?:urgency|verdict)="[^"]*")', texts))
    assert len(labels) == 4
    assert labels <= set(re.findall(r'(\w+="[^"]*")', out))
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(queries) == len(dashboard["panels"]) > 5
    queries += [one["query"] for one in dashboard["templating"]["list"]]
    assert set(re.findall(NAMED, "\n".join(queries))) == written
    assert set(re.findall(rf"expr:.*?({NAMED})", RULES.read_text())) <= written
    assert set(re.findall(r"^\| `(dkimctl_\w+)`", PAGES["timers.md"], re.MULTILINE)) == written


def section(file: str, name: str) -> configparser.SectionProxy:
    return unit((MONITORING / file).read_text())[name]


def test_systemd_accepts_the_units(tmp_path, needs_tool):
    paths = [tmp_path / f"dkimctl-check.{kind}" for kind in ("service", "timer")]
    for path in paths:
        path.write_text((MONITORING / path.name).read_text().replace(PROGRAM, "/bin/true"))
    analyze = needs_tool("systemd-analyze")
    done = subprocess.run([analyze, "verify", "--man=no", *paths], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = [analyze, "security", "--offline=yes", "--threshold=20"]  # 2.0 of 10
    done = subprocess.run([*words, paths[0]], capture_output=True)
    assert done.returncode == 0, done.stdout
    calendar = section("dkimctl-check.timer", "Timer")["OnCalendar"]
    done = subprocess.run([analyze, "calendar", "--iterations=2", calendar], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_command_of_the_unit_writes_metrics(cli, serve):
    values = register(cli, *THREE)
    service = section("dkimctl-check.service", "Service")
    assert service["ReadWritePaths"] == DIRECTORY
    words = service["ExecStart"].replace(DIRECTORY, str(cli.home))
    assert f"{words.replace(str(cli.home), DIRECTORY).removeprefix(PROGRAM)}" in PAGES["timers.md"]
    command = words.replace(PROGRAM, shlex.join([sys.executable, "-m", "dkimctl"]))
    with serve(txt("s1._domainkey.example.com", values["example.com"])) as server:
        command += f" --sandbox --server {server}"
        done = subprocess.run(command.split(), env=cli.environment, capture_output=True)
    assert str(done.returncode) in service["SuccessExitStatus"].split()
    assert samples((cli.home / "dkimctl.prom").read_text())["dkimctl_keys", "missing"] == 2


@pytest.mark.parametrize("name", ["nagios.cfg", "icinga2.conf"])
def test_monitors_run_the_command_of_the_page(name):
    text = re.sub(r'["\[\],]', " ", (MONITORING / name).read_text())
    command = "/usr/local/sbin/dkimctl check-dns --format nagios"
    assert command in " ".join(text.split())
    assert f"NOPASSWD: {command}\n" in PAGES["timers.md"]
