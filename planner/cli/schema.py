"""``plan schema``: the JSON Schemas of the documents."""

from __future__ import annotations

import click

from planner.cli.options import output_options

_DOCUMENTS = {
    "catalog": ("planner.schema.catalog", "Catalog"),
    "scenario": ("planner.schema.scenario", "ScenarioFile"),
    "plan": ("planner.schema.documents", "Plan"),
    "evaluation": ("planner.schema.documents", "Evaluation"),
    "front": ("planner.schema.front", "Front"),
    "explanation": ("planner.schema.explanation", "Explanation"),
    "review": ("planner.schema.review", "Review"),
    "comparison": ("planner.schema.comparison", "Comparison"),
    "sensitivity": ("planner.schema.sensitivity", "Sensitivity"),
}


@click.command("schema")
@click.argument("document", metavar="DOCUMENT", type=click.Choice(list(_DOCUMENTS)))
@output_options
def command(document: str, as_json: bool, output: str | None) -> None:
    """Print the JSON Schema of a document that phaseplan reads or writes.

    DOCUMENT is catalog or scenario (read), plan, evaluation, front, explanation, sensitivity, review or comparison
    (written).
    """
    import json
    from importlib import import_module
    from pathlib import Path

    from planner.report.files import write_all
    from planner.schema.base import ClosedSchema

    module, name = _DOCUMENTS[document]
    mode = "validation" if document in ("catalog", "scenario") else "serialization"
    schema = getattr(import_module(module), name).model_json_schema(mode=mode, schema_generator=ClosedSchema)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    if output is not None:
        write_all(Path(output), {f"{document}.schema.json": text})
    click.echo(text, nl=False)
