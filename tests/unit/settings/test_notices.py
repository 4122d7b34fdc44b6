"""Who is told of problems, as the config file says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dkimctl.errors import InputError
from dkimctl.settings.config import NoticeSettings


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("[/usr/local/bin/page, --json]", ("/usr/local/bin/page", "--json")),
        ("[page, 'two words', '']", ("page", "two words", "")),
        ("page --to 'on call' $HOME", ("page", "--to", "on call", "$HOME")),
        ("'a; b'", ("a;", "b")),
    ],
)
def test_a_command_is_words_which_no_shell_reads(load, command, words):
    assert load(f"notify: {{command: {command}}}\n").notify.command == words


@pytest.mark.parametrize(
    "url",
    ["https://hooks.example.com/x/", "https://hooks.example.com/x?sig=a%20b&v=1",
     "http://127.0.0.1:8080/", "http://localhost/", "env/WEBHOOK", "keyring/webhook"],
)  # fmt: skip
def test_a_webhook_is_kept_as_it_is_written(load, url):
    config = load(f"notify: {{webhook: '{url}', recheck: 5m}}\n")
    assert config.notify == NoticeSettings(webhook=url, recheck=timedelta(minutes=5))


def test_the_scheme_of_a_webhook_is_in_lower_case(load):
    """What sends it tells http and https apart by that."""
    config = load("notify: {webhook: 'HTTP://localhost/Path/'}\n")
    assert config.notify.webhook == "http://localhost/Path/"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("command: []", "command is empty"),
        ("command: ['']", "command names no program"),
        ("command: '\"page'", "command: a quotation mark is not closed"),
        (r'command: ["a\0"]', "command: contains a character that no argument can have"),
        ("command: {a: b}", "command must be a single value, not a mapping"),
        ("webhook: http://hooks.example.com/", "http:// is allowed for loopback addresses only"),
        ("webhook: 'https://h.example/?a#b'", "the URL has an invalid query"),
        ("webhook: env/", "the name after env/ or keyring/ is invalid"),
        ("recheck: 2d", "recheck: invalid duration"),
        ("mail: me@example.com", 'notify has no key "mail"'),
    ],
)
def test_what_cannot_be_told_is_refused(problems, given, problem):
    (found,) = problems(f"notify: {{{given}}}\n")
    assert problem in found


def test_the_variables_that_are_named_as_secrets(load):
    config = load("""
notify: {webhook: env/HOOK}
dns:
- {provider: octodns, class: a.B, zones: [example.com], settings: {token: env/ONE}}
- provider: octodns
  class: a.B
  profiles: [other]
  settings: {retries: 3, key_name: env, inner: [{secret: env/TWO}], password: keyring/THREE}
""")
    assert config.secret_variables() == {"HOOK", "ONE", "TWO"}
    assert load("{}").secret_variables() == set()


@pytest.mark.parametrize("given", ["webhook: https://me:hunter2@h.example/", "token: hunter2"])
def test_a_secret_is_not_quoted(load, given):
    with pytest.raises(InputError) as caught:
        load(f"notify: {{{given}}}\n")
    assert "hunter2" not in repr(caught.value.problems)
