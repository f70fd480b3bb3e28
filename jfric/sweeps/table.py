"""The variables of a results table, and the table in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.optional import import_xarray
from jfric.results.status import Flag, Status
from jfric.sweeps.design import Design, Grid
from jfric.sweeps.runner import Job, Results
from jfric.sweeps.tiles import Layout, Tile, tiles
from jfric.system.contacts import unilateral_contacts

if TYPE_CHECKING:
    import xarray

#: Variables in addition to the observables.
OUTCOME = ("steps", "flags", "status")
#: Status of trajectories that are not computed yet.
MISSING = -1


@dataclass(frozen=True)
class Variable:
    """An array of the table: axes, type and attributes. ``extra``: lengths of axes of its own."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Any
    fill: Any
    attributes: dict[str, Any]
    extra: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schema:
    """All arrays of a table: ``results`` are computed for each trajectory, ``parameters`` are
    columns of values along the trajectories, ``coordinates`` are axes with their values."""

    design: Design
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    coordinates: dict[str, tuple[Variable, Any]]
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def lane_bytes(self) -> int:
        """Bytes of the results of one trajectory."""
        return sum(
            np.dtype(v.dtype).itemsize * int(np.prod(v.extra, dtype=int)) for v in self.results
        )


@runtime_checkable
class Sink(Protocol):
    """Destination of results, tile by tile."""

    def unfinished(self) -> list[Tile]:
        """Tiles that remain to be computed."""
        ...

    def write(self, tile: Tile, results: Results) -> None:
        """Keep the results of a tile."""
        ...

    def dataset(self) -> xarray.Dataset:
        """The table."""
        ...


def make_schema(
    job: Job, design: Design, units: dict[str, str], attributes: dict[str, Any]
) -> Schema:
    """Arrays for the results of ``job`` over ``design``; ``units`` of the varied parameters."""
    shapes = job.shapes()
    results = []
    coordinates: dict[str, tuple[Variable, Any]] = {}
    for observable in job.observables:
        found = shapes.values[observable.name]
        wanted = tuple(len(values) for _, values, _ in observable.dims)
        if found.shape != wanted:
            raise ProblemError(
                f"observe: {observable.name!r} gives an array of shape {found.shape}, expected "
                + (f"{wanted} as its dims say" if wanted else "one number")
            )
        for axis, values, unit in observable.dims:
            _add_axis(coordinates, axis, np.asarray(values, float), unit, observable.name)
        results.append(
            Variable(
                observable.name,
                design.dims + tuple(axis for axis, _, _ in observable.dims),
                design.shape + wanted,
                np.dtype(found.dtype),
                np.nan,
                {"units": observable.unit, "long_name": _one_line(type(observable).__doc__)},
                wanted,
            )
        )
    results += _outcome(design)
    parameters = []
    for i, name in enumerate(design.names):
        about = {"units": units.get(name, ""), "long_name": f"parameter {name}"}
        if isinstance(design, Grid):
            shape: tuple[int, ...] = (design.shape[i],)
            variable = Variable(name, (name,), shape, np.dtype(float), np.nan, about)
            coordinates[name] = (variable, design.columns[i].values)
        else:
            dims, shape = design.dims, design.shape
            parameters.append(Variable(name, dims, shape, np.dtype(float), np.nan, about))
    return Schema(design, tuple(results), tuple(parameters), coordinates, attributes)


def _add_axis(coordinates, axis: str, values: np.ndarray, unit: str, name: str) -> None:
    if axis in coordinates:
        known = coordinates[axis][1](np.arange(coordinates[axis][0].shape[0]))
        if known.shape != values.shape or np.any(known != values):
            raise ProblemError(
                f"observe: {name!r} has other values along {axis!r} than an observable before it; "
                "give its axis another name"
            )
    variable = Variable(axis, (axis,), values.shape, values.dtype, np.nan, {"units": unit})
    coordinates[axis] = (variable, values.__getitem__)


def _outcome(design: Design) -> list[Variable]:
    dims, shape = design.dims, design.shape
    codes = [MISSING, *(int(s) for s in Status)]
    meanings = "not_computed " + " ".join(s.name.lower() for s in Status)
    about = {"long_name": "outcome of the trajectory", "flag_meanings": meanings}
    flags = {
        "long_name": "remarks on the trajectory",
        "flag_masks": [int(f) for f in Flag],
        "flag_meanings": " ".join(str(f.name).lower() for f in Flag),
    }
    steps = {"long_name": "passes of the solver's loop"}
    # The status is written last: a tile with a status is complete.
    return [
        Variable("steps", dims, shape, np.dtype(np.int32), 0, steps),
        Variable("flags", dims, shape, np.dtype(np.int32), 0, flags),
        Variable("status", dims, shape, np.dtype(np.int8), MISSING, about | {"flag_values": codes}),
    ]


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split()).rstrip(".")


class MemoryTable:
    """The table as arrays in memory."""

    def __init__(self, schema: Schema, layout: Layout):
        self._schema, self._layout = schema, layout
        self._arrays = {
            v.name: np.full(v.shape, v.fill, v.dtype) for v in (*schema.results, *schema.parameters)
        }

    def unfinished(self) -> list[Tile]:
        return tiles(self._schema.design.shape, self._layout.tile)

    def write(self, tile: Tile, results: Results) -> None:
        for variable, values in tile_values(self._schema, tile, results):
            self._arrays[variable.name][tile.region] = values

    def dataset(self) -> xarray.Dataset:
        xarray = import_xarray()
        schema = self._schema

        def array(v: Variable):
            return (v.dims, self._arrays[v.name], v.attributes)

        coordinates: dict[Any, Any] = {
            name: (v.dims, values(np.arange(v.shape[0])), v.attributes)
            for name, (v, values) in schema.coordinates.items()
        }
        coordinates |= {v.name: array(v) for v in schema.parameters}
        return xarray.Dataset({v.name: array(v) for v in schema.results}, coordinates).assign_attrs(
            schema.attributes
        )


def tile_values(schema: Schema, tile: Tile, results: Results):
    """Each array of the table with its values in a tile, the status last."""
    shape = tuple(r.stop - r.start for r in tile.region)
    if schema.parameters:
        columns = schema.design.values(tile.first, tile.last)
        for i, variable in enumerate(schema.parameters):
            yield variable, columns[:, i].reshape(shape)
    for variable in schema.results:
        values = results[variable.name].astype(variable.dtype, copy=False)
        yield variable, values.reshape(shape + variable.extra)


def state_size(problem) -> int:
    """Rough measure of the work of a pass."""
    contacts = len(problem.friction_rows()) + len(unilateral_contacts(problem))
    return max((len(problem.dofs) + contacts) // 2, 1)


def float_type():
    """The floating-point type in use."""
    return jnp.result_type(float)
