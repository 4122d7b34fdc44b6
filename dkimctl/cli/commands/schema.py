"""`dkimctl schema`: the JSON Schemas of files and of output."""

from __future__ import annotations

from typing import Annotated

import typer

from dkimctl.cli.options import App, examples
from dkimctl.cli.output.streams import write
from dkimctl.errors import UsageError
from dkimctl.settings.schemas import Schema, read_schema
from dkimctl.text.escaping import quoted

app = App()


@app.command(
    epilog=examples(
        "dkimctl schema specs > specs.schema.json",
        "dkimctl schema config > config.schema.json",
        "dkimctl schema output check-dns",
        "dkimctl schema output rotate status",
    )
)
def schema(
    schema: Annotated[Schema, typer.Argument(help="What it describes.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...",
            help="With output: the command whose JSON it describes, or `errors` for the JSON on "
            "stderr (default: all).",
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of spec files, of the config file, or of what commands print as JSON.

    Editors complete and check files with it, and CI checks them without dkimctl.
    """
    if command and schema is not Schema.OUTPUT:
        raise UsageError(f"{schema} takes no command", hint=f"write `dkimctl schema {schema}`")
    text = read_schema(schema)
    write([_of_command(text, " ".join(command)) if command else text])


def _of_command(text: str, command: str) -> str:
    """The schema of one command's JSON. Raises UsageError if `text` has none."""
    import json

    from dkimctl.render.output_schema import described_outputs, schema_of_output

    document = json.loads(text)
    outputs = described_outputs(document)
    if command not in outputs:
        from dkimctl.strict_yaml.document import suggestion

        raise UsageError(
            f"no schema describes the output of {quoted(command)}",
            hint=suggestion(command, outputs, "outputs"),
        )
    return json.dumps(schema_of_output(document, command), indent=2) + "\n"
