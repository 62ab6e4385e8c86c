"""``plan validate``: a user's own measurements against the model."""

from __future__ import annotations

import click

from planner.cli.options import output_options


@click.command("validate")
@click.argument("file", metavar="FILE.csv")
@click.option("--catalog", "catalogs", multiple=True, metavar="NAME_OR_PATH", help="Catalogs to look in first.")
@click.option("--figure", metavar="FILE", help="Draw predicted against measured into a PNG or SVG file.")
@output_options
def command(file: str, catalogs: tuple[str, ...], figure: str | None, as_json: bool, output: str | None) -> None:
    """Compare measured serving rows with what the model predicts for them.

    Columns: device, model, and any of n_devices, precision, isl, osl, concurrency, framework, ttft_ms, tpot_ms,
    out_tok_s, power_w, j_per_out_tok. Missing cells are allowed, other columns are ignored.
    """
    from pathlib import Path

    from planner.cli.common import deliver_data, tell_warnings
    from planner.cli.entries import merged
    from planner.read.measurements import read_measurements
    from planner.report.cards import validation_view
    from planner.report.figure import drawn
    from planner.report.files import write_all
    from planner.validate import as_json as document
    from planner.validate import points, validate

    rows = read_measurements(Path(file))
    result = validate(rows, merged(catalogs))
    if figure is not None:
        write_all(
            Path(figure).parent, {Path(figure).name: drawn(points(rows, result), result, Path(figure).suffix.lower())}
        )
    tell_warnings([f"{result.unpredictable} of {len(rows)} rows cannot be predicted"] if result.unpredictable else [])
    deliver_data(document(result), validation_view(rows, result), "validation", as_json, output)
