"""What `init` has written, and what comes next."""

from __future__ import annotations

import os
from pathlib import Path

from dkimctl.cli.embedded_service import INSTALL, is_installed
from dkimctl.cli.output import next_steps
from dkimctl.cli.output.streams import Reporter


def after_init(reporter: Reporter, config: Path | None, specs: Path, *, is_sandbox: bool) -> None:
    """Say which files are there now, and name the commands that come next."""
    written = [str(file) for file in (config, specs) if file is not None]
    reporter.note(f"dkimctl: wrote {' and '.join(written)}")
    if is_sandbox and not is_installed():
        reporter.note(f"dkimctl: next, for the embedded service: `{INSTALL}`")
    steps = [next_steps.plan_file(specs), next_steps.register_file(specs)]
    if config is not None and not os.environ.get("DKIMCTL_CLIENT_SECRET"):
        steps.insert(0, "`dkimctl login`")
    reporter.note(f"dkimctl: next: {', then '.join(steps)}")
