"""``plan profile``: what one phase costs on one option, by the roofline."""

from __future__ import annotations

import click

from planner.cli.options import output_options
from planner.words import PHASES


@click.command("profile")
@click.option("--device", required=True, metavar="NAME", help="A device type of the bundled catalogs, or of --catalog.")
@click.option("--model", required=True, metavar="NAME", help="A model of the bundled catalogs, or of --catalog.")
@click.option("--phase", required=True, type=click.Choice(PHASES), help="Which phase.")
@click.option(
    "--precision", type=click.Choice(["bf16", "fp8", "fp4", "int8", "int4"]), default="bf16", show_default=True
)
@click.option("--tensor-parallel", type=click.IntRange(1, 4096), metavar="N", help="Devices per replica.")
@click.option("--batch-size", type=click.IntRange(1, 100_000), default=1, show_default=True, metavar="N")
@click.option("--context", type=click.IntRange(1, 10_000_000), default=2048, show_default=True, metavar="TOKENS")
@click.option("--draft-length", type=click.IntRange(0, 4096), default=0, show_default=True, metavar="D")
@click.option("--catalog", "catalogs", multiple=True, metavar="NAME_OR_PATH", help="Catalogs to look in first.")
@output_options
def command(
    device: str,
    model: str,
    phase: str,
    precision: str,
    tensor_parallel: int | None,
    batch_size: int,
    context: int,
    draft_length: int,
    catalogs: tuple[str, ...],
    as_json: bool,
    output: str | None,
) -> None:
    """Cost one operation of a phase on a device type, from its data sheet and the model's shape.

    CONTEXT is the cached tokens per request (verify, draft) or the prompt (prefill). Energy is per request in the
    batch, power of the whole replica.
    """
    from planner.cli.common import deliver_data
    from planner.cli.entries import device_named, model_named
    from planner.errors import InputError
    from planner.report.cards import profile_view
    from planner.roofline.option import as_json as document
    from planner.roofline.option import profile

    found, shape = device_named(device, catalogs), model_named(model, catalogs)
    try:
        cost = profile(
            found,
            shape,
            phase,  # type: ignore[arg-type]
            precision,  # type: ignore[arg-type]
            degree=tensor_parallel,
            batch=batch_size,
            context=context,
            draft_length=draft_length,
        )
    except InputError as error:
        raise InputError(*(f"{device}, {model}: {problem}" for problem in error.problems)) from None
    title = f"{phase} of {model} on {device}, {precision}, batch {batch_size}"
    deliver_data(document(cost), profile_view(title, document(cost)), "profile", as_json, output)
