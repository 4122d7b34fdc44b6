"""The files of docs/deploy: nginx with TLS in front of two machines over one PostgreSQL."""

from __future__ import annotations

import base64
import configparser
import json
import os
import re
import shlex
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest
import yaml

from documents import PAGES, ROOT, unit
from ports import free_port
from processes import LIMIT, Cli, wait_for

if not sys.platform.startswith("linux"):
    pytest.skip("the files are for Linux", allow_module_level=True)

DEPLOY = ROOT / "docs" / "deploy"
PAGE = PAGES["service.md"]
NGINX = (DEPLOY / "nginx.conf").read_text()
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
PROGRAM = "/opt/dkimctl/bin/dkimctl"
NAME = "dkim.example.com"
CLIENT = "127.0.0.9"  # nginx connects to the machines from 127.0.0.1
FORGED = "198.51.100.7"
WHOLE_NGINX = """
daemon off; pid {home}/nginx.pid; error_log {home}/nginx.log; {user}
events {{}}
http {{
    access_log off; client_body_temp_path {home}/body; proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/f; uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
    include {home}/site.conf;
}}
"""


def section(name: str, file: str = "dkimctl-serve.service") -> configparser.SectionProxy:
    """A section of a unit."""
    return unit((DEPLOY / file).read_text())[name]


def unit_command() -> str:
    return "exec " + section("Service")["ExecStart"].replace(
        PROGRAM, shlex.join([sys.executable, "-m", "dkimctl"])
    )


class Machine:
    """A machine of the service: its processes, and what they log."""

    def __init__(self, command: str, cli: Cli, environment: dict[str, str]) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._log = cli.home / f"{self.port}.log"
        assert "8025" in command
        command = command.replace("8025", str(self.port))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-euc", command], cwd=cli.home, env=cli.environment | environment,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_for(lambda: self.ask("/readyz") == 200)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def ask(self, path: str) -> int:
        """The status of a request that does not come through nginx, or 0 without an answer."""
        assert self._process.poll() is None, self.said
        try:
            with closing(HTTPConnection(self.address, timeout=LIMIT)) as connection:
                connection.request("GET", path)
                return connection.getresponse().status
        except ConnectionError:
            return 0

    def kill(self) -> None:
        """End all its processes at once, as a power failure does."""
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(LIMIT)

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(LIMIT)


@pytest.fixture
def certificates(tmp_path, needs_tool) -> Path:
    """A directory with a CA (ca.pem), and a certificate of it for NAME and localhost."""
    script = f"""
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem
    openssl req -newkey rsa:2048 -nodes -subj /CN={NAME} -keyout {NAME}.key -out {NAME}.csr
    echo subjectAltName=DNS:{NAME},DNS:localhost > names
    openssl x509 -req -days 2 -in {NAME}.csr -CA ca.pem -CAkey ca.key -CAcreateserial \\
      -extfile names -out {NAME}.pem
    """
    needs_tool("openssl")
    directory = tmp_path / "tls"
    directory.mkdir()
    subprocess.run(["sh", "-ec", script], cwd=directory, check=True, capture_output=True)
    return directory


@pytest.fixture
def proxy(tmp_path, certificates, needs_tool):
    """Start nginx with the site of docs/deploy, in front of two addresses."""
    with contextmanager(run_nginx)(tmp_path, certificates, needs_tool("nginx")) as start:
        yield start


def run_nginx(home: Path, certificates: Path, program: str) -> Iterator:
    processes = []

    def start(first: str, second: str, site: str = NGINX) -> Proxy:
        port = free_port()
        site = site.replace("dkimctl-a:8025", first).replace("dkimctl-b:8025", second)
        site = site.replace("listen [::]:443 ssl;", "").replace("/etc/nginx/tls", str(certificates))
        site = site.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        (home / "site.conf").write_text(site)
        user = "user root;" if os.geteuid() == 0 else ""
        (home / "all.conf").write_text(WHOLE_NGINX.format(home=home, user=user))
        words = [program, "-c", str(home / "all.conf"), "-e", str(home / "nginx.log")]
        checked = subprocess.run([*words, "-t"], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        assert "[warn]" not in checked.stderr
        processes.append(subprocess.Popen(words))
        wait_for(lambda: can_connect(port))
        return Proxy(port, certificates / "ca.pem")

    yield start
    for process in processes:
        process.terminate()
        process.wait(LIMIT)


def can_connect(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


class Proxy:
    """The URL of nginx, and requests to it from an address of this machine."""

    def __init__(self, port: int, bundle: Path) -> None:
        self.url = f"https://localhost:{port}"
        self._port = port
        self._context = ssl.create_default_context(cafile=bundle)

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: bytes | None = None,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> HTTPResponse:
        connection = HTTPSConnection(
            "localhost", self._port, timeout=LIMIT, context=self._context,
            source_address=(source, 0),
        )  # fmt: skip
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(connection):
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer

    def log_in(self, client_id: str, secret: str, source: str, **headers: str) -> HTTPResponse:
        credentials = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        return self.ask(
            "/oauth2/token", "POST", b"grant_type=client_credentials", source,
            Authorization=f"Basic {credentials}",
            Content_Type="application/x-www-form-urlencoded", **headers,
        )  # fmt: skip


@pytest.fixture
def environment(postgresql_database) -> dict[str, str]:
    return {
        "DKIMCTL_SERVICE_DATABASE": postgresql_database.text,
        "DKIMCTL_SERVICE_PASSPHRASE": "a passphrase for tests",
    }


@pytest.fixture
def machines(cli, environment):
    """Two machines, which run the command of the unit."""
    machines: list[Machine] = []
    try:
        for _ in range(2):
            machines.append(Machine(unit_command(), cli, environment))  # noqa: PERF401
        yield machines
    finally:
        for machine in machines:
            machine.kill()


@pytest.fixture
def service(proxy, machines) -> Proxy:
    return proxy(*(machine.address for machine in machines))


@pytest.fixture
def account(service, cli, environment, certificates) -> tuple[str, str]:
    """ID and secret of a client, with a profile for it."""
    done = cli("service", "client", "create", env=environment)
    assert done.status == 0, done.err
    created = done.json
    cli.write("config.yaml", f"profiles: {{default: {{ca_bundle: {certificates}/ca.pem}}}}\n")
    return created["client_id"], created["client_secret"]


def test_a_machine_that_dies_loses_nothing(service, machines, cli, environment, account):
    client_id, secret = account
    config = ("--config", "config.yaml")
    done = cli(
        "login", "--auth-url", service.url, "--base-url", service.url, "--client-id", client_id,
        "--credential-store", "file", "--secret-stdin", *config, stdin=secret,
    )  # fmt: skip
    assert (done.status, "warning" in done.err) == (0, False), done.err
    entry = "- {{sign_domain: d{}.example.com, selector: s1, key_len: 2048}}\n"
    cli.write("domains.yaml", "".join(entry.format(number) for number in range(200)))
    words = ("register", "domains.yaml", "--batch-size", 4, "--format", "json", *config)
    with (cli.home / "out.json").open("wb") as out, (cli.home / "err").open("wb") as err:
        register = cli.start(*words, stdout=out, stderr=err)
        wait_for(lambda: all(machine.said.count("/domain/dkim") > 1 for machine in machines))
        machines[0].kill()
        assert register.poll() is None
        assert register.wait(LIMIT) == 0, (cli.home / "err").read_text()
    items = json.loads((cli.home / "out.json").read_text())["items"]
    keys = {item["sign_domain"]: item["setting_values"]["value"] for item in items}
    assert len(keys) == 200
    again = cli(*words, env={"DKIMCTL_STATE_DIR": str(cli.home / "new"),
                             "DKIMCTL_AUTH_URL": service.url, "DKIMCTL_BASE_URL": service.url,
                             "DKIMCTL_CLIENT_ID": client_id,
                             "DKIMCTL_CLIENT_SECRET": secret})  # fmt: skip
    assert again.status == 0, again.err
    assert {item["sign_domain"]: item["setting_values"]["value"]
            for item in again.json["items"]} == keys  # fmt: skip
    assert machines[1].stop() == 0
    assert service.ask("/healthz").status == 502
    assert secret not in "".join(machine.said for machine in machines)


def test_logins_are_slowed_down_by_address_and_the_address_of_a_client_is_its_own(
    service, machines, account
):
    client_id, secret = account
    statuses = [
        service.log_in(client_id, "guess", CLIENT, X_Forwarded_For=f"{FORGED}{number}").status
        for number in range(40)
    ]
    assert set(statuses) == {400, 429}
    assert statuses.count(400) < 30  # 20 at once, and one a second
    assert service.log_in(client_id, secret, "127.0.0.1").status == 200  # others may log in
    said = "".join(machine.said for machine in machines)
    failed = re.findall(r"path=/oauth2/token status=400 .* address=(\S+) client_id=(\S+) ", said)
    assert failed == [(CLIENT, client_id)] * statuses.count(400)
    assert FORGED not in said
    assert all("address=127.0.0.9" in machine.said for machine in machines)


def test_what_is_not_for_clients_does_not_reach_the_machines(proxy, scripted_server, make_answer):
    scripted_server.answer = lambda request: make_answer(200)
    address = scripted_server.url.removeprefix("http://")
    service = proxy(address, address)
    for path in ("/readyz", "//readyz", "/%72eadyz", "/x/../readyz"):
        assert service.ask(path).status == 404, path
    assert scripted_server.requests == []
    assert service.ask("/healthz").status == 200


def test_nginx_and_the_service_have_the_same_limit_of_a_body(service):
    limit = 128 * 1024
    for size, kind in ((limit, "application/json"), (limit + 1, "text/html")):
        answer = service.ask("/oauth2/token", "POST", b"x" * size)
        assert answer.status in (400, 413)
        assert answer.getheader("Content-Type").partition(";")[0] == kind


def test_a_request_that_was_sent_is_not_sent_to_another_machine(proxy, scripted_server):
    """Both machines read a request and hang up."""
    scripted_server.answer = lambda request: None
    address = scripted_server.url.removeprefix("http://")
    service = proxy(address, address)
    assert service.ask("/domain/dkim", "POST", b"{}").status == 502
    assert len(scripted_server.requests) == 1


def test_a_machine_that_is_off_costs_no_request(proxy, scripted_server, make_answer):
    scripted_server.answer = lambda request: make_answer(200, {"message": "OK"})
    address = scripted_server.url.removeprefix("http://")
    service = proxy(f"127.0.0.1:{free_port()}", address)
    answers = [service.ask("/domain/dkim", "POST", b"{}").status for _ in range(10)]
    assert answers == [200] * 10
    assert len(scripted_server.requests) == 10
    forwarded = scripted_server.requests[0].headers
    assert (forwarded["x-forwarded-for"], len(forwarded["x-request-id"])) == ("127.0.0.1", 32)
    assert forwarded["connection"] == "close"


def test_systemd_accepts_the_units(tmp_path, needs_tool):
    [drop_in] = re.findall(r"^```ini\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    units = {path.name: path.read_text() for path in DEPLOY.glob("dkimctl-*.*")}
    units["dkimctl-serve.service.d/override.conf"] = drop_in
    assert len(units) == 4
    (tmp_path / "dkimctl-serve.service.d").mkdir()
    for name, text in units.items():
        (tmp_path / name).write_text(text.replace(PROGRAM, "/bin/true"))
    analyze = needs_tool("systemd-analyze")
    paths = [tmp_path / name for name in units if not name.endswith(".conf")]
    done = subprocess.run([analyze, "verify", "--man=no", *paths], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    words = [analyze, "security", "--offline=yes", "--threshold=20"]  # 2.0 of 10
    done = subprocess.run([*words, tmp_path / "dkimctl-serve.service"], capture_output=True)
    assert done.returncode == 0, done.stdout


def test_the_export_of_the_unit(cli, environment):
    """Without opendkim's group, which is not everywhere."""
    assert cli("service", "client", "create", env=environment).status == 0
    words = section("Service", "dkimctl-export.service")["ExecStart"].split()
    assert words[:3] == [PROGRAM, "service", "export"]
    del words[words.index("--group") : words.index("--group") + 2]
    words[words.index("/etc/opendkim/dkimctl")] = str(cli.home / "keys")
    assert cli(*words[1:], env=environment) == (0, "", "")
    assert (cli.home / "keys" / "opendkim.conf").is_file()


def test_systemd_is_told_when_the_service_is_ready_and_stops_it(cli, environment):
    """As `Type=notify` and `KillMode=mixed` have it."""
    assert (section("Service")["Type"], section("Service")["KillMode"]) == ("notify", "mixed")
    path = str(cli.home / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(path)
        notified.settimeout(LIMIT)
        machine = Machine(unit_command(), cli, environment | {"NOTIFY_SOCKET": path})
        try:
            assert b"READY=1" in notified.recv(4096).splitlines()
            assert machine.stop() == 0
        finally:
            machine.kill()


def test_the_image_has_what_it_needs_and_its_health_is_checked(cli, environment):
    """Docker is not needed: its instructions, run here."""
    copied = " ".join(re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE)).split()
    assert all((ROOT / name).exists() for name in copied)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text()
    assert sorted(re.findall(r"^!(.*)$", ignored, re.MULTILINE)) == sorted(copied)
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)[1])
    words = json.loads(re.search(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[1])
    check = json.loads(re.search(r"^  CMD (.*)$", DOCKERFILE, re.MULTILINE)[1])
    command = "exec " + shlex.join([*entry, *words, "--port", "8025"])
    machine = Machine(command, cli, environment | {"HOME": "/nonexistent"})
    check = [word.replace("8025", str(machine.port)) for word in check]
    try:
        assert subprocess.run(check, env=cli.environment).returncode == 0
        assert machine.stop() == 0
        dead = subprocess.run(check, env=cli.environment, capture_output=True)
        assert dead.returncode == 1
    finally:
        machine.kill()


def test_the_composition_fits_together(cli):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    upstream = re.findall(r"^ +server (\S+):(\d+) ", NGINX, re.MULTILINE)
    assert upstream == [("dkimctl-a", "8025"), ("dkimctl-b", "8025")]
    addresses = [one["networks"]["inside"]["ipv4_address"] for one in services.values()
                 if isinstance(one["networks"], dict)]  # fmt: skip
    assert len(addresses) == len(set(addresses)) == 3
    proxy = services["proxy"]
    assert [volume.split(":")[0] for volume in proxy["volumes"]] == ["./nginx.conf", "./tls"]
    for name, _ in upstream:
        one = services[name]
        trusted = one["command"][one["command"].index("--trusted-proxy") + 1]
        assert trusted == proxy["networks"]["inside"]["ipv4_address"]
        assert (DEPLOY / one["build"]["context"] / one["build"]["dockerfile"]).is_file()
        refused = cli(*one["command"], "--data", "no/such/directory/service.db")
        assert "no/such/directory" in refused.err  # so the options are known
