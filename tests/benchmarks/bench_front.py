"""The exact front of 60 device types × 4 degrees × 8 batches, drafts of up to 32 tokens, on every power basis.

Run ``python -m pytest tests/benchmarks/bench_front.py -s -n 0``. The front is asserted against a search over every pair
of verify and draft options of every draft length; the time from scenario to front is printed, costing and recomputing
every point included (aim on an idle machine: 0.5 s on forward energy, 2 s on provisioned power).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import fleet_oracles as oracles
import front_oracles

from planner.front.recipe import STRUCTURE, exact_front
from planner.schema.front import Front
from planner.schema.scenario import Scenario

DEGREES, BATCHES = (1, 2, 4, 8), tuple(int(b) for b in 2 ** np.arange(8))
TYPES, LONGEST = 60, 32
ISL, OSL = 2000, 400


def device(rng: np.random.Generator) -> dict[str, Any]:
    """One device type: faster ones draw more power, with luck in every figure of every option."""
    speed, draft_speed = rng.lognormal(0, 0.5, 2)
    target: dict[str, Any] = {"target_prefill": {}, "target_verify": {}}
    drafter: dict[str, Any] = {"draft_prefill": {}, "draft_decode": {}}
    for degree in DEGREES:
        for batch in BATCHES:
            key, luck = f"tp{degree}:b{batch}", rng.uniform(0.7, 1.3, 8)
            faster, b = degree**0.7 * speed, float(batch)
            target["target_prefill"][key] = profile(150 * b**0.9 / faster * luck[0], 2.5e5 * luck[1])
            target["target_verify"][key] = {
                "latency_ms": {"floor": 40 / faster * (1 + b / 100) * luck[2], "per_token": (1 + b / 8) / faster},
                "energy_mj": {"base": 7200 * degree**0.3 / b**0.8 * luck[3], "per_token": 40.0},
            }
            drafter["draft_prefill"][key] = profile(20 * b**0.9 / faster * luck[4], 2e4 * luck[5])
            drafter["draft_decode"][key] = {
                "latency_ms": {"per_token": 4 * (1 + b / 200) / draft_speed / degree**0.2 * luck[6]},
                "energy_mj": {"per_token": 30 * draft_speed * degree**0.5 / b**0.5 * luck[7]},
            }
    watts = float((300 + 700 * rng.random()) * (0.5 + speed))
    return {
        "provisioned_power_w": watts,
        "idle_power_w": watts / 5,
        "memory_gb": 141.0,
        "profiles": {"target": target, "small": drafter},
    }


def profile(latency_ms: float, energy_mj: float) -> dict[str, float]:
    return {"latency_ms": float(latency_ms), "energy_mj": float(energy_mj)}


def question(power_basis: str, types: int = TYPES, seed: int = 0) -> Scenario:
    """The question of a seed: the same on every machine."""
    rng = np.random.default_rng(seed)
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "benchmark",
            "catalog": {
                "schema_version": 1,
                "devices": {f"d{n}": device(rng) for n in range(types)},
                "models": {
                    "target": {"weights_gb": 70.0, "kv_bytes_per_token": 160_000.0},
                    "small": {"weights_gb": 2.0, "kv_bytes_per_token": 32_000.0},
                },
                "proposers": {
                    "small": {
                        "kind": "draft_model",
                        "model": "small",
                        "acceptance": {"target": {"general": {"kind": "geometric", "alpha": 0.8}}},
                    }
                },
            },
            "target": "target",
            "proposers": ["small"],
            "max_draft_length": LONGEST,
            "workloads": {"w": {"isl_tokens": ISL, "osl_tokens": OSL}},
            "power_basis": power_basis,
        }
    )


def every_pair(scenario: Scenario) -> list[tuple[float, float]]:
    """The front over every pair of step options of every draft length, one at a time; nothing is left out beforehand.

    The cheapest prefills are taken: without a TTFT ceiling nothing else depends on them.
    """
    workload, basis = scenario.workloads["w"], scenario.power_basis

    def costed(phase: str, model: str, tokens: int) -> np.ndarray:
        rows = [
            (took, batch, held, degree * figure(name), energy)
            for name, degree, batch, _, took, energy, held in oracles.offers(scenario, workload, phase, model, tokens)
        ]
        return np.array(rows).T

    def figure(name: str) -> float:
        one = scenario.catalog.devices[name]
        return {"forward": 0.0, "average": one.idle_power_w, "provisioned": one.provisioned_power_w}[basis]

    def joules(operations: float, phase: np.ndarray, held_s: Any) -> np.ndarray:
        took, batch, held, watts, energy = phase
        busy = operations * took / batch
        if basis == "forward":
            return np.broadcast_to(operations * energy, np.broadcast_shapes(energy.shape, np.shape(held_s)))
        replicas = np.maximum(busy, held_s / held)
        return watts * replicas + (operations * energy - watts * busy if basis == "average" else 0.0)

    prefills = [float(joules(1.0, costed(f"{m}_prefill", n, ISL), 0.0).min()) for m, n in MODELS]
    found: list[tuple[float, float]] = []
    for proposer, length in oracles.drafts(scenario, workload):
        E = (
            1.0
            if proposer is None
            else oracles.expected_tokens(scenario.catalog.proposers["small"].acceptance["target"]["general"], length)
        )
        steps = (OSL - 1) / E
        verify = [row[:, None] for row in costed("target_verify", "target", length + 1)]
        step_s, cost = verify[0], joules(steps, verify, steps * verify[0]) + prefills[0]
        if proposer is not None:
            draft = [row[None, :] for row in costed("draft_decode", "small", length)]
            draft = [row[:, np.argsort(draft[0][0], kind="stable")] for row in draft]  # from the fastest on
            step_s = verify[0] + draft[0]
            cost = joules(steps, verify, steps * step_s) + joules(steps, draft, steps * step_s) + sum(prefills)
        least = np.minimum.accumulate(cost, axis=1)  # a slower draft must be cheaper with the same verify option
        kept = np.column_stack([np.ones(len(cost), dtype=bool), least[:, 1:] < least[:, :-1]])
        found += best_of(E / step_s[kept], cost[kept] / OSL)
    return front_oracles.non_dominated(found)


MODELS = (("target", "target"), ("draft", "small"))


def best_of(tps: np.ndarray, energy: np.ndarray) -> list[tuple[float, float]]:
    """Points that no faster one undercuts, by sorting."""
    order = np.lexsort((energy, -tps))
    least = np.minimum.accumulate(energy[order])
    kept = order[np.concatenate([[True], least[1:] < least[:-1]])]
    return list(zip(tps[kept].tolist(), energy[kept].tolist(), strict=True))


@pytest.mark.parametrize(("basis", "aim_s"), [("forward", 0.5), ("average", 2.0), ("provisioned", 2.0)])
def test_the_front_of_a_large_catalog(basis: str, aim_s: float) -> None:
    scenario = question(basis)
    took: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        front: Front = exact_front(scenario)
        took.append(time.perf_counter() - start)
    print(
        f"\n{basis}: {len(front.points)} points, {min(took):.2f} s at best, {max(took):.2f} s at worst; aim {aim_s} s"
    )
    assert (front.exact, front.provenance.solver) == (True, STRUCTURE)
    expected = every_pair(scenario)
    assert len(expected) > 30
    found = [(point.interactivity_tps, point.energy_j_per_token) for point in front.points]
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-8)
