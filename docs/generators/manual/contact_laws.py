"""Laws of friction, contact and impact, as MathML."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.manual import mathml as m
from generators.manual.formulas import formula
from generators.manual.functions import along, of_time, value
from jfric.system.elements import Along, Contact, Gap
from jfric.system.friction import Friction
from jfric.system.functions import Constant
from jfric.system.laws import (
    AbstractLaw,
    Contensou,
    Coulomb,
    Directional,
    FrictionCurve,
    PerAxis,
    StaticDynamic,
    Stribeck,
    VelocityWeakening,
)

Line = tuple[str, str]

_LAMBDA, _GAMMA = "<mi>λ</mi>", "<mi>γ</mi>"


def friction_lines(label: str, element: Friction, unit: str) -> list[Line]:
    """Words and formulas of a friction element with a given normal force."""
    lines = [*_sliding(label, element), *_normal_force(label, element, unit)]
    return [*lines, *_law(label, element.coefficients, m.sub("<mi>N</mi>", label))]


def contact_lines(label: str, element: Contact) -> list[Line]:
    """Words and formulas of a unilateral contact."""
    g, force = m.sub("<mi>g</mi>", label), m.row(m.sub(_LAMBDA, f"N, {label}"))
    lines: list[Line] = []
    if element.point is not None:
        other = element.line if element.line is not None else element.circle
        of = " to ".join(other) if isinstance(other, tuple) else other
        lines.append((f"{label}: the point {element.point} against {of}", ""))
    elif isinstance(element.gap, Gap):
        function = element.gap.function
        shown = formula(function) if isinstance(function, str) else m.text("a Python function")
        lines.append((f"{label}: gap", m.display(g, m.op("="), shown)))
    elif element.normal is not None:
        gap = np.asarray(element.gap)
        constant = [] if float(gap) == 0.0 else [value(gap)]
        right = m.added([*constant, along(element.normal)])
        lines.append((f"{label}: gap", m.display(g, m.op("="), right)))
    closed = m.row("<mn>0</mn>", m.op("≤"), g, m.op("⊥"), force, m.op("≥"), "<mn>0</mn>")
    after, before = (m.with_sign(m.dotted(g), sign) for sign in ("+", m.MINUS))
    e = element.e
    rebound = [m.op(m.MINUS), value(e), before] if float(np.asarray(e)) else ["<mn>0</mn>"]
    impact = m.row(after, m.op("="), *rebound)
    lines.append(
        (f"{label}: complementarity, and Newton's restitution at impacts", m.display(closed))
    )
    lines.append(("", m.display(impact)))
    if element.law is not None and not element.frictionless:
        lines += [*_sliding(label, element), *_law(label, element.law, force)]
        if element.impact == "none":
            lines.append((f"{label}: impacts carry no tangential impulse", ""))
    return lines


def _sliding(label: str, element: Any) -> list[Line]:
    """The sliding velocity."""
    gamma = m.sub(_GAMMA, label)
    if element.plane is not None:
        shown = [
            m.text(str(x.function)) if isinstance(x, Along) else along(x, 1) for x in element.plane
        ]
        spin = getattr(element, "spin", None)
        shown += [] if spin is None else [along(spin, 1)]
        right = m.bracketed(m.op(",").join(shown))
    elif element.sliding is not None:
        own = formula(element.sliding) if isinstance(element.sliding, str) else m.text("(Python)")
        right = m.row(m.fraction('<mi mathvariant="normal">d</mi>', "<mi>dt</mi>"), own)
        if isinstance(element.sliding, str) and "v." in element.sliding:
            right = own
    else:
        direction = getattr(element, "direction", None) or getattr(element, "tangent", None)
        if direction is None:
            return []
        right = along(direction, 1)
    belts = element.belt if isinstance(element.belt, tuple) else (element.belt,)
    for belt in belts:
        if belt is not None:
            shown = of_time(belt)
            plain = isinstance(belt, Constant) and float(np.asarray(belt.value)) >= 0.0
            right = m.row(right, m.op(m.MINUS), shown if plain else m.bracketed(shown))
    return [(f"{label}: sliding velocity", m.display(gamma, m.op("="), right))]


def _normal_force(label: str, element: Friction, unit: str) -> list[Line]:
    """``N`` or the limit, with what grows with a load and with the position."""
    parts = []
    if element.N is not None or element.limit is not None:
        parts.append(of_time(element.normal_force, unit))
    if element.load is not None:
        kappa = "<mn>1</mn>" if element.kappa is None else value(element.kappa)
        terms = along(element.load)
        parts.append(m.row(kappa, m.bracketed(terms, "|", "|")))
    right = m.op("+").join(parts) if parts else "<mn>0</mn>"
    if element.position is not None:
        right = m.row("<mi>f</mi>", m.bracketed("<mi>s</mi>"), m.bracketed(right))
    words = "normal force" if element.N is not None else "friction limit"
    found = [(f"{label}: {words}", m.display(m.sub("<mi>N</mi>", label), m.op("="), right))]
    if element.position is not None:
        kind = type(element.position).__name__
        found.append((f"{label}: f is a factor of the position s ({kind})", ""))
    return found


def _law(label: str, law: AbstractLaw, normal: str) -> list[Line]:
    """The force in stick and in sliding."""
    if isinstance(law, Contensou):
        return _disc(label, law, normal)
    force, gamma = m.sub(_LAMBDA, f"T, {label}"), m.sub(_GAMMA, label)
    size = m.bracketed(force, "|", "|")
    static, kinetic = _coefficients(law)
    sign = m.row('<mi mathvariant="normal">sign</mi>', m.SPACE, gamma)
    gap = m.SPACE
    stick = m.row(size, m.op("≤"), static, gap, normal)
    slip = m.row(force, m.op("="), m.op(m.MINUS), kinetic, gap, normal, gap, sign)
    zero = m.row(m.text("if\u00a0"), gamma, m.op("="), "<mn>0</mn>")
    other = m.row(m.text("if\u00a0"), gamma, m.op("≠"), "<mn>0</mn>")
    name = type(law).__name__
    lines = [(f"{label}: friction ({name})", m.display(m.cases([(stick, zero), (slip, other)])))]
    shown = _curve(law)
    if shown:
        lines.append(("", m.display(m.symbol("mu"), m.bracketed("<mi>v</mi>"), m.op("="), shown)))
    return lines


def _disc(label: str, law: Contensou, normal: str) -> list[Line]:
    """Line with the power that friction of a disc dissipates; its derivatives: force and torque."""
    velocity = m.row("<mi>v</mi>", m.op("+"), "<mi>ω</mi>", m.op("×"), "<mi>r</mi>")
    mean = m.row(m.text("mean\u00a0"), m.bracketed(velocity, "|", "|"))
    power = m.row("<mi>D</mi>", m.op("="), _mu(law.mu), m.SPACE, normal, m.SPACE, mean)
    within = m.row("<mi>r</mi>", m.op("≤"), value(law.radius, "m"))
    words = f"{label}: friction (Contensou) of a disc, force and torque the derivatives of"
    return [(words, m.display(power, m.SPACE, m.text(",\u00a0"), within))]


def _coefficients(law: AbstractLaw) -> tuple[str, str]:
    """In stick, and in sliding."""
    mu_of = m.row(m.symbol("mu"), m.bracketed(m.bracketed(_GAMMA, "|", "|")))
    match law:
        case Coulomb():
            return _mu(law.mu), _mu(law.mu)
        case StaticDynamic():
            return _mu(law.mu_s), _mu(law.mu_d)
        case Stribeck():
            peak = "" if law.peak is None else m.row(_mu(law.peak), m.op("·"))
            return peak + _mu(law.mu_s), mu_of
        case VelocityWeakening():
            return _mu(law.mu_s), mu_of
    return m.symbol("mu_s"), mu_of


def _curve(law: AbstractLaw) -> str:
    """``mu(v)`` of the laws that have one."""
    v = "<mi>v</mi>"
    match law:
        case Stribeck():
            ratio = m.bracketed(m.fraction(v, _mu(law.v_s)))
            minus = m.row(m.op(m.MINUS), m.power(ratio, _mu(law.exponent)))
            fall = m.row('<mi mathvariant="normal">exp</mi>', m.bracketed(minus))
        case VelocityWeakening():
            fall = m.fraction(
                "<mn>1</mn>", m.row("<mn>1</mn>", m.op("+"), m.fraction(v, _mu(law.v_s)))
            )
        case FrictionCurve():
            return m.text(f"a curve through {len(law.speeds)} knots")
        case _:
            return ""
    drop = m.bracketed(m.row(_mu(law.mu_s), m.op(m.MINUS), _mu(law.mu_d)))
    viscous = m.row(m.op("+"), _mu(law.mu_v), v)
    plain = not isinstance(law.mu_v, Directional | PerAxis) and float(np.asarray(law.mu_v)) == 0.0
    return m.row(_mu(law.mu_d), m.op("+"), drop, fall, "" if plain else viscous)


def _mu(x: Any) -> str:
    if isinstance(x, Directional):
        pair = [(value(x.positive), m.text("forwards")), (value(x.negative), m.text("backwards"))]
        return m.cases(pair)
    if isinstance(x, PerAxis):
        return m.bracketed(m.row(value(x.first), m.op(","), value(x.second)))
    return value(x)
