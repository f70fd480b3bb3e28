"""The table on disk: a Zarr store whose chunks are the tiles of the sweep.

A tile is finished when all its chunks are on disk, each with its checksum; the status is written
last. Tiles that a killed run left unfinished are found by reading, and computed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jfric.errors import ProblemError, first_line
from jfric.optional import import_package, import_xarray
from jfric.sweeps.design import NUMBER_AXIS
from jfric.sweeps.runner import Results
from jfric.sweeps.table import MISSING, Schema, Variable, tile_values
from jfric.sweeps.tiles import Layout, Tile, tiles

if TYPE_CHECKING:
    import xarray

#: Attributes from which a sweep is resumed.
SWEEP, LAYOUT = "jfric_sweep", "jfric_layout"
#: Axis of trajectories on no grid, in stores of earlier versions.
EARLIER_AXIS = "lane"
#: Values of an axis that are written at once.
AXIS_PIECE = 2**20


class StoreError(ProblemError):
    """Error where the store cannot be written or read."""


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
        if _only_a_start(path):
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
        return Layout.from_dict(attributes[LAYOUT])
    except (TypeError, KeyError, ValueError):
        raise ProblemError(f"store: {path} is damaged, choose another name") from None


def _only_a_start(path: Path) -> bool:
    """Whether a run was killed while it created the store: the layout is written last."""
    return (path / BEGUN).exists()


#: File that marks a store that is being created.
BEGUN = "jfric-begun"


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


class ZarrTable:
    """Table as a Zarr store, which is created if it does not exist."""

    def __init__(self, path: Path, schema: Schema, layout: Layout, identity: dict[str, Any]):
        self._path, self._schema, self._layout = path, schema, layout
        zarr = _import_zarr()
        with _explained(path):
            if not (path / "zarr.json").exists() or _only_a_start(path):
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
    group.attrs[LAYOUT] = layout.as_dict()
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
        raise StoreError(
            f"store: cannot write to {path} ({reason}); tiles that are finished are kept, the same "
            "call goes on from there"
        ) from error


def _import_zarr() -> Any:
    return import_package("zarr", "store:", "sweep")
