"""What each kind of proposer needs: where it drafts, when its own prefill can start, what crosses the link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planner.schema.catalog import Proposer
from planner.schema.scenario import Scenario
from planner.words import DRAFT_PHASES, Layout, Phase, ProposerKind

ID_BYTES = 4.0
ACTIVATION_BYTES = 2.0


@dataclass(frozen=True)
class Rule:
    """One kind of proposer.

    Attributes
    ----------
    prefill
        Its own prefill of the prompt: beside the target's (``own``), after it, since it reads the target's hidden
        states (``after_target``), or none.
    drafts
        Where a draft is made: on a pool of its own, on the replicas that verify, or on the host.
    hidden_vectors
        Hidden vectors of the target that it reads per token.
    """

    prefill: Literal["own", "after_target", "none"]
    drafts: Literal["pool", "verify", "host"]
    hidden_vectors: int


RULES: dict[ProposerKind, Rule] = {
    "draft_model": Rule("own", "pool", 0),
    "tree": Rule("own", "pool", 0),
    "eagle3": Rule("after_target", "pool", 3),
    "dspark": Rule("after_target", "pool", 5),
    "medusa": Rule("none", "verify", 1),
    "mtp": Rule("none", "verify", 1),
    "ngram": Rule("none", "host", 0),
}


def rule_of(scenario: Scenario, proposer: str) -> Rule:
    """Give the rule of a proposer's kind."""
    return RULES[scenario.catalog.proposers[proposer].kind]


def phases_of(rule: Rule | None) -> frozenset[Phase]:
    """Give the phases that a proposer of this kind (null: plain decode) runs on devices."""
    phases: set[Phase] = {"target_prefill", "target_verify"}
    if rule is not None and rule.prefill != "none":
        phases.add("draft_prefill")
    if rule is not None and rule.drafts != "host":
        phases.add("draft_decode")
    return frozenset(phases)


def hosted_phases(rule: Rule | None, layout: Layout) -> frozenset[Phase]:
    """Give the phases that run on the replicas that verify, beside verification itself.

    >>> sorted(hosted_phases(RULES["mtp"], "disaggregated")), sorted(hosted_phases(None, "aggregated"))
    (['draft_decode'], ['target_prefill'])
    """
    hosted: set[Phase] = set()
    if layout in ("aggregated", "aggregated_target"):
        hosted.add("target_prefill")
    if layout in ("aggregated", "colocated_drafter"):
        hosted |= set(DRAFT_PHASES)
    if rule is not None and rule.drafts == "verify":
        hosted.add("draft_decode")
    return frozenset(hosted) & phases_of(rule)


def layouts_of(rule: Rule | None, layouts: tuple[Layout, ...]) -> list[Layout]:
    """Give the layouts that differ for a kind of proposer: without a drafter's pool two of them may be the same."""
    first: dict[frozenset[Phase], Layout] = {}
    for layout in layouts:
        first.setdefault(hosted_phases(rule, layout), layout)
    return list(first.values())


def nodes_by_draft_length(proposer: Proposer, longest: int) -> Iterator[tuple[int, int]]:
    """Give each draft length up to the longest with the tokens drafted: as many, or a tree's nodes at that depth."""
    if proposer.tree is None:
        yield from ((length, length) for length in range(1, longest + 1))
        return
    yield from ((depth, nodes) for depth, nodes in proposer.tree.nodes_by_depth().items() if depth <= longest)


def drafted_bytes_per_token(scenario: Scenario, name: str) -> float:
    """Bytes that a drafted token sends to the target: what the catalog states, else an id (and its distribution).

    A distribution is one 16-bit probability for every word of the target's vocabulary.
    """
    proposer = scenario.catalog.proposers[name]
    if proposer.step_payload_bytes_per_token is not None:
        return proposer.step_payload_bytes_per_token
    shape = scenario.catalog.models[scenario.target].shape
    vocabulary = shape.vocabulary if proposer.sends_distributions and shape is not None else 0
    return ID_BYTES + ACTIVATION_BYTES * vocabulary


def hidden_bytes_per_token(scenario: Scenario, name: str) -> float:
    """Bytes of hidden states that the target sends for every committed or prompt token, to a drafter elsewhere.

    What the catalog states, else hidden vectors × hidden size × 2; zero where the target has no shape to count from
    (``planner.rates`` refuses that where a link is set).
    """
    proposer, rule = scenario.catalog.proposers[name], rule_of(scenario, name)
    if proposer.hidden_bytes_per_token is not None:
        return proposer.hidden_bytes_per_token
    shape = scenario.catalog.models[scenario.target].shape
    return rule.hidden_vectors * ACTIVATION_BYTES * shape.hidden if shape is not None else 0.0
