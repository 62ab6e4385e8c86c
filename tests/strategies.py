"""Small scenarios at random: one generator, seeded by a test's name for its cases or by hypothesis for properties.

Limits are set around what a randomly picked design has, so that about half of them bind and some cannot be met.
"""

from __future__ import annotations

import random
from typing import Any

import oracles
from hypothesis import strategies as st

from planner.evaluate import Design
from planner.options import Option, Speculation
from planner.schema.catalog import Catalog
from planner.schema.scenario import FleetLimits, Scenario, WorkloadLimits
from planner.words import COUNTS, OBJECTIVES, PHASES, POWER_BASES

BATCHES = (1, 2, 4, 8, 16)
NEEDS_A_DEMAND = ("power", "cost")


def scenarios(**fixed: Any) -> st.SearchStrategy[Scenario]:
    """Hypothesis strategy of scenarios; ``fixed`` fields are as given.

    Drawn by seed: a scenario takes some hundred numbers, and letting hypothesis choose each makes examples ten times
    as slow and much alike. A failing one is reported with its name, which holds the seed.
    """
    return st.integers(0, 999_999).map(lambda seed: seeded(str(seed), **fixed))


def seeded(seed: str, **fixed: Any) -> Scenario:
    """The scenario of a seed: the same on every machine and every run, and named after it."""
    return scenario(random.Random(seed), name="seed-" + seed.replace(" ", "-"), **fixed)


def scenario(rng: random.Random, tight: float = 0.6, **fixed: Any) -> Scenario:
    """Draw a scenario with its limits. ``tight``: how likely each optional limit is, and how hard."""
    base = unlimited(rng, **fixed)
    designs = [one for one in oracles.points(base) if one.fits]
    return with_limits(rng, base, rng.choice(designs), tight) if designs else with_any_limits(rng, base)


def _figure(rng: random.Random, low: float, high: float) -> float:
    return float(f"{rng.uniform(low, high):.4g}")


# ---------------------------------------------------------------------------------------------- the catalog


def acceptance_curve(rng: random.Random) -> dict[str, Any]:
    """Any of the four curves."""
    kind = rng.choice(["saturating_exponential", "geometric", "positions", "table"])
    if kind == "saturating_exponential":
        offset = rng.choice([0.0, 1.0])
        return {"kind": kind, "A": _figure(rng, 0.5, 9), "tau": _figure(rng, 0.8, 9), "offset": offset}
    if kind == "geometric":
        return {"kind": kind, "alpha": rng.choice([0.0, 1.0, _figure(rng, 0.05, 0.98)])}
    if kind == "positions":
        return {"kind": kind, "probabilities": [_figure(rng, 0.1, 1.0) for _ in range(rng.randint(1, 8))]}
    lengths = sorted(rng.sample(range(1, 9), rng.randint(1, 4)))
    return {"kind": kind, "tokens_per_step": {n: _figure(rng, 1.0, 1.0 + 0.9 * n) for n in lengths}}


def latency_form(rng: random.Random, low: float, high: float, tokens: list[int]) -> Any:
    """Any form of a latency, in ms, of which a table may leave some token counts unknown."""
    at, least, most = _figure(rng, low, high), tokens[0], tokens[-1]
    kind = rng.choice(["number", "constant", "floor", "affine", "per_token", "table"])
    if kind == "number":
        return at
    if kind == "constant":
        return {"constant": at}
    if kind == "floor":
        return {"floor": at, "per_token": at * rng.uniform(0.3, 1.6) / most}
    if kind == "affine":
        return {"base": at, "per_token": at * rng.uniform(0.0, 1.0) / most}
    if kind == "per_token":
        return {"per_token": at / most}
    first = least if rng.random() < 0.8 else min(least + 1, most)
    points = sorted({first, most, rng.randint(first, most)})
    return {"table": {n: at * (0.6 + 0.4 * rank + 0.1 * rng.random()) for rank, n in enumerate(points)}}


def energy_form(rng: random.Random, low: float, high: float, most: int) -> Any:
    """Any form of an energy, in mJ per request."""
    at = _figure(rng, low, high)
    forms = [at, {"constant": at}, {"per_token": at / most}, {"base": at, "per_token": at * rng.uniform(0, 1) / most}]
    return rng.choice(forms)


# Phase: latency range in ms, energy range in mJ per request, tokens of an operation.
_RANGES = {
    "target_prefill": ((30, 300), (20_000, 300_000)),
    "target_verify": ((8, 60), (300, 2_000)),
    "draft_prefill": ((2, 150), (300, 20_000)),
    "draft_decode": ((0.5, 15), (5, 300)),
}


def phase_profiles(rng: random.Random, phase: str, prompt: int, most_options: int, degrees: list[int]) -> dict:
    """Some options of one phase."""
    (fast, slow), (frugal, hungry) = _RANGES[phase]
    prefill = phase.endswith("prefill")
    tokens = [prompt] if prefill else list(range(1, 10 if phase == "target_verify" else 9))
    found = {}
    for batch in rng.sample(BATCHES, rng.randint(1, most_options)):
        degree = rng.choice(degrees)
        key = f"b{batch}" if degree == 1 and rng.random() < 0.5 else f"tp{degree}:b{batch}"
        slower = batch ** rng.uniform(0.1, 0.9)
        found[key] = {
            "latency_ms": latency_form(rng, fast * slower, slow * slower, tokens),
            "energy_mj": energy_form(rng, frugal, hungry, tokens[-1]),
        }
    return found


def device(rng: random.Random, runs: dict[str, list[str]], prompt: int, most_options: int) -> dict[str, Any]:
    """One device type; ``runs``: the phases that it can run, by model."""
    degrees = rng.choice([[1], [1], [1, 2], [2, 4]])
    found: dict[str, Any] = {
        "idle_power_w": _figure(rng, 0, 250),
        "provisioned_power_w": _figure(rng, 300, 2500),
        "price": {"usd_per_hour": _figure(rng, 0.3, 9), "basis": "drawn", "date": "2026-01-01"},
        "profiles": {
            model: {phase: phase_profiles(rng, phase, prompt, most_options, degrees) for phase in phases}
            for model, phases in runs.items()
        },
    }
    return found


def _run_beside_the_target(rng: random.Random, devices: dict[str, Any], drafter: str) -> None:
    """Let a drafter run wherever the target verifies, at the same degree, and now and then at the same batches."""
    for one in devices.values():
        verify = list(one["profiles"].get("target", {}).get("target_verify", {}))
        for phase, tokens in (("draft_prefill", 500), ("draft_decode", 8)):
            (fast, slow), (frugal, hungry) = _RANGES[phase]
            for key in verify:
                one["profiles"].setdefault(drafter, {}).setdefault(phase, {}).setdefault(
                    key,
                    {
                        "latency_ms": {"per_token": _figure(rng, fast, slow) / tokens},
                        "energy_mj": energy_form(rng, frugal, hungry, tokens),
                    },
                )


KINDS = ("draft_model", "draft_model", "eagle3", "eagle3", "tree", "dspark", "medusa", "mtp", "ngram")


def proposer(rng: random.Random, drafters: list[str]) -> dict[str, Any]:
    """A proposer of any kind, with what its kind may have."""
    kind = rng.choice(KINDS)
    found: dict[str, Any] = {"kind": kind, "model": None if kind == "ngram" else rng.choice(drafters)}
    if kind == "tree" or (kind == "medusa" and rng.random() < 0.5):
        branching = [rng.choice([1, 1, 2, 3]) for _ in range(rng.randint(1, 4))]
        nodes = {depth: depth + rng.randint(0, 5) for depth in rng.sample(range(1, 7), rng.randint(1, 4))}
        found["tree"] = rng.choice([{"branching": branching}, {"nodes": nodes}])
    if kind in ("eagle3", "dspark", "medusa", "mtp"):
        found["hidden_bytes_per_token"] = rng.choice([0.0, _figure(rng, 0, 1e5)])
    if kind == "ngram" or rng.random() < 0.1:
        found["host_time_ms"] = _figure(rng, 0, 3)
    return found


def layouts(rng: random.Random) -> tuple[str, ...]:
    """Some layouts, in any order; half of the time every phase has its own replicas."""
    every = ["disaggregated", "colocated_drafter", "aggregated_target", "aggregated"]
    return ("disaggregated",) if rng.random() < 0.5 else tuple(rng.sample(every, rng.randint(1, 4)))


def catalog(rng: random.Random, prompt: int, sequence: int) -> dict[str, Any]:
    """Devices, models, proposers and a link."""
    drafters = [f"m{n}" for n in range(rng.choice([1, 1, 2]))]
    proposers = {}
    for n in range(rng.choice([0, 1, 1, 1, 1, 2, 2, 2])):
        proposers[f"p{n}"] = {
            **proposer(rng, drafters),
            "step_payload_bytes_per_token": rng.choice([0.0, _figure(rng, 0, 2e6)]),
            "acceptance": {"target": {"general": acceptance_curve(rng)}},
            **({"max_draft_length": rng.randint(1, 8)} if rng.random() < 0.3 else {}),
        }
    number = rng.randint(1, 4)
    devices = {}
    for n in range(number):
        runs = {}
        wanted = ["target_prefill", "target_verify"]
        if n > 0:
            wanted = [phase for phase in wanted if rng.random() < 0.5]
        if wanted:
            runs["target"] = wanted
        for model in drafters:
            drafting = [phase for phase in ("draft_prefill", "draft_decode") if rng.random() < 0.8]
            if drafting:
                runs[model] = drafting
        devices[f"d{n}"] = device(rng, runs, prompt, {1: 4, 2: 3, 3: 2, 4: 1}[number])
    for name in drafters:
        if rng.random() < 0.5:
            _run_beside_the_target(rng, devices, name)
    models: dict[str, Any] = {name: {} for name in ("target", *drafters)}
    if rng.random() < 0.5:
        _add_memory(rng, devices, models, sequence)
    links = {
        "fibre": {
            "bandwidth_gb_per_s": _figure(rng, 50, 400),
            "latency_us": _figure(rng, 0, 50),
            "energy_pj_per_byte": _figure(rng, 0, 9_000),
        },
        "wire": {
            "bandwidth_gb_per_s": _figure(rng, 0.5, 100),
            "latency_us": rng.choice([0.0, _figure(rng, 0, 3000)]),
            "energy_pj_per_byte": _figure(rng, 0, 30_000),
        },
    }
    return {"schema_version": 1, "devices": devices, "models": models, "proposers": proposers, "links": links}


def _add_memory(rng: random.Random, devices: dict[str, Any], models: dict[str, Any], sequence: int) -> None:
    """Memory that holds between nothing and some hundred sequences; now and then one that is not described."""
    for name, model in models.items():
        model["weights_gb"] = _figure(rng, 5, 60) if name == "target" else _figure(rng, 0.2, 6)
        model["kv_bytes_per_token"] = rng.choice([0.0, *[_figure(rng, 1e8, 3e9) / sequence] * 5])
    for one in devices.values():
        if rng.random() < 0.85:
            one["memory_gb"] = _figure(rng, 24, 192)
            one["reserve_gb"] = rng.choice([0.0, _figure(rng, 0, 6)])


# --------------------------------------------------------------------------------------------- the question


def unlimited(rng: random.Random, **fixed: Any) -> Scenario:
    """A scenario without limits, but with a demand where its objective needs one."""
    isl, osl = rng.randint(50, 4000), rng.randint(2, 9) if rng.random() < 0.15 else rng.randint(10, 600)
    cached = rng.choice([0, 0, rng.randint(0, isl - 1)])
    drawn = catalog(rng, isl - cached, isl + osl)
    fields: dict[str, Any] = {
        "schema_version": 1,
        "name": "drawn",
        "catalog": Catalog.model_validate(drawn),
        "target": "target",
        "proposers": tuple(drawn["proposers"]),
        "workloads": {"w": {"isl_tokens": isl, "osl_tokens": osl, "cached_prefix_tokens": cached}},
        "max_draft_length": rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 8]),
        "objective": rng.choice(OBJECTIVES),
        "counts": rng.choice(COUNTS),
        "power_basis": rng.choice(POWER_BASES),
        "first_token": rng.choice(["after_prefill", "after_verify"]),
        "max_utilization": rng.choice([1.0, _figure(rng, 0.4, 1.0)]),
        "pue": rng.choice([1.0, _figure(rng, 1.0, 1.6)]),
        "host_factor": rng.choice([1.0, _figure(rng, 1.0, 1.5)]),
        "layouts": layouts(rng),
        "engine": {"interference": _figure(rng, 0.5, 1.5), "first_token_ms": _figure(rng, 0, 60)},
    }
    if rng.random() < 0.5:
        fields["transfers"] = {"link": "wire", "kv_exposed_share": rng.choice([0.0, 1.0, _figure(rng, 0, 1)])}
        names = list(drawn["devices"])
        if len(names) > 1 and rng.random() < 0.5:
            pair = ":".join(rng.sample(names, 2))
            fields["transfers"]["pairs"] = {pair: rng.choice(["fibre", None])}
    return Scenario.model_validate({**fields, **fixed})


def with_limits(rng: random.Random, base: Scenario, anchor: oracles.Point, tight: float) -> Scenario:
    """Set limits around what one design has at a rate of a few replicas."""
    rate = _figure(rng, 0.3, 6) / max(anchor.need(phase) for phase in anchor.places)
    workload: dict[str, float] = {}
    if rng.random() < tight:
        workload["interactivity_floor_tps"] = anchor.interactivity_tps * rng.uniform(0.6, 1.3)
    if rng.random() < tight:
        workload["ttft_ceiling_ms"] = anchor.ttft_s * 1e3 * rng.uniform(0.8, 1.4)
    throughput = base.objective == "throughput"
    if base.objective in NEEDS_A_DEMAND or rng.random() < (0.4 if throughput else 0.8):
        workload["demand_rps"] = rate
    asked = workload.get("demand_rps", 1.0)
    # Throughput may use more than the demand needs; it needs at least one limit, but for now and then a demand alone.
    kinds = [kind for kind in ("power", "cost", "inventory") if rng.random() < 0.4]
    if throughput and not kinds and not ("demand_rps" in workload and rng.random() < 0.2):
        kinds = [rng.choice(["power", "cost", "inventory"])]
    at = rate * rng.uniform(0.6, 3.0) if throughput else asked * rng.uniform(0.9, 1.5)
    fleet = _fleet_limits(rng, base, anchor, at, kinds)
    return _limited(base, workload, fleet)


def _fleet_limits(
    rng: random.Random, base: Scenario, anchor: oracles.Point, rate: float, kinds: list[str]
) -> dict[str, Any]:
    n = oracles.counts(base, anchor, rate)
    fleet: dict[str, Any] = {}
    if "power" in kinds:
        fleet["power_budget_kw"] = oracles.watts(base, anchor, rate, n) * rng.uniform(0.8, 1.5) / 1e3
    if "cost" in kinds:
        fleet["cost_budget_usd_per_hour"] = oracles.dollars(base, anchor, n) * rng.uniform(0.8, 1.5)
    if "inventory" in kinds:
        some = [name for name in base.catalog.devices if len(kinds) == 1 or rng.random() < 0.7]
        fleet["inventory"] = {
            name: max(0, int(oracles.devices_used(anchor, n, name)) + rng.randint(-1, 4)) for name in some
        }
    return fleet


def with_any_limits(rng: random.Random, base: Scenario) -> Scenario:
    """Set some limits where no batch fits into memory: they cannot matter."""
    return _limited(base, {"demand_rps": _figure(rng, 0.1, 9)}, {"power_budget_kw": _figure(rng, 1, 100)})


def _limited(base: Scenario, workload: dict[str, float], fleet: dict[str, Any]) -> Scenario:
    asked = base.workloads["w"].replace(limits=WorkloadLimits(**workload))
    return base.replace(workloads={"w": asked}, limits=FleetLimits(**fleet))


def with_worse_options(rng: random.Random, scenario: Scenario, number: int) -> Scenario:
    """Add options that one of the same device type and degree beats: a larger batch that takes longer for each."""
    raw = scenario.catalog.model_dump(mode="python", exclude_none=True)
    offers = [
        options
        for d in raw["devices"].values()
        for model in d.get("profiles", {}).values()
        for options in model.values()
    ]
    for options in rng.choices([some for some in offers if some], k=number):
        key, profile = rng.choice(list(options.items()))
        degree, _, batch = key.rpartition("b")
        larger = rng.choice([size for size in (2, 3, 4, 5, 6, 8, 12, 16, 24, 32) if size > int(batch)] or [64])
        slower, hungrier = larger / int(batch) * rng.uniform(1.0, 1.3), rng.uniform(1.0, 1.5)
        worse = {
            "latency_ms": _scaled(profile["latency_ms"], slower),
            "energy_mj": _scaled(profile["energy_mj"], hungrier),
        }
        options.setdefault(f"{degree}b{larger}", {**profile, **worse})
    return scenario.replace(catalog=Catalog.model_validate(raw))


def _scaled(form: Any, factor: float) -> Any:
    """A latency or energy form times a factor."""
    if isinstance(form, dict):
        return {key: _scaled(value, factor) for key, value in form.items()}
    return form * factor


def design_of(point: oracles.Point) -> Design:
    """The design of a point of the loops."""
    options = {phase: Option(*point.places[phase]) if phase in point.places else None for phase in PHASES}
    speculation = Speculation.of(point.proposer, point.draft_length, point.nodes, point.layout)
    return Design("w", speculation, options)
