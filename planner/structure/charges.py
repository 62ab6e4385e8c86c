"""What a fleet costs on one measure where phases share its devices, and what crosses between device types."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.measure import Kind
from planner.memory import prompt_kv_bytes
from planner.options import CostTable
from planner.schema.scenario import Scenario
from planner.structure.least import Floats
from planner.structure.staircase import Indices
from planner.transfers import (
    EXCHANGE_MESSAGES,
    exchange_bytes,
    link_energy_j,
    link_time_s,
    prompt_hidden_bytes,
)
from planner.words import PHASES, Phase


@dataclass(frozen=True)
class Charge:
    """One measure of a whole fleet, at most ``most``.

    Attributes
    ----------
    per_rate
        (O, S) by phase: for one request/s.
    each, bought, owned
        (D + 1,) by device type: for a device; for one beyond those owned; how many are owned. The last type is none.
    per_joule
        For one W of transfers.
    """

    per_rate: dict[Phase, Floats]
    each: Floats
    bought: Floats
    owned: Floats
    per_joule: float
    most: float

    def of_devices(self, device: Indices, count: Floats) -> Floats:
        """Cost of a number of devices of one type."""
        beyond = np.maximum(0.0, count - self.owned[device])
        return np.asarray(self.each[device] * count + self.bought[device] * beyond)

    def plus(self, other: Charge, weight: float) -> Charge:
        """Add a weight of another measure's cost."""
        per_rate = {phase: self.per_rate[phase] + weight * other.per_rate[phase] for phase in PHASES}
        return replace(
            self,
            per_rate=per_rate,
            each=self.each + weight * other.each,
            bought=self.bought + weight * other.bought,
            per_joule=self.per_joule + weight * other.per_joule,
        )


@dataclass(frozen=True)
class Links:
    """What joins device types, (D + 1, D + 1): per message and byte, zero where a pair is free. The last type is none.

    ``joined``: whether anything has to cross a link at all.
    """

    joined: NDArray[np.bool_]
    latency_s: Floats
    s_per_byte: Floats
    j_per_byte: Floats

    @classmethod
    def of(cls, scenario: Scenario) -> Links:
        """Look up the link of every pair of device types."""
        number = {name: position for position, name in enumerate(scenario.catalog.devices)}
        size = len(number) + 1
        joined, figures = np.zeros((size, size), dtype=bool), [np.zeros((size, size)) for _ in range(3)]
        if scenario.transfers is not None:
            everywhere = ~np.eye(size, dtype=bool)
            everywhere[-1] = everywhere[:, -1] = False
            cls._join(scenario, scenario.transfers.link, everywhere, joined, figures)
            for pair, name in scenario.transfers.pairs.items():
                one, _, other = pair.partition(":")
                ends = np.zeros((size, size), dtype=bool)
                ends[number[one], number[other]] = ends[number[other], number[one]] = True
                cls._join(scenario, name, ends, joined, figures)
        return cls(joined, *figures)

    @staticmethod
    def _join(
        scenario: Scenario, name: str | None, ends: NDArray[np.bool_], joined: NDArray[np.bool_], figures: list[Floats]
    ) -> None:
        """Enter a link (null: free) between the pairs of types that are marked."""
        link = None if name is None else scenario.catalog.links[name]
        joined[ends] = link is not None
        values = (0.0, 0.0, 0.0)
        if link is not None:
            values = link_time_s(link, 0.0), link_time_s(link, 1.0, messages=0), link_energy_j(link, 1.0)
        for figure, value in zip(figures, values, strict=True):
            figure[ends] = value


@dataclass(frozen=True)
class Moved:
    """One kind of transfer between device types.

    Attributes
    ----------
    payload
        (D + 1, S) bytes, by the type where they start; where there are none nothing is sent, unless ``always``.
    times
        (S,) per request.
    messages, share
        How many messages, and the share of their time that no overlap hides.
    """

    links: Links
    payload: Floats
    times: Floats
    messages: int
    share: float
    always: bool

    def time_s(self, start: Indices, end: Indices, s: int) -> Floats:
        """Exposed time of one transfer."""
        payload = self.payload[start, s]
        time_s = self.messages * self.links.latency_s[start, end] + payload * self.links.s_per_byte[start, end]
        return np.where(self._sent(start, end, payload), self.share * time_s, 0.0)

    def energy_j(self, start: Indices, end: Indices, s: int) -> Floats:
        """Energy per request."""
        return np.asarray(self.times[s] * self.payload[start, s] * self.links.j_per_byte[start, end])

    def _sent(self, start: Indices, end: Indices, payload: Floats) -> NDArray[np.bool_]:
        return self.links.joined[start, end] & (self.always | (payload > 0))


def per_joule(scenario: Scenario, kind: Kind) -> float:
    """Give what one W of transfers costs, as ``planner.fleet.power_w``."""
    if kind == "cost" or (kind == "power" and scenario.power_basis == "provisioned"):
        return 0.0
    if kind == "energy":
        return 1.0
    return scenario.pue * (scenario.host_factor if scenario.power_basis == "average" else 1.0)


@dataclass(frozen=True)
class AllMoved:
    """All that crosses between device types, as ``planner.evaluate.transfers_of``."""

    target_kv: Moved
    draft_kv: Moved
    hidden: Moved
    step: Moved


def moved_of(scenario: Scenario, table: CostTable) -> AllMoved:
    """Give the transfers of every speculation between any two device types."""
    links, devices = Links.of(scenario), [*scenario.catalog.devices]
    share = 0.0 if scenario.transfers is None else scenario.transfers.kv_exposed_share
    once, none = np.ones_like(table.steps), np.zeros((len(devices) + 1, len(table.steps)))
    target_kv, draft_kv, hidden, step = (none.copy() for _ in range(4))
    caches: dict[str, Floats] = {}
    if links.joined.any():
        proposers = scenario.catalog.proposers
        target_kv[:-1] = _prompt_kv(scenario, table, "target_prefill", scenario.target)[:, None]
        for s, speculation in enumerate(table.speculations):
            proposer = speculation.proposer
            model = None if proposer is None else proposers[proposer].model
            if proposer is not None and model is not None:
                if model not in caches:
                    caches[model] = _prompt_kv(scenario, table, "draft_prefill", model)
                draft_kv[:-1, s] = caches[model]
                hidden[:, s] = prompt_hidden_bytes(scenario, table.workload, proposer)
                E = float(table.tokens_per_step[s])
                step[:, s] = exchange_bytes(scenario, proposer, speculation.nodes, E)
    return AllMoved(
        Moved(links, target_kv, once, 1, share, always=True),
        Moved(links, draft_kv, once, 1, share, always=True),
        Moved(links, hidden, once, 1, share, always=False),
        Moved(links, step, table.steps, EXCHANGE_MESSAGES, 1.0, always=True),
    )


def _prompt_kv(scenario: Scenario, table: CostTable, phase: Phase, model: str) -> Floats:
    """(D,) bytes of KV that a prompt leaves of a model on each device type that may prefill it; zero on the others."""
    able = {option.device for option in table.phases[phase].options}
    names = scenario.catalog.devices
    return np.array([prompt_kv_bytes(scenario, table.workload, n, model) if n in able else 0.0 for n in names])
