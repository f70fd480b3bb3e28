"""Tables of a file as pydantic models: what is the same for every system."""

from __future__ import annotations

import typing
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from jfric.files.config import DEFAULT_OUTPUTS
from jfric.files.solver_choice import SOLVERS
from jfric.numerics import limits
from jfric.solvers.smoothed.friction import CURVES

ATTACHMENTS = ("dof", "between", "direction")


def _check_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise PydanticCustomError("no_number", "expected a number or a quantity")
    if isinstance(value, int) and abs(value) > 1e300:
        raise PydanticCustomError("no_number", "expected a number or a quantity")
    return value


def is_table(value: Any) -> bool:
    """Whether a value is a table, read or not yet."""
    return isinstance(value, (dict, BaseModel))


#: A number in SI units, a quantity ("5 kN/m") or an expression ("$m*$g").
Number = Annotated[float | str, BeforeValidator(_check_number)]


class Table(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def given(self) -> dict[str, Any]:
        """The keys that the file gives."""
        return {k: getattr(self, k) for k in type(self).model_fields if k in self.model_fields_set}


def exactly_one(table: Table, names: typing.Iterable[str]) -> None:
    """Refuse a table that gives none of ``names``, or several."""
    names = tuple(names)
    found = [n for n in names if n in table.model_fields_set]
    if len(found) != 1:
        raise PydanticCustomError(
            "exactly_one",
            "found {found}, exactly one of {names} is needed",
            {"found": " and ".join(found) or "none", "names": ", ".join(names)},
        )


class Steps(Table):
    """Piecewise constant: the value before the first time comes first."""

    times: list[Number]
    values: list[Number]
    unit: str | None = None
    time_unit: str | None = None


class Linear(Steps):
    """Straight lines through (times, values), constant outside."""


class Samples(Table):
    """A file with two columns, time and value."""

    file: str
    hold: Literal["linear", "zero-order"] = "linear"
    unit: str | None = None
    time_unit: str | None = None


class Harmonic(Table):
    """amplitude * sin(omega t + phase), omega = 2 pi frequency."""

    amplitude: Number
    omega: Number | None = None
    frequency: Number | None = None
    phase: Number = 0.0

    @model_validator(mode="after")
    def _one(self):
        exactly_one(self, ("omega", "frequency"))
        return self


class UntilTable(Table):
    """A function up to the time end, a value after it."""

    function: Function
    end: Number
    after: Number = 0.0


class ClippedTable(Table):
    """max(0, function); a harmonic needs end [s] or a number of periods."""

    function: Function
    end: Number | None = None
    periods: Annotated[int, Field(gt=0)] | None = None


class RampTable(Table):
    """value + rate t, without an end."""

    rate: Number
    value: Number = 0.0


class FunctionTable(Table):
    """A function of time: exactly one of the keys."""

    steps: Steps | None = None
    linear: Linear | None = None
    ramp: RampTable | None = None
    table: Samples | None = None
    harmonic: Harmonic | None = None
    sum: list[Function] | None = None
    until: UntilTable | None = None
    clipped: ClippedTable | None = None

    @model_validator(mode="after")
    def _one(self):
        exactly_one(self, type(self).model_fields)
        return self


Function = Annotated[
    Annotated[Number, Tag("@number")] | Annotated[FunctionTable, Tag("@table")],
    Discriminator(lambda v: "@table" if is_table(v) else "@number"),
]


def one_or_pair(value: Any) -> str:
    """The tag of one number, a table, or a pair."""
    return "@pair" if isinstance(value, list) else "@table" if is_table(value) else "@number"


#: A function of time, or one for each direction of a plane and the spin.
Functions = Annotated[
    Annotated[Number, Tag("@number")]
    | Annotated[FunctionTable, Tag("@table")]
    | Annotated[list[Function], Field(min_length=2, max_length=3), Tag("@pair")],
    Discriminator(one_or_pair),
]

Pair = Annotated[list[str], Field(min_length=2, max_length=2)]

#: A number of parts.
Count = Annotated[int, Field(ge=1, le=limits.PARTS, strict=True)]


Coordinates = Annotated[list[Number], Field(min_length=2, max_length=2)]

#: A line: the name of a body, or two points.
Reference = Annotated[
    Annotated[str, Tag("@name")] | Annotated[Pair, Tag("@pair")],
    Discriminator(lambda v: "@pair" if isinstance(v, list) else "@name"),
]


class Along(Table):
    """One degree of freedom or base."""

    dof: str


class Between(Table):
    """From the first to the second; "ground" stands still."""

    between: Pair


def _direction_form(value: Any) -> str:
    if isinstance(value, list):
        return "@pair"
    if isinstance(value, dict):
        return "@along" if "dof" in value else "@between" if "between" in value else "@vector"
    return "@name"


DirectionValue = Annotated[
    Annotated[str, Tag("@name")]
    | Annotated[Pair, Tag("@pair")]
    | Annotated[Along, Tag("@along")]
    | Annotated[Between, Tag("@between")]
    | Annotated[dict[str, Number], Tag("@vector")],
    Discriminator(_direction_form),
]


#: The name of an element, or names with factors.
Elements = Annotated[
    Annotated[str, Tag("@name")] | Annotated[dict[str, Number], Tag("@vector")],
    Discriminator(lambda v: "@vector" if isinstance(v, dict) else "@name"),
]


#: The two directions of a plane.
Plane = Annotated[list[DirectionValue], Field(min_length=2, max_length=2)]


class Element(Table):
    """An element of a section."""

    #: Whether it acts along a direction at all costs.
    must_be_attached: typing.ClassVar[bool] = True

    @model_validator(mode="after")
    def _attached(self):
        others = {"sliding", "plane"} & self.model_fields_set
        free = not self.must_be_attached and not set(ATTACHMENTS) & self.model_fields_set
        if "dof" in type(self).model_fields and not others and not free:
            exactly_one(self, ATTACHMENTS)
        return self


class FreeElement(Element):
    """An element that may act along no direction."""

    must_be_attached: typing.ClassVar[bool] = False


Dofs = Annotated[
    Annotated[list[str], Tag("@list")]
    | Annotated[dict[str, Literal["translation", "rotation"]], Tag("@kinds")],
    Discriminator(lambda v: "@kinds" if isinstance(v, dict) else "@list"),
]


class Time(Table):
    """Simulated time and outputs."""

    end: Number
    start: Number = 0.0
    outputs: Annotated[
        Annotated[int, Field(ge=2, le=limits.OUTPUTS, strict=True), Tag("@count")]
        | Annotated[list[Number], Tag("@times")],
        Discriminator(lambda v: "@times" if isinstance(v, list) else "@count"),
    ] = DEFAULT_OUTPUTS


class Initial(Table):
    """Initial position and velocity of a degree of freedom."""

    q: Number = 0.0
    v: Number = 0.0


Matrix = Annotated[
    Annotated[str, Tag("@file")] | Annotated[list[list[Number]], Tag("@rows")],
    Discriminator(lambda v: "@file" if isinstance(v, str) else "@rows"),
]


class MatricesTable(Table):
    """Full matrices: rows, or the path of a file (.npy, .mtx)."""

    M: Matrix | None = None
    C: Matrix | None = None
    K: Matrix | None = None


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SolverTable(Table):
    """Settings of the solver; what is left out takes the solver's defaults."""

    name: Literal[SOLVERS] = "event-driven"  # type: ignore[valid-type]
    flow: Literal["auto", "exact", "runge-kutta"] = "auto"
    rtol: Annotated[float, Field(gt=0, lt=1)] | None = None
    max_steps: Annotated[int, Field(gt=0, le=limits.STEPS)] | None = None
    max_events: Annotated[int, Field(gt=0, le=limits.EVENTS)] | None = None
    increments: Annotated[int, Field(gt=0, le=limits.INCREMENTS)] | None = None
    dt: Number | None = None
    theta: Annotated[float, Field(ge=0, le=1)] | None = None
    sliding_weight: Annotated[float, Field(gt=0, le=1)] | None = None
    law: Literal[CURVES] | None = None  # type: ignore[valid-type]
    width: Positive | None = None
    contact_stiffness: Positive | None = None
    method: str | None = None
    atol: Positive | None = None
    dt0: Positive | None = None
    accumulation: Annotated[float, Field(gt=0, lt=1)] | None = None
    energy_gain: str | None = None
    kernel: str | None = None
    adjoint: str | None = None


class StaticsTable(Table):
    """The parameter that a path of equilibria or a limit load follows, and its interval."""

    vary: str
    start: Number
    stop: Number
    seeds: Annotated[int, Field(gt=0, le=limits.SEEDS)] | list[Number] | None = None


class PeriodicTable(Table):
    """The periodic motion that is looked for, and the parameter over which it is followed."""

    period: Number | None = None
    state: list[Number] | None = None
    transient: Number | None = None
    section: str | None = None
    cycles: Annotated[int, Field(gt=0, le=limits.STEPS)] | None = None
    segments: Annotated[int, Field(gt=0, le=256)] | None = None
    harmonics: Annotated[int, Field(gt=0, le=500)] | None = None
    vary: str | None = None
    start: Number | None = None
    stop: Number | None = None


class ResponseTable(Table):
    """The steady states over the frequency of a load, and the quantity whose peak counts."""

    load: str
    start: Number
    stop: Number
    quantity: str | None = None


class CheckTable(Table):
    """A number that a correct solution has."""

    quantity: str
    expected: Number
    tolerance: Tolerance | None = None
    relative: Tolerance | None = None
    source: str = ""

    @model_validator(mode="after")
    def _one(self):
        exactly_one(self, ("tolerance", "relative"))
        return self
