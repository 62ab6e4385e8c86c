"""The five objectives, and two more that explanations ask for, as expressions to minimize in units of about 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.bounds import least_cost
from planner.milp.constraints import (
    Transfers,
    fleet_cost_usd_per_hour,
    fleet_power_w,
    tpot_s,
    ttft_arms_s,
)
from planner.milp.solver import Linear, Program
from planner.milp.variables import DeviceVariables, Slot
from planner.question import Aim, Question, is_maximized
from planner.schema.scenario import Scenario
from planner.words import PHASES, Phase


@dataclass(frozen=True)
class Goal:
    """What is minimized: ``expression`` × ``unit`` is the aim's own figure (negated, or inverted to TPOT)."""

    aim: Aim
    expression: Linear
    unit: float

    @property
    def maximizes(self) -> bool:
        """Whether more of the figure is better."""
        return is_maximized(self.aim)

    def value(self, minimized: float) -> float | None:
        """Turn a value of the minimization into the aim's unit; null where it says nothing."""
        figure = minimized * self.unit
        if self.aim in ("throughput", "rate"):
            return -figure
        if self.aim == "interactivity":
            return 1.0 / figure if figure > 0 else None
        return figure


def throughput_tps(scenario: Scenario, slots: Sequence[Slot]) -> Linear:
    """Output tokens/s of the whole deployment, Σ λ·OSL."""
    total = Linear()
    for slot in slots:
        total.add(slot.request_rate().pairs(), float(scenario.workloads[slot.workload].osl_tokens))
    return total


def energy_j_per_token(
    scenario: Scenario, slots: Sequence[Slot], transfers: Sequence[Transfers], rates: dict[str, float]
) -> Linear:
    """Mix-weighted forward energy per output token at fixed rates, Σ mix·(Σ f·e)/(λ·OSL)."""
    mix = {name: workload.mix for name, workload in scenario.workloads.items()}
    total = Linear()
    for slot, moved in zip(slots, transfers, strict=True):
        weight = mix[slot.workload] / sum(mix.values())
        tokens = rates[slot.workload] * scenario.workloads[slot.workload].osl_tokens
        energy = {phase: slot.table.energy_per_request_j(phase) for phase in PHASES}
        total.add(slot.flow(energy).pairs(), weight / tokens).add(moved.energy_w(slot).pairs(), weight / tokens)
    return total


Concerned = Sequence[tuple[Slot, Transfers]]


def worst_tpot_s(program: Program, concerned: Concerned, unit_s: float) -> Linear:
    """T ≥ TPOT of every slot concerned, in units of ``unit_s``."""
    worst = program.variable("worst_tpot")
    for slot, moved in concerned:
        row = tpot_s(slot, moved).scaled(1.0 / unit_s).add([(worst, -1.0)])
        program.row(f"worst_tpot_{slot.prefix}", row, "<=", 0.0)
    return Linear([(worst, 1.0)])


def worst_ttft_s(program: Program, concerned: Concerned) -> Linear:
    """T ≥ every arm of the TTFT of every slot concerned, in s."""
    worst = program.variable("worst_ttft")
    for slot, moved in concerned:
        for number, arm in enumerate(ttft_arms_s(program, slot, moved, "worst")):
            program.row(f"worst_ttft_{slot.prefix}_{number}", arm.add([(worst, -1.0)]), "<=", 0.0)
    return Linear([(worst, 1.0)])


def goal_of(
    program: Program,
    scenario: Scenario,
    slots: Sequence[Slot],
    transfers: Sequence[Transfers],
    devices: dict[str, DeviceVariables],
    question: Question,
) -> Goal:
    """Build the expression of a question's aim."""
    aim = question.aim
    pairs = zip(slots, transfers, strict=True)
    concerned = [(slot, moved) for slot, moved in pairs if question.concerns(slot.workload)]
    if aim == "interactivity":
        unit = _least_tpot_s([slot for slot, _ in concerned])
        return Goal(aim, worst_tpot_s(program, concerned, unit), unit)
    if aim == "throughput":
        figure = throughput_tps(scenario, slots)
    elif aim == "rate":
        figure = Linear(pair for slot, _ in concerned for pair in slot.request_rate().pairs())
    elif aim == "power":
        figure = fleet_power_w(scenario, slots, transfers, devices)
    elif aim == "cost":
        figure = fleet_cost_usd_per_hour(scenario, devices)
    elif aim == "energy":
        assert question.rates is not None  # energy is always asked at fixed rates
        figure = energy_j_per_token(scenario, slots, transfers, question.rates)
    elif aim == "ttft":
        figure = worst_ttft_s(program, concerned)
    else:
        figure = devices[question.device].had if question.device in devices else Linear()
    largest = max((abs(coefficient) for _, coefficient in figure.pairs()), default=1.0)
    unit = _least_figure(scenario, slots, question) or largest
    return Goal(aim, figure.scaled((-1.0 if is_maximized(aim) else 1.0) / unit), unit)


def _least_tpot_s(slots: Sequence[Slot]) -> float:
    """Give a bound below every TPOT, so that the solver's tolerances are relative ones."""
    phase: Phase = "target_verify"
    return min(
        (
            float(slot.table.phases[phase].latency_s[c.o, c.s] / slot.table.tokens_per_step[c.s])
            for slot in slots
            for c in slot.choices[phase]
        ),
        default=1.0,
    )


def _least_figure(scenario: Scenario, slots: Sequence[Slot], question: Question) -> float:
    """Bound power, cost or energy from below at exact rates, for the same reason; zero where there is no bound.

    A count stands for the replicas that the flow needs. At a small demand these are so few that coefficients alone
    would leave the figure below the solver's tolerances.
    """
    if question.aim not in ("power", "cost", "energy") or question.rates is None:
        return 0.0
    total, weights = 0.0, sum(workload.mix for workload in scenario.workloads.values())
    for slot in slots:
        if slot.share > 0:
            continue
        rate, workload = question.rates[slot.workload], scenario.workloads[slot.workload]
        least = least_cost(scenario, slot.table, question.aim, rate)
        total += workload.mix / weights * least / (rate * workload.osl_tokens) if question.aim == "energy" else least
    return total
