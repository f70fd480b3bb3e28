"""The friction laws that are compared for one problem.

Every candidate replaces the law of one friction element and starts from the values of that law.
With ``v = |gamma_T|``, and all coefficients for each direction of sliding from "asymmetric" on::

    viscous            F_v v
    Coulomb            F_c
    Coulomb + viscous  F_c + F_v v
    linear             F_v v, and a spring and a constant force: no friction, but any linear motion
    asymmetric         F_c(+-) + F_v(+-) v
    Stribeck           F_c(+-) + F_v(+-) v + F_s exp(-(v/v_s)^2)
    load-dependent     the last, times 1 + a |f|, with the sum f of all other forces
    position           (F_c + F_v v) (1 + c cos(2 pi s/period) + d sin(2 pi s/period))
    Jenkins            spring sigma in series with a slider of the limit F_c, and F_v v
    Dahl               bristle of the stiffness sigma with the limit F_c, and F_v v
    Bouc-Wen           the same, with the exponent n, and a share of the rate that does not turn
    LuGre              bristle with Stribeck's curve, without its own damping sigma1, and F_v v
    curve              values at knots, each direction, as smooth as the data ask for

with the displacement ``s``. "linear" shows what friction buys: it is a state space of order two
with free stiffness, damping and mean, beside what the problem has. Jenkins, Dahl, Bouc-Wen and
LuGre remember: they are springs before they slide.

"load-dependent" is a law of :class:`jfric.Friction` with a load: it is a candidate where all other
forces have names. The curve is made by :func:`curve_candidate`.
``F_s`` may be negative: friction then rises with the sliding velocity instead of falling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jfric.errors import ProblemError
from jfric.fits.comparison.result import LINEAR
from jfric.fits.curve_prior import with_elements
from jfric.fits.free import Free
from jfric.system.bristle import BRISTLES, BoucWen, Dahl, LuGre
from jfric.system.description import element_label
from jfric.system.elements import (
    SECTIONS,
    AbstractForce,
    Damper,
    Friction,
    Lagrangian,
    Load,
    Spring,
)
from jfric.system.features import FEATURES, require_features
from jfric.system.functions import Constant
from jfric.system.hysteresis import HYSTERESIS, Jenkins
from jfric.system.laws import Directional, FrictionCurve, Stribeck
from jfric.system.load_friction import carrying_sections
from jfric.system.position_factor import PeriodicFactor
from jfric.system.problem import Problem

#: Ranges of the coefficients, relative to the present friction (or to friction over velocity).
RANGE = (1e-3, 1e2)
SIDES = ("positive", "negative")
#: Where the search for ``F_s`` starts, relative to ``F_c``.
BEGIN = -0.1
#: Knots of a curve in each direction.
KNOTS = 8
CURVE = "curve"
#: Ratio of the fastest knot to the first one above zero, approximately.
FINEST = 100.0
#: The candidate whose fit is the start of a curve.
_BEGINNING = "Coulomb + viscous"
#: Candidates that remember.
MEMORY = ("Jenkins", "Dahl", "Bouc-Wen", "LuGre")
#: Ways before sliding, as parts of the travel: the longest, the start, the shortest.
BEFORE = (0.3, 3e-3, 1e-6)


@dataclass(frozen=True)
class Candidate:
    """A friction model: its problem, and the parameters that are free in addition to all others."""

    name: str
    problem: Problem
    free: Mapping[str, Free]


def candidate_laws(
    problem: Problem,
    speed: float,
    *,
    loads: bool = True,
    travel: float | None = None,
    period: float | None = None,
) -> list[Candidate]:
    """The candidates for the only friction element of ``problem``.

    ``speed`` [m/s or rad/s]: a typical sliding velocity, which sets the ranges of viscous terms.
    Dampers are removed: the viscous part of the law replaces them and starts from their value.
    ``loads``: whether load dependence is a candidate. ``travel`` [m or rad]: length of the motion,
    which sets the ranges of stiffnesses; with it laws that remember are candidates. ``period`` [m
    or rad]: with it friction that repeats along the way is one. Six of them::

        >>> [law.name for law in jfric.candidate_laws(problem, speed=0.1)]
        ['viscous', 'Coulomb', 'Coulomb + viscous', 'asymmetric', 'Stribeck', 'load-dependent']
        >>> sorted(jfric.candidate_laws(problem, speed=0.1)[2].free)
        ['parameters.F_c', 'parameters.F_v']
    """
    require_features(problem, "the comparison of laws", FEATURES.keys() - {"fading", "planes"})
    group = problem.elements.get("friction", {})
    if len(group) != 1:
        raise ProblemError(f"friction: found {len(group)} elements, the comparison takes one")
    resolved = problem.resolved()
    found: Any = resolved.elements["friction"]
    ((name, element),) = found.items()
    size = float(element.coefficients.kinetic(speed)[0])
    if element.limit is not None:
        size, element = size * float(element.limit(0.0)), replace(element, limit=Constant(1.0))
    if not size > 0.0:
        raise ProblemError(f"friction: found a friction of {size:g}, a positive start is needed")
    damping = sum(float(d.c) for d in resolved.section("damper").values())
    if element.direction is None or element.belt is not None or element.redirected:
        travel = period = None
    candidates = _plain(size, damping, speed, travel)
    if not loads or not _carried(problem):
        del candidates["load-dependent"]
    candidates |= _more(candidates, size, travel, period)
    return [
        Candidate(
            title,
            _remembering(problem, title, name, element, free)
            if title in MEMORY
            else _with_law(problem, name, element, free),
            {f"parameters.{path}": f for path, f in free.items()},
        )
        for title, free in candidates.items()
    ]


def _plain(
    size: float, damping: float, speed: float, travel: float | None
) -> dict[str, dict[str, Free]]:
    """Coefficients of laws without memory, for friction and dampers of a certain ``size`` at the
    ``speed``; the linear one for a ``travel``."""
    low, high = (part * size for part in RANGE)
    # Dampers are removed: their present sum is the start of the viscous part.
    damping = min(max(damping or size / speed, low / speed), high / speed)
    force, alone = Free(low, high, init=size), Free(low / speed, high / speed, init=damping)
    # A viscous part added to a constant one may be zero: a lower bound above zero would be wrong.
    rate = Free(0.0, high / speed, init=damping, scale="linear")
    sided = {f"F_c_{side}": force for side in SIDES} | {f"F_v_{side}": rate for side in SIDES}
    fall = {
        "F_s": Free(-size, 10.0 * size, init=BEGIN * size, scale="linear"),
        "v_s": Free(1e-3 * speed, 10.0 * speed, init=0.1 * speed),
    }
    # At most half of the transmitted force is lost; the fit begins at a thousandth of this bound.
    grow = {"kappa": Free(0.0, 1.0 / size, init=1e-3 / size, scale="linear")}
    linear = {}
    if travel is not None:
        stiff, most = high / travel, 10.0 * size
        linear[LINEAR] = {
            "F_v": rate,
            "stiffness": Free(0.0, stiff, init=1e-3 * stiff, scale="linear"),
            "offset": Free(-most, most, init=1e-3 * most, scale="linear"),
        }
    return {
        "viscous": {"F_v": alone},
        "Coulomb": {"F_c": force},
        "Coulomb + viscous": {"F_c": force, "F_v": rate},
        **linear,
        "asymmetric": sided,
        "Stribeck": sided | fall,
        "load-dependent": sided | fall | grow,
    }


def _more(
    given: Mapping[str, Mapping[str, Free]],
    size: float,
    travel: float | None,
    period: float | None,
) -> dict[str, dict[str, Free]]:
    """Coefficients of friction that repeats along the way, and of laws that remember."""
    found: dict[str, dict[str, Free]] = {}
    plain = dict(given[_BEGINNING])
    if period is not None:
        wave = Free(-0.5, 0.5, init=0.0, scale="linear")
        near = Free(0.97 * period, 1.03 * period, init=period, scale="linear")
        found["position"] = plain | {"period": near, "cosine": wave, "sine": wave}
    if travel is not None:
        low, init, high = (size / (part * travel) for part in BEFORE)
        plain["sigma"] = Free(low, high, init=init)
        share = Free(0.5, 1.0, init=0.75, scale="linear")
        exponent = Free(1.0, 4.0, init=1.5, scale="linear")
        drop = Free(0.0, 10.0 * size, init=0.1 * size, scale="linear")
        found |= {
            "Jenkins": plain,
            "Dahl": plain,
            "Bouc-Wen": plain | {"share": share, "n": exponent},
            "LuGre": plain | {"drop": drop, "v_s": given["Stribeck"]["v_s"]},
        }
    return found


def curve_candidate(problem: Problem, fastest: float, values: Mapping[str, float]) -> Candidate:
    """A friction curve for each direction up to the speed ``fastest`` [m/s or rad/s], for
    :func:`jfric.fit_curve`; it starts from ``values``, the fitted Coulomb and viscous friction."""
    candidate = {c.name: c for c in candidate_laws(problem, fastest, loads=False)}[_BEGINNING]
    found: Any = candidate.problem.elements["friction"]
    ((name, element),) = found.items()
    # Even steps of ln(1 + v/v_1), the coordinate in which a curve is smooth.
    steps = np.expm1(np.linspace(0.0, np.log1p(FINEST), KNOTS))
    speeds = fastest * steps / steps[-1]
    level, slope = (values[f"parameters.{key}"] for key in ("F_c", "F_v"))
    flat = tuple((level + slope * speeds).tolist())
    law = FrictionCurve(tuple(speeds.tolist()), Directional(flat, flat))
    changed = {"friction": {name: replace(element, law=law)}}
    return Candidate(CURVE, with_elements(problem, changed, without=("damper",)), {})


def _with_law(problem: Problem, name: str, element: Friction, free: Mapping[str, Free]) -> Problem:
    """``problem`` with the law of a candidate, whose coefficients are shared parameters."""
    both = tuple(f"F_c_{side}" in free for side in SIDES)

    def of_sides(term: str, more: str = "") -> Any:
        if both[0]:
            return Directional(*(f"${term}_{side}{more}" for side in SIDES))
        return f"${term}{more}" if term in free else 0.0

    falls = "F_s" in free
    law = Stribeck(
        mu_s=of_sides("F_c", "+$F_s" if falls else ""),
        mu_d=of_sides("F_c"),
        v_s="$v_s" if falls else 1.0,
        mu_v=of_sides("F_v"),
    )
    load: dict[str, Any] = {}
    if "kappa" in free:
        load = {"load": _carried(problem), "kappa": "$kappa"}
    if "period" in free:
        wave: Any = ("$cosine",), ("$sine",)
        load = {"position": PeriodicFactor("$period", *wave)}
    changed: dict[str, dict[str, Any]] = {"friction": {name: replace(element, law=law, **load)}}
    if "stiffness" in free:
        w: Any = element.direction
        own = f"{name}_linear"
        changed |= {"spring": {own: Spring(w, "$stiffness")}, "load": {own: Load(w, "$offset")}}
    # Bounds are checked one by one: a low F_c beside a negative F_s is no friction.
    numbers = {k: 0.0 if k == "F_s" else f.init for k, f in free.items()}
    return with_elements(problem, changed, {**problem.parameters, **numbers}, ("damper",))


def _remembering(
    problem: Problem, title: str, name: str, element: Friction, free: Mapping[str, Free]
) -> Problem:
    """``problem`` with an element that remembers, and a damper, in place of friction."""
    w, bends = element.direction, "($sigma/$F_c)^$n"
    law = {
        "Jenkins": lambda: Jenkins(w, k="$sigma", R="$F_c"),
        "Dahl": lambda: Dahl(w, sigma="$sigma", F_c="$F_c"),
        "Bouc-Wen": lambda: BoucWen(
            w, k="$sigma", beta=f"$share*{bends}", gamma=f"(1-$share)*{bends}", n="$n"
        ),
        "LuGre": lambda: LuGre(w, sigma0="$sigma", F_c="$F_c", F_s="$F_c+$drop", v_s="$v_s"),
    }[title]()
    section = next(s for s, kind in (HYSTERESIS | BRISTLES).items() if type(law) is kind)
    changed = {section: {name: law}, "damper": {name: Damper(w, "$F_v")}}
    numbers = {**problem.parameters, **{k: f.init for k, f in free.items()}}
    return with_elements(problem, changed, numbers, ("damper", "friction"))


def _carried(problem: Problem) -> list[str]:
    """All elements with a force except dampers and friction; empty if a force has no name."""
    classes = tuple(SECTIONS[s] for s in SECTIONS.keys() & carrying_sections())
    for group in problem.elements.values():
        for element in group.values():
            named = isinstance(element, classes)
            if isinstance(element, (AbstractForce, Lagrangian)) and not named:
                return []
    if problem.matrices.C is not None or problem.matrices.K is not None:
        return []
    sections = [s for s in carrying_sections() if s != "damper"]
    return [element_label(s, name) for s in sections for name in problem.section(s)]
