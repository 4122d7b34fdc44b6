"""The commands and files that the README shows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
YAML = re.findall(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
JAVASCRIPT = re.findall(r"^```js\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
# What the recipes pipe into: their commands need more than this tool.
RECIPES = ("nsupdate -k", "knsupdate -k", "octodns-sync", "aws route53", "-X PATCH")


def blocks(mark: str) -> list[str]:
    """The commands in which `mark` stands."""
    found = [block for block in BLOCKS if mark in block]
    assert found, f"the README has no command with {mark}"
    return found
