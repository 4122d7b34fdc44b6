"""The commands of README.md and docs/*.md run as they are written there.

test_recipes, test_rotation and test_dns_servers run those that need other programs.
"""

from __future__ import annotations

import json
import re
import shutil

import pytest

from dkimctl.dkim import parse_key_record
from documents import LANGUAGES, PAGES, ROOT, blocks, blocks_in_tests, example
from ports import free_port

SPECS = example("s2026", "yaml")
VENV = "python3 -m venv .venv && . .venv/bin/activate && "
# .ci/run runs this.
TEST_COMMAND = f"{VENV}pip install -c tests/constraints.txt -e '.[service,test]' && pytest -n 4\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_block_is_run_by_a_test(language):
    assert set(blocks(language)) <= {*blocks_in_tests(), TEST_COMMAND}


def test_every_block_has_a_language_that_tests_know():
    fences = re.findall(r"^```(.*)$", "\n".join(PAGES.values()), re.MULTILINE)
    assert set(fences[::2]) == {*LANGUAGES, "ini", "json", "lua", "text"}
    assert set(fences[1::2]) == {""}


def test_each_variable_of_a_block_is_set_on_its_page_before():
    for name, page in PAGES.items():
        known = {"PWD"}
        for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            expanded = re.sub(r"'[^']*'", "", block)
            known |= {*re.findall(r"\b(\w+)=", expanded), *re.findall(r"\bfor (\w+) in", expanded)}
            unknown = {*re.findall(r"\$\{?([A-Za-z_]\w*)", expanded)} - known
            assert not unknown, f"{name}: {unknown} in:\n{block}"


def test_the_first_command_prints_the_table(cli, on_terminal):
    shutil.copy(ROOT / "domains.example.yaml", cli.home)
    install, _, command = example("--sandbox domains.example.yaml").rpartition(" && ")
    assert install == f"{VENV}pip install '.[service]'"  # .ci/run runs that: it needs an index
    status, shown = on_terminal(command.split()[1:])
    assert status == 0
    assert re.search(r"example.com +\S+ +.*created", shown)
    assert "created 3" in shown


@pytest.fixture
def at_service(cli, live_service, account):
    """The variables that the commands use, and the files that they read."""
    cli.write("domains.yaml", SPECS)
    cli.write("secret.txt", account["DKIMCTL_CLIENT_SECRET"] + "\n")
    client_id = account["DKIMCTL_CLIENT_ID"]
    return {
        "AUTH_URL": live_service.url,
        "BASE_URL": live_service.url,
        "CLIENT_ID": client_id,
        "DELIVERY_ID": live_service.operate("delivery", "add", client_id).out.strip(),
    }


def test_the_set_up_is_written_and_checked(cli, shell, at_service, account):
    (cli.home / "domains.yaml").unlink()
    shell(example("dkimctl init --auth-url"), at_service)
    assert cli("register", "--dry-run", "domains.yaml").status == 0
    _, *words = example("dkimctl doctor").split()
    done = cli(*words, env=account)  # its status depends on the resolvers of the machine
    assert re.search(r"(?m)^token +ok +the service issues a token", done.out)


def test_the_spec_file_of_the_readme_is_valid(cli):
    specs = example("s2027", "yaml")
    done = cli("register", "--sandbox", "--dry-run", "--format", "json", "-", stdin=specs)
    assert done.status == 0
    assert [item.get("selector") for item in done.json["items"]] == [None, "s2027"]


def test_login_register_show_dns_and_api(cli, shell, needs_tool, at_service):
    needs_tool("named-checkzone")
    shell(example('"$BASE_URL" --client-id "$CLIENT_ID" \\\n'), at_service)
    done = shell(example("--dry-run domains.yaml"), at_service)
    names = re.findall(r"_domainkey\.(\S+)\. ", done.stdout)
    assert names == ["example.com", "mail.example.com"]
    again = shell(example("--assign-selector"), at_service)
    assert "already there 2" in again.stderr
    shell(example("--format zone --output dkim.zone"), at_service)
    assert (cli.home / "dkim.zone").read_text().count(" IN TXT ") == 2
    shell(example("named-checkzone"), at_service)
    shell(example("--format jsonl"), at_service)
    items = json.loads((cli.home / "records.json").read_text())["items"]
    assert len(items) == 2
    [value] = (item["setting_values"]["value"] for item in items if item["selector"] != "s2026")
    fingerprint = shell(example("sha256sum"), at_service).stdout.strip()
    assert str(parse_key_record(value)) == f"2048 bits, SHA-256 {fingerprint}"
    shell(example("--provider cloudflare"), at_service)
    assert (cli.home / "elsewhere.zone").read_text().count(" IN TXT ") == 2
    cancel = example("dkimctl api").replace("1234", at_service["DELIVERY_ID"])
    assert at_service["DELIVERY_ID"] in shell(cancel, at_service).stdout
    assert cli("logout").status == 0


def test_status_and_a_request_of_curl(cli, shell, needs_tool, at_service, account):
    needs_tool("curl")
    assert "environment" in shell(example("dkimctl status"), account).stdout
    url = f"{at_service['BASE_URL']}/send/{at_service['DELIVERY_ID']}"
    cancel = example("dkimctl token").replace("https://api.example.com/send/1234", url)
    done = shell(cancel, account | {"NO_PROXY": "127.0.0.1"})
    assert at_service["DELIVERY_ID"] in done.stdout


def test_where_each_key_is(cli, shell):
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s1, enable: false}\n")
    assert cli("register", "--sandbox", "one.yaml").status == 0
    done = shell(example("dkimctl list --sort-by due"), {"DKIMCTL_PROFILE": "sandbox"})
    assert done.stdout.count("example.com") >= 1


def test_login_asks_for_the_secret(cli, on_terminal, at_service):
    block = example('--client-id "$CLIENT_ID"\n').splitlines()[-1]
    words = [re.sub(r'"\$(\w+)"', lambda m: at_service[m[1]], word) for word in block.split()[1:]]
    answers = [("Client secret", (cli.home / "secret.txt").read_text().strip())]
    status, shown = on_terminal([*words, "--credential-store", "file"], answers)
    assert status == 0, shown


def test_the_readme_from_top_to_bottom_with_the_service_of_this_machine(cli, shell):
    port = str(free_port())
    cli.write("domains.yaml", example("s2027", "yaml"))
    serve = example("\nAUTH_URL=").replace("8025", port).replace(" &\n", f" &{WAIT}", 1)
    steps = (
        serve,
        example('"$BASE_URL" --client-id "$CLIENT_ID" \\\n'),
        example("--dry-run domains.yaml"),
        example("--format zone --output dkim.zone"),
    )
    done = shell("".join(steps) + STOP, {"PORT": port}, timeout=60)
    assert f"at http://127.0.0.1:{port} (profile default)" in done.stderr
    assert re.search(r"to create 2\n.*created 2\n", done.stderr, re.DOTALL)
    assert (cli.home / "dkim.zone").read_text().count(" IN TXT ") == 2


def test_policies(cli):
    cli.write("config.yaml", example("team customers", "yaml"))
    words = ("--sandbox", "--config", "config.yaml")
    assert cli("register", "--domain", "shop.example", "--domain", "a.example", *words).status == 0
    items = cli("list", "--policy", "--format", "json", *words).json["items"]
    policies = [(item["policy"], item["limit"], item["owner"]) for item in items]
    assert policies == [(2, 50, None), (1, 200, "team customers")]


def test_ci_with_the_environment_alone(cli, shell, at_service, account):
    cli.write("domains.yaml", SPECS.replace("example.", "ci.example."))
    shell(example("DKIMCTL_CLIENT_SECRET="), account)
    assert json.loads((cli.home / "result.json").read_text())["count"] == 2
    assert not list(cli.home.rglob("credentials.json"))


# Until the service answers: it listens a moment before.
WAIT = (
    "\nfor n in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/$PORT; "
    "printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; read -r -t 10 _ <&3) 2>/dev/null && break; "
    "sleep 0.1; done\n"
)
STOP = "\nkill $(jobs -p)\nwait || true"


def test_the_services_own_side(cli, shell):
    port = str(free_port())
    serve = example("client create --data").replace("8025", port)
    cli.write("one.yaml", "- {sign_domain: example.com, selector: s1, key_len: 2048}\n")
    register = "dkimctl register one.yaml\n"
    steps = serve.replace(" &\n", f" &{WAIT}", 1) + register + STOP
    done = shell(steps, {"PORT": port}, timeout=60)
    [client_id] = re.findall(r"(\S+)\tactive", done.stdout)
    assert f"logged in as {client_id} at http://127.0.0.1:{port}" in done.stderr
    [logged] = re.findall(r"request method=POST path=/domain/dkim.*", done.stderr)
    [shown] = [line for block in blocks("text") for line in block.splitlines() if "path=/d" in line]
    assert re.findall(r" (\w+)=", logged) == re.findall(r" (\w+)=", shown)
    assert not (cli.home / "secret.txt").exists()
    names = {"CLIENT_ID": client_id}
    shell(example("client rotate-secret"), names)
    assert (cli.home / "new-secret.txt").stat().st_size > 20
    for name in ("opendkim/dkimctl/opendkim.conf", "rspamd/dkimctl/dkim_signing.conf"):
        (cli.home / name).parents[1].mkdir()
    shell(example("service export").replace("/etc", str(cli.home)), names)
    for name in ("opendkim/dkimctl/opendkim.conf", "rspamd/dkimctl/dkim_signing.conf"):
        assert (cli.home / name).is_file()
    listed = shell(example("service registration"), names).stdout
    assert listed.startswith("example.com\ts1\t")
    assert cli("service", "registration", "list", "--data", "service.db").out == ""
    shell(example("client disable"), names)
    assert "deleted" in cli("service", "client", "list", "--data", "service.db").out


def test_curl_gets_a_token(cli, shell, needs_tool, account):
    needs_tool("curl")
    cli.write("new-secret.txt", account["DKIMCTL_CLIENT_SECRET"] + "\n")
    values = {"CLIENT_ID": account["DKIMCTL_CLIENT_ID"], "URL": account["DKIMCTL_AUTH_URL"]}
    done = shell(example("curl -sS -K -"), values)
    assert json.loads(done.stdout)["token_type"] == "Bearer"


@pytest.mark.nightly
def test_the_benchmarks_run(cli, shell, needs_tool):
    for tool in ("named-checkzone", "nsd", "dig"):
        needs_tool(tool)
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [short] = re.findall(r"^```sh\n(python tests/bench.*?)^```$", page, re.MULTILINE | re.DOTALL)
    short = short.replace("tests/bench", str(ROOT / "tests/bench"))
    short = short.replace("startup.py", "startup.py 1").replace("load.py", "load.py 10")
    short = short.replace("register.py", "register.py 100 1")
    short = short.replace("show_dns.py", "show_dns.py 10 1")
    short = short.replace("check_dns.py", "check_dns.py 10 1")
    short = short.replace("publish.py", "publish.py 50 1")
    done = shell(short, {})
    assert "register --dry-run" in done.stdout
    assert "peer: yaml.load" in done.stdout
    assert "of the bare loop" in done.stdout
    assert "; named-checkzone " in done.stdout
    assert "; dig -f " in done.stdout
    assert "updates alone / nsupdate: " in done.stdout


@pytest.mark.parametrize(
    ("block", "installed"),
    [
        (example("bash > ~/.local"), ".local/share/bash-completion/completions/dkimctl"),
        (example("bash > ~/.dkimctl"), ".dkimctl-completion.bash"),
        (example("zsh > ~/.zfunc"), ".zfunc/_dkimctl"),
        (example("source <(dkimctl completion zsh)"), ".zshrc"),
        (example("fish > ~/.config"), ".config/fish/completions/dkimctl.fish"),
    ],
)
def test_completion(shell, cli, block, installed):
    shell(block, {})
    assert "dkimctl" in (cli.home / installed).read_text()
