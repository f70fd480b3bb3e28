"""Tables of a file as pydantic models: measured data, what a fit may change, a controller."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from jfric.files.tables import Number, Table, is_table
from jfric.numerics import limits


class ColumnTable(Table):
    """A column of a measured file: its unit, which may carry a factor, what is added in SI, and the
    step of what was read."""

    column: str
    unit: str = ""
    offset: Number = 0.0
    resolution: Number | None = None


ColumnValue = Annotated[
    Annotated[str, Tag("@name")] | Annotated[ColumnTable, Tag("@table")],
    Discriminator(lambda v: "@table" if is_table(v) else "@name"),
]


class DataTable(Table):
    """Columns of measured files: time, measured quantities (y) and inputs (u).

    Without time rows are steady states.
    """

    time: ColumnValue | None = None
    y: dict[str, ColumnValue] = Field(default_factory=dict)
    u: dict[str, ColumnValue] = Field(default_factory=dict)
    records: str | None = None
    start: Number | None = None
    end: Number | None = None
    missing_inputs: Literal["refuse", "hold"] = "refuse"


class FreeTable(Table):
    """Settings of a parameter that a fit may change: bounds, and how its values are chosen."""

    between: tuple[Number, Number]
    init: Number | None = None
    scale: Literal["log", "linear"] | None = None
    prior: tuple[Number, Number] | None = None
    each: bool = False
    varies: bool = False


class FitTable(Table):
    """Parameters that `jfric fit` and `jfric compare` are free to change."""

    free: dict[str, FreeTable] = Field(default_factory=dict)


class ControllerTable(Table):
    """A sampled PID law with saturation, and a drive with a delay and a filter."""

    reads: str
    drives: str
    kp: Number
    ki: Number = 0.0
    kd: Number = 0.0
    limit: Number = float("inf")
    gain: Number = 1.0
    delay: Number = 0.0
    on: Literal["measurement", "error"] = "measurement"
    mean: Annotated[int, Field(ge=1, le=limits.SAMPLES)] = 1
    lag: Number = 0.0
