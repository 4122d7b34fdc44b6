"""What the words before the cursor mean."""

from __future__ import annotations

from dkimctl.cli.completion.typed import TypedWords
from dkimctl.cli.main import LazyGroup

ROOT = LazyGroup()


def read(*words: str) -> TypedWords:
    typed = TypedWords(ROOT)
    for word in words:
        typed.read(word)
    return typed


def test_options_have_their_values_however_they_are_attached():
    typed = read("show-dns", "--profile", "a", "--zone=b", "--zone", "c", "--sandbox", "-v", "x")
    assert typed.values["profile"] == ["a"]
    assert typed.values["zone"] == ["b", "c"]
    assert typed.values["sandbox"] == typed.values["verbose"] == [""]
    assert typed.values["selection"] == ["x"]
    assert not typed.awaiting


def test_an_option_waits_for_its_value():
    assert read("show-dns", "--format").awaiting.name == "fmt"
    assert read("show-dns", "--format", "--profile").awaiting is None, "a value like any other"


def test_an_option_that_was_given_is_not_offered_again_unless_it_is_repeatable():
    names = {option.name for option in read("show-dns", "--zone", "a", "--ttl", "1").unused_options}
    assert "zone" in names
    assert "ttl" not in names


def test_a_command_is_found_in_its_groups():
    typed = read("service", "client")
    assert typed.is_group
    typed.read("delete")
    assert typed.argument.name == "client_id"
    typed.read("one")
    assert typed.argument is None


def test_after_two_hyphens_all_words_are_arguments():
    typed = read("show-dns", "--", "--sandbox")
    assert "sandbox" not in typed.values
    assert typed.values["selection"] == ["--sandbox"]
    assert read("register", "-").argument is None, "a hyphen alone is an argument"


def test_an_unknown_option_takes_no_value_and_an_unknown_command_ends_it():
    assert read("show-dns", "--wrong", "x").values["selection"] == ["x"]
    assert read("wrong").is_unknown
