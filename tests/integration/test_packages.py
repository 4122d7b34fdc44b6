"""The sdist and the wheel: what is in them, and that each can be made from the other's source."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from dkimctl import __version__
from documents import ROOT

NAME = f"dkimctl-{__version__}"
SHARED = f"{NAME}.data/data/share"
INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
EXAMPLES = {"config.yaml", "domains.yaml"}
SOURCES = {
    ".ci", ".gitignore", ".github", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "PKG-INFO",
    "README.md", "SECURITY.md", "completions", "config.example.yaml", "dkimctl", "docs",
    "domains.example.yaml", "pyproject.toml", "tests", "zensical.toml",
}  # fmt: skip


def build(source: Path, target: Path, kind: str) -> Path:
    """The sdist or wheel that hatchling makes of the source, which needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (package,) = target.iterdir()
    return package


def files(directory: Path) -> set[str]:
    """The files below, relative to it, without caches."""
    paths = (path for path in directory.rglob("*") if "__pycache__" not in path.parts)
    return {path.relative_to(directory).as_posix() for path in paths if path.is_file()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """The unpacked sdist."""
    sdist = build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / NAME


def test_the_wheel_has_the_package_and_what_belongs_to_it_and_nothing_else(wheel):
    expected = {f"dkimctl/{name}" for name in files(ROOT / "dkimctl")}
    expected |= {f"{NAME}.dist-info/{name}" for name in INFO}
    expected |= {f"{SHARED}/doc/dkimctl/examples/{name}" for name in EXAMPLES}
    expected |= {
        f"{SHARED}/bash-completion/completions/dkimctl",
        f"{SHARED}/zsh/site-functions/_dkimctl",
        f"{SHARED}/fish/vendor_completions.d/dkimctl.fish",
    }
    assert sorted(ZipFile(wheel).namelist()) == sorted(expected)


def test_the_sdist_has_what_building_and_testing_take_and_nothing_else(sources):
    assert {path.name for path in sources.iterdir()} == SOURCES
    for folder in ("dkimctl", "tests", "completions", ".ci"):
        assert files(sources / folder) == files(ROOT / folder)


def test_a_wheel_of_the_sdist_is_that_of_the_clone(wheel, sources, tmp_path):
    assert build(sources, tmp_path, "wheel").read_bytes() == wheel.read_bytes()


def test_the_image_gets_what_its_wheel_takes(wheel, tmp_path):
    ignored = (ROOT / "docs" / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    for name in (line[1:] for line in ignored.splitlines() if line.startswith("!")):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tmp_path / "src" / name)
    built = build(tmp_path / "src", tmp_path / "wheels", "wheel")
    assert built.read_bytes() == wheel.read_bytes()
