"""What crosses between device types: the KV cache after a prefill, the tokens of every step."""

from __future__ import annotations

from dataclasses import dataclass

from planner.schema.catalog import Link
from planner.schema.scenario import Scenario


@dataclass(frozen=True)
class Transfer:
    """Time that no overlap hides, in s, and energy in J, of one transfer."""

    exposed_s: float = 0.0
    energy_j: float = 0.0


FREE = Transfer()


def link_time_s(link: Link, payload_bytes: float, messages: int = 1) -> float:
    """Time of messages on a link: messages·latency + bytes/bandwidth.

    >>> round(link_time_s(Link(bandwidth_gb_per_s=50.0, latency_us=10.0), 1e9), 6)
    0.02001
    """
    return messages * link.latency_us * 1e-6 + payload_bytes / (link.bandwidth_gb_per_s * 1e9)


def link_energy_j(link: Link, payload_bytes: float) -> float:
    """Energy of bytes on a link."""
    return link.energy_pj_per_byte * 1e-12 * payload_bytes


def _link(scenario: Scenario) -> Link | None:
    return None if scenario.transfers is None else scenario.catalog.links[scenario.transfers.link]


def kv_transfer(scenario: Scenario, workload: str, model: str) -> Transfer:
    """Move a prompt's KV cache of one model from its prefill device type to another; free where no link is set."""
    link = _link(scenario)
    if link is None or scenario.transfers is None:
        return FREE
    per_token = scenario.catalog.models[model].kv_bytes_per_token or 0.0
    payload = scenario.workloads[workload].isl_tokens * per_token
    exposed = scenario.transfers.kv_exposed_share * link_time_s(link, payload)
    return Transfer(exposed, link_energy_j(link, payload))


def step_exchange(scenario: Scenario, proposer: str | None, draft_length: int) -> Transfer:
    """Exchange one step's tokens between drafter and target on different device types: one message each way."""
    link = _link(scenario)
    if link is None or proposer is None:
        return FREE
    payload = draft_length * scenario.catalog.proposers[proposer].step_payload_bytes_per_token
    return Transfer(link_time_s(link, payload, messages=2), link_energy_j(link, payload))
