"""The only place that knows how PuLP 3 and PuLP 4 differ, and what HiGHS really said."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pulp

Sense = Literal["<=", ">=", "=="]
Termination = Literal["optimal", "infeasible", "unbounded", "limit"]

Terms = dict[str, tuple[Any, float]]

# Both gaps are set: the defaults (1e-4 relative, 1e-6 absolute) are coarser than a step time in seconds.
_GAP = 1e-9
# Rows are scaled to bounds of about 1, so this is a relative accuracy.
FEASIBILITY = 1e-9


class Linear:
    """A linear expression that sums coefficients of a variable given twice (PuLP 3 would keep the last)."""

    __slots__ = ("terms",)

    def __init__(self, terms: Iterable[tuple[Any, float]] = ()) -> None:
        self.terms: dict[str, tuple[Any, float]] = {}
        self.add(terms)

    def add(self, terms: Iterable[tuple[Any, float]], factor: float = 1.0) -> Linear:
        """Add terms, times a factor, in place."""
        for variable, coefficient in terms:
            name = variable.name
            before = self.terms[name][1] if name in self.terms else 0.0
            self.terms[name] = (variable, before + factor * coefficient)
        return self

    def pairs(self) -> list[tuple[Any, float]]:
        """List (variable, coefficient)."""
        return [(variable, coefficient) for variable, coefficient in self.terms.values() if coefficient != 0.0]

    def scaled(self, factor: float) -> Linear:
        """Give the expression times a factor."""
        return Linear((variable, coefficient * factor) for variable, coefficient in self.terms.values())

    def expression(self) -> Any:  # noqa: ANN401
        """Make PuLP's expression: a constructor in PuLP 3, a class method in PuLP 4."""
        make = getattr(pulp.LpAffineExpression, "from_list", pulp.LpAffineExpression)
        return make(self.pairs())


class Program:
    """A PuLP problem with named rows, each name used once."""

    def __init__(self, name: str) -> None:
        self.problem = pulp.LpProblem(name, pulp.LpMinimize)
        self._rows: set[str] = set()

    def variable(self, name: str, low: float = 0.0, high: float | None = None, integer: bool = False) -> Any:  # noqa: ANN401
        """Add a variable."""
        return self.problem.add_variable(name, low, high, cat="Integer" if integer else "Continuous")

    def row(self, name: str, left: Linear, sense: Sense, right: float) -> None:
        """Add a row ``left sense right``.

        Raises
        ------
        AssertionError
            If the name was used before. (PuLP 4 would accept it until the model is written.)
        """
        assert name not in self._rows, f"two rows are named {name}"
        self._rows.add(name)
        expression = left.expression()
        if sense == "<=":
            constraint = expression <= right
        elif sense == ">=":
            constraint = expression >= right
        else:
            constraint = expression == right
        self.problem.addConstraint(constraint, name)

    @property
    def row_names(self) -> frozenset[str]:
        """Names of all rows."""
        return frozenset(self._rows)

    def minimize(self, objective: Linear) -> None:
        """Set the objective."""
        self.problem.setObjective(objective.expression())


@dataclass(frozen=True)
class Outcome:
    """What HiGHS reached: how it ended, whether it has an incumbent, objective and bound of the minimization."""

    termination: Termination
    has_incumbent: bool
    objective: float
    bound: float
    runtime_s: float


_ENDS: dict[str, Termination] = {
    "kOptimal": "optimal",
    "kModelEmpty": "optimal",
    "kInfeasible": "infeasible",
    "kUnbounded": "unbounded",
    "kUnboundedOrInfeasible": "infeasible",
    "kTimeLimit": "limit",
    "kInterrupt": "limit",
    "kIterationLimit": "limit",
    "kSolutionLimit": "limit",
}
_TIGHT = {"mip_feasibility_tolerance": FEASIBILITY, "primal_feasibility_tolerance": FEASIBILITY}
_NO_PRESOLVE = {**_TIGHT, "presolve": "off"}
_LOOSER = {"mip_feasibility_tolerance": 1e-8, "primal_feasibility_tolerance": 1e-8, "random_seed": 1}
_OTHER_WAYS: list[dict[str, Any]] = [_LOOSER, {**_TIGHT, "random_seed": 7}, {**_NO_PRESOLVE, "random_seed": 7}]
# HiGHS sometimes stumbles over its own presolve, or over tolerances this tight: then it is asked again without.
_ATTEMPTS: tuple[dict[str, Any], ...] = (_TIGHT, _NO_PRESOLVE, {"presolve": "off"})
# Columns up to which a program is solved without presolve in good time.
_SMALL = 2000
_AGREE = 1e-7


def solve(program: Program, time_limit_s: float | None = None) -> Outcome:
    """Run HiGHS on a program. Variables hold the incumbent afterwards where there is one.

    HiGHS 1.16 has been seen to call an integer program optimal, with no gap, at a value 16 % from the optimum, about
    once in a thousand programs; which one depends on presolve, tolerances and seed. So an integer program is solved in
    different ways until two agree, and the best answer is kept. Where no two agree in time, it ends as ``limit``.

    Raises
    ------
    RuntimeError
        If HiGHS ends in a state that is none of optimal, infeasible, unbounded, or stopped at a limit.
    """
    start = time.perf_counter()

    def left() -> float | None:
        return None if time_limit_s is None else max(0.1, time_limit_s - (time.perf_counter() - start))

    options, outcome = _first_answer(program, time_limit_s)
    if _is_integer(program) and outcome.termination in ("optimal", "infeasible"):
        options, outcome = _confirmed(program, options, outcome, left)
    return replace(outcome, runtime_s=time.perf_counter() - start)


def _confirmed(
    program: Program, options: dict[str, Any], first: Outcome, left: Callable[[], float | None]
) -> tuple[dict[str, Any], Outcome]:
    """Ask in other ways until two runs agree on the best answer; give it, with the variables that it has."""
    runs = [(options, first)]
    proven = False
    held: Outcome | None = first  # whose answer the variables have
    small = len(program.problem.variables()) <= _SMALL
    for other in ([_NO_PRESOLVE] if small else []) + _OTHER_WAYS:
        seconds = left()
        if other == options or (seconds is not None and seconds <= 0.1):
            continue
        outcome = _run(program, other, seconds)
        held = outcome
        if outcome is not None:
            runs.append((other, outcome))
        proven = sum(_agrees(found, _best(runs)[1]) for _, found in runs) > 1
        if proven:
            break
    way, best = _best(runs)
    termination: Termination = best.termination if proven else "limit"
    if best.has_incumbent and held is not best and (held is None or not _agrees(held, best)):
        again = _run(program, way, None)  # so that the variables hold the best answer
        if again is None or not again.has_incumbent:
            raise RuntimeError("HiGHS does not repeat its own answer")
        best = again
    return way, replace(best, termination=termination)


def _best(runs: list[tuple[dict[str, Any], Outcome]]) -> tuple[dict[str, Any], Outcome]:
    """Give the least objective of a minimization; any plan disproves an infeasible answer."""
    return min(runs, key=lambda run: run[1].objective if run[1].has_incumbent else math.inf)


def _agrees(found: Outcome, best: Outcome) -> bool:
    """Whether a run ended with a proof of the best answer."""
    if not best.has_incumbent:
        return found.termination == "infeasible"
    same = abs(found.objective - best.objective) <= _AGREE * max(abs(best.objective), 1e-12)
    return found.has_incumbent and found.termination == "optimal" and same


def _first_answer(program: Program, time_limit_s: float | None) -> tuple[dict[str, Any], Outcome]:
    for options in _ATTEMPTS:
        outcome = _run(program, options, time_limit_s)
        if outcome is not None:
            return options, outcome
    raise RuntimeError(f"HiGHS ended with {_status(program)}")


def _run(program: Program, options: dict[str, Any], time_limit_s: float | None) -> Outcome | None:
    """Run HiGHS once; null where it ends in no state that means anything."""
    solver = pulp.HiGHS(msg=False, threads=1, timeLimit=time_limit_s, gapRel=_GAP, gapAbs=_GAP, **options)
    start = time.perf_counter()
    with _silent_stdout():
        program.problem.solve(solver)
        if _status(program) == "kNotset":
            # Other code in this process ran HiGHS first, with another number of threads: start its scheduler anew.
            type(program.problem.solverModel).resetGlobalScheduler(True)
            program.problem.solve(solver)
    status = _status(program)
    return _outcome(program, _ENDS[status], time.perf_counter() - start) if status in _ENDS else None


def _status(program: Program) -> str:
    return str(program.problem.solverModel.getModelStatus().name)


def _is_integer(program: Program) -> bool:
    return any(variable.cat == "Integer" for variable in program.problem.variables())


def _outcome(program: Program, termination: Termination, runtime_s: float) -> Outcome:
    info = program.problem.solverModel.getInfo()
    # primal_solution_status 2: a feasible point is held. Without one the objective value is rubbish.
    has_incumbent = int(info.primal_solution_status) == 2
    objective = float(info.objective_function_value)
    bound = float(info.mip_dual_bound) if _is_integer(program) else objective
    return Outcome(termination, has_incumbent, objective, bound, runtime_s)


def row_prices(program: Program) -> dict[str, float]:
    """Give the dual value of every row of a linear program just solved, by name.

    They are read from HiGHS, whose rows stand in the order of the program's; PuLP 3 and 4 keep them elsewhere.
    """
    duals = program.problem.solverModel.getSolution().row_dual
    return {row.name: float(dual) for row, dual in zip(program.problem.constraints(), duals, strict=True)}


@contextlib.contextmanager
def _silent_stdout() -> Iterator[None]:
    """Keep file descriptor 1 for the answer: HiGHS writes its banner there even when silent."""
    sys.stdout.flush()
    saved = os.dup(1)
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(sink)


def solver_name() -> str:
    """Name solver and modeller with their versions."""
    import importlib.metadata as metadata

    return f"HiGHS {metadata.version('highspy')} through PuLP {metadata.version('pulp')}"
