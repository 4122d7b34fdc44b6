"""Secrets for DNS leak into no stream and no file, whatever goes wrong."""

from __future__ import annotations

import base64
from subprocess import PIPE

import pytest

from dns_servers import serving
from loose_talk import SITE
from ports import free_port
from published import APEX, register

SECRET = base64.b64encode(b"s3cr3t of the DNS leak test 4711").decode()
FORMS = {SECRET, SECRET.rstrip("="), base64.b64decode(SECRET).decode(), SECRET[8:40]}
KEY = f'key "dkim" {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n'
DYNAMIC = "dns: [{provider: rfc2136, server: SERVER, key_file: tsig.key, profiles: [sandbox]}]\n"
OCTODNS = (
    "dns: [{provider: octodns, class: octodns.none.Provider, settings: SETTINGS, "
    "profiles: [sandbox]}]\n"
)
FAILURES = [
    (DYNAMIC, KEY, 3, "BADSIG"),  # of the server, whose key has another secret
    (DYNAMIC, KEY.replace("dkim", "other"), 3, "BADKEY"),
    (DYNAMIC.replace("SERVER", f"127.0.0.1:{free_port()}"), KEY, 4, "cannot connect"),
    (
        OCTODNS.replace("SETTINGS", "{a: env/DNS_TOKEN, token: keyring/mine}"), KEY, 3,
        "cannot read keyring/mine: this machine has no keyring",
    ),
]  # fmt: skip
RUNS = (["--yes", "-v"], ["--dry-run", "--format", "json"], ["--check-access", "-v"])


@pytest.fixture
def run(cli):
    """Publish, and search what is shown and stored, also the local variables of tracebacks."""
    cli.at_start(SITE)
    register(cli, "example.com", more="enable: true, start_date: 2036-01-01T00:00+00:00")

    def run(*words, config, key=KEY, **environment):
        cli.write("config.yaml", config)
        (cli.home / "tsig.key").write_text(key)
        (cli.home / "tsig.key").chmod(0o600)
        environment |= {
            "DKIMCTL_DEBUG": "1",
            "DNS_TOKEN": SECRET,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }
        words = ["publish", "--sandbox", "--config", "config.yaml", *words]
        command = cli.start(*words, env=cli.environment | environment, stdout=PIPE, stderr=PIPE)
        out, err = (stream.decode() for stream in command.communicate(timeout=60))
        for path in cli.home.rglob("*"):
            if path.is_file() and path.name not in ("tsig.key", "config.yaml"):
                assert not any(form.encode() in path.read_bytes() for form in FORMS), path
        assert not any(form in out + err for form in FORMS), out + err
        return command.returncode, out, err

    return run


@pytest.fixture
def server(tmp_path, needs_tool):
    """named, whose key has another secret."""
    zone = tmp_path / "example.zone"
    zone.write_text(APEX)
    with serving("named", zone, tmp_path, needs_tool) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("words", RUNS)
@pytest.mark.parametrize(
    ("config", "key", "status", "reason"), FAILURES, ids=[failure[-1] for failure in FAILURES]
)
def test_a_target_that_fails(run, server, words, config, key, status, reason):
    done, out, err = run(*words, config=config.replace("SERVER", str(server)), key=key)
    assert (done, reason in out + err) == (status, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    ["key dkim { secret {} };", "{}", "{}:dkim:hmac-sha256", "hmac-sha256:dkim:{}!", "key: {}"],
)
def test_a_key_file_that_is_wrong(run, form):
    key = form.replace("{}", SECRET)
    status, _, err = run("--yes", "-v", config=DYNAMIC.replace("SERVER", "127.0.0.1"), key=key)
    assert status == 2
    assert "tsig.key: " in err


@pytest.mark.slow
def test_a_secret_that_is_written_out(run):
    settings = f"{{token: '{SECRET}', url: 'x://{SECRET}@h'}}"
    config = OCTODNS.replace("SETTINGS", settings)
    status, _, err = run("--yes", config=config)
    assert status == 2
    assert "secrets are not allowed in this file" in err
