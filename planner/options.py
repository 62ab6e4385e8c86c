"""The options on offer for each phase of a workload, and what each costs, as arrays over (option, speculation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner import acceptance, profiles
from planner.memory import sequences_per_replica
from planner.schema.catalog import AcceptanceCurve, Characterized, parse_option_key
from planner.schema.scenario import Scenario, parse_place
from planner.words import DRAFT_PHASES, PHASES, STEP_PHASES, Phase

Floats = NDArray[np.float64]

HIDDEN_STATE_KINDS = frozenset({"eagle3"})


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
    """Who proposes and how far ahead; no proposer and draft length 0 is plain decode."""

    proposer: str | None
    draft_length: int

    @property
    def verify_tokens(self) -> int:
        """Positions that the target checks per step."""
        return self.draft_length + 1


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
class CostTable:
    """Everything that the choice for one workload needs.

    Attributes
    ----------
    speculations
        S pairs of proposer and draft length; the first is plain decode unless the caller named others.
    tokens_per_step, steps, operations
        (S,) E(D); steps per request; operations per request by phase, zero where the phase does not run.
    hidden_states
        (S,) whether the proposer needs the target's hidden states.
    first_from_prefill
        (S,) whether the first token comes from the prefill.
    """

    workload: str
    speculations: tuple[Speculation, ...]
    tokens_per_step: Floats
    steps: Floats
    hidden_states: NDArray[np.bool_]
    first_from_prefill: NDArray[np.bool_]
    operations: dict[Phase, Floats]
    phases: dict[Phase, PhaseCosts]

    def runs(self, phase: Phase) -> NDArray[np.bool_]:
        """(S,) whether a speculation runs the phase."""
        return self.operations[phase] > 0

    def energy_per_request_j(self, phase: Phase) -> Floats:
        """(O, S) energy of a phase per request."""
        return self.operations[phase] * self.phases[phase].energy_j

    def busy_s(self, phase: Phase) -> Floats:
        """(O, S) busy replica-time per request: operations × latency / batch size."""
        costs = self.phases[phase]
        return self.operations[phase] * costs.latency_s / costs.batch_sizes


def curve_of(scenario: Scenario, workload: str, proposer: str) -> AcceptanceCurve:
    """Give the acceptance curve of a proposer for the scenario's target and a workload's task."""
    return scenario.catalog.proposers[proposer].acceptance[scenario.target][scenario.workloads[workload].task]


def covered_draft_length(scenario: Scenario, workload: str, proposer: str) -> int:
    """Give the longest draft that a proposer's acceptance covers, at most OSL − 1."""
    covered = acceptance.covered_draft_length(curve_of(scenario, workload, proposer))
    longest = scenario.workloads[workload].osl_tokens - 1
    return longest if covered is None else min(covered, longest)


def speculations_of(scenario: Scenario, workload: str) -> tuple[Speculation, ...]:
    """List plain decode and every (proposer, D) on offer, D capped by scenario, proposer, acceptance and OSL − 1."""
    found = [PLAIN]
    for name in scenario.proposers:
        caps = [covered_draft_length(scenario, workload, name), scenario.max_draft_length]
        own = scenario.catalog.proposers[name].max_draft_length
        longest = min(caps + ([own] if own is not None else []))
        found += [Speculation(name, length) for length in range(1, longest + 1)]
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
    tokens = _tokens(scenario, workload, phase, speculations)
    columns_of: dict[str, list[int]] = {}
    for index, speculation in enumerate(speculations):
        model = model_of(scenario, phase, speculation.proposer)
        if model is not None:
            columns_of.setdefault(model, []).append(index)
    offers = {
        model: list(_offers(scenario, workload, phase, model, tokens[cols])) for model, cols in columns_of.items()
    }
    order = {name: index for index, name in enumerate(scenario.catalog.devices)}
    every = {option for some in offers.values() for offer in some for option in offer.options}
    options = tuple(sorted(every, key=lambda o: (order[o.device], o.tensor_parallel, o.batch_size)))
    row_of = {option: row for row, option in enumerate(options)}
    idle = np.array([model_of(scenario, phase, s.proposer) is None for s in speculations])
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


def _offers(scenario: Scenario, workload: str, phase: Phase, model: str, tokens: Floats) -> Iterator[_Offer]:
    """Give the characterized options of all devices at once, then those that the roofline derives, by device."""
    known = list(_profiles(scenario, phase, model))
    if known:
        options = tuple(option for option, _ in known)
        costs = profiles.characterized([profile for _, profile in known], tokens)
        yield _Offer(options, *costs, _sequences(scenario, workload, model, options))
    characterized = {option.device for option, _ in known}
    for name, device in scenario.catalog.devices.items():
        wanted = _may_run(scenario, phase, name) and name not in characterized
        if wanted and device.data_sheet is not None and scenario.catalog.models[model].shape is not None:
            offer = _derived(scenario, workload, phase, name, model, tokens)
            if offer is not None:
                yield offer


def _may_run(scenario: Scenario, phase: Phase, device: str) -> bool:
    """Whether candidates and places leave a device type for a phase."""
    allowed = scenario.candidates.devices
    placed = parse_place(scenario.places[phase])[0] if phase in scenario.places else device
    return placed == device and (allowed is None or device in allowed)


def _derived(scenario: Scenario, workload: str, phase: Phase, device: str, model: str, tokens: Floats) -> _Offer | None:
    from planner.derived import derive  # the roofline is loaded where a catalog needs it

    found = derive(scenario, workload, phase, device, model, tokens)
    if found is None:
        return None
    options = [Option(device, *pair) for pair in zip(found.degrees, found.batch_sizes, strict=True)]
    kept = [row for row, option in enumerate(options) if _is_placed(scenario, phase, option)]
    rows = tuple(options[row] for row in kept)
    return _Offer(rows, found.latency_s[kept], found.energy_j[kept], found.sequences[kept][:, None]) if rows else None


def _sequences(scenario: Scenario, workload: str, model: str, options: Sequence[Option]) -> Floats:
    """(O, 1) sequences that a replica of each option holds."""
    catalog, shape = scenario.catalog, scenario.workloads[workload]
    held: dict[tuple[str, int], float] = {}
    for option in options:
        key = (option.device, option.tensor_parallel)
        if key not in held:
            device = catalog.devices[option.device]
            held[key] = sequences_per_replica(device, catalog.models[model], shape, option.tensor_parallel)
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
        E[columns] = acceptance.tokens_per_step(curve_of(scenario, workload, name), lengths[columns])
    first_from_prefill = (lengths == 0) | (scenario.first_token == "after_prefill")
    steps = steps_per_request(float(scenario.workloads[workload].osl_tokens), E, first_from_prefill)
    drafts = (lengths > 0).astype(float)
    return CostTable(
        workload=workload,
        speculations=tuple(speculations),
        tokens_per_step=E,
        steps=steps,
        hidden_states=np.array(
            [s.proposer is not None and _needs_hidden_states(scenario, s.proposer) for s in speculations]
        ),
        first_from_prefill=first_from_prefill,
        operations={
            "target_prefill": np.ones_like(E),
            "target_verify": steps,
            "draft_prefill": drafts,
            "draft_decode": steps * drafts,
        },
        phases={phase: _phase_costs(scenario, workload, phase, speculations) for phase in PHASES},
    )


def _needs_hidden_states(scenario: Scenario, proposer: str) -> bool:
    return scenario.catalog.proposers[proposer].kind in HIDDEN_STATE_KINDS
