"""``export_fmu``: a system as a unit of co-simulation (FMI 2 or 3)."""

from __future__ import annotations

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

from jfric.errors import ProblemError
from jfric.exports import fmu_script
from jfric.exports.fmu_unit import NAMES, SYSTEM, described
from jfric.files.config import Config
from jfric.files.solver_choice import choose_solver
from jfric.files.write_toml import dump
from jfric.numerics.printing import printable
from jfric.optional import import_pythonfmu
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.problem import Problem

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
