"""``plan explain``: why a plan is as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from planner.cli import EXITS
from planner.cli.options import question_options, scenario_options

if TYPE_CHECKING:
    from planner.cli.earlier import Asked

_BESIDE_PLAN = {"plan", "output", "as_json", "time_limit_s"}


@click.command("explain")
@click.argument("plan", required=False, metavar="[PLAN.json]", type=click.Path(allow_dash=True))
@scenario_options
@question_options
def command(
    plan: str | None,
    scenario: str,
    sets: tuple[str, ...],
    as_json: bool,
    output: str | None,
    places: tuple[str, ...],
    time_limit_s: float | None,
    **flags: Any,  # noqa: ANN401
) -> int:
    """Explain a plan: which limits bind and what more of each would buy, and why every runner-up lost.

    PLAN.json is what 'plan --json' wrote, the folder of 'plan --output', or - for standard input; without it the
    flags ask the question. Every number comes from solving again. Where there is no plan: the smallest set of limits
    in conflict, and the plan at the nearest value of each.
    """
    from planner.cli.common import command_line, deliver, interruptible, progress, require_output, tell_warnings
    from planner.cli.earlier import asked_now, asked_of, refuse_another_question
    from planner.explain import explain
    from planner.report.explanation import explanation_view
    from planner.solve import Settings

    require_output(output)
    if plan is not None:
        refuse_another_question(click.get_current_context(), _BESIDE_PLAN, plan)
    with progress() as tick:
        context = click.get_current_context()
        asked: Asked = asked_now(scenario, sets, places, flags) if plan is None else asked_of(plan, context)
        settings = Settings(time_limit_s, asked.digests, asked.command or command_line(), tick)
        found = interruptible(lambda: explain(asked.scenario, asked.plan, settings))
    tell_warnings(found.warnings)
    deliver(found, explanation_view(found), "explanation", as_json, output)
    return EXITS.get(found.status, 0)
