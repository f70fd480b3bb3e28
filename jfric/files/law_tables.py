"""Tables of the coefficients of friction laws."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag, model_validator

from jfric.files.tables import Number, Table, exactly_one, is_table, one_or_pair


class DirectionalTable(Table):
    """A coefficient for each direction of sliding."""

    positive: Number
    negative: Number


#: One number, one for each sign of sliding, or one for each direction of a plane.
Coefficient = Annotated[
    Annotated[Number, Tag("@number")]
    | Annotated[DirectionalTable, Tag("@table")]
    | Annotated[list[Number], Field(min_length=2, max_length=2), Tag("@pair")],
    Discriminator(one_or_pair),
]


class DirectionalKnots(Table):
    """Values of a curve at its knots, for each direction of sliding."""

    positive: list[Number]
    negative: list[Number]


#: Values at the knots of a curve, for both directions of sliding or for each.
Knots = Annotated[
    Annotated[list[Number], Tag("@list")] | Annotated[DirectionalKnots, Tag("@table")],
    Discriminator(lambda v: "@table" if is_table(v) else "@list"),
]


class PositionTable(Table):
    """A factor on friction: of a period with harmonics, or through values at knots."""

    period: Number | None = None
    cosine: list[Number] | None = None
    sine: list[Number] | None = None
    x: list[Number] | None = None
    factor: list[Number] | None = None

    @model_validator(mode="after")
    def _one(self):
        exactly_one(self, ("period", "x"))
        return self
