"""The variables of a results table; the table in memory, and on disk as a Zarr store.

The chunks of the store are the tiles of the sweep. A tile is finished when all its chunks are on
disk, each with its checksum; the status is written last. Tiles that a killed run left unfinished
are found by reading, and computed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError, first_line
from jfric.optional import import_package, import_xarray
from jfric.results.status import Flag, Status
from jfric.sweeps.design import NUMBER_AXIS, Design, Grid
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
    """The table as arrays in memory: tiles that are ``unfinished`` are written one by one."""

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


#: Attributes from which a sweep is resumed.
SWEEP, LAYOUT = "jfric_sweep", "jfric_layout"
#: Axis of trajectories on no grid, in stores of earlier versions.
EARLIER_AXIS = "lane"
#: Values of an axis that are written at once.
AXIS_PIECE = 2**20
#: File that marks a store that is being created: the layout is written last.
BEGUN = "jfric-begun"


def read_layout(path: Path, identity: dict[str, Any]) -> Layout | None:
    """The layout of the sweep at ``path``; None if there is nothing yet.

    Raises :class:`ProblemError` if the folder holds anything but the sweep ``identity``.
    """
    zarr = _import_zarr()
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return None
    if not path.is_dir():
        raise ProblemError(f"store: {path} is a file, give the name of a new folder")
    try:
        attributes: dict[str, Any] = dict(zarr.open_group(str(path), mode="r").attrs)
    except Exception:
        attributes = {}
    if LAYOUT not in attributes:
        if (path / BEGUN).exists():  # a run was killed while it created the store
            shutil.rmtree(path)
            return None
        raise ProblemError(f"store: {path} exists and holds no sweep, choose another name")
    stored = attributes.get(SWEEP)
    stored = stored if isinstance(stored, dict) else {}
    different = [k for k in identity if _plain(identity[k]) != stored.get(k)]
    if different:
        raise ProblemError(
            f"store: {path} holds another sweep ({' and '.join(different)} "
            f"{'differs' if len(different) == 1 else 'differ'}), choose another name"
        )
    try:
        stored = attributes[LAYOUT]
        return Layout(**{**stored, "tile": tuple(stored["tile"])})
    except (TypeError, KeyError, ValueError):
        raise ProblemError(f"store: {path} is damaged, choose another name") from None


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


class ZarrTable:
    """Table as a Zarr store, which is created if it does not exist."""

    def __init__(self, path: Path, schema: Schema, layout: Layout, identity: dict[str, Any]):
        self._path, self._schema, self._layout = path, schema, layout
        zarr = _import_zarr()
        with _explained(path):
            if not (path / "zarr.json").exists() or (path / BEGUN).exists():
                _create(path, schema, layout, identity)
            for partial in path.rglob("*.partial"):
                partial.unlink(missing_ok=True)  # left by a killed run
            group = zarr.open_group(str(path), mode="r+")
        names = [v.name for v in (*schema.parameters, *schema.results)]
        # A chunk with only its fill value is written too, so that a missing one is detected.
        with zarr.config.set({"array.write_empty_chunks": True}):
            self._arrays: dict[str, Any] = {name: group[name] for name in names}

    def unfinished(self) -> list[Tile]:
        """Tiles that are missing or damaged."""
        every = tiles(self._schema.design.shape, self._layout.tile)
        return [tile for tile in every if not self._is_finished(tile)]

    def _is_finished(self, tile: Tile) -> bool:
        chunk = [r.start // n for r, n in zip(tile.region, self._layout.tile, strict=True)]
        for variable in reversed((*self._schema.parameters, *self._schema.results)):
            # A missing chunk reads as its fill value.
            inside = "/".join(map(str, [*chunk, *(0 for _ in variable.extra)]))
            if not (self._path / variable.name / "c" / inside).exists():
                return False
            try:
                values = self._arrays[variable.name][tile.region]
            except Exception:  # whatever the codecs say of a damaged chunk
                return False
            if variable.name == "status" and np.any(values == MISSING):
                return False
        return True

    def write(self, tile: Tile, results: Results) -> None:
        with _explained(self._path):
            for variable, values in tile_values(self._schema, tile, results):
                self._arrays[variable.name][tile.region] = values

    def dataset(self) -> xarray.Dataset:
        return open_sweep(self._path)


def open_sweep(path: str | os.PathLike[str]) -> xarray.Dataset:
    """The results of a sweep on disk, read when they are used.

    ``xarray.open_zarr(path)`` gives an equal dataset. Raises :class:`ProblemError` where there is
    no store. With two coefficients of friction::

        >>> import pathlib, tempfile
        >>> store, vary = pathlib.Path(tempfile.mkdtemp()) / "mu.zarr", {"friction.mu": [0.1, 0.2]}
        >>> _ = jfric.sweep(problem, vary, "max.u", store=store, progress=False)
        >>> jfric.open_sweep(store)["max.u"].values.round(6).tolist()
        [0.56, 0.52]
    """
    xarray = import_xarray()
    _import_zarr()
    path = Path(path)
    if not path.exists():
        raise ProblemError(f"{path}: no such folder")
    try:
        data = xarray.open_zarr(str(path), chunks=None, consolidated=False)
    except Exception as error:
        raise ProblemError(f"{path}: not a Zarr store ({first_line(error)})") from None
    if "status" not in data:
        raise ProblemError(f"{path}: not the results of a sweep, they have a variable 'status'")
    # Stores of earlier versions use other names for trajectories, and for the command of a point.
    if EARLIER_AXIS in data.dims:
        data = data.rename_dims({EARLIER_AXIS: NUMBER_AXIS})
    if "command" in data.attrs and "point_command" not in data.attrs:
        data.attrs["point_command"] = data.attrs.pop("command")
    return data


def _create(path: Path, schema: Schema, layout: Layout, identity: dict[str, Any]) -> None:
    zarr = _import_zarr()
    path.mkdir(parents=True, exist_ok=True)
    (path / BEGUN).touch()
    group = zarr.open_group(str(path), mode="a", zarr_format=3)
    for variable in (*schema.parameters, *schema.results):
        _create_array(group, variable, layout.tile + variable.extra)
    for variable, values in schema.coordinates.values():
        length = variable.shape[0]
        _create_array(group, variable, (min(length, AXIS_PIECE),))
        for first in range(0, length, AXIS_PIECE):
            last = min(first + AXIS_PIECE, length)
            group[variable.name][first:last] = values(np.arange(first, last))  # type: ignore[index]
    # xarray takes a variable outside the axes as a coordinate where this attribute names it.
    for variable in schema.results:
        names = " ".join(v.name for v in schema.parameters)
        if names:
            group[variable.name].attrs["coordinates"] = names
    group.attrs.update(schema.attributes)
    group.attrs[SWEEP] = _plain(identity)
    group.attrs[LAYOUT] = _plain(asdict(layout))
    with warnings.catch_warnings():
        # Not in version 3 of the format yet; readers that know it need not search the arrays.
        warnings.simplefilter("ignore", UserWarning)
        zarr.consolidate_metadata(str(path))
    (path / BEGUN).unlink()


def _create_array(group, variable: Variable, chunks: tuple[int, ...]) -> None:
    from zarr.codecs import Crc32cCodec, ZstdCodec

    group.create_array(
        variable.name,
        shape=variable.shape,
        chunks=tuple(min(c, n) for c, n in zip(chunks, variable.shape, strict=True)),
        dtype=variable.dtype,
        fill_value=variable.fill,
        dimension_names=variable.dims,
        attributes=variable.attributes,
        compressors=[ZstdCodec(level=1), Crc32cCodec()],
        overwrite=True,
    )


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Block that turns an error of the file system into one sentence on what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise ProblemError(
            f"store: cannot write to {path} ({reason}); tiles that are finished are kept, the same "
            "call goes on from there"
        ) from error


def _import_zarr() -> Any:
    return import_package("zarr", "store:", "sweep")
