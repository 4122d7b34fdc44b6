"""What the words before the cursor mean."""

from __future__ import annotations

from dkimctl.cli.completion.typed import TypedWords
from dkimctl.cli.main import LazyGroup

ROOT = LazyGroup()


def read(*words: str) -> TypedWords:
    return TypedWords(ROOT, words)


def test_options_have_their_values_however_they_are_attached():
    typed = read("show-dns", "--profile", "a", "--zone=b", "--zone", "c", "--sandbox", "-v", "x")
    assert typed.values["profile"] == ["a"]
    assert typed.values["zone"] == ["b", "c"]
    assert typed.values["sandbox"] == typed.values["verbose"] == [""]
    assert typed.values["selection"] == ["x"]
    assert typed.next.name == "selection"


def test_an_option_waits_for_its_value():
    assert read("show-dns", "--format").next.name == "fmt"
    assert read("show-dns", "-vf").next.name == "fmt"
    typed = read("show-dns", "--format", "--profile")
    assert typed.values["fmt"] == ["--profile"], "a value like any other"
    assert typed.next.name == "selection"


def test_an_option_that_was_given_is_not_offered_again_unless_it_is_repeatable():
    names = dict(read("show-dns", "--zone", "a", "--ttl", "1").option_names())
    assert "--zone" in names
    assert "--ttl" not in names


def test_a_command_is_found_in_its_groups():
    assert read("service", "client").is_group
    assert read("service", "client", "delete").next.name == "client_id"
    assert read("service", "client", "delete", "one").next is None


def test_options_may_stand_between_the_words_of_a_command():
    typed = read("rotate", "--sandbox", "run", "--wait")
    assert (typed.next.name, typed.values["sandbox"]) == ("wait", [""])


def test_after_two_hyphens_all_words_are_arguments():
    typed = read("show-dns", "--", "--sandbox")
    assert "sandbox" not in typed.values
    assert typed.values["selection"] == ["--sandbox"]
    assert read("ledger", "import", "-").next is None, "a hyphen alone is an argument"


def test_after_an_unknown_option_reading_goes_on_and_an_unknown_command_ends_it():
    assert read("show-dns", "--wrong", "--profile", "x").values["profile"] == ["x"]
    assert read("wrong").is_unknown
