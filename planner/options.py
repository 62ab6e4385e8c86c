"""The options on offer for each phase of a workload, and what each costs, as arrays over (option, speculation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner import profiles
from planner.memory import sequences_per_replica
from planner.proposers import Rule, hosted_phases, layouts_of, nodes_by_draft_length, phases_of, rule_of
from planner.schema.catalog import Characterized, parse_option_key
from planner.schema.scenario import Scenario, parse_place
from planner.tokens import covered_draft_length, tokens_per_step
from planner.words import DRAFT_PHASES, PHASES, STEP_PHASES, Layout, Phase

Floats = NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Option:
    """One way to run one phase. ``models`` names the model set of a shared pool; empty, the pool is private."""

    device: str
    tensor_parallel: int
    batch_size: int
    models: tuple[str, ...] = ()

    @property
    def bare(self) -> Option:
        """The option without its pool, as the cost table holds it."""
        return replace(self, models=())

    def __str__(self) -> str:
        """Write the option as ``--place`` reads it."""
        return f"{self.device}:tp{self.tensor_parallel}:b{self.batch_size}"


@dataclass(frozen=True, order=True)
class Speculation:
    """Who proposes, how far ahead, and what shares replicas; no proposer and draft length 0 is plain decode.

    ``tree_nodes``: tokens drafted where they are more than the draft length, which is a tree's depth.
    """

    proposer: str | None
    draft_length: int
    tree_nodes: int | None = None
    layout: Layout = "disaggregated"

    @property
    def nodes(self) -> int:
        """Tokens drafted per step."""
        return self.draft_length if self.tree_nodes is None else self.tree_nodes

    @property
    def verify_tokens(self) -> int:
        """Positions that the target checks per step."""
        return self.nodes + 1

    @classmethod
    def of(cls, proposer: str | None, draft_length: int, nodes: int, layout: Layout) -> Speculation:
        """Name a speculation by the tokens that it drafts."""
        return cls(proposer, draft_length, None if nodes == draft_length else nodes, layout)


PLAIN = Speculation(None, 0)


@dataclass(frozen=True)
class PhaseCosts:
    """Costs of one phase.

    Attributes
    ----------
    options
        O options, in catalog order.
    latency_s
        (O, S) time of one operation of the batch: a prefill, a verify, a whole draft. NaN where it cannot run, zero
        where a speculation does not run the phase.
    energy_j
        (O, S) energy of one operation per request in the batch.
    sequences
        (O, S) sequences that a replica holds; infinite where memory is not described.
    """

    options: tuple[Option, ...]
    latency_s: Floats
    energy_j: Floats
    sequences: Floats

    @property
    def batch_sizes(self) -> Floats:
        """(O, 1) requests per operation."""
        return np.array([[float(option.batch_size)] for option in self.options]).reshape(-1, 1)

    @property
    def available(self) -> NDArray[np.bool_]:
        """(O, S) whether the option can run: its cost is known and its batch fits into memory."""
        return np.isfinite(self.latency_s) & (self.sequences >= self.batch_sizes)


@dataclass(frozen=True)
class Hosted:
    """What replicas that verify spend on another phase, per request: (O, S) over the options of target_verify.

    Zero where a speculation does not host the phase.
    """

    busy_s: Floats
    energy_j: Floats


@dataclass(frozen=True)
class CostTable:
    """Everything that the choice for one workload needs.

    A phase may be hosted: run on the replicas that verify, beside verification. Then it is no choice of its own (its
    ``operations`` are zero) and the costs of target_verify contain it.

    Attributes
    ----------
    speculations
        S ways to speculate; plain decode comes first unless the caller named others.
    tokens_per_step, steps, operations
        (S,) E(D); steps per request; operations per request by phase, zero where it is no choice of its own.
    hidden_states
        (S,) whether the proposer needs the target's hidden states.
    first_from_prefill
        (S,) whether the first token comes from the prefill.
    hosted
        What the costs of target_verify contain of other phases.
    through_target_s, through_draft_s
        (O, S) over the options of target_verify: what they add to the time of the first token along its two ways, the
        target's prefill and the first draft. The rest are the phases that are choices of their own.
    """

    workload: str
    speculations: tuple[Speculation, ...]
    tokens_per_step: Floats
    steps: Floats
    hidden_states: NDArray[np.bool_]
    first_from_prefill: NDArray[np.bool_]
    operations: dict[Phase, Floats]
    phases: dict[Phase, PhaseCosts]
    hosted: dict[Phase, Hosted]
    through_target_s: Floats
    through_draft_s: Floats

    def runs(self, phase: Phase) -> NDArray[np.bool_]:
        """(S,) whether a phase is a choice of its own of a speculation."""
        return self.operations[phase] > 0

    def energy_per_request_j(self, phase: Phase) -> Floats:
        """(O, S) energy of a phase per request."""
        return self.operations[phase] * self.phases[phase].energy_j

    def busy_s(self, phase: Phase) -> Floats:
        """(O, S) busy replica-time per request: operations × latency / batch size."""
        costs = self.phases[phase]
        return self.operations[phase] * costs.latency_s / costs.batch_sizes


def draft_lengths(scenario: Scenario, workload: str, proposer: str, most: int) -> list[tuple[int, int]]:
    """List draft lengths up to ``most``, capped by proposer, acceptance and OSL − 1, with the tokens drafted."""
    entry = scenario.catalog.proposers[proposer]
    longest = min(covered_draft_length(scenario, workload, proposer), most, entry.max_draft_length or most)
    return list(nodes_by_draft_length(entry, longest))


def speculations_of(scenario: Scenario, workload: str) -> tuple[Speculation, ...]:
    """List plain decode and every (proposer, D) on offer, each in every layout of the scenario that differs for it."""
    found = [Speculation(None, 0, None, layout) for layout in layouts_of(None, scenario.layouts)]
    for name in scenario.proposers:
        layouts = layouts_of(rule_of(scenario, name), scenario.layouts)
        lengths = draft_lengths(scenario, workload, name, scenario.max_draft_length)
        found += [Speculation.of(name, *length, layout) for layout in layouts for length in lengths]
    return tuple(found)


def steps_per_request(osl_tokens: float, tokens_per_step: Floats, first_from_prefill: NDArray[np.bool_]) -> Floats:
    """N = OSL/E(D), or (OSL − 1)/E(D) where the first token comes from the prefill.

    >>> steps_per_request(512, np.array([1.0, 8.0]), np.array([True, False])).tolist()
    [511.0, 64.0]
    """
    return (osl_tokens - first_from_prefill) / tokens_per_step


def model_of(scenario: Scenario, phase: Phase, proposer: str | None) -> str | None:
    """Name the model that a phase runs: the target's own phases run the target, draft phases the proposer's model."""
    if phase not in DRAFT_PHASES:
        return scenario.target
    return None if proposer is None else scenario.catalog.proposers[proposer].model


def rule_for(scenario: Scenario, speculation: Speculation) -> Rule | None:
    """Give the rule of a speculation's proposer; null for plain decode."""
    return None if speculation.proposer is None else rule_of(scenario, speculation.proposer)


def hosted_by_verify(scenario: Scenario, speculation: Speculation) -> frozenset[Phase]:
    """Give the phases that a speculation runs on the replicas that verify, beside verification."""
    return hosted_phases(rule_for(scenario, speculation), speculation.layout)


def models_of(scenario: Scenario, phase: Phase, speculation: Speculation) -> tuple[str, ...]:
    """Name the models that a replica of a phase holds, in alphabetical order: its own, and those of hosted phases."""
    own = model_of(scenario, phase, speculation.proposer)
    found = set() if own is None else {own}
    if phase == "target_verify":
        hosted = (model_of(scenario, h, speculation.proposer) for h in hosted_by_verify(scenario, speculation))
        found |= {model for model in hosted if model is not None}
    return tuple(sorted(found))


def _matches(scenario: Scenario, phase: Phase, option: Option) -> bool:
    candidates = scenario.candidates
    for allowed, value in (
        (candidates.devices, option.device),
        (candidates.tensor_parallel, option.tensor_parallel),
        (candidates.batch_sizes, option.batch_size),
    ):
        if allowed is not None and value not in allowed:
            return False
    return _is_placed(scenario, phase, option)


def _is_placed(scenario: Scenario, phase: Phase, option: Option) -> bool:
    """Whether a pin of the phase leaves the option."""
    if phase not in scenario.places:
        return True
    device, degree, batch = parse_place(scenario.places[phase])
    return device == option.device and degree in (None, option.tensor_parallel) and batch in (None, option.batch_size)


def _profiles(scenario: Scenario, phase: Phase, model: str) -> Iterator[tuple[Option, Characterized]]:
    """Give every option of a phase that the catalog can cost for a model, within candidates and places."""
    for name, device in scenario.catalog.devices.items():
        for key, profile in device.profiles.get(model, {}).get(phase, {}).items():
            option = Option(name, *parse_option_key(key))
            if _matches(scenario, phase, option):
                yield option, profile


def _tokens(scenario: Scenario, workload: str, phase: Phase, speculations: Sequence[Speculation]) -> Floats:
    """(S,) tokens of one operation: uncached prompt tokens, verify tokens or the draft length."""
    shape = scenario.workloads[workload]
    if phase not in STEP_PHASES:
        return np.full(len(speculations), float(shape.isl_tokens - shape.cached_prefix_tokens))
    verify = phase == "target_verify"
    return np.array([float(s.verify_tokens if verify else s.draft_length) for s in speculations])


def _phase_costs(scenario: Scenario, workload: str, phase: Phase, speculations: Sequence[Speculation]) -> PhaseCosts:
    """Cost a phase where it has replicas of its own, for every speculation whatever its layout."""
    tokens = _tokens(scenario, workload, phase, speculations)
    nodes = np.array([float(s.nodes) for s in speculations])
    columns_of: dict[str, list[int]] = {}
    for index, speculation in enumerate(speculations):
        model = model_of(scenario, phase, speculation.proposer)
        if model is not None and phase in phases_of(rule_for(scenario, speculation)):
            columns_of.setdefault(model, []).append(index)
    offers = {
        model: list(_offers(scenario, workload, phase, model, tokens[columns], nodes[columns]))
        for model, columns in columns_of.items()
    }
    order = {name: index for index, name in enumerate(scenario.catalog.devices)}
    every = {option for some in offers.values() for offer in some for option in offer.options}
    options = tuple(sorted(every, key=lambda o: (order[o.device], o.tensor_parallel, o.batch_size)))
    row_of = {option: row for row, option in enumerate(options)}
    running = {index for columns in columns_of.values() for index in columns}
    idle = np.array([index not in running for index in range(len(speculations))], dtype=bool)
    latency, energy, held = (
        np.tile(np.where(idle, one, other), (len(options), 1))
        for one, other in ((0.0, np.nan), (0.0, np.nan), (np.inf, 0.0))
    )
    for model, columns in columns_of.items():
        for offer in offers[model]:
            block = np.ix_([row_of[option] for option in offer.options], columns)
            latency[block], energy[block], held[block] = offer.latency_s, offer.energy_j, offer.sequences
    return PhaseCosts(options, latency, energy, held)


@dataclass(frozen=True)
class _Offer:
    """Options of one phase of a model with (O, S) latency and energy and (O, 1) sequences per replica."""

    options: tuple[Option, ...]
    latency_s: Floats
    energy_j: Floats
    sequences: Floats


def _offers(
    scenario: Scenario, workload: str, phase: Phase, model: str, tokens: Floats, nodes: Floats
) -> Iterator[_Offer]:
    """Give the characterized options of all devices at once, then those that the roofline derives, by device."""
    known = list(_profiles(scenario, phase, model))
    if known:
        options = tuple(option for option, _ in known)
        costs = profiles.characterized([profile for _, profile in known], tokens)
        yield _Offer(options, *costs, _sequences(scenario, workload, [model], options))
    characterized = {option.device for option, _ in known}
    for name, device in scenario.catalog.devices.items():
        wanted = _may_run(scenario, phase, name) and name not in characterized
        entry = scenario.catalog.models[model]
        if wanted and device.data_sheet is not None and (entry.shape is not None or entry.heads is not None):
            offer = _derived(scenario, workload, phase, name, model, (tokens, nodes))
            if offer is not None:
                yield offer


def _may_run(scenario: Scenario, phase: Phase, device: str) -> bool:
    """Whether candidates and places leave a device type for a phase."""
    allowed = scenario.candidates.devices
    placed = parse_place(scenario.places[phase])[0] if phase in scenario.places else device
    return placed == device and (allowed is None or device in allowed)


def _derived(
    scenario: Scenario, workload: str, phase: Phase, device: str, model: str, tokens: tuple[Floats, Floats]
) -> _Offer | None:
    from planner.derived import derive  # the roofline is loaded where a catalog needs it

    found = derive(scenario, workload, phase, device, model, *tokens)
    if found is None:
        return None
    options = [Option(device, *pair) for pair in zip(found.degrees, found.batch_sizes, strict=True)]
    kept = [row for row, option in enumerate(options) if _is_placed(scenario, phase, option)]
    rows = tuple(options[row] for row in kept)
    return _Offer(rows, found.latency_s[kept], found.energy_j[kept], found.sequences[kept][:, None]) if rows else None


def _sequences(scenario: Scenario, workload: str, models: Sequence[str], options: Sequence[Option]) -> Floats:
    """(O, 1) sequences that a replica of each option holds."""
    held: dict[tuple[str, int], float] = {}
    for option in options:
        key = (option.device, option.tensor_parallel)
        if key not in held:
            held[key] = sequences_per_replica(scenario, workload, option.device, models, option.tensor_parallel)
    return np.array([held[option.device, option.tensor_parallel] for option in options]).reshape(-1, 1)


def cost_table(scenario: Scenario, workload: str, speculations: Sequence[Speculation] | None = None) -> CostTable:
    """Cost every option of every phase of a workload. This is the only source of a design's numbers.

    Parameters
    ----------
    scenario
        The scenario; its candidates and places decide which options are looked at.
    workload
        Name of the workload.
    speculations
        The pairs to cost, by default all that the scenario offers.
    """
    if speculations is None:
        speculations = speculations_of(scenario, workload)
    lengths = np.array([s.draft_length for s in speculations])
    E = np.ones(len(speculations))
    for name in {s.proposer for s in speculations if s.proposer is not None}:
        columns = [index for index, s in enumerate(speculations) if s.proposer == name]
        E[columns] = tokens_per_step(scenario, workload, name, lengths[columns])
    first_from_prefill = (lengths == 0) | (scenario.first_token == "after_prefill")
    steps = steps_per_request(float(scenario.workloads[workload].osl_tokens), E, first_from_prefill)
    rules = [rule_for(scenario, s) for s in speculations]
    costs = _costs(scenario, workload, speculations)
    hosting = _Hosting(scenario, workload, costs, steps, first_from_prefill)
    hosting.host_all(speculations)
    through_target_s, through_draft_s = hosting.ways()
    own = {phase: _own(rules, speculations, phase) for phase in PHASES}
    once = {"target_prefill": own["target_prefill"], "draft_prefill": own["draft_prefill"]}
    return CostTable(
        workload=workload,
        speculations=tuple(speculations),
        tokens_per_step=E,
        steps=steps,
        hidden_states=np.array([rule is not None and rule.hidden_vectors > 0 for rule in rules], dtype=bool),
        first_from_prefill=first_from_prefill,
        operations={phase: once.get(phase, steps * own[phase]) for phase in PHASES},
        phases={phase: _without_hosted(costs[phase], own[phase]) for phase in PHASES}
        | {"target_verify": hosting.verify()},
        hosted=hosting.parts,
        through_target_s=through_target_s,
        through_draft_s=through_draft_s,
    )


def _own(rules: Sequence[Rule | None], speculations: Sequence[Speculation], phase: Phase) -> Floats:
    """(S,) 1 where a phase is a choice of its own, else 0."""
    pairs = zip(rules, speculations, strict=True)
    return np.array([float(phase in phases_of(r) and phase not in hosted_phases(r, s.layout)) for r, s in pairs])


def _costs(scenario: Scenario, workload: str, speculations: Sequence[Speculation]) -> dict[Phase, PhaseCosts]:
    """Cost every phase as if it had replicas of its own: layouts that differ in nothing else are costed once."""
    plain = [replace(s, layout="disaggregated") for s in speculations]
    distinct = list(dict.fromkeys(plain))
    position = {s: index for index, s in enumerate(distinct)}
    columns = [position[s] for s in plain]
    found = {phase: _phase_costs(scenario, workload, phase, distinct) for phase in PHASES}
    if len(distinct) == len(speculations):
        return found
    return {
        phase: PhaseCosts(c.options, c.latency_s[:, columns], c.energy_j[:, columns], c.sequences[:, columns])
        for phase, c in found.items()
    }


def _without_hosted(costs: PhaseCosts, own: Floats) -> PhaseCosts:
    """Blank the speculations for which a phase is no choice of its own."""
    if own.all():
        return costs
    mine = own > 0
    return PhaseCosts(
        costs.options,
        np.where(mine, costs.latency_s, 0.0),
        np.where(mine, costs.energy_j, 0.0),
        np.where(mine, costs.sequences, np.inf),
    )


class _Hosting:
    """Costs of target_verify with what its replicas host, and its part in the time to first token.

    A hosted draft adds its time to the step. A hosted prefill slows decoding: every step of a batch of b takes
    interference·b·t_prefill/N longer, the prefills that come in during it; its energy comes on top. First tokens of a
    hosted target prefill wait for prompts ahead of theirs, see ``planner.schema.scenario.Engine``.
    """

    def __init__(
        self,
        scenario: Scenario,
        workload: str,
        costs: dict[Phase, PhaseCosts],
        steps: Floats,
        first_from_prefill: NDArray[np.bool_],
    ) -> None:
        self.scenario, self.workload, self.costs, self.steps = scenario, workload, costs, steps
        verify = costs["target_verify"]
        self.options, self.batch = verify.options, verify.batch_sizes
        self.latency_s, self.energy_j = verify.latency_s.copy(), verify.energy_j.copy()
        self.held = verify.sequences.copy()
        self.waits = np.where(first_from_prefill, 0.0, 1.0)
        self.target_s, self.draft_s = self.waits * verify.latency_s, self.waits * verify.latency_s
        self.parts: dict[Phase, Hosted] = {}
        self.together: dict[tuple[str, ...], Floats] = {}
        self.beside = {phase: _Beside(costs[phase], phase in STEP_PHASES, verify.options) for phase in PHASES}

    def host_all(self, speculations: Sequence[Speculation]) -> None:
        """Add what every speculation hosts, at once for all draft lengths of a proposer in a layout."""
        alike: dict[tuple[str | None, Layout], list[int]] = {}
        for index, speculation in enumerate(speculations):
            alike.setdefault((speculation.proposer, speculation.layout), []).append(index)
        for columns in alike.values():
            self._host(np.array(columns, dtype=np.intp), speculations[columns[0]])

    def _host(self, s: NDArray[np.intp], speculation: Speculation) -> None:
        """Add what some speculations of one proposer and layout host."""
        hosted = hosted_by_verify(self.scenario, speculation)
        for phase in sorted(hosted, key=PHASES.index):
            if phase in STEP_PHASES:
                self._draft(s, phase)
            else:
                self._prefill(s, phase, rule_for(self.scenario, speculation))
        if hosted & set(DRAFT_PHASES):
            models = models_of(self.scenario, "target_verify", speculation)
            if models not in self.together:
                self.together[models] = _sequences(self.scenario, self.workload, models, self.options)
            self.held[:, s] = np.minimum(self.held[:, s], self.together[models])
        if speculation.proposer is not None:
            self._host_time(s, self.scenario.catalog.proposers[speculation.proposer].host_time_ms * 1e-3)

    def _draft(self, s: NDArray[np.intp], phase: Phase) -> None:
        one_s, one_j, _ = self.beside[phase].of(s)
        self.latency_s[:, s] += one_s
        self.draft_s[:, s] += self.waits[s] * one_s
        self._spend(s, phase, self.steps[s] * one_s / self.batch, self.steps[s] * one_j)

    def _prefill(self, s: NDArray[np.intp], phase: Phase, rule: Rule | None) -> None:
        engine = self.scenario.engine
        one_s, one_j, prompts = self.beside[phase].of(s)
        slower_s = engine.interference * self.batch * (one_s / prompts) / self.steps[s]
        self.latency_s[:, s] += slower_s
        self._spend(s, phase, self.steps[s] * slower_s / self.batch, one_j)
        first_s = one_s
        if phase == "target_prefill":
            ahead = (engine.cohort + engine.waiting * self.batch) * one_s / prompts
            first_s = engine.first_token_ms * 1e-3 + ahead
            self.target_s[:, s] += first_s
        if phase == "draft_prefill" or (rule is not None and rule.hidden_vectors > 0):
            self.draft_s[:, s] += self.waits[s] * first_s

    def _spend(self, s: NDArray[np.intp], phase: Phase, busy_s: Floats, energy_j: Floats) -> None:
        """Note what a request spends on a hosted phase, and add its energy to every step."""
        shape = self.latency_s.shape
        part = self.parts.setdefault(phase, Hosted(np.zeros(shape), np.zeros(shape)))
        part.busy_s[:, s], part.energy_j[:, s] = busy_s, energy_j
        self.energy_j[:, s] += energy_j / self.steps[s]

    def _host_time(self, s: NDArray[np.intp], host_s: float) -> None:
        """Add the host's time of a whole draft: the replicas wait for it, idle."""
        self.latency_s[:, s] += host_s
        self.draft_s[:, s] += self.waits[s] * host_s
        self.energy_j[:, s] += host_s * _idle_w(self.scenario, self.options)[:, None] / self.batch

    def verify(self) -> PhaseCosts:
        """Give the costs of target_verify with all that it hosts."""
        return PhaseCosts(self.options, self.latency_s, self.energy_j, self.held)

    def ways(self) -> tuple[Floats, Floats]:
        """(O, S) the part in the time to first token, through the target and through the draft; infinite if unknown."""
        target, draft = (np.where(np.isnan(way), np.inf, way) for way in (self.target_s, self.draft_s))
        return target, draft


def _idle_w(scenario: Scenario, options: Sequence[Option]) -> Floats:
    """(O,) hot idle power of a replica of each option, zero where the catalog states none."""
    devices = scenario.catalog.devices
    return np.array([(devices[o.device].idle_power_w or 0.0) * o.tensor_parallel for o in options], dtype=float)


@dataclass
class _Beside:
    """Costs of one phase where it shares the replicas of an option of target_verify; rows are looked up once.

    A draft has the batch of its verify; a prefill is taken at the smallest batch that is on offer there.
    """

    costs: PhaseCosts
    drafts: bool
    options: Sequence[Option]
    rows: dict[bytes, NDArray[np.intp]] = field(default_factory=dict)

    def of(self, s: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        """(O, S) time, energy per request and batch by option of target_verify for some S; NaN where unknown."""
        latency, energy, sizes = self.costs.latency_s[:, s], self.costs.energy_j[:, s], self.costs.batch_sizes
        time_s, energy_j, batch = (np.full((len(self.options), len(s)), np.nan) for _ in range(3))
        for pattern, columns in _alike(np.isfinite(latency)):
            rows = self._rows(pattern)
            known = rows >= 0
            block, kept = np.ix_(known, columns), np.ix_(rows[known], columns)
            time_s[block], energy_j[block], batch[block] = latency[kept], energy[kept], sizes[rows[known]]
        return time_s, energy_j, batch

    def _rows(self, able: NDArray[np.bool_]) -> NDArray[np.intp]:
        """(O,) the option beside each of target_verify; −1 where there is none."""
        key = able.tobytes()
        if key not in self.rows:
            at: dict[tuple[str, int, int], int] = {}
            for row, option in sorted(enumerate(self.costs.options), key=lambda pair: -pair[1].batch_size):
                at[option.device, option.tensor_parallel, option.batch_size] = row
                if able[row]:
                    at[option.device, option.tensor_parallel, 0] = row
            wanted = ((o.device, o.tensor_parallel, o.batch_size if self.drafts else 0) for o in self.options)
            self.rows[key] = np.array([at.get(place, -1) for place in wanted], dtype=np.intp)
        return self.rows[key]


def _alike(able: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """Give every pattern that columns have, and the columns that have it."""
    if not able.size or (able == able[:, :1]).all():
        yield able[:, 0], np.arange(able.shape[1])
        return
    patterns = {able[:, column].tobytes(): able[:, column] for column in range(able.shape[1])}
    for pattern in patterns.values():
        yield pattern, np.flatnonzero((able == pattern[:, None]).all(axis=0))
