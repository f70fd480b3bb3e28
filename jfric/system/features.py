"""Features of problems that not every solver and not every analysis can represent, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from jfric.errors import ProblemError
from jfric.system.assembly import displacement_functions, energies
from jfric.system.control import controllers
from jfric.system.description import AbstractProblem, element_label
from jfric.system.event import event_labels
from jfric.system.hysteresis import HYSTERESIS
from jfric.system.joint_equations import joint_equations
from jfric.system.load_friction import carried_loads
from jfric.system.state import reads_contacts
from jfric.system.state_function import linear_displacement


def varying_parts(problem: AbstractProblem) -> list[str]:
    """Paths of the fields that make mass matrix or directions depend on position, by structure."""
    found = [
        label if label == "links" else f"{label}.kinetic"
        for label, part in energies(problem).items()
        if not part.has_constant_mass()
    ]
    functions, n = displacement_functions(problem).items(), len(problem.dofs)
    return found + [label for label, (_, g) in functions if not linear_displacement(g, n)]


def _with(problem: AbstractProblem, field: str, *sections: str) -> list[str]:
    """Paths of a ``field``, by elements of ``sections`` that have it."""
    found = problem.labelled(*sections).items()
    return [f"{label}.{field}" for label, x in found if getattr(x, field, None) is not None]


def _planes(problem: AbstractProblem) -> list[str]:
    found = problem.labelled("friction", "contact").items()
    rows = {label: x for label, x in found if len(x.rows()) > 1}
    return [label if x.plane is None else f"{label}.plane" for label, x in rows.items()]


def _pins(problem: AbstractProblem) -> list[str]:
    return [f"{label}.mu" for label in problem.bearings()]


def _reactions(problem: AbstractProblem) -> list[str]:
    found = problem.labelled("friction").items()
    return [f"{label}.reaction" for label, x in found if x.redirected]


def _reacting(problem: AbstractProblem) -> list[str]:
    found = problem.section("state").items()
    return [f"{element_label('state', k)}.rate" for k, x in found if reads_contacts(x.rate)]


def _joints(problem: AbstractProblem, *, chosen: bool = False) -> list[str]:
    """Joints, or with ``chosen`` those that hold velocities which the user defines."""
    return [x.label for x in joint_equations(problem) if (x.held is not None) == chosen]


def _forces(problem: AbstractProblem) -> list[str]:
    return [label for label, x in energies(problem).items() if not x.has_linear_force()]


def _limited(problem: AbstractProblem, *, winding: bool) -> list[str]:
    """Motors whose drive limits the current of a voltage."""
    found = problem.labelled("motor").items()
    limited = {k: x for k, x in found if x.i_max is not None and x.V is not None}
    return [f"{label}.i_max" for label, x in limited.items() if x.has_winding == winding]


class Feature(NamedTuple):
    """A feature of a problem: its name in words, the elements that have it, and its solvers."""

    words: str
    found: Callable[[AbstractProblem], Iterable[str]]
    solvers: tuple[str, ...]


_STEPS = ("event-driven", "moreau-jean")
_SMOOTH = ("event-driven", "smoothed")
#: Features by name, in the order in which they are asked for.
FEATURES: dict[str, Feature] = {
    "reactions": Feature("another direction than that of sliding", _reactions, _SMOOTH),
    "events": Feature("an event of your own", event_labels, ("event-driven",)),
    "controllers": Feature(
        "a controller", lambda p: [*controllers(p)], ("event-driven", "moreau-jean", "smoothed")
    ),
    "carried": Feature(
        "a load that is not made of straight lines in time",
        carried_loads,
        _SMOOTH,
    ),
    "fading": Feature(
        "friction that depends on speed and load",
        lambda p: [k for k, x in p.labelled("friction").items() if x.fade is not None],
        _SMOOTH,
    ),
    "position": Feature(
        "friction that depends on position", lambda p: _with(p, "position", "friction"), _SMOOTH
    ),
    "planes": Feature("friction in a plane", _planes, _STEPS),
    "pins": Feature("friction in a pin", _pins, ("event-driven",)),
    "belts": Feature(
        "a moving surface",
        lambda p: _with(p, "belt", "friction", "contact"),
        ("event-driven", "moreau-jean", "smoothed", "quasi-static"),
    ),
    "limited": Feature(
        "a current that a drive limits",
        lambda p: _limited(p, winding=False),
        ("event-driven", "moreau-jean", "smoothed"),
    ),
    "held": Feature(
        "a current that a drive holds at its limit", lambda p: _limited(p, winding=True), _STEPS
    ),
    "sliders": Feature("a memory", lambda p: p.labelled(*HYSTERESIS), ("event-driven",)),
    "states": Feature(
        "a memory", lambda p: p.states(), (*_STEPS, "smoothed")
    ),
    "reacting": Feature("a rate that depends on reactions or sliding", _reacting, _SMOOTH),
    "joints": Feature("a joint", _joints, _STEPS),
    "velocities": Feature(
        "velocities that are fewer than the degrees of freedom that they move",
        lambda p: _joints(p, chosen=True),
        _STEPS,
    ),
    "varying": Feature(
        "a mass or a direction that depends on position", varying_parts, _STEPS
    ),
    "forces": Feature(
        "forces that are not linear in the position",
        _forces,
        ("event-driven", "moreau-jean", "smoothed"),
    ),
}  # fmt: skip
#: Features of systems with constant mass matrix and directions, without a memory, whose normal
#: forces do not depend on the sliding velocity.
CONSTANT = FEATURES.keys() - {
    "controllers", "fading", "planes", "limited", "held", "sliders", "states", "joints",
    "velocities", "varying",
}  # fmt: skip


def taken_by(solver: str) -> frozenset[str]:
    """Features that a solver accepts."""
    return frozenset(name for name, feature in FEATURES.items() if solver in feature.solvers)


def require_features(problem: AbstractProblem, who: str, takes: Iterable[str]) -> None:
    """Raise :class:`ProblemError` for the first feature of ``problem`` that ``who`` does not take,
    and for unknown features."""
    takes = frozenset(takes)
    for name in takes - FEATURES.keys():
        raise ProblemError(f"takes: found {name!r}, features are {', '.join(FEATURES)}")
    for name in (name for name in FEATURES if name not in takes):
        feature = FEATURES[name]
        for where in feature.found(problem):
            raise ProblemError(
                f"{where}: found {feature.words}, which {who} cannot represent; use the solver "
                f"{' or '.join(feature.solvers)}"
            )
