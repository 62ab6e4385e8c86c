"""Small questions about one fleet at random: one generator, fed by ``random.Random`` or by hypothesis.

Limits are set around what a randomly picked set of designs has, so that about half of them bind and some cannot be met.
"""

from __future__ import annotations

import math
import random
from typing import Any, Literal

import fleet_oracles as oracles
from hypothesis import strategies as st

from planner.options import CostTable
from planner.schema.catalog import Catalog
from planner.schema.scenario import FleetLimits, Scenario, Servers, Stock, WorkloadLimits
from planner.words import COUNTS, OBJECTIVES, POWER_BASES

Kind = Literal["pairs", "shares", "mixed", "servers", "shared"]
"""Two workloads; one with two shares and a stock; two with two shares; nodes, spares, fill and racks; shared pools."""

Pressure = Literal["none", "ttft", "memory"]

T_PHASES, D_PHASES = ("target_prefill", "target_verify"), ("draft_prefill", "draft_decode")
# Latency in ms and energy in mJ per request, at batch 1.
RANGES = {
    "target_prefill": ((40, 250), (20_000, 200_000)),
    "target_verify": ((10, 50), (300, 2_000)),
    "draft_prefill": ((5, 80), (300, 20_000)),
    "draft_decode": ((1, 12), (5, 300)),
}


def seeded(kind: Kind, seed: str, **fixed: Any) -> Scenario:
    """The scenario of a seed: the same on every machine and every run."""
    return scenario(random.Random(f"{kind} {seed}"), kind, **fixed)


def scenarios(kind: Kind, **fixed: Any) -> st.SearchStrategy[Scenario]:
    """Hypothesis strategy of scenarios; ``fixed`` fields are as given."""
    return st.randoms(use_true_random=False).map(lambda rng: scenario(rng, kind, **fixed))


def scenario(rng: random.Random, kind: Kind, tight: float = 0.5, **fixed: Any) -> Scenario:
    """Draw until some set of designs fits into memory, then set limits around it."""
    while True:
        base = unlimited(rng, kind, **fixed)
        sets = [oracles.designs_of(base, name) for name in base.workloads]
        if all(sets):
            return with_limits(rng, kind, base, [rng.choice(some) for some in sets], tight)


def figure(rng: random.Random, low: float, high: float) -> float:
    return float(f"{rng.uniform(low, high):.4g}")


def some_of(rng: random.Random, names: list[str], chance: float) -> list[str]:
    """At least one of the names."""
    return [name for name in names if rng.random() < chance] or [rng.choice(names)]


# ---------------------------------------------------------------------------------------------- the catalog


def latency_form(rng: random.Random, low: float, high: float, most: int) -> Any:
    at = figure(rng, low, high)
    forms = [
        at,
        {"floor": at, "per_token": at * rng.uniform(0.3, 1.4) / most},
        {"base": at, "per_token": at * rng.uniform(0.0, 0.8) / most},
        {"per_token": at / most},
    ]
    return rng.choice(forms)


def option(rng: random.Random, phase: str, most: int, degrees: tuple[int, ...]) -> dict[str, Any]:
    """One option of a phase; batches differ between phases."""
    (fast, slow), (frugal, hungry) = RANGES[phase]
    batch, degree = rng.choice((1, 2, 4, 8)), rng.choice(degrees)
    slower, at = batch ** rng.uniform(0.1, 0.9), figure(rng, frugal, hungry)
    energy = rng.choice([at, {"base": at, "per_token": at * rng.uniform(0, 1) / most}, {"per_token": at / most}])
    return {
        f"tp{degree}:b{batch}": {
            "latency_ms": latency_form(rng, fast * slower, slow * slower, most),
            "energy_mj": energy,
        }
    }


def catalog(
    rng: random.Random, kind: Kind, tokens: tuple[int, int], longest: int, drafters: tuple[str, ...]
) -> dict[str, Any]:
    """Devices, models and proposers of a few designs; ``tokens``: of the longest prompt and the longest request."""
    prompt, sequence = tokens
    types = ["d0", "d1"] if len(drafters) > 1 or kind in ("shares", "mixed") or rng.random() < 0.75 else ["d0"]
    # A pool's set of models multiplies the designs: fewer places then.
    chance = {"servers": 0.6, "shared": 0.35, "mixed": 0.3 if longest else 0.9}.get(kind, 0.7)
    degrees = rng.choice([(1,), (1,), (1, 2)])
    devices: dict[str, Any] = {
        name: {
            "idle_power_w": figure(rng, 0, 250),
            "provisioned_power_w": figure(rng, 300, 2500),
            "price": {"usd_per_hour": figure(rng, 0.3, 9), "basis": "drawn", "date": "2026-01-01"},
            "profiles": {},
            **({"devices_per_host": rng.choice([2, 4])} if rng.random() < 0.8 else {}),
        }
        for name in types
    }
    for model, phases in [("target", T_PHASES), *((model, D_PHASES) for model in drafters)]:
        for phase in phases:
            most = prompt if phase.endswith("prefill") else longest + 1
            at = some_of(rng, types, chance)
            if len(drafters) > 1:
                at = ["d0"] if model == "target" else ["d1"]
            for name in at:
                devices[name]["profiles"].setdefault(model, {})[phase] = option(rng, phase, most, degrees)
    models: dict[str, Any] = {name: {} for name in ("target", *drafters)}
    if kind == "shared" or rng.random() < 0.5:
        _add_memory(rng, devices, models, sequence, apart=len(drafters) > 1)
    tasks = ("general", "code")
    proposers = {
        f"p{n}": {
            **kind_of(rng),
            "model": model,
            "step_payload_bytes_per_token": rng.choice([0.0, figure(rng, 0, 2e6)]),
            "acceptance": {"target": {task: {"kind": "geometric", "alpha": figure(rng, 0.2, 0.95)} for task in tasks}},
        }
        for n, model in enumerate(drafters)
    }
    wire = {"bandwidth_gb_per_s": figure(rng, 1, 50), "latency_us": figure(rng, 0, 2000), "energy_pj_per_byte": 9000.0}
    return {
        "schema_version": 1,
        "devices": devices,
        "models": models,
        "proposers": proposers,
        "links": {"wire": wire},
    }


def kind_of(rng: random.Random) -> dict[str, Any]:
    """A drafter with replicas of its own, or beside the target."""
    kind = rng.choice(["draft_model", "draft_model", "eagle3", "eagle3", "mtp"])
    return {"kind": kind, "hidden_bytes_per_token": None if kind == "draft_model" else figure(rng, 0, 9e4)}


def _add_memory(
    rng: random.Random, devices: dict[str, Any], models: dict[str, Any], sequence: int, apart: bool
) -> None:
    """Memory that holds some sequences; now and then one that is not described.

    ``apart``: the target fits on d0 alone and the drafters, together or not, on d1.
    """
    for name, model in models.items():
        model["weights_gb"] = figure(rng, 5, 40) if name == "target" else figure(rng, 0.2, 8)
        model["kv_bytes_per_token"] = rng.choice([0.0, *[10 ** figure(rng, 8.5, 10.3) / sequence] * 6])
    for device in devices.values():
        if apart or rng.random() < 0.9:
            device["memory_gb"], device["reserve_gb"] = figure(rng, 40, 120), rng.choice([0.0, figure(rng, 0, 6)])
    if apart:
        models["target"]["weights_gb"] = 200.0
        for name in models:
            if name != "target":
                models[name]["weights_gb"] = figure(rng, 10, 15)
        for profiles in (devices["d0"]["profiles"], devices["d1"]["profiles"]):
            for phases in profiles.values():
                for phase, options in phases.items():
                    phases[phase] = {key.replace("tp2", "tp1"): option for key, option in options.items()}
        devices["d0"].update(memory_gb=figure(rng, 203, 209.9), reserve_gb=0.0)
        devices["d1"].update(memory_gb=figure(rng, 32, 60), reserve_gb=0.0)


# --------------------------------------------------------------------------------------------- the question


def unlimited(rng: random.Random, kind: Kind, **fixed: Any) -> Scenario:
    """A scenario without limits."""
    number = 1 if kind == "shares" or (kind in ("servers", "shared") and rng.random() < 0.3) else 2
    workloads = {}
    for n in range(number):
        isl, osl, task = rng.randint(50, 4000), rng.randint(2, 500), rng.choice(["general", "code"])
        workloads[f"w{n}"] = {
            "isl_tokens": isl,
            "osl_tokens": osl,
            "cached_prefix_tokens": rng.choice([0, isl // 2]),
            "task": task,
        }
    tokens = (
        max(w["isl_tokens"] for w in workloads.values()),
        max(w["isl_tokens"] + w["osl_tokens"] for w in workloads.values()),
    )
    longest = rng.choice({"mixed": [0, 0, 1], "shared": [1, 1, 2]}.get(kind, [1, 2, 2]))
    two = kind == "shared" and number == 2 and rng.random() < 0.4
    drawn = catalog(rng, kind, tokens, longest, ("m0", "m1") if two else ("m0",))
    fields: dict[str, Any] = {
        "schema_version": 1,
        "name": "drawn",
        "catalog": Catalog.model_validate(drawn),
        "target": "target",
        "proposers": tuple(drawn["proposers"]) if rng.random() < 0.9 else (),
        "workloads": workloads,
        "max_draft_length": longest,
        "max_shares": 2 if kind in ("shares", "mixed") or (kind == "shared" and number == 1) else 1,
        "shared_pools": kind == "shared",
        "objective": rng.choice(OBJECTIVES),
        "counts": rng.choice(COUNTS),
        "power_basis": rng.choice(POWER_BASES),
        "first_token": rng.choice(["after_prefill", "after_verify"]),
        "max_utilization": rng.choice([1.0, figure(rng, 0.5, 1.0)]),
        "pue": rng.choice([1.0, figure(rng, 1.0, 1.6)]),
        "host_factor": rng.choice([1.0, figure(rng, 1.0, 1.5)]),
    }
    if kind == "servers" or (kind == "shared" and rng.random() < 0.3):
        fields["servers"] = {
            "by_node": rng.random() < 0.6,
            "spare_replicas": rng.choice([0, 0, 1, 2]),
            "min_batch_fill": rng.choice([0.0, 0.0, figure(rng, 0.1, 0.9)]),
        }
    if rng.random() < 0.3:
        fields["transfers"] = {"link": "wire", "kv_exposed_share": rng.choice([0.0, 1.0, 0.5])}
    if kind == "mixed":
        fields |= {"counts": "fractional", "servers": {"spare_replicas": rng.choice([0, 0, 1])}}
        fields["objective"] = rng.choice(["throughput", fields["objective"]])
    fields |= fixed
    if fields["shared_pools"] and fields["objective"] == "throughput":
        fields["max_shares"] = 1
    return Scenario.model_validate(fields)


def with_limits(
    rng: random.Random, kind: Kind, base: Scenario, anchors: list[oracles.Design], tight: float
) -> Scenario:
    """Set limits around what one design per workload has, at rates that need a few replicas."""
    crew = oracles.Crew(base, anchors)
    rates = []
    for index, _ in enumerate(anchors):
        needs = [max(pool.busy[index] / base.max_utilization, pool.held[index]) for pool in crew.pools]
        rates.append(figure(rng, 0.3, 3.5) / max(needs))
    workloads = {}
    everywhere = base.objective in ("power", "cost") or rng.random() < 0.7
    for (name, workload), one, rate in zip(base.workloads.items(), anchors, rates, strict=True):
        asked: dict[str, float] = {}
        if rng.random() < tight:
            asked["interactivity_floor_tps"] = one.interactivity_tps * rng.uniform(0.6, 1.2)
        if rng.random() < tight * 0.7:
            asked["ttft_ceiling_ms"] = one.ttft_s * 1e3 * rng.uniform(0.85, 1.4)
        if everywhere and (base.objective != "throughput" or rng.random() < 0.4):
            asked["demand_rps"] = rate
        mix = rate * rng.choice([1.0, rng.uniform(0.5, 2.0)])
        workloads[name] = workload.replace(mix=mix, limits=WorkloadLimits(**asked))
    total = sum(workload.mix for workload in workloads.values())
    if base.objective != "throughput":
        rates = [w.limits.demand_rps or w.mix / total for w in workloads.values()]
    asked_scenario = base.replace(workloads=workloads)
    more = rng.uniform(0.8, 3.0) if base.objective == "throughput" else rng.uniform(0.95, 1.4)
    return with_fleet_limits(rng, kind, asked_scenario, crew, [rate * more for rate in rates])


def with_fleet_limits(
    rng: random.Random, kind: Kind, base: Scenario, crew: oracles.Crew, rates: list[float]
) -> Scenario:
    """Set budgets, stock and racks around what the designs have at these rates."""
    n = crew.serving(rates)
    had = crew.had(n)
    kinds = [limit for limit in ("power", "cost", "inventory") if rng.random() < 0.4]
    if kind in ("shares", "mixed"):
        kinds = [*(limit for limit in kinds if limit != "inventory"), "inventory"]
    if base.objective == "throughput" and "inventory" not in kinds and "power" not in kinds:
        kinds.append(rng.choice(["power", "inventory"]))
    limits: dict[str, Any] = {}
    if "power" in kinds:
        limits["power_budget_kw"] = crew.watts(rates, n, had) * rng.uniform(0.85, 1.5) / 1e3
    everything = kinds == ["inventory"]
    if "inventory" in kinds or rng.random() < 0.2:
        limits["inventory"] = {
            name: stock(rng, kind, had.get(name, 0.0), everything or kind == "mixed")
            for name in base.catalog.devices
            if everything or rng.random() < 0.7
        }
    fleet = base.replace(limits=FleetLimits(**limits))
    if "cost" in kinds:
        dollars = oracles.Crew(fleet, crew.designs).dollars(had) or 1.0
        fleet = fleet.replace(limits=fleet.limits.replace(cost_budget_usd_per_hour=dollars * rng.uniform(0.85, 1.5)))
    if kind in ("servers", "shared") and fleet.servers != Servers() and rng.random() < 0.5:
        return fleet.replace(servers=Servers(**{**dict(fleet.servers), "racks": racks(rng, fleet, had)}))
    return fleet


def stock(rng: random.Random, kind: Kind, had: float, finite: bool) -> Any:
    """What can be had of a type: as many as the designs have, more or less, some of them owned."""
    most = max(0, round(had) + rng.randint(-1, 4))
    if kind == "pairs" or rng.random() < 0.3:
        return most
    owned = rng.randint(0, most)
    return Stock(owned=owned, purchasable=most - owned if finite or rng.random() < 0.6 else None)


def racks(rng: random.Random, fleet: Scenario, had: dict[str, float]) -> dict[str, Any]:
    """One to three racks that together have about room for the devices."""
    devices = fleet.catalog.devices
    watts = {name: fleet.pue * count * devices[name].provisioned_power_w for name, count in had.items()}
    number = rng.choice([1, 2, 2, 3])
    found = {}
    for index in range(number):
        room = sum(watts.values()) * rng.uniform(0.9, 2.2) / number
        only = tuple(some_of(rng, list(devices), 0.6)) if rng.random() < 0.5 else None
        found[f"r{index}"] = {"power_limit_kw": room / 1e3, "devices": only}
    return found


# --------------------------------------------------------------------------- questions that the structure answers


def separable(rng: random.Random, objective: str, pressure: Pressure = "none", **fixed: Any) -> Scenario:
    """One to four workloads that share nothing but one budget; more options than loops over sets could look at."""
    number, longest = rng.choice([1, 1, 2, 2, 3] if objective == "throughput" else [1, 2, 2, 3, 4]), rng.randint(1, 4)
    shapes = [(rng.randint(50, 4000), rng.randint(2, 500)) for _ in range(number)]
    tokens = (max(isl for isl, _ in shapes), max(isl + osl for isl, osl in shapes))
    drawn = catalog(rng, "pairs", tokens, longest, ("m0", "m1") if rng.random() < 0.4 else ("m0",))
    for device in drawn["devices"].values():
        for phases in device["profiles"].values():
            for phase, options in phases.items():
                most = tokens[0] if phase.endswith("prefill") else longest + 1
                options |= option(rng, phase, most, (1,)) | options
    if pressure == "memory":
        _press_memory(rng, drawn, tokens[1])
    if pressure == "ttft":
        for proposer in drawn["proposers"].values():
            kind = rng.choice(["eagle3", "eagle3", "draft_model"])
            proposer |= {"kind": kind, "hidden_bytes_per_token": 0.0 if kind == "eagle3" else None}
        fixed["first_token"] = "after_verify"
    fields: dict[str, Any] = {
        "schema_version": 1,
        "name": "drawn",
        "catalog": Catalog.model_validate(drawn),
        "target": "target",
        "proposers": tuple(drawn["proposers"]),
        "workloads": {f"w{n}": {"isl_tokens": isl, "osl_tokens": osl} for n, (isl, osl) in enumerate(shapes)},
        "max_draft_length": longest,
        "objective": objective,
        "counts": rng.choice(COUNTS),
        "power_basis": rng.choice(POWER_BASES),
        "first_token": rng.choice(["after_prefill", "after_verify"]),
        "max_utilization": rng.choice([1.0, figure(rng, 0.5, 1.0)]),
        "pue": rng.choice([1.0, figure(rng, 1.0, 1.6)]),
        "servers": {
            "spare_replicas": rng.choice([0, 0, 1]),
            "min_batch_fill": 0.0 if objective == "throughput" else rng.choice([0.0, figure(rng, 0.1, 0.9)]),
        },
    }
    base = Scenario.model_validate({**fields, **fixed})
    anchors = [some_design(rng, base, name) for name in base.workloads]
    if None in anchors:
        return separable(rng, objective, pressure, **fixed)
    return _with_one_budget(rng, base, anchors, pressure)


def _press_memory(rng: random.Random, drawn: dict[str, Any], sequence: int) -> None:
    """Memory for little more than the largest batch, so that what the other step phase takes decides."""
    for model in drawn["models"].values():
        model |= {"weights_gb": figure(rng, 1, 8), "kv_bytes_per_token": figure(rng, 3e9, 7e9) / sequence}
    for device in drawn["devices"].values():
        device |= {"memory_gb": figure(rng, 60, 120), "reserve_gb": 0.0}


def some_design(rng: random.Random, base: Scenario, name: str) -> oracles.Design | None:
    """One design of a workload at random; null where nothing fits into memory."""
    workload = base.workloads[name]
    proposer, length = rng.choice(list(oracles.drafts(base, workload)))
    asked = [("target_prefill", base.target, workload.isl_tokens), ("target_verify", base.target, length + 1)]
    if proposer is not None:
        model = base.catalog.proposers[proposer].model
        asked += [("draft_prefill", model, workload.isl_tokens), ("draft_decode", model, length)]
    found = {phase: list(oracles.offers(base, workload, phase, *rest)) for phase, *rest in asked}
    if not all(found.values()):
        return None
    return oracles.design(base, name, proposer, length, {phase: rng.choice(some) for phase, some in found.items()})


def _with_one_budget(rng: random.Random, base: Scenario, anchors: list[oracles.Design], pressure: Pressure) -> Scenario:
    crew, workloads, rates = oracles.Crew(base, anchors), {}, []
    for index, (one, (name, workload)) in enumerate(zip(anchors, base.workloads.items(), strict=True)):
        needs = max(max(pool.busy[index] / base.max_utilization, pool.held[index]) for pool in crew.pools)
        rates.append(figure(rng, 0.3, 3.5) / needs)
        asked: dict[str, float] = {"demand_rps": rates[-1]}
        if base.objective == "throughput" and rng.random() < 0.6:
            asked = {}
        if rng.random() < 0.5:
            asked["interactivity_floor_tps"] = one.interactivity_tps * rng.uniform(0.6, 1.1)
        if pressure == "ttft" or rng.random() < 0.4:
            asked["ttft_ceiling_ms"] = one.ttft_s * 1e3 * rng.uniform(0.9, 1.4)
        workloads[name] = workload.replace(mix=rates[-1] * rng.uniform(0.6, 1.6), limits=WorkloadLimits(**asked))
    more = [rate * rng.uniform(1.0, 2.5) for rate in rates]
    n = crew.serving(more)
    had = crew.had(n)
    budget: dict[str, float] = {}
    kind = {"power": "power", "cost": "cost", "energy": "power"}.get(base.objective, rng.choice(["power", "cost"]))
    basis = {"power_basis": "forward"} if base.objective == "energy" else {}
    if base.objective == "throughput" or rng.random() < 0.6:
        watts, dollars = crew.watts(more, n, had), crew.dollars(had)
        budget = {"power_budget_kw": watts / 1e3} if kind == "power" else {"cost_budget_usd_per_hour": dollars}
        budget = {key: value * rng.uniform(0.8, 1.5) for key, value in budget.items()}
    return base.replace(workloads=workloads, limits=FleetLimits(**budget), **basis)


def is_offered(table: CostTable, one: oracles.Design) -> bool:
    """Whether a table still has the options of a design at its speculation."""
    speculations = [(s.proposer, s.draft_length) for s in table.speculations]
    if (one.proposer, one.length) not in speculations:
        return False
    s = speculations.index((one.proposer, one.length))
    for work in one.works:
        costs = table.phases[work.phase]
        places = [(o.device, o.tensor_parallel, o.batch_size) for o in costs.options]
        place = (work.device, work.degree, work.batch)
        if place not in places or not math.isfinite(costs.latency_s[places.index(place), s]):
            return False
    return True
