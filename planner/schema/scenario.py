"""What is asked: a target, proposers on offer, workloads with their limits, and the switches of the model."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from planner.schema.base import (
    Count,
    Document,
    Fraction,
    Name,
    NonNegative,
    Positive,
    PositiveFraction,
    PositiveTokens,
    SchemaVersion,
    Tokens,
)
from planner.schema.catalog import Catalog
from planner.schema.hardware import Precision
from planner.schema.names import dangling_in_scenario, refuse
from planner.words import Counts, FirstToken, Layout, Objective, Phase, PowerBasis

CountOrNone = Annotated[int, Field(ge=0, le=1_000_000)]
_PLACE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._+-]{0,63})(?::tp([1-9]\d{0,3}))?(?::b([1-9]\d{0,5}))?$")


def parse_place(text: str) -> tuple[str, int | None, int | None]:
    """Read ``gpu``, ``gpu:tp2`` or ``gpu:tp2:b8`` as (device, tensor-parallel degree, batch size).

    >>> parse_place("gpu:b8")
    ('gpu', None, 8)

    Raises
    ------
    PydanticCustomError
        If the text has another form.
    """
    match = _PLACE.match(text)
    if match is None:
        raise PydanticCustomError(
            "place", "'{text}' is no place: write device, device:tp2 or device:tp2:b8", {"text": text}
        )
    return match[1], int(match[2]) if match[2] else None, int(match[3]) if match[3] else None


def _is_place(text: str) -> str:
    parse_place(text)
    return text


Place = Annotated[str, AfterValidator(_is_place), WithJsonSchema({"type": "string", "pattern": _PLACE.pattern})]


class WorkloadLimits(Document):
    """What one workload's users are promised, and how much of it there is."""

    interactivity_floor_tps: Positive | None = None
    ttft_ceiling_ms: Positive | None = None
    demand_rps: Positive | None = None


class Workload(Document):
    """Requests of one shape. ``mix`` is its weight among the workloads."""

    description: str = ""
    isl_tokens: PositiveTokens
    osl_tokens: Annotated[int, Field(ge=2, le=100_000_000)]
    cached_prefix_tokens: Tokens = 0
    task: Name = "general"
    mix: Positive = 1.0
    limits: WorkloadLimits = WorkloadLimits()

    @field_validator("cached_prefix_tokens")
    @classmethod
    def _is_shorter_than_the_prompt(cls, tokens: int, info: ValidationInfo) -> int:
        prompt = info.data.get("isl_tokens")
        if prompt is not None and tokens >= prompt:
            raise PydanticCustomError(
                "prefix",
                "must be less than isl_tokens ({isl}), got {cached}: at least one token is computed",
                {"cached": tokens, "isl": prompt},
            )
        return tokens


class Stock(Document):
    """Devices of one type that can be had: owned ones cost nothing more, further ones are bought at the price.

    ``purchasable`` null: any number can be bought.
    """

    owned: CountOrNone = 0
    purchasable: CountOrNone | None = 0

    @property
    def available(self) -> float:
        """Devices that can be had in all; infinite where any number can be bought."""
        return math.inf if self.purchasable is None else float(self.owned + self.purchasable)


def _number_is_purchasable(value: Any) -> Any:  # noqa: ANN401
    return {"purchasable": value} if isinstance(value, (int, float)) and not isinstance(value, bool) else value


_STOCK_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, Stock.model_json_schema()]}


class FleetLimits(Document):
    """Limits on the whole deployment.

    ``inventory``: what can be had by device type, a number (purchasable) or ``{owned, purchasable}``. A type that is
    not named can be had without limit.
    """

    power_budget_kw: Positive | None = None
    cost_budget_usd_per_hour: Positive | None = None
    inventory: dict[Name, Annotated[Stock, BeforeValidator(_number_is_purchasable), WithJsonSchema(_STOCK_SCHEMA)]] = {}


class Rack(Document):
    """A place with a power limit of its own, for the device types named (null: for all)."""

    power_limit_kw: Positive
    devices: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None


class Servers(Document):
    """How devices are bought and housed.

    ``by_node``: whole hosts only. ``spare_replicas``: replicas of every pool that serve nothing, N+1.
    ``min_batch_fill``: least share of a decode pool's batches that must be filled. ``racks``: provisioned watts by
    rack; where any is named, every device stands in one.
    """

    by_node: bool = False
    spare_replicas: Annotated[int, Field(ge=0, le=1000)] = 0
    min_batch_fill: Fraction = 0.0
    racks: dict[Name, Rack] = {}


class Candidates(Document):
    """Which options are looked at. Null means every one that the catalog has."""

    devices: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] | None = None
    tensor_parallel: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] | None = None
    batch_sizes: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] | None = None


_PAIR = re.compile(r"^[^:]+:[^:]+$")


def _is_pair(text: str) -> str:
    one, _, other = text.partition(":")
    if not _PAIR.match(text) or one == other:
        raise PydanticCustomError("pair", "'{text}' is no pair of device types: write one:other", {"text": text})
    return text


Pair = Annotated[str, AfterValidator(_is_pair), WithJsonSchema({"type": "string", "pattern": _PAIR.pattern})]


class Transfers(Document):
    """Which link joins different device types, and how much of a KV transfer no overlap hides.

    ``pairs``: another link (null: free) between two device types, written ``one:other`` in either order.
    """

    link: Name
    kv_exposed_share: Fraction = 1.0
    pairs: dict[Pair, Name | None] = {}

    def between(self, one: str, other: str) -> str | None:
        """Name the link between two different device types; null where it is free."""
        return self.pairs.get(f"{one}:{other}", self.pairs.get(f"{other}:{one}", self.link))

    @model_validator(mode="after")
    def _names_a_pair_once(self) -> Self:
        for pair in self.pairs:
            one, _, other = pair.partition(":")
            if f"{other}:{one}" in self.pairs:
                raise PydanticCustomError("pair", "'{pair}' stands twice, in both orders", {"pair": pair})
        return self


class Engine(Document):
    """How much prefills slow decoding on replicas that do both, and what a first token waits for there.

    A step takes longer by ``interference`` × the time of the prefills that come in during it. The first token comes
    after ``first_token_ms`` and the prefills of ``cohort`` prompts and of a share ``waiting`` of the batch.
    """

    interference: NonNegative = 1.2
    first_token_ms: NonNegative = 58.0
    cohort: Annotated[float, Field(ge=1, le=1e6)] = 1.05
    waiting: NonNegative = 0.10


class LossyAcceptance(Document):
    """Accept draft tokens that the target would have refused: the output no longer follows its distribution.

    ``lenience`` 1 is lossless, less is more lenient; a search looks at every value from it up to 1.
    ``rejection_exponent``: rejections fall as lenience to this power (``planner.acceptance.lenient``).
    """

    lenience: Annotated[float, Field(ge=1e-3, le=1)]
    rejection_exponent: Annotated[float, Field(gt=0, le=1)]


# A factor on the rate of accepted drafts, or a task whose acceptance is taken.
AcceptanceCase = Annotated[float, Field(ge=1e-3, le=1e3)] | Name

Scalar = bool | int | float | str
_Point = Annotated[tuple[float, float], Field(strict=False)]


class Knob(Document):
    """What a search may vary: a range (``low`` to ``high``, by ``step`` or on a logarithmic scale) or ``choices``.

    Its name is the dotted key of the field that it sets, in scenario or catalog. With ``sets`` the name is free, and it
    moves several fields at once: each is interpolated between points (value of the knob, value of the field).
    """

    low: int | float | None = None
    high: int | float | None = None
    log: bool = False
    step: int | float | None = None
    choices: Annotated[tuple[Scalar, ...], Field(strict=False, min_length=1)] | None = None
    sets: dict[str, Annotated[tuple[_Point, ...], Field(strict=False, min_length=2)]] = {}

    @model_validator(mode="after")
    def _is_a_range_or_choices(self) -> Self:
        problem = self._problem()
        if problem is not None:
            raise PydanticCustomError("knob", "{problem}", {"problem": problem})
        return self

    def _problem(self) -> str | None:
        if self.choices is not None:
            bare = self.low is None and self.high is None and self.step is None and not self.log and not self.sets
            if not bare:
                return "choices stand alone, without low, high, log, step and sets"
            return None if len(set(self.choices)) == len(self.choices) else "one of the choices stands twice"
        if self.low is None or self.high is None:
            return "write low and high, or choices"
        if not self.low < self.high:
            return f"low must be below high, got {self.low:g} and {self.high:g}"
        if self.log and (self.low <= 0 or self.step is not None):
            return "a logarithmic scale starts above 0 and has no step"
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            return f"step must be above 0 and at most high − low, got {self.step:g}"
        for key, points in self.sets.items():
            places = [place for place, _ in points]
            if places != sorted(set(places)) or places[0] > self.low or places[-1] < self.high:
                return f"the points of {key} must rise and reach from {self.low:g} to {self.high:g}"
        return None


class ReferencePoint(Document):
    """Where the hypervolume of a front is measured from; fix it to compare fronts of different scenarios."""

    interactivity_tps: NonNegative = 0.0
    energy_j_per_token: Positive


class FrontSettings(Document):
    """How a front is measured. Without a reference point it follows from the exact front (docs/front.md)."""

    reference_point: ReferencePoint | None = None


class ReportSettings(Document):
    """What a report draws besides.

    ``draft_ms_per_token``: other speeds of the drafter; null: half and a fifth of its own time.
    """

    draft_ms_per_token: Annotated[tuple[Positive, ...], Field(strict=False, max_length=6)] | None = None


class Scenario(Document):
    """A question with everything that is needed to answer it. Holds its catalog.

    ``acceptance_range``: cases of acceptance that the plan holds for, see ``planner.tokens``.
    """

    schema_version: SchemaVersion
    name: Name
    description: str = ""
    catalog: Catalog
    target: Name
    proposers: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    workloads: Annotated[dict[Name, Workload], Field(min_length=1, max_length=64)]
    limits: FleetLimits = FleetLimits()
    servers: Servers = Servers()
    max_shares: Annotated[int, Field(ge=1, le=8)] = 1
    shared_pools: bool = False
    layouts: Annotated[tuple[Layout, ...], Field(strict=False, min_length=1)] = ("disaggregated",)
    engine: Engine = Engine()
    candidates: Candidates = Candidates()
    places: dict[Phase, Place] = {}
    precisions: dict[Name, Precision] = {}
    max_draft_length: Annotated[int, Field(ge=0, le=4096)] = 16
    objective: Objective = "throughput"
    counts: Counts = "integer"
    power_basis: PowerBasis = "provisioned"
    first_token: FirstToken = "after_prefill"
    max_utilization: PositiveFraction = 1.0
    host_factor: Annotated[float, Field(ge=1, le=10)] = 1.0
    pue: Annotated[float, Field(ge=1, le=10)] = 1.0
    transfers: Transfers | None = None
    lossy_acceptance: LossyAcceptance | None = None
    acceptance_range: Annotated[tuple[AcceptanceCase, ...], Field(strict=False, max_length=32)] = ()
    knobs: Annotated[dict[str, Knob], Field(max_length=32)] = {}
    front: FrontSettings = FrontSettings()
    report: ReportSettings = ReportSettings()
    assumptions: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        refuse(dangling_in_scenario(self))
        return self


def _file_fields() -> dict[str, Any]:
    """Fields of a scenario file: a catalog by name, and few required where it extends another scenario."""
    fields: dict[str, Any] = {
        name: (field.annotation, _optional(field) if name in ("target", "workloads") else field)
        for name, field in Scenario.model_fields.items()
        if name != "catalog"
    }
    fields["catalog"] = (
        str | list[str] | None,
        Field(None, description="A bundled catalog's name, a path, or a list."),
    )
    fields["extends"] = (str | None, Field(None, description="A scenario whose keys this one replaces."))
    fields["overrides"] = (dict[str, Any], Field({}, description="Dotted keys set after extending."))
    return fields


def _optional(field: FieldInfo) -> FieldInfo:
    return FieldInfo.merge_field_infos(field, default=None)


class _ScenarioFile(Document):
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": ["extends"]}, {"required": ["catalog", "target", "workloads"]}],
            "dependentRequired": {"overrides": ["extends"]},
        }
    )


ScenarioFile = create_model("ScenarioFile", __base__=_ScenarioFile, **_file_fields())
ScenarioFile.__doc__ = "A scenario as it stands in a file."
