"""Synthetic catalogs and questions of any size for the benchmarks: the same of a seed on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.schema.scenario import Scenario

BATCHES = 2 ** np.arange(8)


def devices(rng: np.random.Generator, types: int) -> dict[str, Any]:
    """Device types whose speed, power and price go together, with some luck in each figure."""
    speed, draft_speed = rng.lognormal(0, 0.5, types), rng.lognormal(0, 0.5, (types, BATCHES.size))
    watts = (300 + 700 * rng.random(types)) * (0.5 + speed)
    luck = rng.uniform(0.7, 1.3, (4, types, BATCHES.size))
    b = BATCHES[None, :]
    figures = {
        "prefill_ms": 150 * b**0.9 / speed[:, None] * luck[0],
        "prefill_mj": 2.5e5 * luck[1],
        "verify_floor": 40 / speed[:, None] * (1 + b / 100),
        "verify_each": (1 + b / 8) / speed[:, None],
        "verify_base_mj": 7200 / b**0.8 * luck[2],
        "draft_prefill_ms": 20 * b**0.9 / speed[:, None],
        "draft_prefill_mj": 2e4 * luck[3],
        "draft_each": 4 * (1 + b / 200) / draft_speed,
        "draft_each_mj": 30 * draft_speed / b**0.5,
    }
    return {
        f"d{d}": {
            "provisioned_power_w": float(watts[d]),
            "idle_power_w": float(watts[d] / 5),
            "memory_gb": 141.0,
            "price": {"usd_per_hour": float(3 * speed[d]), "basis": "drawn", "date": "2026-01-01"},
            "profiles": profiles({key: np.broadcast_to(value, luck[0].shape)[d] for key, value in figures.items()}),
        }
        for d in range(types)
    }


def profiles(figures: dict[str, np.ndarray]) -> dict[str, Any]:
    """Profiles of one device type from figures by batch."""
    target: dict[str, Any] = {"target_prefill": {}, "target_verify": {}}
    drafter: dict[str, Any] = {"draft_prefill": {}, "draft_decode": {}}
    for i, batch in enumerate(BATCHES):
        at = {key: float(value[i]) for key, value in figures.items()}
        target["target_prefill"][f"b{batch}"] = {"latency_ms": at["prefill_ms"], "energy_mj": at["prefill_mj"]}
        target["target_verify"][f"b{batch}"] = {
            "latency_ms": {"floor": at["verify_floor"], "per_token": at["verify_each"]},
            "energy_mj": {"base": at["verify_base_mj"], "per_token": 40.0},
        }
        drafter["draft_prefill"][f"b{batch}"] = {
            "latency_ms": at["draft_prefill_ms"],
            "energy_mj": at["draft_prefill_mj"],
        }
        drafter["draft_decode"][f"b{batch}"] = {
            "latency_ms": {"per_token": at["draft_each"]},
            "energy_mj": {"per_token": at["draft_each_mj"]},
        }
    return {"target": target, "small": drafter}


def question(types: int, workloads: int, longest: int, inventory: int | None = None, seed: int = 0) -> Scenario:
    """Most throughput of workloads with an interactivity floor, under a power budget and perhaps an inventory."""
    rng = np.random.default_rng(seed)
    catalog = {
        "schema_version": 1,
        "devices": devices(rng, types),
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
    }
    shapes = zip(
        rng.integers(500, 4000, workloads),
        rng.integers(200, 1000, workloads),
        rng.uniform(20, 60, workloads),
        strict=True,
    )
    limits: dict[str, Any] = {"power_budget_kw": 200.0 * workloads}
    if inventory is not None:
        limits["inventory"] = dict.fromkeys(catalog["devices"], inventory)
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "benchmark",
            "catalog": catalog,
            "target": "target",
            "proposers": ["small"],
            "max_draft_length": longest,
            "workloads": {
                f"w{n}": {
                    "isl_tokens": int(isl),
                    "osl_tokens": int(osl),
                    "limits": {"interactivity_floor_tps": float(floor)},
                }
                for n, (isl, osl, floor) in enumerate(shapes)
            },
            "limits": limits,
        }
    )
