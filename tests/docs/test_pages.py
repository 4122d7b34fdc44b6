"""The pages agree with the code and with each other."""

from __future__ import annotations

import importlib
import re
import runpy
import tomllib
from itertools import chain

import pytest

from dkimctl.dns.verdicts import Verdict
from dkimctl.errors import ExitCode
from dkimctl.formats.renderer import Format
from dkimctl.handoff.providers import octodns_providers, providers
from dkimctl.models import Outcome
from dkimctl.rotation.life import KeyStage
from dkimctl.settings.values import CHECKS
from documents import PAGES, ROOT

DOCS = PAGES.keys() - {"README.md"}
LINKING = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md",
           *(f"docs/{name}" for name in sorted(DOCS))]  # fmt: skip


def table(page: str, head: str) -> list[list[str]]:
    """The cells of the rows of the table whose first column is `head`."""
    _, after = PAGES[page].split(f"\n| {head} |", 1)
    rows = after.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]


def first_words(page: str, head: str) -> set[str]:
    """The first cell of each row, up to a comma."""
    return {row[0].partition(",")[0].strip("`") for row in table(page, head)}


def toml(name: str) -> dict:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))["project"]


def test_the_readme_is_short():
    assert len(PAGES["README.md"].splitlines()) <= 150


def test_the_site_shows_every_page():
    entries = [value for entry in toml("zensical.toml")["nav"] for value in entry.values()]
    pages = [entry for entry in entries if isinstance(entry, str)]
    groups = [entry for entry in entries if not isinstance(entry, str)]
    pages += chain(*(page.values() for page in chain(*groups)))
    assert sorted(pages) == sorted(DOCS)


@pytest.mark.parametrize("name", LINKING)
def test_links_lead_to_files_and_headings(name):
    path = ROOT / name
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("name", LINKING)
def test_each_item_of_a_list_begins_a_line(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert re.findall(r".*[.;:)] - [`*\[A-Z].*", text) == []


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


def test_the_changelog_keeps_the_form():
    """Versions, the newest first, each with its date and link; below, the kinds of changes."""
    head, *versions = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")
    assert "https://keepachangelog.com/en/1.1.0/" in head
    titles = [version.partition("\n")[0] for version in versions]
    assert titles[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", title) for title in titles[1:])
    dates = [title.rpartition(" ")[2] for title in titles[1:]]
    assert dates == sorted(dates, reverse=True)
    for version, title in zip(versions, titles, strict=True):
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        order = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
        assert kinds == [kind for kind in order if kind in kinds], title
        assert f"\n{title.partition(' ')[0]}: https://" in versions[-1]


def test_every_library_has_its_reason():
    project = toml("pyproject.toml")
    required = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w-]+", line)[0] for line in required} - {"dkimctl"}
    rows = table("architecture.md", "library")
    reasons = {name.strip(): row[2] for row in rows for name in row[0].split(",")}
    assert set(reasons) == names
    assert all(reasons.values())


@pytest.mark.parametrize(
    ("page", "head", "names"),
    [
        ("specs.md", "outcome", set(Outcome)),
        ("check-dns.md", "verdict", set(Verdict)),
        ("dns-recipes.md", "`--format`", set(Format)),
        ("ci.md", "exit code", {str(int(code)) for code in ExitCode}),
        ("dns-recipes.md", "`--provider`", {provider.key for provider in providers()}),
        ("configuration.md", "key of a profile", {*CHECKS, "defaults"}),
        ("check-dns.md", "outcome", set(Outcome) - {Outcome.CREATED, Outcome.EXISTS}),
        ("check-dns.md", "verdict | cause", set(Verdict) - {Verdict.PUBLISHED}),
    ],
)
def test_tables_are_complete(page, head, names):
    assert first_words(page, head) == names


def test_the_providers_that_init_knows_are_listed():
    [listed] = [row[0] for row in table("configuration.md", "`--dns`") if "azure" in row[0]]
    assert listed.replace("`", "").split(", ") == list(octodns_providers())


@pytest.mark.parametrize("page", ["rotation.md", "architecture.md"])
def test_every_stage_is_explained(page):
    assert {stage for stage in KeyStage if f"`{stage}`" not in PAGES[page]} == set()


def test_every_environment_variable_is_explained():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "dkimctl").rglob("*.py")]
    used = set(re.findall(r"\bDKIMCTL_[A-Z_]*[A-Z]\b", "\n".join(sources)))
    assert len(used) > 5
    assert used <= set(re.findall(r"\bDKIMCTL_[A-Z_]+", PAGES["configuration.md"]))


def test_everything_that_the_architecture_names_exists():
    names = set(re.findall(r"`(dkimctl(?:\.\w+)+)`", PAGES["architecture.md"]))
    assert len(names) > 20
    for name in names:
        assert resolve(name) is not None, name


def resolve(name: str) -> object:
    """The module, or the attribute of one, that a dotted name stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part, None)
        return value
    return None


def test_the_architecture_describes_every_package():
    packages = runpy.run_path(str(ROOT / "docs" / "make_map.py"))["arrows"]()
    described = re.findall(r"^\*\*`(\w+)`\*\*", PAGES["architecture.md"], re.MULTILINE)
    assert sorted(described) == sorted(packages)


def test_the_packages_for_the_slow_tests_are_those_of_ci():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    packages = re.search(r'^packages="([^"]*)"', script, re.MULTILINE)[1].split()
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    command = re.search(r"^apt-get install (.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    assert command.replace("\\\n", " ").split() == packages


def test_the_glossary_is_short_and_sorted():
    terms = [row[0].lower() for row in table("architecture.md", "term")]
    assert len(terms) <= 25
    assert terms == sorted(terms)
