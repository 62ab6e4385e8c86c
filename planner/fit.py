"""Fit the acceptance curve of the published reference model to the outcomes that it prints.

The study prints no parameters of its acceptance curve, only what follows from it. ``python -m planner.fit`` repeats the
fit; the catalog holds its result, and a test compares the two.

Source of every number here: Gimlet Labs, "Disaggregating the Disaggregated Model", 2026.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.acceptance import saturating_exponential
from planner.evaluate import Design, request_metrics
from planner.options import PLAIN, CostTable, Option, Speculation, cost_table
from planner.schema.scenario import Scenario
from planner.words import Phase

Floats = NDArray[np.float64]

GPU, ACCELERATOR = Option("gpu", 1, 1), Option("accelerator", 1, 1)


@dataclass(frozen=True)
class Outcome:
    """A printed outcome: its value, how far off counts as one unit of error, and what it is of a curve E(D)."""

    name: str
    printed: float
    tolerance: float
    of: Callable[[Floats], float]


@dataclass(frozen=True)
class Fit:
    """Parameters of the saturating exponential with offset 0, and the largest error in units of tolerance."""

    A: float
    tau: float
    worst: float


def design(placement: str, draft_length: int, workload: str = "reference") -> Design:
    """Give one of the study's placements: gpu_only, accelerator_draft or split_draft."""
    prefill, decode = {
        "gpu_only": (GPU, GPU),
        "accelerator_draft": (ACCELERATOR, ACCELERATOR),
        "split_draft": (GPU, ACCELERATOR),
    }[placement]
    drafting = draft_length > 0
    options: dict[Phase, Option | None] = {
        "target_prefill": GPU,
        "target_verify": GPU,
        "draft_prefill": prefill if drafting else None,
        "draft_decode": decode if drafting else None,
    }
    return Design(workload, Speculation("drafter", draft_length) if drafting else PLAIN, options)


def _times_s(table: CostTable, decode: Option) -> Floats:
    """(D,) step time over draft lengths from 1."""
    verify, draft = table.phases["target_verify"], table.phases["draft_decode"]
    steps = verify.latency_s[verify.options.index(GPU)] + draft.latency_s[draft.options.index(decode)]
    return np.asarray(steps[1:])


def outcomes(scenario: Scenario) -> list[Outcome]:
    """List the printed outcomes that depend on the curve and are not a draft length; E is given from D = 1."""
    table = cost_table(scenario, "reference")
    on_gpu, on_accelerator = _times_s(table, GPU), _times_s(table, ACCELERATOR)

    def peak(times: Floats) -> Callable[[Floats], float]:
        return lambda E: float((E / times).max())

    def decode_share(option: Option) -> Callable[[Floats], float]:
        placement = "gpu_only" if option == GPU else "accelerator_draft"
        metrics = request_metrics(scenario, design(placement, 10), table)
        draft_j, verify_j = (
            use.energy_j / metrics.steps
            for use in (metrics.phases["draft_decode"], metrics.phases["target_verify"])
            if use is not None
        )
        prefills_j = metrics.energy_j - (draft_j + verify_j) * metrics.steps
        osl = scenario.workloads["reference"].osl_tokens

        def share(E: Floats) -> float:
            steps = osl / float(E[9])
            return steps * draft_j / (prefills_j + steps * (draft_j + verify_j))

        return share

    return [
        Outcome("peak interactivity, gpu_only", 61.0, 0.61, peak(on_gpu)),
        Outcome("peak interactivity, accelerator_draft", 137.0, 1.37, peak(on_accelerator)),
        Outcome("ratio of the peaks", 2.25, 0.0225, lambda E: peak(on_accelerator)(E) / peak(on_gpu)(E)),
        Outcome("draft decode share of energy at D=10, gpu_only", 0.058, 0.001, decode_share(GPU)),
        Outcome("draft decode share of energy at D=10, accelerator_draft", 0.224, 0.001, decode_share(ACCELERATOR)),
    ]


def best_draft_lengths(scenario: Scenario, E: Floats) -> list[tuple[int, int]]:
    """Give (found, printed) best draft lengths: gpu_only, accelerator_draft, and 5 ms and 1 ms per draft token."""
    table = cost_table(scenario, "reference")
    on_gpu = _times_s(table, GPU)
    lengths = np.arange(1, len(on_gpu) + 1)
    draft = table.phases["draft_decode"]
    verify = on_gpu - draft.latency_s[draft.options.index(GPU)][1:]
    cases = [(on_gpu, 8), (_times_s(table, ACCELERATOR), 15)]
    cases += [(verify + per_token * lengths, best) for per_token, best in ((5e-3, 9), (1e-3, 15))]
    return [(int(np.argmax(E / times)) + 1, printed) for times, printed in cases]


def fit(scenario: Scenario, rounds: int = 6, points: int = 41) -> Fit:
    """Find A and tau (offset 0) that make the largest error, in units of tolerance, as small as possible.

    The printed best draft lengths must be met exactly. A grid is refined around its best point ``rounds`` times: the
    largest error is not smooth, and two parameters leave no need for more.

    Parameters
    ----------
    scenario
        The reference scenario; its acceptance is not used.
    rounds, points
        Refinements, and grid points per parameter.
    """
    targets = outcomes(scenario)
    longest = scenario.max_draft_length
    A_range, tau_range = (8.0, 14.0), (5.0, 13.0)
    best = Fit(np.nan, np.nan, np.inf)
    for _ in range(rounds):
        for A in np.linspace(*A_range, points):
            for tau in np.linspace(*tau_range, points):
                E = saturating_exponential(np.arange(1, longest + 1), A, tau)
                worst = max(abs(target.of(E) - target.printed) / target.tolerance for target in targets)
                if worst < best.worst and all(a == b for a, b in best_draft_lengths(scenario, E)):
                    best = Fit(float(A), float(tau), float(worst))
        A_range, tau_range = _around(A_range, best.A, points), _around(tau_range, best.tau, points)
    return best


def _around(span: tuple[float, float], centre: float, points: int) -> tuple[float, float]:
    """Shrink a range to two grid steps on each side of its best point."""
    reach = 2.0 * (span[1] - span[0]) / (points - 1)
    return centre - reach, centre + reach


def main() -> None:
    """Print the fit and every outcome that it gives."""
    from rich.console import Console
    from rich.table import Table

    from planner.read.load import read_scenario

    scenario = read_scenario("reference").scenario
    found = fit(scenario)
    E = saturating_exponential(np.arange(1, scenario.max_draft_length + 1), round(found.A, 2), round(found.tau, 2))
    table = Table("outcome", "printed", "fitted", "error in tolerances")
    for outcome in outcomes(scenario):
        error = (outcome.of(E) - outcome.printed) / outcome.tolerance
        table.add_row(outcome.name, f"{outcome.printed:g}", f"{outcome.of(E):.4g}", f"{error:+.2f}")
    for reached, printed in best_draft_lengths(scenario, E):
        table.add_row("best draft length", str(printed), str(reached), "exact")
    console = Console()
    console.print(f"A = {found.A:.2f}, tau = {found.tau:.2f}, offset 0; worst error {found.worst:.2f} tolerances")
    console.print(table)


if __name__ == "__main__":
    main()
