"""Draw docs/images/map.svg: the packages of dkimctl, and which imports which."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "dkimctl"
PICTURE = Path(__file__).parent / "images" / "map.svg"

_WIDTH, _MARGIN = 960, 20
_BOX = (112, 34)
_STEP = 92  # from one layer to the next
_ROUNDS = 3
_STYLE = """\
text { font: 14px sans-serif; text-anchor: middle; fill: #1f2328 }
rect { fill: #f6f8fa; stroke: #57606a; rx: 5 }
path { fill: none; stroke: #57606a; stroke-width: 1.3; marker-end: url(#arrow) }
path.implied { stroke: #d0d7de; stroke-width: 1; marker-end: none }"""
_ARROWHEAD = """\
<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><polygon points="0,0 8,4 0,8" fill="#57606a"/></marker>"""

Arrows = Mapping[str, Iterable[str]]


def arrows() -> dict[str, set[str]]:
    """For each package, the packages it imports from, wherever in its code the import is."""
    packages = {_package_of(path): set[str]() for path in _modules()}
    for path in _modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in _imported(tree):
            package = name.removeprefix("dkimctl.").partition(".")[0]
            if package in packages and package != _package_of(path):
                packages[_package_of(path)].add(package)
    return packages


def _modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def _package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "dkimctl":
            yield from (f"dkimctl.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dkimctl."):
            yield node.module or ""


def layers(packages: Arrows) -> list[list[str]]:
    """The packages from top to bottom; each is above all that it imports from."""

    @cache
    def height(package: str) -> int:
        return 1 + max(map(height, packages[package]), default=-1)

    levels: dict[int, list[str]] = {}
    for package in sorted(packages):
        levels.setdefault(height(package), []).append(package)
    return [levels[level] for level in sorted(levels, reverse=True)]


def picture(packages: Arrows) -> str:
    """The SVG. An arrow that follows from two others is drawn as a thin line."""
    places = _places(layers(packages), packages)
    height = max(y for _, y in places.values()) + _BOX[1] + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">',
        "<title>The packages of dkimctl; an arrow points to what a package imports from</title>",
        f"<style>\n{_STYLE}\n</style>",
        f'<rect width="{_WIDTH}" height="{height}" style="fill: #ffffff; stroke: none"/>',
        _ARROWHEAD,
        *_curves(packages, places),
        *_boxes(places),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _curves(packages: Arrows, places: Mapping[str, tuple[int, int]]) -> list[str]:
    """The thin lines first, so that the others are drawn over them."""
    thin, thick = [], []
    for package in sorted(packages):
        for other in sorted(packages[package]):
            (x1, y1), (x2, y2) = places[package], places[other]
            y1 += _BOX[1]
            bend = (y2 - y1) // 2
            line = f"M{x1},{y1} C{x1},{y1 + bend} {x2},{y2 - bend} {x2},{y2}"
            if _is_implied(packages, package, other):
                thin.append(f'<path class="implied" d="{line}"/>')
            else:
                thick.append(f'<path d="{line}"/>')
    return thin + thick


def _boxes(places: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    width, height = _BOX
    for package, (x, y) in sorted(places.items()):
        yield f'<rect x="{x - width // 2}" y="{y}" width="{width}" height="{height}"/>'
        yield f'<text x="{x}" y="{y + 22}">{package}</text>'


def _is_implied(packages: Arrows, package: str, other: str) -> bool:
    return any(other in _reached(packages, near) for near in packages[package] if near != other)


def _reached(packages: Arrows, package: str) -> set[str]:
    found = set(packages[package])
    for near in packages[package]:
        found |= _reached(packages, near)
    return found


def _places(levels: Sequence[Sequence[str]], packages: Arrows) -> dict[str, tuple[int, int]]:
    """The top centre of each box. Each layer has the order that makes the arrows shortest."""
    shown = [
        (package, other)
        for package in packages
        for other in packages[package]
        if not _is_implied(packages, package, other)
    ]
    order = [tuple(level) for level in levels]

    def length(number: int, level: tuple[str, ...]) -> int:
        places = _spread([*order[:number], level, *order[number + 1 :]])
        return sum((places[package][0] - places[other][0]) ** 2 for package, other in shown)

    for _ in range(_ROUNDS):
        for number, level in enumerate(order):
            lengths = {new: length(number, new) for new in permutations(sorted(level))}
            order[number] = min(lengths, key=lambda new: (lengths[new], new))
    return _spread(order)


def _spread(order: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    places = {}
    for number, level in enumerate(order):
        share = (_WIDTH - 2 * _MARGIN) / len(level)
        for position, package in enumerate(level):
            places[package] = (round(_MARGIN + share * (position + 0.5)), _MARGIN + number * _STEP)
    return places


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(arrows()), encoding="utf-8", newline="\n")
