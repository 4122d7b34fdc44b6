"""`dkimctl schema`: the JSON Schemas, each a file beside the code that reads what it describes."""

from enum import StrEnum
from importlib.resources import files
from typing import Annotated

import typer

from dkimctl.cli.options import App
from dkimctl.cli.report import write

app = App(takes_profile=False)
Schema = StrEnum("Schema", ["SPECS", "CONFIG"])  # what it describes
_PACKAGES = {Schema.SPECS: "specs", Schema.CONFIG: "settings"}


@app.command(
    "dkimctl schema specs > specs.schema.json", "dkimctl schema config > config.schema.json"
)
def schema(schema: Annotated[Schema, typer.Argument(help="What it describes.")]) -> None:
    """Print the JSON Schema of spec files, or of the config file.

    Editors complete and check files with it, and CI checks them without dkimctl.
    """
    path = files("dkimctl").joinpath(_PACKAGES[schema], "schema.json")
    write([path.read_text(encoding="utf-8")])
