"""Programs that are kept between processes: later processes run them without tracing them again."""

from __future__ import annotations

import dataclasses
import enum
import functools
import gc
import hashlib
import io
import itertools
import os
import pickle
import sys
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox._module._flatten import MISSING
from jax.export import Exported, deserialize, export

from jfric.numerics.compilation import Options, compilation_folder, no_options
from jfric.numerics.tracing import is_traced, remarks_of_tracing, traced_for, warn_once

#: Bytes of all kept programs; beyond this size, the least recently used ones are deleted.
MOST = 1_000_000_000

#: All kept functions of this process.
_every: weakref.WeakSet[Kept] = weakref.WeakSet()


class NotKeptError(Exception):
    """Error for an argument that another process cannot recognise as the same."""


class _Slot(int):
    """Place of an array in the result."""


class _Program(NamedTuple):
    """Stored form of a program. ``traced`` gives the arrays of ``result``, in which slots stand for
    them; None where the program cannot be stored because it calls Python, as programs of diffrax
    do. ``remarks``: warnings of its tracing."""

    traced: Exported | None
    result: Any
    remarks: tuple[str, ...]


class Kept:
    """A compiled function: each structure of its arguments is traced once, by any process.

    Arrays are inputs of the program, everything else is a part of it, as with
    ``equinox.filter_jit``. A stored program is identified by everything on which it depends:
    structure, other arguments, settings of JAX, versions and the package's sources. Programs are
    stored in the folder of JAX's compilation cache, if one is set, where JAX also keeps the
    compiled code. Programs with functions from outside the package are not kept, as a name does not
    identify what such a function does; nor are those that call Python. ``options`` gives those of
    the compiler, see :mod:`jfric.numerics.compilation`.
    """

    def __init__(
        self, function: Callable[..., Any], *, options: Callable[[], Options] = no_options
    ):
        self.function, self.options = function, options
        self._programs: dict[Any, Callable[[list[Any]], Any] | None] = {}
        self._locks: dict[Any, threading.Lock] = {}
        _every.add(self)

    @functools.cached_property
    def plain(self) -> Any:
        """The function without kept programs."""
        return eqx.filter_jit(self.function, **self._options)  # pyright: ignore

    @functools.cached_property
    def inside(self) -> Any:
        """The function as a part of another program, which alone may have compiler options."""
        return eqx.filter_jit(self.function)

    @property
    def _options(self) -> dict[str, Any]:
        options = self.options()
        return {"compiler_options": dict(options)} if options else {}

    def __call__(self, *arguments: Any) -> Any:
        if is_traced(arguments):
            return self.inside(*arguments)
        call = self._kept(arguments)
        return self.plain(*arguments) if call is None else call()

    def ready(self, *arguments: Any) -> Callable[[], Any]:
        """Call with these arguments, with its program compiled or read."""
        call = self._kept(arguments)
        if call is not None:
            return call
        return functools.partial(self.plain.lower(*arguments).compile(), *arguments)

    def _kept(self, arguments: tuple) -> Callable[[], Any] | None:
        """Call by a kept program; None where there cannot be one."""
        folder = compilation_folder()
        if folder is None or _is_debugged():
            return None
        leaves, tree = jax.tree.flatten(arguments)
        arrays = [jnp.asarray(x) for x in leaves if _is_array(x)]
        others = tuple(x for x in leaves if not _is_array(x))
        key = (tree, others, tuple((jax.typeof(x), x.sharding) for x in arrays), settings())
        with self._locks.setdefault(key, threading.Lock()):
            if key not in self._programs:
                self._programs[key] = self._program(folder, arguments, arrays)
        program = self._programs[key]
        return None if program is None else functools.partial(program, arrays)

    def _program(self, folder: Path, arguments: tuple, arrays: list[Any]) -> Any:
        """Program, read or made, and compiled; None where it cannot be kept."""
        try:
            options = tuple(self.options().items())
            parts = (self.function, options, settings(), surroundings(), arguments)
            path = folder / "programs" / f"{fingerprint(parts)}.program"
        except NotKeptError:
            return None
        program = _read(path)
        if program is None:
            call, program = self._made(arguments, arrays)
            _write(path, program)
        if program.traced is not None:
            call = program.traced.call
        for text in program.remarks:
            warn_once(text)
        compiled = jax.jit(call, **self._options).lower(*arrays).compile()
        result = program.result

        def run(arrays: list[Any]) -> Any:
            found = compiled(*arrays)
            return jax.tree.map(lambda x: found[x] if isinstance(x, _Slot) else x, result)

        return run

    def _made(self, arguments: tuple, arrays: list[Any]) -> tuple[Callable[..., Any], _Program]:
        """The function of the arrays only, and its stored form."""
        leaves, tree = jax.tree.flatten(arguments)
        results = []

        def flat(*arrays):
            given = iter(arrays)
            all_leaves = [next(given) if _is_array(x) else x for x in leaves]
            found = self.function(*jax.tree.unflatten(tree, all_leaves))
            values = [x for x in jax.tree.leaves(found) if _is_array(x)]
            slots = map(_Slot, itertools.count())
            results.append(jax.tree.map(lambda x: next(slots) if _is_array(x) else x, found))
            return values

        traced = None
        with remarks_of_tracing() as remarks:
            try:
                traced = export(jax.jit(flat))(*arrays)
            except NotImplementedError:
                pass
            except ValueError as error:
                # For some libraries JAX does not guarantee equal calls by another version.
                if "no compatibility guarantees" not in str(error):
                    raise
        return flat, _Program(traced, results[-1], tuple(remarks))


def forget_programs() -> None:
    """Free the memory of all programs of this process: the next call reads or makes its own again.

    No other thread may trace at the same time.
    """
    for kept in _every:
        for name in ("plain", "inside"):
            kept.__dict__.pop(name, None)
        kept._programs.clear()
        kept._locks.clear()
    jax.clear_caches()
    gc.collect()


# Dependencies of a program.

#: Settings of JAX that change the traced program.
SETTINGS = (
    "enable_x64",
    "default_device",
    "default_matmul_precision",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "threefry_partitionable",
)


def settings() -> tuple:
    """Settings of JAX in this thread, and the platform for which programs are traced."""
    return *(str(getattr(jax.config, f"jax_{x}")) for x in SETTINGS), traced_for()


@functools.cache
def surroundings() -> tuple:
    """Versions, the package's sources, the device and the compiler's flags."""
    from jfric import __file__ as package

    sources = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(package).parent.rglob("*.py")):
        sources.update(path.read_bytes())
    device = jax.devices()[0]
    return (
        tuple(version(x) for x in _PACKAGES),
        sys.version,
        sources.hexdigest(),
        (device.platform, device.device_kind, device.client.platform_version, jax.device_count()),
        os.environ.get("XLA_FLAGS", ""),
    )


def fingerprint(value: Any) -> str:
    """Name that two values share if programs may treat them alike; the numbers in arrays do not
    count. Raises :class:`NotKeptError` for values without such a name."""
    found = hashlib.blake2b(digest_size=20)
    _describe(value, found.update)
    return found.hexdigest()


def _describe(x: Any, put: Callable[[bytes], None]) -> None:
    # A user's own class, such as a law, may have other methods in the next process.
    put(f"<{_name(type(x))}".encode())
    if isinstance(x, jax.Array):
        put(f"{jax.typeof(x)}{x.sharding}".encode())
    elif isinstance(x, (np.ndarray, np.generic)):
        put(f"{x.dtype}{x.shape}".encode())
    elif isinstance(x, enum.Enum):
        put(str(x.name).encode())
    elif isinstance(x, bytes):
        put(x)
    elif x is None or isinstance(x, (bool, int, float, complex, str, np.dtype)):
        put(repr(x).encode())
    elif isinstance(x, jax.Device):
        put(f"{x.platform}{x.device_kind}{x.id}".encode())
    elif isinstance(x, Mapping):
        for item in x.items():
            _describe(item, put)
    elif isinstance(x, (tuple, list)):
        for item in x:
            _describe(item, put)
    elif isinstance(x, functools.partial):
        _describe((x.func, x.args, x.keywords), put)
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        for field in dataclasses.fields(x):
            put(field.name.encode())
            _describe(getattr(x, field.name, None), put)
    elif isinstance(x, type) or callable(x):
        put(_name(x).encode())
    else:
        raise NotKeptError(f"{type(x)} is not known")
    put(b">")


#: Packages whose versions or sources are part of :func:`surroundings`.
_PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "numpy")
_KNOWN = {"jfric", "builtins", "collections", "functools", *_PACKAGES}


def _name(x: Any) -> str:
    """Name of a class or function whose source is part of :func:`surroundings`."""
    module, name = getattr(x, "__module__", None) or "", getattr(x, "__qualname__", "<locals>")
    if module.split(".")[0] not in _KNOWN:
        raise NotKeptError(f"{module}.{name} may change")
    if "<" in name:
        raise NotKeptError(f"{module}.{name} depends on more than its name")
    return f"{module}.{name}"


def _is_debugged() -> bool:
    """Whether JAX is configured to look inside programs."""
    return any(getattr(jax.config, f"jax_{x}") for x in ("debug_nans", "debug_infs", "disable_jit"))


def _is_array(x: Any) -> bool:
    return isinstance(x, (jax.Array, np.ndarray, np.generic))


# Files.


class _Pickler(pickle.Pickler):
    """Pickler that keeps the one object by which Equinox marks fields without a value."""

    def persistent_id(self, obj: Any) -> str | None:
        return "missing" if obj is MISSING else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: str) -> Any:
        return MISSING


def _write(path: Path, program: _Program) -> None:
    """Store a program; one that cannot be stored is traced again by the next process."""
    if program.traced is None:
        return
    buffer = io.BytesIO()
    try:
        traced = bytes(program.traced.serialize())
        _Pickler(buffer).dump((program.result, program.remarks, traced))
        path.parent.mkdir(parents=True, exist_ok=True)
        _make_room(path.parent)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(zlib.compress(buffer.getvalue(), 1))
        os.replace(file.name, path)
    except (OSError, NotImplementedError, TypeError, AttributeError, pickle.PicklingError):
        return


def _make_room(folder: Path) -> None:
    """Delete the least recently used programs beyond :data:`MOST` bytes."""
    files = sorted(((p.stat(), p) for p in folder.iterdir()), key=lambda x: -x[0].st_mtime)
    size = 0
    for stat, path in files:
        size += stat.st_size
        if size > MOST:
            path.unlink(missing_ok=True)


def _read(path: Path) -> _Program | None:
    """A stored program; None where there is none that can be read."""
    try:
        packed = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    try:
        result, remarks, traced = _Unpickler(io.BytesIO(zlib.decompress(packed))).load()
        return _Program(deserialize(bytearray(traced)), result, remarks)
    except Exception:  # cut off, or from another version: it is made again
        return None
