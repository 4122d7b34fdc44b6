"""The command line up to the cursor."""

from __future__ import annotations

import pytest

from dkimctl.cli.completion.line import split_line


@pytest.mark.parametrize(
    ("text", "words", "current"),
    [
        ("dkimctl", [], "dkimctl"),
        ("dkimctl ", [], ""),
        ("dkimctl reg", [], "reg"),
        ("dkimctl register one.yaml ", ["register", "one.yaml"], ""),
        ("dkimctl register 'two wo", ["register"], "two wo"),
        ("dkimctl register two\\ wo", ["register"], "two wo"),
        ("dkimctl register two\\ ", ["register"], "two "),
        ("dkimctl register \\", ["register"], ""),
        ('dkimctl register "two wo', ["register"], "two wo"),
        ('dkimctl register "a\\"b" ', ["register", 'a"b'], ""),
        ("dkimctl show-dns --format=te", ["show-dns"], "--format=te"),
        ("dkimctl show-dns --format='te", ["show-dns"], "--format=te"),
        ("dkimctl show-dns '$(id)' `id` $HOME ex", ["show-dns", "$(id)", "`id`", "$HOME"], "ex"),
        ("dkimctl show-dns > out.zone ex", ["show-dns"], "ex"),
        ("dkimctl show-dns 2>/dev/null ex", ["show-dns"], "ex"),
        ("dkimctl show-dns 2>&1 ex", ["show-dns"], "ex"),
        ("DKIMCTL_PROFILE=x dkimctl show-dns ex", ["show-dns"], "ex"),
        ("cat specs | dkimctl register -", ["register"], "-"),
        ("dkimctl show-dns --zone A=b ", ["show-dns", "--zone", "A=b"], ""),
        ("", [], ""),
    ],
)
def test_a_line_is_split_as_the_shells_do(text, words, current):
    line = split_line(text)
    assert (line.words, line.current, line.redirects) == (words, current, False)


@pytest.mark.parametrize("operator", [">", ">>", "2>", "<", "&>", ">|"])
def test_the_file_of_a_redirection_is_no_word_of_the_command(operator):
    assert split_line(f"dkimctl show-dns {operator} fi").redirects
    assert split_line(f"dkimctl show-dns {operator} ").redirects
    assert not split_line(f"dkimctl show-dns {operator} file ").redirects


def test_only_a_tilde_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("USERPROFILE", "/home/me")
    assert split_line("dkimctl ~/b '~/c' $HOME ").words == ["/home/me/b", "~/c", "$HOME"]


def test_what_is_typed_keeps_its_quotes():
    assert split_line("dkimctl register 'two wo").typed == "'two wo"
