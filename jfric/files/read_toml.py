"""Reading of TOML files: ``load`` gives the problem, ``load_config`` the whole content."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jax.core import eval_context

from jfric.errors import ProblemError, quoted, within
from jfric.files import system_tables
from jfric.files.checks import checks
from jfric.files.codec import Place
from jfric.files.config import Config
from jfric.files.measured_tables import measured
from jfric.files.reading import ReadError, read_text
from jfric.files.schema import shape_error
from jfric.files.settings_tables import (
    BASINS,
    LYAPUNOV,
    RESPONSE,
    SOLVER,
    STATICS,
    fit_settings,
    optimise_settings,
    periodic,
)
from jfric.files.table_codecs import Record
from jfric.system.elements import register_installed
from jfric.system.problem import Problem

#: Largest nesting of tables and lists.
_DEEPEST = 40


def load(path: str | os.PathLike[str]) -> Problem:
    """The problem that the TOML file ``path`` describes.

    Quantities may carry units (``"5 kN/m"``); bare numbers are SI. Raises
    :class:`jfric.ProblemError` with one sentence that names the file and the field. The text of
    :func:`jfric.to_toml` gives the same problem::

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "block.toml"
        >>> _ = path.write_text(jfric.to_toml(problem))
        >>> jfric.load(path).dofs
        {'u': 'translation'}
    """
    return load_config(path).problem


def load_config(path: str | os.PathLike[str]) -> Config:
    """Problem, outputs, solver settings and checks of the TOML file ``path``."""
    with within(f"{os.fspath(path)}: ", ReadError):
        text = read_text(Path(path))
    return loads(text, path)


def loads(text: str, path: str | os.PathLike[str] = "<text>") -> Config:
    """Configuration like that of :func:`load_config`, from TOML text; ``path`` is named in errors,
    and the paths of files in the text are relative to its folder."""
    # Numbers, not tracers, also inside a function that JAX traces.
    with within(f"{os.fspath(path)}: "), eval_context():
        return _config(text, path)


def _config(text: str, path: str | os.PathLike[str]) -> Config:
    raw = _parsed(text)
    wrong = shape_error(raw)
    # An unknown name may belong to another package.
    if wrong is not None and register_installed():
        wrong = shape_error(raw)
    if wrong is not None:
        raise wrong
    problem = system_tables.problem(raw, Path(path).parent)

    words = {key: raw[key] for key in ("title", "source", "description") if key in raw}
    found = {name: read(raw[name], problem) for name, read in _READERS.items() if name in raw}
    found["checks"] = checks(raw.get("check", []), problem)
    outputs = system_tables.outputs(raw["time"], problem)
    return Config(problem=problem, outputs=outputs, path=os.fspath(path), **words, **found)


def _as_written(name: str, table: Record) -> Callable[[Any, Problem], Any]:
    return lambda raw, _: table.read(raw, Place(name))


#: Readers of the tables that are fields of :class:`jfric.files.config.Config`, by their names.
_READERS: dict[str, Callable[[Any, Problem], Any]] = {
    **{"solver": _as_written("solver", SOLVER), "response": _as_written("response", RESPONSE)},
    **{"lyapunov": _as_written("lyapunov", LYAPUNOV), "basins": _as_written("basins", BASINS)},
    **{"statics": lambda raw, problem: STATICS.of(raw, problem, "statics"), "periodic": periodic},
    **{"data": measured, "fit": fit_settings, "optimise": optimise_settings},
}


def _parsed(text: str) -> dict[str, Any]:
    """The tables of a TOML text, with a nesting that recursion can follow."""
    try:
        raw = tomllib.loads(text)
    except RecursionError:
        raise ProblemError(f"tables and lists are nested too deep, {_DEEPEST} at most") from None
    except ValueError as error:  # of the syntax, or a number with thousands of digits
        # The parser names tables as tuples: ('friction', 'pad').
        message = re.sub(
            r"\((?:'[^']*',? ?)+\)",
            lambda m: "[" + ".".join(re.findall(r"'([^']*)'", m.group())) + "]",
            str(error),
        )
        at = re.search(r"at line (\d+)", message)
        line = text.splitlines()[int(at[1]) - 1].strip() if at else ""
        comma = " (a number has a point, not a comma)" * bool(re.search(r"=\s*[-+]?\d+,\d", line))
        said = f": {quoted(line)}{comma}" if line else ""
        raise ProblemError(f"not valid TOML: {message[:1].lower()}{message[1:]}{said}") from None
    level: list[Any] = [raw]
    for _ in range(_DEEPEST + 1):
        tables = [x.values() if isinstance(x, dict) else x for x in level]
        level = [x for table in tables for x in table if isinstance(x, dict | list)]
        if not level:
            return raw
    raise ProblemError(f"tables and lists are nested too deep, {_DEEPEST} at most")
