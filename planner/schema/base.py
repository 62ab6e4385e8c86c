"""What every document model shares: strictness, immutability, finite numbers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import DictSchema

# Bounds keep arithmetic far from overflow; no device, budget or model comes near them.
NonNegative = Annotated[float, Field(ge=0, le=1e18)]
Positive = Annotated[float, Field(ge=1e-9, le=1e18)]
Fraction = Annotated[float, Field(ge=0, le=1)]
PositiveFraction = Annotated[float, Field(gt=0, le=1)]
Tokens = Annotated[int, Field(ge=0, le=100_000_000)]
PositiveTokens = Annotated[int, Field(ge=1, le=100_000_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]


def _is_whole(value: Any) -> Any:  # noqa: ANN401
    if type(value) is not int:  # a Literal takes True and 1.0 for 1
        raise PydanticCustomError("int_type", "a whole number is expected")
    return value


SchemaVersion = Annotated[Literal[1], BeforeValidator(_is_whole)]


class ClosedSchema(GenerateJsonSchema):
    """Schemas in which a mapping by name has no entries under other names."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        """Refuse keys that no pattern matches."""
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made


class Document(BaseModel):
    """A strict and frozen record: unknown keys, NaN, infinity and silent conversions are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        json_schema_serialization_defaults_required=True,
    )

    def replace(self, **changes: Any) -> Self:  # noqa: ANN401
        """Return a copy with changed fields, validated like a document read from a file.

        Raises
        ------
        pydantic.ValidationError
            If the changed document is not valid. (``model_copy(update=...)`` would let it pass.)
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **changes})
