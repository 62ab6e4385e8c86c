"""What a plan takes for granted, in words; a report lists what is in force."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from planner import acceptance
from planner.proposers import rule_of
from planner.rates import fixed_rates, has_demand
from planner.schema.catalog import Device, Entry, Model
from planner.schema.scenario import Scenario
from planner.tokens import curve_of
from planner.words import PowerBasis

_BASIS: dict[PowerBasis, str] = {
    "forward": "power basis forward: request rate × modelled energy per request; idle power and hosts are not in it",
    "average": "power basis average: hot idle power of every device plus the energy of the work, times the host factor",
    "provisioned": "power basis provisioned: devices × provisioned watts, what a breaker sees",
}


def assumptions_of(scenario: Scenario, devices: Collection[str] | None = None) -> tuple[str, ...]:
    """List the assumptions in force: the scenario's own, then those that its switches and gaps imply.

    ``devices`` are the types that an answer rests on, by default every candidate.
    """
    used = _devices(scenario, devices)
    found = [*scenario.assumptions, _BASIS[scenario.power_basis], *_switches(scenario)]
    if any(device.memory_gb is None for device in used.values()):
        unknown = ", ".join(name for name, device in used.items() if device.memory_gb is None)
        found.append(f"memory is not modelled: no capacity is given for {unknown}")
    if any(device.count_unit == "request_slots" for device in used.values()):
        found.append("device counts are request slots: shown per phase, never summed as devices")
    found += _labelled(scenario, used)
    return tuple(found)


def _devices(scenario: Scenario, devices: Collection[str] | None) -> dict[str, Device]:
    allowed = devices if devices is not None else scenario.candidates.devices
    return {name: d for name, d in scenario.catalog.devices.items() if allowed is None or name in allowed}


def _switches(scenario: Scenario) -> list[str]:
    found = (
        ["counts are fractional: devices are shared out without rounding"] if scenario.counts == "fractional" else []
    )
    found.append("among equally good plans one of least power is shown")
    if scenario.transfers is None:
        found.append("transfers between device types are free: no link is set")
    if scenario.max_utilization == 1.0:
        found.append("100 % utilization: no queueing, no wait for a batch to form; TTFT is unloaded")
    else:
        found.append(f"utilization at most {scenario.max_utilization:.0%}; TTFT is unloaded")
    if scenario.first_token == "after_verify":
        found.append("the first token comes from the first verify (from the prefill at draft length 0)")
    else:
        found.append("the first token comes from the prefill")
    found += [*_pooling(scenario), *_layouts(scenario), *_lossy(scenario), *_range(scenario)]
    if fixed_rates(scenario) is not None and not has_demand(scenario):
        found.append("no demand is given: figures are for 1 request/s in total")
    elif scenario.objective == "throughput" and fixed_rates(scenario) is not None:
        found.append("no budget or inventory bounds the throughput: the plan serves exactly the demand")
    return found


def _range(scenario: Scenario) -> list[str]:
    if not scenario.acceptance_range:
        return []
    cases = ", ".join(case if isinstance(case, str) else f"{case:g}" for case in scenario.acceptance_range)
    return [
        f"acceptance is the worst of {cases} by draft length (a number scales accepted drafts per step, a name is the"
        " task whose curve is taken)"
    ]


def _pooling(scenario: Scenario) -> list[str]:
    servers = scenario.servers
    alone = "replicas of different phases do" if _aggregates(scenario) else "prefill does"
    found = [f"private pools: {alone} not interfere with " + ("each other" if _aggregates(scenario) else "decode")]
    if scenario.shared_pools:
        found = ["shared pools: phases of the same models share replicas; prefill is taken not to slow decode"]
        bare = [name for name in _models(scenario) if _is_bare(scenario.catalog.models[name])]
        if bare:
            found.append(
                f"memory of shared pools is not modelled: no weights_gb and KV size is given for {', '.join(bare)}"
            )
    if scenario.max_shares == 1:
        found.append("one design per workload: optimal means among plans with max_shares 1")
    else:
        found.append(f"at most {scenario.max_shares} designs per workload: optimal means among such plans")
    if servers.by_node:
        found.append("devices are bought by whole nodes; replicas are packed into them without gaps")
    if servers.spare_replicas:
        found.append(f"{servers.spare_replicas} spare replica(s) in every pool that serve nothing")
    if servers.min_batch_fill:
        found.append(f"decode batches are filled to at least {servers.min_batch_fill:.0%}")
    if servers.racks:
        found.append("racks are limited in provisioned watts; any device may stand in any rack that takes its type")
    return found


def _aggregates(scenario: Scenario) -> bool:
    return any(layout.startswith("aggregated") for layout in scenario.layouts)


def _layouts(scenario: Scenario) -> list[str]:
    """Say what sharing replicas is taken to do; nothing where every phase has its own."""
    engine, found = scenario.engine, []
    if _aggregates(scenario):
        found.append(
            f"aggregated layouts: prefills slow decode steps by {engine.interference:g} × their own time; a first"
            f" token waits {engine.first_token_ms:g} ms, {engine.cohort:g} prompts, {engine.waiting:.0%} of the batch"
        )
    if any(rule_of(scenario, name).drafts == "verify" for name in scenario.proposers):
        found.append("drafting modules of the target run on its own replicas; their share of the prefill is left out")
    return found


def _lossy(scenario: Scenario) -> list[str]:
    lossy = scenario.lossy_acceptance
    if lossy is None or lossy.lenience == 1.0:
        return []
    return [
        f"acceptance is lossy: at lenience {lossy.lenience:g} the output no longer follows the target's distribution;"
        f" rejections are taken to fall as lenience to the power {lossy.rejection_exponent:g}"
    ]


def _models(scenario: Scenario) -> list[str]:
    proposers = scenario.catalog.proposers
    drafters = (proposers[name].model for name in scenario.proposers)
    return list(dict.fromkeys(model for model in (scenario.target, *drafters) if model is not None))


def _is_bare(model: Model) -> bool:
    stated = model.weights_gb is not None and model.kv_bytes_per_token is not None
    return not stated and model.shape is None and model.heads is None


def _labelled(scenario: Scenario, devices: dict[str, Device]) -> list[str]:
    """Numbers that are assumed or recalled, by entry; for devices also what the roofline assumes of them."""
    catalog, found = scenario.catalog, []
    models = _models(scenario)
    for name, device in devices.items():
        weak = dict.fromkeys([*_weak(device), *(_assumed(scenario, name, models) if device.data_sheet else [])])
        found += [f"device {name}: {', '.join(weak)}"] if weak else []
    for name in models:
        weak_model = _weak(catalog.models[name])
        found += [f"model {name}: {', '.join(weak_model)}"] if weak_model else []
    for name in scenario.proposers:
        weak_proposer = _weak(catalog.proposers[name])
        found += [f"proposer {name}: {', '.join(weak_proposer)}"] if weak_proposer else []
    return found


def _assumed(scenario: Scenario, device: str, models: Iterable[str]) -> list[str]:
    from planner.derived import assumed_of  # the roofline is loaded where a catalog needs it

    return assumed_of(scenario, device, models)


def _weak(entry: Entry) -> list[str]:
    return [f"{field} {label}" for field, label in entry.confidence.items() if label in ("assumed", "recalled")]


def warnings_of(scenario: Scenario) -> tuple[str, ...]:
    """List what a person should look at before believing the plan."""
    return tuple(
        f"acceptance of '{name}' for '{workload}' falls after draft length"
        f" {acceptance.covered_draft_length(curve_of(scenario, workload, name))}: draft length is capped there"
        for workload in scenario.workloads
        for name in scenario.proposers
        if acceptance.falls(curve_of(scenario, workload, name))
    )
