"""Choose how a question is answered: by the exact structure where it separates, else by the program."""

from __future__ import annotations

from planner.options import CostTable
from planner.question import Question, Solution, question_of
from planner.schema.scenario import Scenario
from planner.structure import optimise as by_structure
from planner.structure.dominance import undominated


def optimise(
    scenario: Scenario,
    tables: dict[str, CostTable],
    question: Question | None = None,
    time_limit_s: float | None = None,
    polish: bool = True,
    reduce: bool = True,
) -> Solution:
    """Find the best plan.

    Parameters
    ----------
    scenario, tables
        What is asked, and the costs of every workload.
    question
        What is optimized; by default the scenario's own question.
    time_limit_s, polish
        For the program, see ``planner.milp.program.optimise``.
    reduce
        Off: always the whole program, nothing reduced, for tests and for doubters.

    Raises
    ------
    InputError
        If nothing bounds the throughput.
    """
    question = question or question_of(scenario)
    solution = by_structure.optimise(scenario, tables, question) if reduce else None
    if solution is not None:
        return solution
    from planner.milp import large, program  # PuLP and HiGHS are imported where they are needed only

    if not reduce:
        return program.optimise(scenario, tables, question, time_limit_s, polish)
    tables = undominated(scenario, tables, question)
    is_large = large.choices(scenario, tables) > large.MANY_CHOICES
    if is_large and large.is_bounded_by_columns(question):
        return large.optimise(scenario, tables, question, time_limit_s, polish)
    return program.optimise(scenario, tables, question, time_limit_s, polish)
