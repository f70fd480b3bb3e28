"""``export_fmu``: a system as a unit of co-simulation (FMI 2 or 3); in it, the system that another
program moves from one communication point to the next.

:mod:`jfric.exports.fmu_script` is the part that the libraries of FMI see.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, nearest
from jfric.exports import fmu_script
from jfric.files.config import Config
from jfric.files.read_toml import load_config
from jfric.files.solver_choice import choose_solver
from jfric.files.write_toml import dump
from jfric.numerics.printing import printable
from jfric.optional import import_pythonfmu
from jfric.results.columns import column_units, columns
from jfric.results.solution import Solution
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.solvers.simulation import simulate
from jfric.system.expression import Expression
from jfric.system.functions import AbstractFunction, Constant
from jfric.system.model import build
from jfric.system.naming import find_function, function_paths, parameters, with_numbers
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Files of a unit: the system, and the names of its inputs and outputs.
SYSTEM, NAMES = "system.toml", "names.json"
#: Length of the run, as a part of the communication step, that gives the outputs at the start.
GLANCE = 1e-6


class Unit:
    """A system with inputs and outputs, its exact state, and the events of the last step.

    ``numbers``: values of the parameters, by path; ``inputs``: values that functions of time have
    until the next step, by path; ``outputs``: values at the present time, by name; ``codes``:
    modes of contacts and segments at the present time; ``count``: events so far; ``events``: those
    of the last step, each with time [s], name, and both modes.
    """

    def __init__(self, folder: str | Path):
        chosen = load_config(Path(folder) / SYSTEM)
        names = json.loads((Path(folder) / NAMES).read_text("utf-8"))
        self.solver: Any = choose_solver(chosen.solver)[0]
        start = float(chosen.problem.resolved().time.start)
        problem, values = with_inputs(chosen.problem, list(names["inputs"]), start)
        self.problem = build(problem)
        self.inputs = values
        self.numbers = numbers_of(self.problem, values)
        self.t, self.state, self.count, self.last = start, None, 0, start
        self.events: list[list[Any]] = []
        self.outputs = dict.fromkeys(names["outputs"], 0.0)
        self.codes = dict.fromkeys(names["codes"], 0)

    def begin(self, t: float) -> None:
        """Put the system at its start, at the time ``t`` [s], with the present parameters."""
        self.t = t
        validate(self._now())
        self.state = self.solver.init(self._now())
        self.count, self.last, self.events = 0, self.t, []
        span = float(self.problem.resolved().time.end) - self.t
        until = self.t + GLANCE * (span if span > 0.0 else 1.0)
        self._read(self._run([self.t], until))

    def step(self, until: float) -> str:
        """Move to the time ``until`` [s]; a sentence where the motion ends before, else empty."""
        self.events = []
        if until <= self.t:
            return ""
        solution = self._run([until], until)
        status = int(solution.status)
        if status not in (int(Status.OK), int(Status.MAX_EVENTS)):
            return f"{solution.outcome()} at {float(solution.final.t)!r} s"
        self.state, self.t = solution.final, until
        self.events = [
            [row["time"], row["contact"], row["from"], row["to"]] for row in solution.event_table()
        ]
        self.count += int(solution.events.count)
        self.last = self.events[-1][0] if self.events else self.last
        self._read(solution)
        if status == int(Status.MAX_EVENTS):
            return f"more than {len(self.events)} events before {until!r} s: take shorter steps"
        return ""

    def seen(self) -> dict[str, Any]:
        """Present time, outputs and codes, and the events so far."""
        fields = "t", "outputs", "codes", "count", "last", "events"
        return {name: getattr(self, name) for name in fields}

    def _now(self) -> Problem:
        """The system with the present parameters and inputs."""
        return with_numbers(self.problem, {**self.numbers, **self.inputs, "time.start": self.t})

    def _run(self, ts: list[float], until: float) -> Solution:
        return simulate(self._now(), self.solver, ts=jnp.asarray(ts), start=self.state, end=until)

    def _read(self, solution: Solution) -> None:
        """Keep the outputs at the end of a run."""
        table = columns(self.problem, solution)
        self.outputs = {name: float(table[_column(name, table)][-1]) for name in self.outputs}
        codes = np.concatenate([solution.mode[-1], solution.segment[-1]])
        self.codes = dict(zip(self.codes, map(int, codes), strict=True))

    def kept(self) -> dict[str, Any]:
        """The whole state as numbers and texts that keep every bit."""
        leaves = [np.asarray(x) for x in jax.tree.leaves(self.state)]
        fields = "numbers", "inputs", "outputs", "codes", "t", "count", "last", "events"
        coded = [[str(x.dtype), x.shape, base64.b85encode(x.tobytes()).decode()] for x in leaves]
        return {"state": coded} | {name: getattr(self, name) for name in fields}

    def put_back(self, kept: dict[str, Any]) -> None:
        """Return to a state that :meth:`kept` gave."""
        for name, value in kept.items():
            if name != "state":
                setattr(self, name, value)
        if not kept["state"]:
            self.state = None
            return
        shape = self.state if self.state is not None else self.solver.init(self._now())
        leaves = [
            jnp.asarray(np.frombuffer(base64.b85decode(text), dtype).reshape(size))
            for dtype, size, text in kept["state"]
        ]
        self.state = jax.tree.unflatten(jax.tree.structure(shape), leaves)


def with_inputs(problem: Problem, inputs: list[str], start: float):
    """``problem`` with constants in place of the functions of time ``inputs``, and their values at
    its ``start`` [s], by full path."""
    values: dict[str, float] = {}
    places = function_paths(problem)
    resolved = problem.resolved()
    for given in inputs:
        path = find_function(problem, given)
        allowed = [x for x, (section, *_) in places.items() if section != "base"]
        if path is None or path not in allowed:
            raise ProblemError(
                f"inputs: found {given!r}{nearest(given, allowed)}, allowed are functions of time: "
                f"{', '.join(allowed) or 'there are none'}"
            )
        section, name, field = places[path]
        values[path] = float(getattr(resolved.section(section)[name], field)(start))

    def where(p: Problem):
        return [getattr(p.elements[s][n], f) for s, n, f in (places[path] for path in values)]

    constants = [Constant(jnp.asarray(x, jnp.result_type(float))) for x in values.values()]
    if not values:
        return problem, values
    changed = eqx.tree_at(
        where, problem, constants, is_leaf=lambda x: isinstance(x, AbstractFunction)
    )
    return changed, values


def numbers_of(problem: Problem, inputs: dict[str, float]) -> dict[str, float]:
    """Single numbers of ``problem`` that may be set, by path: no expressions, inputs or times."""
    found = parameters(problem).items()
    return {
        path: float(x)
        for path, x in found
        if not isinstance(x, Expression)
        and np.ndim(x) == 0
        and path not in inputs
        and not path.startswith("time.")
    }


def _empty_run(problem: Problem) -> Solution:
    """A solution of ``problem`` with its fields and without a motion."""
    shapes = eqx.filter_eval_shape(lambda p: simulate(p, ts=jnp.zeros((1,))), build(problem))
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)


def _variables(problem: Problem) -> tuple[list[str], list[str]]:
    """Names of the possible outputs (signals without accelerations), and of the codes of contacts
    and segments, in their order."""
    words = {k: k.partition(".")[0] for k in column_units(problem, _empty_run(problem))}
    codes = [k for k, word in words.items() if word in _CODES]
    left = [k for k, word in words.items() if word not in (*_CODES, "t", "a")]
    return [k.removeprefix("q.") for k in left], codes


#: First words of columns that are codes, not outputs.
_CODES = ("mode", "segment")


def _column(name: str, table: dict[str, Any]) -> str:
    return name if name in table else f"q.{name}"


def described(problem: Problem, inputs: list[str], outputs: list[str] | None) -> dict[str, Any]:
    """Variables of a unit with their values at the start, by group; raises
    :class:`ProblemError` for unknown names."""
    span = problem.resolved().time
    start = float(span.start)
    changed, values = with_inputs(problem, inputs, start)
    known, codes = _variables(problem)
    for name in outputs or ():
        if name not in known:
            raise ProblemError(
                f"outputs: found {name!r}{nearest(name, known)}, there are {', '.join(known)}"
            )
    return {
        "numbers": numbers_of(changed, values),
        "inputs": values,
        "outputs": dict.fromkeys(known if outputs is None else outputs, 0.0),
        "codes": dict.fromkeys(codes, 0),
        "t": start,
        "stop": float(span.end),
        "count": 0,
        "last": start,
        "events": [],
    }


#: Versions of FMI.
VERSIONS = (2, 3)
#: The class of a unit, behind the text of its program. The libraries look for its name there.
CLASS = """

import {library}
from {library} import Fmi{version}Slave


class {name}(Slave, Fmi{version}Slave):
    \"\"\"Unit {name}.\"\"\"

    library, fmi = {library}, {version}
"""


@printable
@dataclass(frozen=True)
class FmuExport:
    """A unit of co-simulation that was written.

    ``path``: the file; ``version``: that of FMI; ``parameters``, ``inputs``, ``outputs``: names of
    its variables. Example: see :func:`jfric.export_fmu`.
    """

    path: Path
    version: int
    parameters: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def export_fmu(
    problem: Problem,
    path: str | os.PathLike[str],
    *,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] | None = None,
    version: int = 2,
    solver: Mapping[str, Any] | None = None,
) -> FmuExport:
    """``problem`` as a unit of co-simulation for Simulink, Modelica tools, FMPy and others.

    The file ``path`` (``NAME.fmu``) holds the system and a small program. The system moves in a
    process of its own, by the Python that wrote the file, or the one that the environment variable
    ``JFRIC_PYTHON`` names. Between communication points the event-driven solver moves it, with the
    settings ``solver`` of a table ``[solver]``: the state is kept as it is, so event times do not
    depend on the communication step.

    ``inputs``: functions of time (``load.F``, ``friction.belt``, ``friction.N``,
    ``controller.reference``) that the other tool sets; they are constant from one communication
    point to the next. ``outputs``: positions ``x``, velocities ``v.x``, ``lambda_t.NAME``,
    ``lambda_n.NAME``, ``force.NAME``, ``reaction.NAME``, ``z.NAME``, ``command.NAME`` (default:
    all). Modes ``mode.NAME`` and segments are integers; ``event_count``, ``last_event_time`` and
    ``events`` (the events of the last step, as JSON) report events, which also go to the log. All
    single numbers of the problem are parameters. States can be got, set and stored; they keep every
    bit. ``version``: that of FMI, 2 or 3.

    Raises :class:`jfric.ProblemError` for unknown names, supports as inputs, other solvers, content
    that a file cannot hold, and where the package ``pythonfmu`` (FMI 3: ``pythonfmu3``) is
    missing::

        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> made = jfric.export_fmu(problem, f"{folder}/block.fmu", inputs=["load.F"])
        >>> made.inputs, made.outputs[:3]
        (('load.F',), ('u', 'v.u', 'lambda_t.friction'))
    """
    if version not in VERSIONS:
        raise ProblemError(f"version: found {version!r}, allowed are 2 and 3")
    library, path = import_pythonfmu(version), Path(path)
    name = re.sub(r"\W", "_", path.stem)
    if path.suffix != ".fmu" or not re.match(r"[A-Za-z_]", name):
        raise ProblemError(
            f"path: found {str(path)!r}, expected a name that begins with a letter and ends with "
            ".fmu"
        )
    settings = dict(solver or {})
    if not isinstance(choose_solver(settings)[0], EventDriven):
        raise ProblemError(f"solver: found {settings['name']!r}, a unit takes 'event-driven'")
    names = described(problem, list(inputs), None if outputs is None else list(outputs))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / SYSTEM).write_text(dump(Config(problem, solver=settings)), "utf-8")
        (place / NAMES).write_text(json.dumps(names | {"python": sys.executable}), "utf-8")
        script = place / f"unit_{name}.py"
        program = Path(str(fmu_script.__file__)).read_text("utf-8")
        program += CLASS.format(name=name, version=version, library=library.__name__)
        script.write_text(program, "utf-8")
        _build(library, version, script, name, path)
    outs = *names["outputs"], *names["codes"]
    return FmuExport(path, version, tuple(names["numbers"]), tuple(names["inputs"]), outs)


def _build(library: Any, version: int, script: Path, name: str, path: Path) -> None:
    """Let the library pack the unit, and undo what it leaves behind in this process."""
    state = "State" if version == 3 else "state"
    can, store = f"canGetAndSetFMU{state}", f"canSerializeFMU{state}"
    before = list(sys.path)
    try:
        library.FmuBuilder.build_FMU(
            script,
            script.parent / "made",
            project_files=[script.with_name(SYSTEM), script.with_name(NAMES)],
            **{can: True, store: True},
        )
        shutil.copyfile(script.parent / "made" / f"{name}.fmu", path)
    finally:
        sys.path[:] = before
        sys.modules.pop(script.stem, None)
