"""Controllers of a problem: which functions of time they set, in which order they act, checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import equinox as eqx
import numpy as np
from jax.core import Tracer

from jfric.errors import ProblemError, nearest, require_known
from jfric.system.controller import AbstractController, Controller
from jfric.system.description import AbstractProblem, element_label
from jfric.system.functions import AbstractFunction, Constant, Held, with_held
from jfric.system.naming import find_function, function_paths, path_dimension

P = TypeVar("P", bound=AbstractProblem)


def controllers(problem: AbstractProblem) -> dict[str, AbstractController]:
    """Controllers by label, those of classes from other packages included."""
    found = problem.labelled().items()
    return {label: x for label, x in found if isinstance(x, AbstractController)}


def target(problem: AbstractProblem, path: str) -> str | None:
    """The full path of the function of time that ``path``, or the name of an element with one
    function of time, stands for; None where there is none."""
    found = find_function(problem, path)
    if found is not None:
        return found
    own = {
        find_function(problem, f"{path}.{place[2]}") for place in function_paths(problem).values()
    }
    own -= {None}
    return own.pop() if len(own) == 1 else None


def apart(problem: P) -> tuple[P, Controller | None]:
    """A problem without controllers, and the only one that it has, with numbers and full paths.

    Raises :class:`ProblemError` for several."""
    if not controllers(problem):
        return problem, None
    label, *others = controllers(problem)
    own = problem.resolved().section("controller").get(label.rpartition(".")[2])
    if others or own is None:
        raise ProblemError(
            f"{others[0] if others else label}: found a controller that a fit cannot close; fits "
            "take one element of the section controller"
        )
    drives = target(problem, own.drives) or own.drives
    return without_controllers(problem), replace(own, drives=drives)


def without_controllers(problem: P) -> P:
    """``problem`` without its controllers: functions of time that they set stay as given."""

    def is_other(group: dict) -> bool:
        return not any(isinstance(x, AbstractController) for x in group.values())

    left = {s: group for s, group in problem.elements.items() if is_other(group)}
    return eqx.tree_at(lambda p: p.elements, problem, left, is_leaf=lambda x: isinstance(x, dict))


def require_periods(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for a controller without samples of its own."""
    for label, controller in controllers(problem).items():
        if controller.period is None:
            raise ProblemError(
                f"{label}.period: missing; give the time between two samples, such as '1 ms' (fits "
                "take the samples of the record)"
            )
        lag = getattr(controller, "lag", 0.0)
        if not isinstance(lag, Tracer) and np.any(np.asarray(lag) != 0.0):
            raise ProblemError(
                f"{label}.lag: found {float(lag):g} s, which only fits take; give the drive as a "
                "motor with an inductance, or its delay as dead_time"
            )


def refuse_controllers(problem: AbstractProblem, who: str, instead: str = "") -> None:
    """Raise :class:`ProblemError` where an analysis of positions and velocities alone would leave
    out what controllers remember."""
    for label in controllers(problem):
        other = f"; use {instead}" if instead else ""
        raise ProblemError(
            f"{label}: found a controller, whose memory {who} does not take into account{other}"
        )


def slots_of(problem: AbstractProblem) -> dict[str, tuple[str, str, str]]:
    """Section, name and field of the functions of time that controllers set, by path as given."""
    known = function_paths(problem)
    found = {}
    for controller in controllers(problem).values():
        for path in controller.targets:
            full = target(problem, path)
            if full is not None:
                found[path] = known[full]
    return found


def command_places(problem: AbstractProblem) -> dict[str, str]:
    """Path of the function of time that is set, by the name of each command in results: the label
    of the controller, with a number where it sets several."""
    found = {}
    for label, controller in controllers(problem).items():
        paths = controller.targets
        names = [label] if len(paths) == 1 else [f"{label}.{i}" for i, _ in enumerate(paths, 1)]
        found |= dict(zip(names, paths, strict=True))
    return found


def command_names(problem: AbstractProblem) -> tuple[str, ...]:
    """Names of commands in results."""
    return tuple(command_places(problem))


def command_units(problem: AbstractProblem) -> dict[str, str]:
    """Unit of each command, empty where it is not known."""
    found = {}
    for name, path in command_places(problem).items():
        measures = path_dimension(problem, target(problem, path) or path)
        found[name] = "" if measures is None else measures.unit
    return found


def driven(problem: P) -> P:
    """``problem`` with functions of time that controllers set as such."""
    slots = slots_of(problem)
    return with_held(problem, slots, lines=False) if slots else problem


def in_order(problem: AbstractProblem) -> dict[str, AbstractController]:
    """Controllers by label, each after those that set its reference."""
    left, found = dict(controllers(problem)), {}
    sets = {
        label: {element_label(*place[:2]) for place in _places(problem, x)}
        for label, x in left.items()
    }
    while left:
        free = [x for x in left if not any(x in sets[other] for other in left if other != x)]
        # A circle of references has no order; it is refused where a problem is checked.
        for label in free or [*left][:1]:
            found[label] = left.pop(label)
    return found


def _places(problem: AbstractProblem, controller: AbstractController):
    known = function_paths(problem)
    full = [target(problem, path) for path in controller.targets]
    return [known[path] for path in full if path is not None]


def require_controller(
    problem: AbstractProblem, where: str, controller: AbstractController
) -> None:
    """Raise :class:`ProblemError` for signals and targets that a problem does not have."""
    signals = [
        *problem.dofs,
        *(f"v.{dof}" for dof in problem.dofs),
        *problem.axes[len(problem.dofs) :],
    ]
    for name in controller.signals:
        require_known(f"{where}.reads", "signal", name, signals)
    known = function_paths(problem)
    allowed = [path for path in known if not path.endswith(".displacement")]
    for path in controller.targets:
        full = target(problem, path)
        if full is None or full not in allowed:
            raise ProblemError(
                f"{where}.drives: no function of time {path!r}{nearest(path, allowed)} that a "
                f"controller can set; there are {', '.join(allowed)}"
            )
        section, name, field = known[full]
        given: AbstractFunction = getattr(problem.section(section)[name], field)
        if not isinstance(given, Constant | Held):
            raise ProblemError(
                f"{where}.drives: found {path!r}, which is a {type(given).__name__}; a controller "
                "sets all of it: give it the number 0, and add an element for the other part"
            )


def require_loops(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for controllers that set the same function of time, or each
    other's references in a circle."""
    owners: dict[str, str] = {}
    for label, controller in controllers(problem).items():
        for path in controller.targets:
            full = target(problem, path) or path
            if full in owners:
                raise ProblemError(
                    f"{label}.drives: found {path!r}, which {owners[full]} sets as well; a "
                    "function of time has one controller"
                )
            owners[full] = label
    sets: Mapping[str, set[str]] = {
        label: {element_label(*place[:2]) for place in _places(problem, x)}
        for label, x in controllers(problem).items()
    }
    order = [*in_order(problem)]
    for i, label in enumerate(order):
        for other in order[i:]:
            if label in sets[other]:
                raise ProblemError(
                    f"{label}.reference: is set by {other}, which follows {label} itself or comes "
                    "later in a circle; controllers must form a chain"
                )
