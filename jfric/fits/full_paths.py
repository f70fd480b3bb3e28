"""Arguments of a fit, with the full paths of parameters and inputs in place of short ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free
from jfric.system.control import controllers, target
from jfric.system.controller import Controller
from jfric.system.naming import find_function, find_path
from jfric.system.problem import Problem


def full_path(problem: Problem, path: str) -> str:
    """The full form of the path of a parameter; ``path`` itself if it names no parameter of the
    problem but one of a sensor or the controller."""
    word, _, rest = path.partition(".")
    if word == "input":
        place, _, field = rest.rpartition(".")
        return f"input.{find_function(problem, place) or place}.{field}"
    try:
        return find_path(problem, path)
    except KeyError:
        return path


def full_free(problem: Problem, free: Mapping[str, Free]) -> dict[str, Free]:
    """``free`` by full paths; raises :class:`jfric.ProblemError` for a parameter named twice."""
    found: dict[str, Free] = {}
    for path, item in free.items():
        name = full_path(problem, path)
        if name in found:
            raise ProblemError(f"free: found {name!r} twice")
        found[name] = item
    return found


def full_signals(problem: Problem, names: Any) -> Any:
    """Names of measured signals, with those that are inputs replaced by their full paths."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        return names
    return [find_function(problem, name) or name for name in names]


def full_experiment(problem: Problem, experiment: Experiment) -> Experiment:
    """``experiment`` with its inputs, and inputs among its signals, by their full paths."""

    def named(table: Any) -> Any:
        if not isinstance(table, Mapping):
            return table
        return {_function(problem, name): x for name, x in table.items()}

    fields = ("u", "y", "sigma", "mask", "resolution")
    known = {full_path(problem, path): x for path, x in (experiment.known or {}).items()}
    tables = {name: named(getattr(experiment, name)) for name in fields}
    return replace(experiment, **tables, known=known)


def _function(problem: Problem, name: str) -> str:
    """The full path of a function of time; of the load that a controller sets, also by the name of
    the load."""
    sets = {
        path
        for c in controllers(problem).values()
        for given in c.targets
        if (path := target(problem, given)) is not None
    }
    own = target(problem, name) if name not in problem.axes else None
    return own if own in sets else find_function(problem, name) or name  # pyright: ignore


def full_controller(problem: Problem, controller: Controller | None) -> Controller | None:
    """``controller`` with the full path of the load that it drives."""
    if controller is None:
        return None
    drives = controller.drives
    return replace(controller, drives=find_function(problem, drives) or drives)
