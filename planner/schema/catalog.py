"""What exists: devices, models, proposers, links, and where each number comes from."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from planner.errors import nearest
from planner.schema.base import (
    Count,
    Document,
    Fraction,
    Name,
    NonNegative,
    Positive,
    PositiveTokens,
    SchemaVersion,
)
from planner.schema.hardware import DataSheet, ParallelHeads, Shape
from planner.schema.names import dangling_in_catalog, refuse
from planner.words import READS_HIDDEN_STATES, Confidence, CountUnit, Phase, ProposerKind


def _whole_key(key: Any) -> Any:  # noqa: ANN401
    """Read a quoted whole number as a key: JSON has no others."""
    return int(key) if isinstance(key, str) and re.match(r"^[0-9]{1,9}$", key, re.ASCII) else key


_WHOLE_KEY = BeforeValidator(_whole_key)

# ----------------------------------------------------------------------------------------------- acceptance


class SaturatingExponential(Document):
    """E(D) = clip(offset + A·(1 − e^(−D/tau)), 1, D+1)."""

    kind: Literal["saturating_exponential"]
    A: Positive
    tau: Positive
    offset: Annotated[float, Field(ge=-1e6, le=1e6)] = 0.0


class Geometric(Document):
    """E(D) = (1 − alpha^(D+1)) / (1 − alpha): every draft token is accepted with the same chance."""

    kind: Literal["geometric"]
    alpha: Fraction


class Positions(Document):
    """E(D) = 1 + Σ_k Π_{i≤k} p_i, from the per-position acceptance counters that engines export."""

    kind: Literal["positions"]
    probabilities: Annotated[tuple[Fraction, ...], Field(strict=False, min_length=1, max_length=4096)]


def _tokens_per_step_is_possible(table: dict[int, float]) -> dict[int, float]:
    for length in sorted(table):
        if not 1.0 <= table[length] <= length + 1.0:
            raise PydanticCustomError(
                "tokens_per_step",
                "E({length}) = {value} is impossible: a step of draft length {length} commits 1 to {most} tokens",
                {"length": length, "value": table[length], "most": length + 1},
            )
    if not any(length > 0 for length in table):
        raise PydanticCustomError("tokens_per_step", "the table needs at least one draft length above 0", {})
    return table


class AcceptanceTable(Document):
    """E(D) as measured; interpolated between the points, never extrapolated beyond the last."""

    kind: Literal["table"]
    tokens_per_step: Annotated[
        dict[Annotated[int, _WHOLE_KEY, Field(ge=0, le=4096)], float], AfterValidator(_tokens_per_step_is_possible)
    ]


class Ranks(Document):
    """E(D) of a token tree from its shape: the chance that the drafter's first, second, … choice is the one accepted.

    A node with b children is followed with the sum of the first b chances. Only for a tree with ``branching``.
    """

    kind: Literal["ranks"]
    probabilities: Annotated[tuple[Fraction, ...], Field(strict=False, min_length=1, max_length=64)]

    @field_validator("probabilities")
    @classmethod
    def _are_chances_of_one_event(cls, probabilities: tuple[float, ...]) -> tuple[float, ...]:
        if sum(probabilities) > 1.0 + 1e-9:
            text = "the chances of all ranks add up to {total}, more than 1: at most one of them is accepted"
            raise PydanticCustomError("ranks", text, {"total": f"{sum(probabilities):g}"})
        return probabilities


AcceptanceCurve = Annotated[
    SaturatingExponential | Geometric | Positions | AcceptanceTable | Ranks, Field(discriminator="kind")
]

# ------------------------------------------------------------------------------------ characterized profiles


def _number_is_constant(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return {"constant": value}
    return value


def _one_form(curve: Document, forms: tuple[frozenset[str], ...]) -> None:
    given = frozenset(name for name in curve.model_fields_set if getattr(curve, name) is not None)
    if given not in forms:
        said = " + ".join(sorted(given)) or "nothing"
        valid = "; ".join(" + ".join(sorted(form)) for form in forms)
        raise PydanticCustomError("form", "{said} is no valid form (valid: {valid})", {"said": said, "valid": valid})


class LatencyForm(Document):
    """Latency of one operation over its tokens: constant, max(floor, per_token·tokens), affine, or a table."""

    constant: NonNegative | None = None
    floor: NonNegative | None = None
    base: NonNegative | None = None
    per_token: NonNegative | None = None
    table: Annotated[dict[Annotated[PositiveTokens, _WHOLE_KEY], NonNegative], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        forms = ({"constant"}, {"per_token"}, {"floor", "per_token"}, {"base", "per_token"}, {"table"})
        _one_form(self, tuple(frozenset(form) for form in forms))
        given = (self.constant, self.floor, self.base, self.per_token, min((self.table or {1: 0.0}).values()))
        if not any(given):
            raise PydanticCustomError("form", "a latency must be above 0", {})
        return self


class EnergyForm(Document):
    """Energy of one operation, per request in the batch: constant or base + per_token·tokens."""

    constant: NonNegative | None = None
    base: NonNegative | None = None
    per_token: NonNegative | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        _one_form(self, tuple(frozenset(form) for form in ({"constant"}, {"per_token"}, {"base", "per_token"})))
        return self


def _number_or(form: type[Document]) -> dict[str, Any]:
    return {"anyOf": [{"type": "number", "minimum": 0}, form.model_json_schema()]}


LatencyCurve = Annotated[LatencyForm, BeforeValidator(_number_is_constant), WithJsonSchema(_number_or(LatencyForm))]
EnergyCurve = Annotated[EnergyForm, BeforeValidator(_number_is_constant), WithJsonSchema(_number_or(EnergyForm))]

_OPTION_KEY = re.compile(r"^(?:tp([1-9]\d{0,3}):)?b([1-9]\d{0,5})$")


def parse_option_key(key: str) -> tuple[int, int]:
    """Read ``b8`` or ``tp2:b8`` as (tensor-parallel degree, batch size).

    >>> parse_option_key("tp2:b8"), parse_option_key("b1")
    ((2, 8), (1, 1))

    Raises
    ------
    PydanticCustomError
        If the key has another form.
    """
    match = _OPTION_KEY.match(key)
    if match is None:
        raise PydanticCustomError("option_key", "'{key}' is no option: write b8 or tp2:b8", {"key": key})
    return int(match[1] or 1), int(match[2])


def _is_option_key(key: str) -> str:
    parse_option_key(key)
    return key


OptionKey = Annotated[
    str, AfterValidator(_is_option_key), WithJsonSchema({"type": "string", "pattern": _OPTION_KEY.pattern})
]


class Characterized(Document):
    """Published or measured coefficients of one phase at one batch size.

    ``latency_ms``: one operation of the whole batch. ``energy_mj``: millijoules per request in the batch.
    Tokens are uncached prompt tokens (prefill), verify tokens (target_verify) or the draft length (draft_decode).
    """

    latency_ms: LatencyCurve
    energy_mj: EnergyCurve


# ---------------------------------------------------------------------------------------------------- entries


class Source(Document):
    """Where numbers come from."""

    title: str
    publisher: str
    date: str
    url: str | None = None
    note: str | None = None


class Entry(Document):
    """A named thing of a catalog. ``source`` covers every number; ``sources`` and ``confidence`` say it per field."""

    description: str = ""
    source: Name | None = None
    sources: dict[str, Name] = {}
    confidence: dict[str, Confidence] = {}

    @field_validator("sources", "confidence")
    @classmethod
    def _labels_name_fields(cls, labels: dict[str, str]) -> dict[str, str]:
        wrong = [key for key in labels if key.partition(".")[0] not in cls.model_fields]
        if wrong:
            hint = nearest(wrong[0].partition(".")[0], cls.model_fields)
            raise PydanticCustomError("label", "there is no field '{key}' ({hint})", {"key": wrong[0], "hint": hint})
        return labels


class Price(Document):
    """What one device costs to run, with what the figure means and when it was seen."""

    usd_per_hour: NonNegative
    basis: str
    date: str


class Device(Entry):
    """A device type. A field that is not known stays null, and what needs it says so."""

    maker: str = ""
    count_unit: CountUnit = "devices"
    memory_gb: Positive | None = None
    reserve_gb: NonNegative = 0.0
    idle_power_w: NonNegative | None = None
    provisioned_power_w: NonNegative | None = None
    devices_per_host: Count | None = None
    price: Price | None = None
    data_sheet: DataSheet | None = None
    profiles: dict[Name, dict[Phase, dict[OptionKey, Characterized]]] = {}


class Model(Entry):
    """A model's weights and KV cache, as far as memory and transfers need them.

    ``shape`` of a transformer, or ``heads`` of parallel decoding heads (Medusa), lets the roofline cost it.
    """

    weights_gb: Positive | None = None
    kv_bytes_per_token: NonNegative | None = None
    shape: Shape | None = None
    heads: ParallelHeads | None = None


class Tree(Document):
    """A token tree: either how many children each node of a level has, or the nodes in all by depth.

    ``branching`` [2, 1] is two chains of two. A depth without an entry in ``nodes`` is not on offer.
    """

    branching: Annotated[tuple[Count, ...], Field(strict=False, min_length=1, max_length=64)] | None = None
    nodes: Annotated[dict[Annotated[PositiveTokens, _WHOLE_KEY], PositiveTokens], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        _one_form(self, (frozenset({"branching"}), frozenset({"nodes"})))
        for depth, nodes in (self.nodes or {}).items():
            if nodes < depth:
                text = "a tree of depth {depth} has at least {depth} nodes, got {nodes}"
                raise PydanticCustomError("tree", text, {"depth": depth, "nodes": nodes})
        return self

    def nodes_by_depth(self) -> dict[int, int]:
        """Give the nodes of every depth on offer.

        >>> Tree(branching=[3, 1, 2]).nodes_by_depth()
        {1: 3, 2: 6, 3: 12}
        """
        if self.nodes is not None:
            return dict(sorted(self.nodes.items()))
        found, level, total = {}, 1, 0
        for depth, children in enumerate(self.branching or (), start=1):
            level *= children
            total += level
            found[depth] = total
        return found


class Proposer(Entry):
    """A way to propose tokens for a target, with its acceptance by target and task.

    ``model`` runs the draft phases; ``ngram`` has none. ``tree``: what is verified is a token tree and the draft length
    its depth. ``host_time_ms``: time of a whole draft on the host, part of every step. What crosses the link, in bytes:
    ``step_payload_bytes_per_token`` for every drafted token (null: an id, and with ``sends_distributions`` a
    probability for every word of the target's vocabulary), ``hidden_bytes_per_token`` for every committed or prompt
    token of a proposer that reads the target's hidden states (null: counted from the target's shape).
    """

    kind: ProposerKind
    model: Name | None = None
    max_draft_length: Annotated[int, Field(ge=1, le=4096)] | None = None
    tree: Tree | None = None
    host_time_ms: NonNegative = 0.0
    step_payload_bytes_per_token: NonNegative | None = None
    sends_distributions: bool = False
    hidden_bytes_per_token: NonNegative | None = None
    acceptance: dict[Name, dict[Name, AcceptanceCurve]]

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if (self.kind == "ngram") != (self.model is None):
            text = "a proposer of kind ngram runs no model" if self.model else "a proposer of kind {kind} needs a model"
            raise PydanticCustomError("proposer", text, {"kind": self.kind})
        if self.kind == "tree" and self.tree is None:
            raise PydanticCustomError("proposer", "a proposer of kind tree needs a tree", {})
        by_rank = any(curve.kind == "ranks" for tasks in self.acceptance.values() for curve in tasks.values())
        if by_rank and (self.tree is None or self.tree.branching is None):
            raise PydanticCustomError("proposer", "acceptance of kind ranks needs a tree with branching", {})
        if self.hidden_bytes_per_token is not None and self.kind not in READS_HIDDEN_STATES:
            text = "hidden_bytes_per_token: a proposer of kind {kind} reads no hidden states"
            raise PydanticCustomError("proposer", text, {"kind": self.kind})
        return self


class Link(Entry):
    """A way between two device types: bandwidth, cost of a message, energy of a byte."""

    bandwidth_gb_per_s: Positive
    latency_us: NonNegative = 0.0
    energy_pj_per_byte: NonNegative = 0.0


class Catalog(Document):
    """Everything on offer. Collections are mappings by name, so that a dotted key reaches every field.

    The models that it names are its own; a context with ``models`` lends it further names.
    """

    schema_version: SchemaVersion
    description: str = ""
    sources: dict[Name, Source] = {}
    devices: dict[Name, Device] = {}
    models: dict[Name, Model] = {}
    proposers: dict[Name, Proposer] = {}
    links: dict[Name, Link] = {}

    @model_validator(mode="after")
    def _names_exist(self, info: ValidationInfo) -> Self:
        refuse(dangling_in_catalog(self, borrowed=(info.context or {}).get("models", ())))
        return self
