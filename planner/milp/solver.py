"""The only place that knows how PuLP 3 and PuLP 4 differ, and what HiGHS really said."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
# HiGHS sometimes stumbles over its own presolve, or over tolerances this tight: then it is asked again without.
_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {"mip_feasibility_tolerance": FEASIBILITY, "primal_feasibility_tolerance": FEASIBILITY},
    {"mip_feasibility_tolerance": FEASIBILITY, "primal_feasibility_tolerance": FEASIBILITY, "presolve": "off"},
    {"presolve": "off"},
)


def solve(program: Program, time_limit_s: float | None = None) -> Outcome:
    """Run HiGHS on a program. Variables hold the incumbent afterwards where there is one.

    Raises
    ------
    RuntimeError
        If HiGHS ends in a state that is none of optimal, infeasible, unbounded, or stopped at a limit.
    """
    start = time.perf_counter()
    for options in _ATTEMPTS:
        solver = pulp.HiGHS(msg=False, threads=1, timeLimit=time_limit_s, gapRel=_GAP, gapAbs=_GAP, **options)
        with _silent_stdout():
            program.problem.solve(solver)
        status = program.problem.solverModel.getModelStatus().name
        if status in _ENDS:
            return _outcome(program, _ENDS[status], time.perf_counter() - start)
    raise RuntimeError(f"HiGHS ended with {status}")


def _outcome(program: Program, termination: Termination, runtime_s: float) -> Outcome:
    info = program.problem.solverModel.getInfo()
    # primal_solution_status 2: a feasible point is held. Without one the objective value is rubbish.
    has_incumbent = int(info.primal_solution_status) == 2
    objective = float(info.objective_function_value)
    is_mip = any(variable.cat == "Integer" for variable in program.problem.variables())
    bound = float(info.mip_dual_bound) if is_mip else objective
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
