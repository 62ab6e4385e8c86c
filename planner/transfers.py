"""What crosses between device types: the KV cache after a prefill, the tokens of every step."""

from __future__ import annotations

from dataclasses import dataclass

from planner.memory import prompt_kv_bytes
from planner.proposers import drafted_bytes_per_token, hidden_bytes_per_token
from planner.schema.catalog import Link
from planner.schema.scenario import Scenario


@dataclass(frozen=True)
class Transfer:
    """Time that no overlap hides, in s, and energy in J, of one transfer."""

    exposed_s: float = 0.0
    energy_j: float = 0.0


FREE = Transfer()
EXCHANGE_MESSAGES = 2


def link_time_s(link: Link, payload_bytes: float, messages: int = 1) -> float:
    """Time of messages on a link: messages·latency + bytes/bandwidth.

    >>> round(link_time_s(Link(bandwidth_gb_per_s=50.0, latency_us=10.0), 1e9), 6)
    0.02001
    """
    return messages * link.latency_us * 1e-6 + payload_bytes / (link.bandwidth_gb_per_s * 1e9)


def link_energy_j(link: Link, payload_bytes: float) -> float:
    """Energy of bytes on a link."""
    return link.energy_pj_per_byte * 1e-12 * payload_bytes


def link_between(scenario: Scenario, one: str, other: str) -> Link | None:
    """Give the link between two device types; null where it is free: the same type, or none is set."""
    if one == other or scenario.transfers is None:
        return None
    name = scenario.transfers.between(one, other)
    return None if name is None else scenario.catalog.links[name]


def kv_transfer(scenario: Scenario, workload: str, device: str, link: Link | None, model: str) -> Transfer:
    """Move a prompt's KV cache of one model from the device type of its prefill to another; free without a link."""
    if link is None or scenario.transfers is None:
        return FREE
    payload = prompt_kv_bytes(scenario, workload, device, model)
    exposed = scenario.transfers.kv_exposed_share * link_time_s(link, payload)
    return Transfer(exposed, link_energy_j(link, payload))


def prompt_hidden_bytes(scenario: Scenario, workload: str, proposer: str) -> float:
    """Bytes of hidden states of a prompt's uncached tokens, zero for a proposer that reads none."""
    request = scenario.workloads[workload]
    return (request.isl_tokens - request.cached_prefix_tokens) * hidden_bytes_per_token(scenario, proposer)


def exchange_bytes(scenario: Scenario, proposer: str, nodes: int, tokens_per_step: float) -> float:
    """Bytes of one step's exchange, both ways together."""
    drafted = nodes * drafted_bytes_per_token(scenario, proposer)
    return drafted + tokens_per_step * hidden_bytes_per_token(scenario, proposer)


def hidden_transfer(scenario: Scenario, workload: str, link: Link | None, proposer: str) -> Transfer:
    """Move the hidden states of a prompt's uncached tokens to a drafter that reads them; free without a link."""
    if link is None or scenario.transfers is None:
        return FREE
    payload = prompt_hidden_bytes(scenario, workload, proposer)
    if payload == 0:
        return FREE
    exposed = scenario.transfers.kv_exposed_share * link_time_s(link, payload)
    return Transfer(exposed, link_energy_j(link, payload))


def step_exchange(
    scenario: Scenario, link: Link | None, proposer: str | None, nodes: int, tokens_per_step: float
) -> Transfer:
    """Exchange one step's tokens between drafter and target: one message each way; free without a link.

    The drafted tokens go one way, with their distributions where the verification needs them; the hidden states of the
    tokens committed come back where the drafter reads them.
    """
    if link is None or proposer is None:
        return FREE
    payload = exchange_bytes(scenario, proposer, nodes, tokens_per_step)
    return Transfer(link_time_s(link, payload, EXCHANGE_MESSAGES), link_energy_j(link, payload))
