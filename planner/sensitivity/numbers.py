"""Which numbers enter an answer: those of the scenario, and those of the catalog entries that it reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.fields import Step
from planner.memory import is_derived
from planner.schema.base import Document
from planner.schema.catalog import EnergyForm, LatencyForm, Proposer
from planner.schema.scenario import Scenario, Stock, parse_place
from planner.tokens import cases_of
from planner.words import PHASES

Path = tuple[Step, ...]

# Fields that say how a question is told, searched or drawn.
_NOT_ASKED = {"schema_version", "knobs", "front", "report"}
_KIND_OF_PLAN = "it says what kind of plan is looked for"
_ON_OFFER = "it is an option on offer, not a quantity"
NOTHING_TO_MOVE = "a share of 0 is 0"

# What the end of a key says of its unit, the longest end first.
_UNITS = {
    "latency_ms.per_token": "ms per token",
    "energy_mj.per_token": "mJ per token",
    "bandwidth_tb_per_s": "TB/s",
    "bandwidth_gb_per_s": "GB/s",
    "all_in_kw_per_device": "kW per device",
    "energy_pj_per_byte": "pJ per byte",
    "bytes_per_token": "bytes per token",
    "bytes_per_layer": "bytes per layer",
    "parameters_per_layer": "parameters per layer",
    "usd_per_hour": "USD/h",
    "tokens_per_step": "tokens per step",
    "tflops": "TFLOP/s",
    "_tokens": "tokens",
    "_tops": "TOP/s",
    "_tps": "tok/s",
    "_rps": "requests/s",
    "_ms": "ms",
    "_us": "µs",
    "_mj": "mJ",
    "_gb": "GB",
    "_kw": "kW",
    "_w": "W",
}
_TOKENS = {
    "target_prefill": "prompt",
    "draft_prefill": "prompt",
    "target_verify": "verify",
    "draft_decode": "draft",
}
_FORMS = ("floor", "base")


@dataclass(frozen=True)
class Found:
    """A number: where it stands, its value, and why it is not to be moved (null: it is)."""

    path: Path
    value: int | float
    refused: str | None = None

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are possible."""
        return isinstance(self.value, int)

    @property
    def key(self) -> str:
        """The dotted key that ``--set`` takes."""
        return ".".join(map(str, self.path))

    @property
    def unit(self) -> str:
        """The unit, as far as the key says it."""
        return unit_of(self.path)

    def moved(self, factor: float) -> int | float:
        """Give the value times a factor, a whole one rounded and moved by 1 at least.

        >>> Found(("a",), 3).moved(1.1), Found(("a",), 30).moved(0.9), Found(("a",), 2.5).moved(1.1)
        (4, 27, 2.75)
        """
        if not self.whole:
            return tidy(self.value * factor)
        further = max if factor > 1 else min
        return further(round(self.value * factor), int(self.value) + (1 if factor > 1 else -1))


def tidy(value: float) -> float:
    """Drop what is only rounding, so that a value can be written and read again."""
    return float(f"{value:.12g}")


def unit_of(path: Path) -> str:
    """Give the unit that a key names, without a word where it names none.

    >>> unit_of(("draft_decode", "latency_ms", "per_token")), unit_of(("price", "usd_per_hour")), unit_of(("pue",))
    ('ms per draft token', 'USD/h', '')
    """
    steps = [str(step) for step in path]
    unit = _unit(steps)
    which = next((word for phase, word in _TOKENS.items() if phase in steps), None)
    return unit.replace("per token", f"per {which} token") if which else unit


def _unit(steps: list[str]) -> str:
    if "inventory" in steps:
        return "devices"
    if "table" in steps and "latency_ms" in steps:
        steps = steps[: steps.index("table")]
    if "tokens_per_step" in steps:
        steps = steps[: steps.index("tokens_per_step") + 1]
    while len(steps) > 1 and (steps[-1] in _FORMS or steps[-1].isdecimal()):
        steps = steps[:-1]
    key = ".".join(steps)
    return next((unit for end, unit in _UNITS.items() if key.endswith(end)), "")


def numbers_of(scenario: Scenario) -> tuple[Found, ...]:
    """List every number that enters the answer, the scenario's own first; each says whether it can be moved."""
    found = []
    for field in type(scenario).model_fields:
        if field not in _NOT_ASKED and field != "catalog":
            found += list(_leaves(getattr(scenario, field), (field,)))
    return tuple(_judged(leaf) for leaf in [*found, *_of_catalog(scenario)])


def _judged(leaf: Found) -> Found:
    if leaf.path == ("max_shares",):
        return Found(leaf.path, leaf.value, _KIND_OF_PLAN)
    if leaf.path[0] == "candidates":
        return Found(leaf.path, leaf.value, _ON_OFFER)
    return Found(leaf.path, leaf.value, NOTHING_TO_MOVE) if leaf.value == 0 else leaf


def _bare(node: Any) -> int | float | None:  # noqa: ANN401
    """Give the number that a field may hold in place of a mapping: a constant, or a stock of which nothing is owned."""
    if isinstance(node, (LatencyForm, EnergyForm)):
        return node.constant
    return node.purchasable if isinstance(node, Stock) and node.owned == 0 else None


def _leaves(node: Any, path: Path) -> Iterator[Found]:  # noqa: ANN401
    """Give the numbers below a node."""
    number = _bare(node)
    if number is not None:
        yield Found(path, number)
    elif isinstance(node, Document):
        for name in type(node).model_fields:
            if name != "year":  # of the data sheet: no quantity
                yield from _leaves(getattr(node, name), (*path, name))
    elif isinstance(node, dict):
        for name, inner in node.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(node, tuple):
        for index, inner in enumerate(node):
            yield from _leaves(inner, (*path, index))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield Found(path, node)


def models_reached(scenario: Scenario) -> tuple[str, ...]:
    """Name the target and the models of the proposers on offer."""
    drafters = (scenario.catalog.proposers[name].model for name in scenario.proposers)
    return tuple(dict.fromkeys(model for model in (scenario.target, *drafters) if model is not None))


def devices_reached(scenario: Scenario) -> tuple[str, ...]:
    """Name the device types that candidates and places leave for some phase."""
    allowed = scenario.candidates.devices or tuple(scenario.catalog.devices)
    placed = {phase: parse_place(place)[0] for phase, place in scenario.places.items()}
    return tuple(
        name
        for name in scenario.catalog.devices
        if name in allowed and any(placed.get(phase, name) == name for phase in PHASES)
    )


def _of_catalog(scenario: Scenario) -> Iterator[Found]:
    for name in devices_reached(scenario):
        yield from _of_device(scenario, name)
    models = models_reached(scenario)
    for name in models:
        yield from _leaves(scenario.catalog.models[name], ("catalog", "models", name))
    for name in scenario.proposers:
        yield from _of_proposer(scenario, scenario.catalog.proposers[name], ("catalog", "proposers", name))
    if scenario.transfers is not None:
        named = (scenario.transfers.link, *scenario.transfers.pairs.values())
        for name in dict.fromkeys(link for link in named if link is not None):
            yield from _leaves(scenario.catalog.links[name], ("catalog", "links", name))


def _of_device(scenario: Scenario, name: str) -> Iterator[Found]:
    """Give a device's numbers: profiles of the models that run, the data sheet where one is derived from it."""
    device, path, models = scenario.catalog.devices[name], ("catalog", "devices", name), models_reached(scenario)
    for field in type(device).model_fields:
        if field == "profiles":
            known = {model: device.profiles[model] for model in models if model in device.profiles}
            yield from _leaves(known, (*path, field))
        elif field != "data_sheet" or any(is_derived(scenario, name, model) for model in models):
            yield from _leaves(getattr(device, field), (*path, field))


def _of_proposer(scenario: Scenario, proposer: Proposer, path: Path) -> Iterator[Found]:
    """Give a proposer's numbers, with the acceptance for this target and the tasks at hand."""
    cases = cases_of(scenario)
    own = [] if all(isinstance(case, str) for case in cases) else [w.task for w in scenario.workloads.values()]
    tasks = dict.fromkeys([*own, *(case for case in cases if isinstance(case, str))])
    for field in type(proposer).model_fields:
        if field != "acceptance":
            yield from _leaves(getattr(proposer, field), (*path, field))
    for task in tasks:
        curve = proposer.acceptance[scenario.target][task]
        yield from _leaves(curve, (*path, "acceptance", scenario.target, task))
