"""Valid values are the same from every source, and errors never quote a misplaced secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from dkimctl.errors import UsageError
from dkimctl.settings.values import CHECKS, is_reference

HTTPS = "https://auth.example"


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [("auth_url", "https://auth.example/", HTTPS),
     ("auth_url", "https://auth.example:8443/stage/", "https://auth.example:8443/stage"),
     ("base_url", "http://localhost:8080", "http://localhost:8080"),
     ("base_url", "http://[::1]:8080/", "http://[::1]:8080"), ("batch_size", 1, 1),
     ("batch_size", "10000", 10_000), ("concurrency", "64", 64), ("timeout", "30", 30.0),
     ("timeout", "0.5s", 0.5), ("max_wait", "5m", 300.0), ("max_wait", "1h", 3600.0),
     ("proxy", "http://proxy.example:3128", "http://proxy.example:3128"),
     ("ledger", "postgres://me@DB.example:5433/ledger",
      "postgresql://me@db.example:5433/ledger?sslmode=verify-full"),
     ("ledger", "postgresql://db.example/l?sslrootcert=/ca.pem&sslmode=verify-ca",
      "postgresql://db.example/l?sslrootcert=/ca.pem&sslmode=verify-ca"),
     ("ledger", "postgresql://[::1]/ledger", "postgresql://[::1]/ledger"),
     ("ledger", "postgresql:///ledger", "postgresql:///ledger?sslmode=verify-full"),
     ("credential_store", "file", "file"), ("ca_bundle", Path("ca.pem"), "ca.pem")],
)  # fmt: skip
def test_options_and_the_config_file_take_the_same_values(resolve, key, text, expected, load):
    assert getattr(resolve(flags={key: text}), key) == expected
    assert load(f"profiles: {{default: {{{key}: '{text}'}}}}").profiles["default"][key] == expected


@pytest.mark.parametrize(
    ("key", "text"),
    [("batch_size", "0"), ("batch_size", "10001"), ("concurrency", "65"), ("timeout", "0"),
     ("timeout", "2d"), ("max_wait", "9" * 400), ("credential_store", "Keyring"),
     ("client_id", "id:hunter2"), ("client_id", ""), ("auth_url", "http://auth.example"),
     ("auth_url", "ftp://auth.example"), ("auth_url", "auth.example"),
     ("auth_url", "https://auth.example:99999"), ("auth_url", "https://auth.example?"),
     ("auth_url", "https://auth.example\\x"), ("auth_url", ""),
     ("auth_url", "https://me:hunter2@auth.example"),
     *(("ledger", f"postgresql://{rest}") for rest in (
         "me:hunter2@db.example/l", "me:hunter2/x@db.example/l", "db.example/l?password=hunter2",
         "db.example/l?sslmode=require", "db.example/l?options=x", "db.example",
         "db.example:99999/l",
     )), ("ledger", "mysql://me:hunter2@db.example/l"), ("ledger", "/var/lib/ledger.db"),
     ("proxy", "socks5://proxy.example"), ("proxy", "http://user:hunter2@proxy.example"),
     *((key, "hunter2 is:none") for key in CHECKS if key != "ca_bundle")],  # any path is valid
)  # fmt: skip
def test_an_invalid_value_is_refused_with_its_source_and_not_quoted(refusal, key, text, problems):
    error = refusal(flags={key: text})
    assert error.message.startswith(f"in --{key.replace('_', '-')}: ")
    assert "hunter2" not in error.message + error.hint
    (problem,) = problems(f"profiles:\n  default:\n    {key}: '{text}'\n")
    assert problem.startswith(f"3:{7 + len(key)}: {key}: ")
    if text and key in ("auth_url", "base_url", "client_id", "ledger"):
        variable = f"DKIMCTL_{key.upper()}"
        assert refusal(environ={variable: text}).message.startswith(f"in {variable}: ")


@pytest.mark.parametrize("name", ["", "a b", "../x", "ü", "a\n"])
def test_an_invalid_profile_name_is_refused_from_every_source(refusal, name, problems):
    assert refusal(flags={"profile": name}).message.startswith("in --profile: ")
    if name:
        message = refusal(environ={"DKIMCTL_PROFILE": name}).message
        assert message.startswith("in DKIMCTL_PROFILE: ")
    text = name.replace("\n", "\\n")
    assert problems(f'default_profile: "{text}"\n')[0].startswith("1:18: ")
    assert problems(f'profiles:\n  "{text}": {{}}\n')[0].startswith("2:3: ")


def test_a_reference_names_a_variable_or_an_entry():
    for text in ("env/AWS_KEY", "keyring/route53", "keyring/dns/me@example.com"):
        assert is_reference(text)
    for text in ("", "env", "env:AWS", "environment/A", "a env/B", "ENV/A", "5"):
        assert not is_reference(text)
    for text in ("env/", "env/1A", "env/A-B", "env/A\n", "keyring/", "keyring/a b"):
        with pytest.raises(UsageError, match="the name after env/ or keyring/ is invalid"):
            is_reference(text)
