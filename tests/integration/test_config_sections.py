"""Commands that do not change DNS leave the config file's targets, keys and secrets alone."""

from __future__ import annotations

import pytest

SECTIONS = """
dns:
  - {provider: rfc2136, server: 192.0.2.1, key_file: /none/tsig.key, zones: [example.com]}
  - {provider: octodns, class: none_such.Provider, settings: {token: env/NONE, key: keyring/none}}
rotation: {max_age: 90d}
notify: {webhook: env/NONE, command: /none/page}
"""


@pytest.fixture
def config(cli):
    """Write the config file."""

    def config(text: str) -> None:
        (cli.home / "config.yaml").write_text(text)

    return config


def run(cli, *words):
    return cli(*words, "--config", "config.yaml")


def test_profiles_and_login_work_as_without_targets(cli, config, account):
    config(SECTIONS)
    done = cli(
        "login", "--auth-url", account["DKIMCTL_AUTH_URL"], "--config", "config.yaml",
        "--base-url", account["DKIMCTL_BASE_URL"], "--client-id", account["DKIMCTL_CLIENT_ID"],
        "--credential-store", "file", "--secret-stdin",
        stdin=account["DKIMCTL_CLIENT_SECRET"] + "\n",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert [one["name"] for one in run(cli, "profile", "list", "-f", "json").json["profiles"]] == [
        "default", "sandbox",
    ]  # fmt: skip
    assert run(cli, "profile", "use", "default").status == 0
    assert run(cli, "profile", "delete", "default", "--yes").status == 0


@pytest.mark.parametrize("fmt", ["table", "json"])
def test_status_shows_nothing_of_dns(cli, config, fmt):
    config("")
    before = run(cli, "status", "--sandbox", "-f", fmt)
    config(SECTIONS)
    assert run(cli, "status", "--sandbox", "-f", fmt) == before
