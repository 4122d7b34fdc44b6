"""The GitHub action and the GitLab jobs: their scripts run against the embedded service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid

import pytest
import yaml

from documents import ROOT, example

if sys.platform == "win32":
    pytest.skip("the scripts are for bash", allow_module_level=True)

DEPLOY = ROOT / "docs" / "deploy"
ACTION = yaml.safe_load((DEPLOY / "github-action" / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
GITLAB = yaml.safe_load((DEPLOY / "gitlab-ci.yml").read_text())
WORKFLOW = yaml.safe_load(example("uses: dkimctl/dkimctl", "yaml"))
INCLUDE = yaml.safe_load(example("local: gitlab-ci.yml", "yaml"))
SPECS = "- {sign_domain: a.example, selector: s1, key_len: 2048, enable: false}\n"
TABLE = "sign_domain,selector,enable\nb.example,s1,FALSE\n"
HOSTILE = "$(touch owned) `touch owned`; touch owned #' \""
MARKER = "<!-- dkimctl -->"
# Plays `gh api`: comments are in a file; jq, which gh has inside, chooses those that are asked for.
GH = r"""#!/usr/bin/env bash
set -euo pipefail
printf '%s\n' "$*" >> "$GH_HOME/calls"
[ ! -f "$GH_HOME/broken" ] || { echo 'HTTP 403' >&2; exit 1; }
[ -n "$GH_TOKEN" ]
for word; do case $word in body=@*) body=${word#body=@} ;; esac; done
case "$*" in
  'api --paginate repos/o/r/issues/7/comments --jq '*) jq "${@: -1}" "$GH_HOME/comments.json" ;;
  'api --silent --method PATCH repos/o/r/issues/comments/42 '*) cp "$body" "$GH_HOME/updated" ;;
  'api --silent --method POST repos/o/r/issues/7/comments '*) cp "$body" "$GH_HOME/posted" ;;
  *) exit 9 ;;
esac
"""


class Runner:
    """Runs the steps of the action as a runner does, in `workspace`."""

    def __init__(self, cli, account) -> None:
        self.workspace, self.temp = cli.home / "work", cli.home / "temp"
        self.gh = cli.home / "gh"
        self.zone = f"{uuid.uuid4().hex}.example"  # the service is that of other tests, too
        self._cli, self._account = cli, account
        for folder in (self.workspace, self.temp, self.gh):
            folder.mkdir()
        self.summary = self.temp / "summary.md"
        program = self.temp / "gh"
        program.write_text(GH)
        program.chmod(0o755)
        self.comment_list()

    def comment_list(self, *comments) -> None:
        (self.gh / "comments.json").write_text(json.dumps(comments))

    def write(self, **files: str) -> None:
        for name, text in files.items():
            unique = text.replace(".example", f".{self.zone}")
            (self.workspace / name.replace("_", ".")).write_text(unique)

    def __call__(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        account = self._account
        known = {
            "auth-url": account["DKIMCTL_AUTH_URL"],
            "base-url": account["DKIMCTL_BASE_URL"],
            "client-id": account["DKIMCTL_CLIENT_ID"],
            "client-secret": account["DKIMCTL_CLIENT_SECRET"],
            "token": "a-token",
        }
        defaults = {key: value.get("default") for key, value in ACTION["inputs"].items()}
        values = {f"inputs.{key}": value for key, value in (defaults | known | inputs).items()}
        values |= {"runner.temp": str(self.temp), "github.event.number": "7"}
        env = {
            key: re.sub(r"\$\{\{ (\S+) \}\}", lambda word: values[word[1]], text)
            for key, text in step["env"].items()
        }
        return self.bash(step["run"], env)

    def bash(self, script: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(self.temp), self._cli.environment["PATH"]])
        runner = {
            "PATH": path, "RUNNER_TEMP": str(self.temp), "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_REPOSITORY": "o/r",
            "GH_HOME": str(self.gh),
        }  # fmt: skip
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.workspace, env=self._cli.environment | runner | env, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip


@pytest.fixture
def runner(cli, account, needs_tool):
    needs_tool("bash")
    needs_tool("jq")
    return Runner(cli, account)


FILES = "domains.yaml\n\nb.csv\n"


def test_a_plan_is_posted_and_then_updated(runner):
    runner.write(domains_yaml=SPECS, b_csv=TABLE)
    done = runner("Plan", files=FILES)
    assert done.returncode == 0, done.stderr
    posted = (runner.gh / "posted").read_text()
    assert posted.startswith(f"{MARKER}\n### DKIM registrations: to create 2\n")
    assert posted == runner.summary.read_text()
    runner.comment_list(
        {"id": 40, "user": {"type": "User"}, "body": f"{MARKER} not ours"},
        {"id": 41, "user": {"type": "Bot"}, "body": f"about {MARKER}"},
        {"id": 42, "user": {"type": "Bot"}, "body": posted},
        {"id": 43, "user": {"type": "Bot"}, "body": posted},
    )
    assert runner("Plan", files=FILES).returncode == 0
    assert (runner.gh / "updated").read_text() == posted
    assert sum(" --method POST " in call for call in _calls(runner)) == 1


def test_the_plan_compares_with_what_the_default_branch_has_registered(runner):
    runner.write(domains_yaml=SPECS, b_csv=TABLE)
    done = runner("Register", files=FILES)
    assert done.returncode == 0, done.stderr
    assert "### DKIM registrations: created 2\n" in runner.summary.read_text()
    runner.write(domains_yaml=SPECS.replace("2048", "1024"), b_csv=TABLE + "c.example,s1,FALSE\n")
    done = runner("Plan", files=FILES)
    assert done.returncode == 1
    assert "differs 1, to create 1, exists 1" in (runner.gh / "posted").read_text()
    done = runner("Register", files=FILES)
    assert done.returncode == 1
    assert "differs 1, created 1, exists 1" in runner.summary.read_text()


def test_mistakes_in_a_file_are_posted_as_code(runner):
    runner.write(domains_yaml="- a_b.example\n- '@all #1 ```'\n")
    done = runner("Plan")
    assert done.returncode == 2
    posted = (runner.gh / "posted").read_text()
    heading, text = posted.split("\n\n", 1)
    assert heading == f"{MARKER}\n### DKIM registrations: no plan (exit code 2)"
    assert "    dkimctl: error: domains.yaml:1:3: " in text
    assert all(line.startswith("    ") for line in text.splitlines())
    assert "dkimctl: error: domains.yaml:1:3: " in done.stderr


def test_a_token_that_may_only_read_leaves_the_summary(runner):
    runner.write(domains_yaml=SPECS)
    (runner.gh / "broken").touch()
    done = runner("Plan")
    assert done.returncode == 0
    assert "::warning::cannot comment" in done.stdout
    assert "to create 1" in runner.summary.read_text()


def test_the_selector_is_for_entries_without_one(runner):
    runner.write(domains_yaml="- {sign_domain: a.example, enable: false}\n")
    assert runner("Plan", selector="s2027").returncode == 0
    assert f"| `a.{runner.zone}` | `s2027` |" in (runner.gh / "posted").read_text()
    for _ in range(2):
        assert runner("Register", selector="s2027").returncode == 0
    assert "`s2027`" in runner.summary.read_text()


def test_a_wrong_secret_is_3_and_a_missing_target_2(runner):
    runner.write(domains_yaml=SPECS)
    assert runner("Register", **{"client-secret": "wrong"}).returncode == 3
    done = runner("Register", publish="true")
    assert done.returncode == 2, done.stderr
    assert "dns" in done.stderr


@pytest.mark.parametrize("name", ["Plan", "Register"])
def test_inputs_are_data(runner, name):
    runner.write(domains_yaml=SPECS)
    for key in ("files", "selector", "publish", "config"):
        runner(name, **{key: HOSTILE})
    assert not [*runner.workspace.rglob("owned"), *runner.temp.rglob("owned")]


def test_the_secret_is_given_to_no_step_but_register(runner):
    with_secret = [name for name, step in STEPS.items() if "secret" in str(step)]
    assert with_secret == ["Register"]
    secret = runner._account["DKIMCTL_CLIENT_SECRET"]
    runner.write(domains_yaml=SPECS)
    done = runner("Register")
    assert secret not in done.stdout + done.stderr + runner.summary.read_text()
    for path in runner.temp.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()


def test_no_expression_is_in_a_script():
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert len(scripts) == 3
    assert all("${{" not in script for script in scripts)
    assert all(step.get("shell") == "bash" for step in STEPS.values() if "run" in step)


def test_the_action_installs_the_repository_that_it_is_in():
    path = re.search(
        r'install --quiet "\$GITHUB_ACTION_PATH/([./]+)"', STEPS["Install dkimctl"]["run"]
    )
    folder = DEPLOY / "github-action" / path[1]
    assert (folder.resolve() / "pyproject.toml").is_file()


def test_the_workflow_of_the_page_uses_the_action_with_its_inputs():
    [checkout, step] = WORKFLOW["jobs"]["dkim"]["steps"]
    assert checkout["uses"].startswith("actions/checkout@")
    folder = step["uses"].removeprefix("dkimctl/dkimctl/").partition("@")[0]
    assert (ROOT / folder / "action.yml").is_file()
    required = {key for key, value in ACTION["inputs"].items() if value.get("required")}
    assert required <= step["with"].keys() <= ACTION["inputs"].keys()
    assert WORKFLOW["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert step["with"]["client-secret"].startswith("${{ github.event_name == 'push' && secrets.")


def gitlab(runner, job: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a job as GitLab does, with the variables of the file and of the page."""
    defaults = GITLAB["variables"] | INCLUDE["variables"]
    [script] = GITLAB[job]["script"]
    return runner.bash(script, defaults | runner._account | variables)


def test_the_jobs_of_gitlab_plan_and_register(runner):
    runner.write(domains_yaml=SPECS, more_csv=TABLE)
    plan = gitlab(runner, "dkim-plan", DKIMCTL_CLIENT_SECRET="")
    assert plan.returncode == 0, plan.stderr
    assert "to create 2" in (runner.workspace / "plan.md").read_text()
    assert gitlab(runner, "dkim-register").returncode == 0
    items = json.loads((runner.workspace / "result.json").read_text())["items"]
    assert [item["outcome"] for item in items] == ["created", "created"]
    runner.write(domains_yaml=SPECS.replace("2048", "1024"))
    assert gitlab(runner, "dkim-plan").returncode == 1
    assert gitlab(runner, "dkim-register").returncode == 1
    runner.write(domains_yaml="- a_b\n")
    assert gitlab(runner, "dkim-plan").returncode == 2
    runner.write(domains_yaml="- {sign_domain: c.example, enable: false}\n")
    assert gitlab(runner, "dkim-register", DKIM_SELECTOR="s2027").returncode == 0
    assert '"s2027"' in (runner.workspace / "result.json").read_text()
    assert gitlab(runner, "dkim-register", DKIM_PUBLISH="true").returncode == 2


@pytest.mark.parametrize("job", ["dkim-plan", "dkim-register"])
def test_variables_of_gitlab_are_data(runner, job):
    runner.write(domains_yaml=SPECS)
    for key in ("DKIM_FILES", "DKIM_SELECTOR", "DKIM_PUBLISH"):
        gitlab(runner, job, **{key: HOSTILE})
    assert not [*runner.workspace.rglob("owned")]


def test_the_plan_of_the_page(cli, shell):
    cli.write("domains.yaml", SPECS)
    env = {"DKIMCTL_PROFILE": "sandbox"}
    shell(example("register --dry-run --output plan.md"), env)
    assert "to create 1" in (cli.home / "plan.md").read_text()


def _calls(runner) -> list[str]:
    return (runner.gh / "calls").read_text().splitlines()
