"""The five objectives, and two more that explanations ask for, as expressions to minimize in units of about 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from planner.milp.constraints import Transfers, fleet_cost_usd_per_hour, fleet_power_w, tpot_s, ttft_arms_s
from planner.milp.solver import Linear, Program
from planner.milp.variables import Slot
from planner.schema.scenario import Scenario
from planner.words import MAXIMIZED, PHASES, Objective, Phase

Aim = Objective | Literal["ttft", "devices", "any"]


@dataclass(frozen=True)
class Goal:
    """What is minimized: ``expression`` × ``unit`` is the aim's own figure (negated, or inverted to TPOT)."""

    aim: Aim
    expression: Linear
    unit: float

    @property
    def maximizes(self) -> bool:
        """Whether more of the figure is better."""
        return self.aim in MAXIMIZED

    def value(self, minimized: float) -> float | None:
        """Turn a value of the minimization into the aim's unit; null where it says nothing."""
        figure = minimized * self.unit
        if self.aim == "throughput":
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


def worst_tpot_s(program: Program, slots: Sequence[Slot], transfers: Sequence[Transfers], unit_s: float) -> Linear:
    """T ≥ TPOT of every slot, in units of ``unit_s``."""
    worst = program.variable("worst_tpot")
    for slot, moved in zip(slots, transfers, strict=True):
        row = tpot_s(slot, moved).scaled(1.0 / unit_s).add([(worst, -1.0)])
        program.row(f"worst_tpot_{slot.prefix}", row, "<=", 0.0)
    return Linear([(worst, 1.0)])


def worst_ttft_s(program: Program, slots: Sequence[Slot], transfers: Sequence[Transfers]) -> Linear:
    """T ≥ every arm of the TTFT of every slot, in s."""
    worst = program.variable("worst_ttft")
    for slot, moved in zip(slots, transfers, strict=True):
        for number, arm in enumerate(ttft_arms_s(program, slot, moved, "worst")):
            program.row(f"worst_ttft_{slot.prefix}_{number}", arm.add([(worst, -1.0)]), "<=", 0.0)
    return Linear([(worst, 1.0)])


def devices_of(slots: Sequence[Slot], device: str) -> Linear:
    """Devices of one type, Σ tensor_parallel·replicas."""
    return Linear((p.n, float(p.tensor_parallel)) for slot in slots for p in slot.pools if p.device == device)


def goal_of(
    program: Program,
    scenario: Scenario,
    slots: Sequence[Slot],
    transfers: Sequence[Transfers],
    rates: dict[str, float] | None,
    aim: Aim,
    device: str | None = None,
) -> Goal:
    """Build the expression of an aim; ``device`` is the type whose devices are counted."""
    if aim == "interactivity":
        unit = _least_tpot_s(slots)
        return Goal(aim, worst_tpot_s(program, slots, transfers, unit), unit)
    if aim == "throughput":
        figure = throughput_tps(scenario, slots)
    elif aim == "power":
        figure = fleet_power_w(scenario, slots, transfers)
    elif aim == "cost":
        figure = fleet_cost_usd_per_hour(scenario, slots)
    elif aim == "energy":
        assert rates is not None  # energy is always asked at fixed rates
        figure = energy_j_per_token(scenario, slots, transfers, rates)
    elif aim == "ttft":
        figure = worst_ttft_s(program, slots, transfers)
    else:
        figure = devices_of(slots, device) if device is not None else Linear()
    unit = _least_at_unit_rates(scenario, slots, figure) if aim in ("power", "cost", "energy") else 0.0
    unit = unit or max((abs(coefficient) for _, coefficient in figure.pairs()), default=1.0)
    return Goal(aim, figure.scaled((-1.0 if aim in MAXIMIZED else 1.0) / unit), unit)


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


def _least_at_unit_rates(scenario: Scenario, slots: Sequence[Slot], figure: Linear) -> float:
    """Give a bound below a figure at the slots' rate unit: the cheapest options of the target's phases.

    A count stands for the replicas that the flow needs. At a small demand these are so few that coefficients alone
    would leave the figure below the solver's tolerances.
    """
    coefficients = {variable.name: coefficient for variable, coefficient in figure.pairs()}
    fewest = 1.0 if scenario.counts == "integer" else 0.0
    total = 0.0
    for slot in slots:
        least: dict[Phase, float] = {}
        for pool in slot.pools:
            busy = slot.table.busy_s(pool.phase)
            for c in pool.choices:
                need = slot.rate_unit_rps * float(busy[c.o, c.s]) / scenario.max_utilization
                spent = coefficients.get(c.f.name, 0.0) + coefficients.get(pool.n.name, 0.0) * max(need, fewest)
                least[pool.phase] = min(least.get(pool.phase, math.inf), spent)
        total += least.get("target_prefill", 0.0) + least.get("target_verify", 0.0)
    return total
