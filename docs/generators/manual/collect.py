"""Runs a verification and keeps what the manual shows of each case. What is drawn is drawn where it
was computed: pictures are all that other processes send."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np

from generators.manual.entry import Entry
from generators.manual.pictures import picture
from generators.manual.sketch import can_be_sketched, plot_system
from jfric.errors import ProblemError
from jfric.figures.mechanism_figure import plot_mechanism
from jfric.figures.path_figure import plot_path
from jfric.figures.steady_figure import plot_orbits, plot_response
from jfric.figures.trajectory_figure import MAX_TICKS, plot
from jfric.files.read_toml import load_config
from jfric.results.solution import reached
from jfric.solvers.simulation import simulate
from jfric.verification.configs import shipped
from jfric.verification.evaluate import Trajectory
from jfric.verification.job_lists import AnyJob, named_files
from jfric.verification.jobs import Job, Refused
from jfric.verification.result import Result
from jfric.verification.runner import verify
from jfric.verification.system_checks import SystemValues

#: Evenly spaced times of a plot.
POINTS = 501
#: Captions of pictures.
SKETCH, BODIES, MOTION = "sketch", "bodies", "motion"


def collect(
    paths: Sequence[str | os.PathLike[str]] | None = None,
    **settings: Any,
) -> tuple[list[Entry], list[Result]]:
    """All cases of a verification (:func:`jfric.verify` with these ``settings``) with pictures, and
    the results in their order."""
    gathered = _Gathered(dict(named_files(paths)) if paths else None)
    results = verify(paths, each=gathered.keep, observe=_Draw(), outputs=POINTS, **settings)
    for result in results:
        gathered.entry(result.case).results.append(result)
    order = list(dict.fromkeys(result.case for result in results))
    return [gathered.entries[name] for name in order], results


class _Gathered:
    """Entries by name, filled as jobs are done."""

    def __init__(self, files: dict[str, Path] | None):
        from jfric.verification.job_lists import cases

        self.files = files
        self.listed = {case.name: case for case in cases()} if files is None else {}
        self.entries: dict[str, Entry] = {}

    def entry(self, name: str) -> Entry:
        """The entry of a case, made when it is first asked for."""
        if name not in self.entries:
            self.entries[name] = self._made(name)
        return self.entries[name]

    def _made(self, name: str) -> Entry:
        if self.files is not None:
            entry = Entry(name, self.files[name])
        else:
            case = self.listed[name]
            entry = Entry(name, shipped(case.config), changed=case.set, solver=case.solver)
        try:
            config = load_config(entry.path)
        except ProblemError:
            return entry  # refused: its result says why
        entry.title, entry.source = config.title, config.source
        entry.description = config.description
        return entry

    def keep(self, job: AnyJob, drawn: dict[str, str] | Exception, results: list[Result]) -> None:
        """Told of every job when it is done, with what was drawn of it."""
        entry = self.entry(job.case)
        if isinstance(job, Refused) or isinstance(drawn, Exception):
            return
        if entry.problem is None:
            problem = job.problem if isinstance(job, Job) else job.config.problem
            entry.problem = jax.tree.map(np.asarray, problem)
        # The bodies of a mechanism at some instants are its sketch.
        bodies = drawn.pop(BODIES, None)
        for caption, shown in drawn.items():
            entry.pictures.setdefault(caption, shown)
        if bodies is not None:
            entry.pictures[SKETCH] = bodies


class _Draw:
    """Draws what was computed for a job, once for each case in a process: pictures by caption."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()

    def __call__(self, job: AnyJob, computed: Any) -> dict[str, str]:
        drawn: dict[str, str] = {}
        if isinstance(job, Refused):
            return drawn
        problem = job.problem if isinstance(job, Job) else job.config.problem
        if self._new(job.case, SKETCH) and can_be_sketched(problem):
            drawn[SKETCH] = picture(plot_system(problem), f"sketch of {job.case}")
        with suppress(ProblemError):  # what cannot be drawn has results that say why
            self._draw(drawn, job, computed)
        return drawn

    def _new(self, case: str, caption: str) -> bool:
        """Whether this is drawn for the first time."""
        if (case, caption) in self.seen:
            return False
        self.seen.add((case, caption))
        return True

    def _draw(self, drawn: dict[str, str], job: AnyJob, computed: Any) -> None:
        name = job.case
        if isinstance(job, Job) and isinstance(computed, Trajectory):
            if reached(computed.solution).ts.size >= 2 and self._new(name, MOTION):
                if job.problem.section("body"):
                    figure = plot_mechanism(computed.solution, job.problem, instants=4)
                    drawn[BODIES] = picture(figure, f"bodies of {name}")
                drawn[MOTION] = _motion(job, computed.solution, name)
        elif isinstance(computed, SystemValues):
            self._draw_system(drawn, name, computed)

    def _draw_system(self, drawn: dict[str, str], name: str, computed: SystemValues) -> None:
        # What no check asked for is not computed for a picture.
        known = vars(computed)
        if "branches" in known:
            figure = plot_path(computed.branches)
            drawn["path of equilibria"] = picture(figure, f"path of equilibria of {name}")
        if "orbit" in known and (name, MOTION) not in self.seen:
            orbit = computed.orbit
            ts = np.linspace(0.0, float(orbit.period), POINTS)
            start = float(np.asarray(orbit.problem.resolved().time.start))
            solution = simulate(orbit.problem, solver=orbit.solver, ts=start + ts)
            solution = jax.tree.map(np.asarray, solution)
            drawn["one period"] = picture(plot(solution, orbit.problem), f"one period of {name}")
        if "path" in known:
            figure = plot_orbits(computed.path)
            drawn["path of orbits"] = picture(figure, f"path of orbits of {name}")
        if "response" in known:
            figure = plot_response(computed.response)
            drawn["frequency response"] = picture(figure, f"response of {name}")


def _motion(job: Job, solution: Any, name: str) -> str:
    figure = plot(solution, job.problem)
    count = int(solution.events.count)
    marks = "" if count <= MAX_TICKS else ", too many to mark"
    words = f"{job.label}; {count} events{marks}"
    return picture(figure, f"motion of {name} over time") + f'<p class="words">{words}</p>'
