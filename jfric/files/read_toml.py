"""Reading of TOML files: ``load`` gives the problem, ``load_config`` everything in the file."""

from __future__ import annotations

import itertools
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from jax.core import eval_context

from jfric.errors import ProblemError
from jfric.files.checks import check
from jfric.files.config import Config, outside, require_open_loop, time_span
from jfric.files.function_tables import number, numbers
from jfric.files.periodic_table import periodic, response
from jfric.files.reading import ReadError, read_text
from jfric.files.statics_table import statics
from jfric.results.formulas import require_formulas
from jfric.system.body import dofs_of
from jfric.system.elements import SECTIONS
from jfric.system.expression import Expression
from jfric.system.functions_of_state import SECTIONS_WITH_FUNCTIONS, require_functions
from jfric.system.massless import eliminate_massless
from jfric.system.problem import Problem, TimeSpan
from jfric.system.registration import register_installed
from jfric.system.units import DIMENSIONS, dimensionality, has_unit

#: Tables and lists inside each other.
_DEEPEST = 40


def load(path: str | os.PathLike[str]) -> Problem:
    """The problem that the TOML file ``path`` describes.

    Quantities may carry units (``"5 kN/m"``); bare numbers are SI. Raises
    :class:`jfric.ProblemError` with one sentence that names the file and the field; also for a
    file with a table ``[controller]``, whose loop a problem does not hold.
    What :func:`jfric.to_toml` writes is read again::

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "block.toml"
        >>> _ = path.write_text(jfric.to_toml(problem))
        >>> jfric.load(path).dofs
        {'u': 'translation'}
    """
    config = load_config(path)
    require_open_loop(config)
    return config.problem


def load_config(path: str | os.PathLike[str]) -> Config:
    """Problem, outputs, solver settings and checks of the TOML file ``path``."""
    try:
        text = read_text(Path(path))
    except ReadError as error:
        raise ProblemError(f"{os.fspath(path)}: {error}") from None
    return loads(text, path)


def loads(text: str, path: str | os.PathLike[str] = "<text>") -> Config:
    """Like :func:`load_config` for TOML text; ``path`` is named in errors, and the paths of files
    in the text are relative to its folder."""
    try:
        # Numbers, not tracers, also inside a function that JAX traces.
        with eval_context():
            return _config(text, path)
    except ProblemError as error:
        raise ProblemError(f"{os.fspath(path)}: {error}") from None


def _config(text: str, path: str | os.PathLike[str]) -> Config:
    # Slow imports, only needed where files are read.
    from pydantic import ValidationError

    from jfric.files.fit_table import fit_settings
    from jfric.files.measured_tables import controller, measured
    from jfric.files.schema import file_model
    from jfric.files.shape_errors import shape_error

    raw = _parsed(text)
    try:
        table: Any = file_model().model_validate(raw)
    except ValidationError as error:
        # What is not known may be of another package.
        if not register_installed():
            raise shape_error(error) from None
        try:
            table = file_model().model_validate(raw)
        except ValidationError as error:
            raise shape_error(error) from None
    # In the order of the file: names of parameters and of contacts follow it.
    sections = [name for name in raw if name in SECTIONS]
    problem = _problem(table, sections, Path(path).parent)
    return Config(
        problem=problem,
        title=table.title,
        source=table.source,
        description=table.description,
        outputs=_outputs(table.time.outputs, problem),
        solver=_solver(table.solver.given()),
        statics=statics(table.statics, problem),
        periodic=periodic(table.periodic, problem),
        response=response(table.response),
        checks=tuple(check(c, f"check[{i + 1}]", problem) for i, c in enumerate(table.check)),
        path=os.fspath(path),
        data=None if table.data is None else measured(table.data, problem),
        fit=fit_settings(table.fit, problem),
        controller=None if table.controller is None else controller(table.controller, problem),
    )


def _parsed(text: str) -> dict[str, Any]:
    """The tables of a TOML text, nested no deeper than recursion may follow."""
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
        raise ProblemError(f"not valid TOML: {message[:1].lower()}{message[1:]}") from None
    level: list[Any] = [raw]
    for _ in range(_DEEPEST + 1):
        tables = [x.values() if isinstance(x, dict) else x for x in level]
        level = [x for table in tables for x in table if isinstance(x, dict | list)]
        if not level:
            return raw
    raise ProblemError(f"tables and lists are nested too deep, {_DEEPEST} at most")


def _solver(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("dt") is None:
        return given
    dt = number(given["dt"], "solver.dt", DIMENSIONS["time"])
    if isinstance(dt, Expression):
        raise ProblemError(f"solver.dt: found the expression {given['dt']!r}, expected a time")
    return given | {"dt": dt}


def _problem(table: Any, sections: list[str], folder: Path) -> Problem:
    from jfric.files import build
    from jfric.files.tables import Element

    dofs = table.dofs
    if isinstance(dofs, list):
        double = next((d for i, d in enumerate(dofs) if d in dofs[:i]), None)
        if double is not None:
            raise ProblemError(f"dofs: found {double!r} twice, names must differ")
        dofs = dict.fromkeys(dofs, "translation")
    if not dofs and not table.body:
        if dofs is None:
            raise ProblemError('dofs: missing; give dofs = ["u"], or a [body]')
        raise ProblemError("dofs: found none, at least one degree of freedom is needed")
    parameters = {}
    for name, value in table.parameters.items():
        parameters[name] = number(value, f"parameters.{name}", None)
        if isinstance(parameters[name], Expression):
            raise ProblemError(
                f"parameters.{name}: found the expression {value!r}, parameters "
                "hold numbers and quantities only"
            )
    groups = {section: getattr(table, section) for section in sections}
    flat = {section for section, group in groups.items() if isinstance(group, Element)}
    groups = {k: {k: group} if k in flat else group for k, group in groups.items()}
    bases = tuple(groups.get("base", ()))
    dofs = dict(dofs or {})
    # What is declared as well is judged with the problem.
    dofs |= {k: v for k, v in dofs_of(groups.get("body", {})).items() if k not in dofs}
    lengths = [k for k, v in table.parameters.items() if has_unit(v)]
    elements = {
        section: {
            name: build.element(
                section,
                section if section in flat else f"{section}.{name}",
                item,
                dofs,
                bases,
                folder,
                lengths,
            )
            for name, item in group.items()
        }
        for section, group in groups.items()
    }
    time = {
        key: number(value, f"time.{key}", DIMENSIONS["time"])
        for key, value in table.time.given().items()
        if key != "outputs"
    }
    problem = Problem(
        dofs,
        elements,
        initial=build.initial(table.initial, dofs),
        time=TimeSpan(time["end"], time.get("start", 0.0)),
        parameters=parameters,
        matrices=build.matrices(table.matrices, dofs, folder),
    )
    require_formulas(problem)
    with_units = {k: v for k, v in table.parameters.items() if isinstance(v, str)}
    if with_units and any(s in elements for s in SECTIONS_WITH_FUNCTIONS):
        known = {k: dimensionality(v) for k, v in with_units.items()}
        require_functions(problem, {k: v for k, v in known.items() if v is not None})
    return _without_massless(problem, table.massless)


def _without_massless(problem: Problem, dofs: list[str]) -> Problem:
    if not dofs:
        return problem
    try:
        return eliminate_massless(problem, *dofs).problem
    except ProblemError as error:
        raise ProblemError(re.sub("^eliminate_massless:", "massless:", str(error))) from None


def _outputs(value: int | list, problem: Problem) -> int | tuple[float, ...]:
    if isinstance(value, int):
        return value
    times = numbers(value, "time.outputs", DIMENSIONS["time"])
    if not times or not all(b > a for a, b in itertools.pairwise(times)):
        raise ProblemError(f"time.outputs: found {times}, times must increase strictly")
    if outside(problem, times).any():
        start, end = time_span(problem)
        raise ProblemError(
            f"time.outputs: found times from {times[0]:g} s to {times[-1]:g} s, "
            f"must lie between {start:g} s and {end:g} s"
        )
    return tuple(times)
