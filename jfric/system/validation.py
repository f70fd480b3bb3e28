"""Checks of a problem's meaning, shared by problems built in Python and read from files.

Each failure is one sentence: path of the field, what was found, what is allowed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from equinox import is_array_like

from jfric.errors import ProblemError, nearest, require_known
from jfric.system.body import Link, require_link
from jfric.system.body_checks import (
    require_body,
    require_body_values,
    require_lines,
    require_touching,
)
from jfric.system.bounds import bounds_of
from jfric.system.bristle import AbstractBristle
from jfric.system.control import require_controller, require_loops
from jfric.system.controller import AbstractController, StateFeedback
from jfric.system.description import AbstractComposite, AbstractProblem, element_label
from jfric.system.direction import Direction
from jfric.system.elements import (
    SECTIONS,
    AbstractForce,
    Contact,
    Event,
    Friction,
    Gap,
    Joint,
    Load,
    Mass,
)
from jfric.system.event import require_event
from jfric.system.expression import Expression, is_expression
from jfric.system.fields import About, about, admitted, scalar, words_of
from jfric.system.formula import require_declared
from jfric.system.function_checks import require_functions_of_time
from jfric.system.functions import AbstractFunction, Constant
from jfric.system.functions_of_state import require_functions
from jfric.system.hysteresis import (
    AbstractHysteresis,
    JenkinsCoupling,
    require_coupling,
    require_springs_within_limits,
)
from jfric.system.inertia import (
    is_concrete,
    require_links,
    require_mass_matrix,
    require_opposing,
)
from jfric.system.law_checks import (
    require_curve,
    require_knots,
    require_law,
    require_plane,
    require_planes,
    require_spin,
)
from jfric.system.laws import (
    LAWS,
    AbstractLaw,
    FrictionCurve,
    StaticDynamic,
    Stribeck,
    VelocityWeakening,
)
from jfric.system.load_friction import require_forces, require_load
from jfric.system.naming import parameters
from jfric.system.position_factor import require_factor, require_position
from jfric.system.surfaces import require_in_space

#: Sections, and parts of functions of time, in which numbers may be lists.
_WITH_LISTS, _LISTS = ("force_field", "matrices"), ("times", "values")
#: Reserved words where a degree of freedom may be named.
_RESERVED = ("ground", "dof", "between")
_NAME = re.compile(r"[\w-]+")
_PARAMETER = re.compile(r"[A-Za-z_]\w*")


def validate(problem: AbstractProblem) -> bool:
    """Raise :class:`ProblemError` for the first contradiction found in ``problem``.

    Returns whether its numbers were checked: under tracing they are not known.
    """
    if not problem.dofs:
        raise ProblemError("dofs: found none, at least one degree of freedom is needed")
    for dof, kind in problem.dofs.items():
        if kind not in ("translation", "rotation"):
            raise ProblemError(
                f"dofs.{dof}: found {kind!r}, allowed are 'translation' and 'rotation'"
            )
    _sections(problem)
    _names(problem)
    for section, group in problem.elements.items():
        for name, element in group.items():
            _element(problem, section, name, element)
    for dof in problem.initial:
        require_known(f"initial.{dof}", "degree of freedom", dof, problem.dofs, "declared are")
    require_loops(problem)
    _expressions(problem)
    require_functions(problem)
    known = is_concrete(problem)
    if known:
        require_values(problem.resolved())
    return known


def _sections(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` unless elements are in the sections of their classes."""
    for section, group in problem.elements.items():
        if section in SECTIONS:
            continue
        for name, element in group.items():
            own = [s for s, cls in SECTIONS.items() if type(element) is cls]
            if own:
                name, kind = name.rpartition(".")[2], type(element).__name__
                raise ProblemError(
                    f'{section}: no such section; write elements={{"{own[0]}": '
                    f'{{"{name}": {kind}(...)}}}}'
                )
        raise ProblemError(
            f"{section}: no such section{nearest(section, SECTIONS)}; "
            f"allowed are {', '.join(SECTIONS)}"
        )


def _names(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for names that paths, expressions and files cannot hold, or that
    are used twice."""
    groups = {"dofs": problem.dofs, **problem.elements}
    for section, group in groups.items():
        for name in group:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ProblemError(
                    f"{section}: found the name {name!r}, names hold letters, digits, _ and -"
                )
    for name in problem.parameters:
        if not _PARAMETER.fullmatch(name):
            raise ProblemError(
                f"parameters: found the name {name!r}, names start with a letter and hold "
                "letters, digits and _"
            )
    for section in ("dofs", "base"):
        for name in groups.get(section, {}):
            if name in _RESERVED:
                raise ProblemError(f"{section}.{name}: the name {name!r} is reserved; rename it")
            if section == "base" and name in problem.dofs:
                raise ProblemError(
                    f"base.{name}: {name!r} is a degree of freedom as well; names must differ"
                )


def _element(problem: AbstractProblem, section: str, name: str, element) -> None:
    where = element_label(section, name)
    if not isinstance(element, SECTIONS[section]):
        raise ProblemError(
            f"{where}: found {type(element).__name__}, expected {SECTIONS[section].__name__}"
        )
    # Inertia, loads and nonlinear forces cannot act on bases.
    on_bases = not isinstance(element, (Mass, Load, AbstractForce, AbstractComposite))
    for field, direction in _directions(element).items():
        known = [*problem.dofs, *(problem.bases if on_bases and field != "reaction" else ())]
        if not direction.names:
            raise ProblemError(
                f"{where}.{field}: names no degree of freedom; declared are {', '.join(known)}"
            )
        for axis in direction.names:
            if axis not in known and axis in problem.bases:
                what = "reaction" if field == "reaction" else section
                raise ProblemError(
                    f"{where}.{field}: found the base {axis!r}, a {what} acts on degrees of "
                    f"freedom only; declared are {', '.join(known)}"
                )
            require_known(f"{where}.{field}", "degree of freedom", axis, known, "declared are")
    _choices(where, element, SECTIONS[section])
    _fields(where, element)
    law = getattr(element, "law", None)
    if isinstance(law, FrictionCurve):
        require_knots(where, law)
    require_spin(where, element)
    for kind, check in _CHECKS.items():
        if isinstance(element, kind):
            check(problem, where, element)
    for field, known in about(type(element)).items():
        load = getattr(element, field)
        if known.form == "elements" and load is not None:
            require_forces(problem, f"{where}.{field}", load)
    require_body(problem, section, name, element)
    if isinstance(element, Link):
        require_link(problem, name, element)


def _friction(problem: AbstractProblem, where: str, element: Friction) -> None:
    given = (element.N is not None) + (element.limit is not None)
    if given != 1 and not (given == 0 and element.load is not None):
        found = "neither" if element.N is None else "both"
        raise ProblemError(
            f"{where}: found {found} of N and limit, exactly one is needed: N, the normal "
            "force, or limit, the friction force itself (write N = 1 N where mu_s and mu_d "
            "are forces in newtons)"
        )
    require_load(problem, where, element)
    if element.N is not None and element.law is None:
        raise ProblemError(f"{where}: N is given without mu; give mu, or mu_s and mu_d")
    _one_of(where, element, "direction", "sliding", "plane")
    require_plane(where, element)
    require_position(where, element)
    if element.sliding is not None and element.reaction is not None:
        raise ProblemError(
            f"{where}.reaction: cannot be combined with sliding, whose direction depends on "
            "position"
        )


def _contact(problem: AbstractProblem, where: str, contact: Contact) -> None:
    if contact.partner is not None:
        require_in_space(problem, where, contact)
    elif contact.contact_radius is not None:
        raise ProblemError(
            f"{where}.contact_radius: is given without surface or sphere, which it needs"
        )
    elif contact.point is not None:
        require_touching(problem, where, contact)
    else:
        _contact_along(where, contact)


def _refuse_problems(problem: AbstractProblem | None, where: str, element: Any) -> None:
    del problem
    for field, message in element.problems():
        raise ProblemError(f"{where}.{field}: {message}")


#: Classes that fields hold, and texts for the values that they accept.
_HOLDS: dict[type, str] = {
    Direction: "a degree of freedom such as 'u', a pair of them such as ('u', 'w') or a mapping "
    "from names to coefficients",
    AbstractLaw: "a law such as jfric.Coulomb(0.1), or a number, which is Coulomb's coefficient",
    AbstractFunction: "a number or a function of time of jfric.functions",
}


def _fields(where: str, element) -> None:
    """Refuse values that are no number, direction, law or function of time in its place."""
    for field in dataclasses.fields(element):
        value, converter = getattr(element, field.name), field.metadata.get("converter")
        if value is None and field.default is not dataclasses.MISSING:
            continue
        options = admitted(type(element)).get(field.name, ())
        classes = tuple(x for x in options if isinstance(x, type))
        for cls, wanted in _HOLDS.items():
            if cls in classes and not isinstance(value, classes):
                raise ProblemError(f"{where}.{field.name}: found {value!r}, expected {wanted}")
        if isinstance(value, Constant):
            value, converter = value.value, scalar
        if converter is scalar and not (is_array_like(value) or is_expression(value)):
            raise ProblemError(
                f"{where}.{field.name}: found {value!r}, expected "
                f"{_HOLDS[AbstractFunction] if AbstractFunction in classes else 'a number'}"
            )


def _joint(problem: AbstractProblem, where: str, joint: Joint) -> None:
    del problem
    if (joint.law is None) != (joint.sliding is None):
        found, missing = ("sliding", "mu") if joint.law is None else ("mu", "sliding")
        raise ProblemError(
            f"{where}: {found} is given without {missing}; give both, or neither for a joint "
            "without friction"
        )
    if joint.law is not None and len(joint.constraint) != 1:
        raise ProblemError(
            f"{where}: found {len(joint.constraint)} constraints and friction, which belongs to "
            "one; give each a joint of its own"
        )


def _one_of(where: str, element, *fields: str) -> None:
    """Raise :class:`ProblemError` unless exactly one of ``fields`` is given."""
    given = [f for f in fields if getattr(element, f) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        names = f"{', '.join(fields[:-1])} and {fields[-1]}"
        raise ProblemError(f"{where}: found {found} of {names}, exactly one is needed")


def _contact_along(where: str, contact: Contact) -> None:
    require_plane(where, contact)
    curved = isinstance(contact.gap, Gap)
    for field in ("line", "circle", "polygon", "radius", "circle_radius"):
        if getattr(contact, field) is not None:
            raise ProblemError(f"{where}.{field}: is given without point; give one of a body")
    if curved == (contact.normal is not None):
        raise ProblemError(
            f"{where}.normal: found {'a direction together with a gap' if curved else 'none'}; "
            "give a degree of freedom such as 'y', or the gap as a function of positions such as "
            "'y - r*cos(phi)', or the point of a body"
        )
    fields = ("tangent", "sliding", "plane")
    along = [f for f in fields if getattr(contact, f) is not None]
    if len(along) > 1:
        raise ProblemError(f"{where}: found both {' and '.join(along)}, at most one is needed")
    if contact.frictionless != (contact.law is None):
        side = along[0] if along else "tangent"
        found, missing = (side, "mu") if contact.law is None else ("mu", side)
        raise ProblemError(
            f"{where}: {found} is given without {missing}; give both, or neither "
            "for a frictionless contact"
        )


#: Further checks of the structure of elements, by their class.
_CHECKS: dict[type, Callable[[AbstractProblem, str, Any], None]] = {
    Event: require_event,
    Friction: _friction,
    AbstractController: require_controller,
    JenkinsCoupling: require_coupling,
    Contact: _contact,
    Joint: _joint,
    AbstractComposite: _refuse_problems,
}


def _directions(element) -> dict[str, Direction]:
    """All directions of an element by the field that gives them."""
    known = about(type(element))
    # Loads that friction grows with name elements, not coordinates.
    found = {k: getattr(element, k) for k, field in known.items() if field.form != "elements"}
    plane = getattr(element, "plane", None)
    found |= {f"plane[{i}]": d for i, d in enumerate(plane if isinstance(plane, tuple) else (), 1)}
    return {field: d for field, d in found.items() if isinstance(d, Direction)}


def _choices(where: str, element, cls: type) -> None:
    for field, options in admitted(cls).items():
        allowed, value = words_of(options), getattr(element, field)
        if allowed and value not in allowed:
            raise ProblemError(
                f"{where}.{field}: found {value!r}{nearest(value, allowed)}, allowed are "
                f"{', '.join(map(repr, allowed))}"
            )


def _expressions(problem: AbstractProblem) -> None:
    for path, leaf in parameters(problem).items():
        if not isinstance(leaf, Expression):
            continue
        require_declared(path, leaf.text, leaf.references, problem.parameters)
        for reference in leaf.references:
            if isinstance(problem.parameters[reference], Expression):
                raise ProblemError(
                    f"parameters.{reference}: found the expression "
                    f"{problem.parameters[reference].text!r}, a parameter must be a number"
                )


def _of_own_laws(problem: AbstractProblem) -> tuple[str, ...]:
    """Beginnings of paths to the numbers of laws from other packages, which may hold arrays, such
    as the weights of a network."""
    laws = {where: getattr(e, "law", None) for where, e in problem.labelled().items()}
    return tuple(
        f"{where}.{field.name}."
        for where, law in laws.items()
        if isinstance(law, AbstractLaw) and type(law) not in LAWS.values()
        for field in dataclasses.fields(law)
    )


def require_values(problem: AbstractProblem) -> None:
    """Raise :class:`ProblemError` for a number of a resolved ``problem`` that is not allowed."""
    with_arrays = _of_own_laws(problem)
    for path, value in parameters(problem).items():
        array = np.asarray(value)
        if not np.all(np.isfinite(array)):
            raise ProblemError(f"{path}: found {array.tolist()}, must be finite")
        field = path.rsplit(".", 1)[-1]
        section = path.split(".", 1)[0]
        form = about(SECTIONS[section]).get(field, About()).form if section in SECTIONS else None
        may_be_list = form == "list" or section in _WITH_LISTS or field in _LISTS
        if array.ndim and not may_be_list and not f"{path}.".startswith(with_arrays):
            raise ProblemError(f"{path}: found {array.tolist()}, expected one number")
    for where, element in problem.labelled().items():
        _own_sentences(where, element)
    _bounds(problem)
    for section in problem.elements:
        for where, element in problem.labelled(section).items():
            _values(where, section, element, problem.time)
    _shapes(problem)
    if not float(problem.time.end) > float(problem.time.start):
        raise ProblemError(
            f"time.end: found {float(problem.time.end):g} s, must be later than time.start "
            f"({float(problem.time.start):g} s)"
        )
    require_links(problem)
    require_mass_matrix(problem)
    require_opposing(problem)
    require_planes(problem)
    require_springs_within_limits(problem)
    require_lines(problem)


def _own_sentences(where: str, element) -> None:
    """Refuse numbers with a message of their own, beyond that of their bounds."""
    require_body_values(where, element)
    if isinstance(element, Contact) and not 0.0 <= float(element.e) <= 1.0:
        raise ProblemError(f"{where}.e: found {float(element.e):g}, must lie between 0 and 1")
    if isinstance(element, AbstractHysteresis | StateFeedback):
        _refuse_problems(None, where, element)


def _bounds(problem: AbstractProblem) -> None:
    """Refuse numbers outside the bounds that fields of elements and laws have."""
    for path, value in parameters(problem).items():
        # Functions of time have a message of their own.
        array = np.asarray(value)
        of_friction = path.startswith("friction.") and path.endswith((".N", ".limit"))
        if of_friction or not array.size:
            continue
        bounds, low, high = bounds_of(path), float(np.min(array)), float(np.max(array))
        wrong = bounds.message(low, high)
        if wrong is not None:
            raise ProblemError(f"{path}: found {high if high > bounds.high else low:g}, {wrong}")


def _values(where: str, section: str, element, time) -> None:
    for field, direction in _directions(element).items():
        coefficients = direction.coefficients
        if coefficients and all(float(c) == 0.0 for c in coefficients.values()):
            raise ProblemError(f"{where}.{field}: all coefficients are zero")
    factor = getattr(element, "position", None)
    if section == "friction" and factor is not None:
        require_factor(f"{where}.position", factor)
    rows: list = getattr(element, "rows", lambda: [element])()
    for row in rows:
        law = getattr(row, "law", None)
        if isinstance(law, FrictionCurve):
            require_curve(where, law)
        if isinstance(law, (StaticDynamic, Stribeck, VelocityWeakening)):
            require_law(where, law)
    if section == "diagram_spring":
        x, force = np.asarray(element.x), np.asarray(element.F)
        if x.ndim != 1 or x.shape != force.shape or x.size < 2 or np.any(np.diff(x) <= 0):
            raise ProblemError(
                f"{where}.x: found {x.tolist()}, needs at least two strictly "
                "increasing values and as many values of F"
            )
    if isinstance(element, AbstractBristle):
        _refuse_problems(None, where, jax.tree.map(np.asarray, element))
    require_functions_of_time(where, section, element, time)


def _shapes(problem: AbstractProblem) -> None:
    n = len(problem.dofs)
    for name in ("M", "C", "K"):
        entries = getattr(problem.matrices, name)
        if entries is None:
            continue
        try:
            shape = np.asarray(entries, dtype=float).shape
        except ValueError:
            raise ProblemError(f"matrices.{name}: rows must have {n} entries each") from None
        if shape != (n, n):
            raise ProblemError(f"matrices.{name}: found shape {shape}, needed is ({n}, {n})")
