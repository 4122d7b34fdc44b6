"""`dkimctl completion` and `schema`: by which shells and editors complete what is typed."""

from enum import StrEnum
from importlib.resources import files
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from dkimctl.cli.main import COMPLETION_VARIABLE
from dkimctl.cli.options import App
from dkimctl.cli.report import write

app = App(takes_profile=False)
Shell = StrEnum("Shell", ["bash", "zsh", "fish", "powershell"])
# The schemas, by what they describe: each is a file beside the code that reads that.
Schema = StrEnum("Schema", ["SPECS", "CONFIG"])
_PACKAGES = {Schema.SPECS: "specs", Schema.CONFIG: "settings"}
_BASH = "~/.local/share/bash-completion/completions"
# zsh runs a file of its fpath at the first TAB, and expects the words for that as well.
_FROM_FPATH = """
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _dkimctl_completion "$@"; fi
"""


@app.command(
    "# bash",
    f"mkdir -p {_BASH}",
    f"dkimctl completion bash > {_BASH}/dkimctl",
    "# zsh",
    "echo 'source <(dkimctl completion zsh)' >> ~/.zshrc",
    "# fish",
    "mkdir -p ~/.config/fish/completions",
    "dkimctl completion fish > ~/.config/fish/completions/dkimctl.fish",
    "# PowerShell: add this line to the file that $PROFILE names",
    "# dkimctl completion powershell | Out-String | Invoke-Expression",
)
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a shell's completion script.

    The examples install it only for you.
    """
    names = {"prog_name": "dkimctl", "complete_var": COMPLETION_VARIABLE}
    script = f"{get_completion_script(**names, shell=shell)}\n"
    write([script + _FROM_FPATH if shell is Shell.zsh else script])


@app.command(
    "dkimctl schema specs > specs.schema.json", "dkimctl schema config > config.schema.json"
)
def schema(schema: Annotated[Schema, typer.Argument(help="What it describes.")]) -> None:
    """Print the JSON Schema of spec files, or of the config file.

    Editors complete and check files with it, and CI checks them without dkimctl.
    """
    path = files("dkimctl").joinpath(_PACKAGES[schema], "schema.json")
    write([path.read_text(encoding="utf-8")])
