"""One small scenario of round numbers, for figures that a hand can check."""

from typing import Any

from planner.evaluate import Design
from planner.options import PLAIN, Option, Speculation
from planner.schema.scenario import Scenario
from planner.words import PHASES

# One request: 1000 + 101 tokens; the first token comes from the first verify where something is drafted.
CATALOG = {
    "schema_version": 1,
    "devices": {
        "gpu": {
            "memory_gb": 16.0,
            "idle_power_w": 100.0,
            "provisioned_power_w": 500.0,
            "price": {"usd_per_hour": 2.0, "basis": "by hand", "date": "2026-01-01"},
            "profiles": {
                "target": {
                    "target_prefill": {"b1": {"latency_ms": 100, "energy_mj": 40_000}},
                    "target_verify": {"b2": {"latency_ms": {"floor": 30, "per_token": 20}, "energy_mj": 2_000}},
                },
                "small": {
                    "draft_prefill": {"b1": {"latency_ms": 20, "energy_mj": 4_000}},
                    "draft_decode": {"b2": {"latency_ms": {"per_token": 10}, "energy_mj": {"per_token": 1_000}}},
                },
            },
        },
        "lpu": {
            "memory_gb": 4.0,
            "idle_power_w": 20.0,
            "provisioned_power_w": 200.0,
            "price": {"usd_per_hour": 1.0, "basis": "by hand", "date": "2026-01-01"},
            "profiles": {
                "small": {
                    "draft_prefill": {"b1": {"latency_ms": 120, "energy_mj": 3_000}},
                    "draft_decode": {"b1": {"latency_ms": {"per_token": 2}, "energy_mj": {"per_token": 100}}},
                },
            },
        },
    },
    "models": {
        "target": {"weights_gb": 8.0, "kv_bytes_per_token": 2e9 / 1101},
        "small": {"weights_gb": 1.0, "kv_bytes_per_token": 1e9 / 1101},
    },
    "proposers": {
        name: {
            "kind": kind,
            "model": "small",
            "step_payload_bytes_per_token": 1e6,
            **({"hidden_bytes_per_token": 0.0} if kind == "eagle3" else {}),
            "acceptance": {"target": {"general": {"kind": "table", "tokens_per_step": {1: 1.6}}}},
        }
        for name, kind in (("drafter", "draft_model"), ("head", "eagle3"))
    },
    "links": {"wire": {"bandwidth_gb_per_s": 1.0, "latency_us": 500.0, "energy_pj_per_byte": 1000.0}},
}
TINY = {
    "schema_version": 1,
    "name": "tiny",
    "catalog": CATALOG,
    "target": "target",
    "proposers": ["drafter", "head"],
    "max_draft_length": 1,
    "workloads": {
        "chat": {
            "isl_tokens": 1000,
            "osl_tokens": 101,
            "limits": {"interactivity_floor_tps": 10.0, "ttft_ceiling_ms": 500.0, "demand_rps": 2.0},
        }
    },
    "limits": {"power_budget_kw": 10.0, "cost_budget_usd_per_hour": 50.0, "inventory": {"gpu": 12, "lpu": 6}},
    "first_token": "after_verify",
    "max_utilization": 0.8,
    "host_factor": 1.25,
    "pue": 1.2,
    "transfers": {"link": "wire", "kv_exposed_share": 0.25},
}


def tiny(limits: Any = (), fleet: Any = (), **changes: Any) -> Scenario:
    """The tiny scenario without any limit but those given."""
    base = Scenario.model_validate(TINY)
    chat = base.workloads["chat"]
    chat = chat.replace(limits=type(chat.limits)(**dict(limits)))
    return base.replace(workloads={"chat": chat}, limits=type(base.limits)(**dict(fleet)), **changes)


def with_device(scenario: Scenario, name: str, **changes: Any) -> Scenario:
    """The scenario with fields of one device changed."""
    catalog = scenario.catalog
    devices = {**catalog.devices, name: catalog.devices[name].replace(**changes)}
    return scenario.replace(catalog=catalog.replace(devices=devices))


GPU_PREFILL, GPU, LPU = Option("gpu", 1, 1), Option("gpu", 1, 2), Option("lpu", 1, 1)


def design(speculation: Speculation, *options: Option | None) -> Design:
    """A design, its options in the order of the phases."""
    return Design("chat", speculation, dict(zip(PHASES, options, strict=True)))


PLAIN_DESIGN = design(PLAIN, GPU_PREFILL, GPU, None, None)
SPLIT = design(Speculation("drafter", 1), GPU_PREFILL, GPU, GPU_PREFILL, LPU)
HEAD_SPLIT = design(Speculation("head", 1), GPU_PREFILL, GPU, GPU_PREFILL, LPU)
