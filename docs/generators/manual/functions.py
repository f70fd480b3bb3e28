"""Functions of time and directions, as MathML."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.manual import mathml as m
from generators.manual.formulas import expression
from jfric.system.derived_functions import Clipped, Until
from jfric.system.direction import Direction
from jfric.system.expression import Expression
from jfric.system.functions import (
    AbstractFunction,
    Constant,
    Harmonic,
    PiecewiseLinear,
    Ramp,
    Steps,
    Sum,
)
from jfric.system.units import per_second

#: Pieces of a function of time that are listed; longer ones are given by their range.
MOST = 8


def value(x: Any, unit: str = "") -> str:
    """A number, or an expression in shared parameters."""
    return expression(x) if isinstance(x, Expression) else m.quantity(float(np.asarray(x)), unit)


def of_time(function: AbstractFunction, unit: str = "") -> str:
    """The right side of ``F(t) = ...``; its numbers are plain ones (expressions are resolved)."""
    match function:
        case Constant(value=x):
            return value(x, unit)
        case Harmonic(amplitude=a, omega=w, phase=phase):
            angle = m.times(float(w), "<mi>t</mi>")
            if float(phase):
                angle = m.row(angle, *_signed(m.number(abs(float(phase))), float(phase)))
            sine = m.row('<mi mathvariant="normal">sin</mi>', m.bracketed(angle))
            return m.row(value(a, unit), m.SPACE, sine)
        case Ramp(rate=rate, value=start):
            line = m.row(value(rate, per_second(unit)), m.SPACE, "<mi>t</mi>")
            return line if not float(start) else m.row(value(start, unit), m.op("+"), line)
        case Steps(times=times, values=values) if np.size(values) <= MOST:
            ends = [*np.asarray(times), None]
            return m.cases([(value(v, unit), _until(t)) for v, t in zip(values, ends, strict=True)])
        case PiecewiseLinear(times=times, values=values) if np.size(values) <= MOST:
            points = [
                m.bracketed(m.row(m.number(t), m.op(","), m.number(v)))
                for t, v in zip(np.asarray(times), np.asarray(values), strict=True)
            ]
            between = '<mspace width="0.5em"/>'
            return m.row(m.text("straight lines through\u00a0"), between.join(points))
        case Sum(terms=terms):
            return m.op("+").join(of_time(term, unit) for term in terms)
        case Until(function=inner, end=end, after=after):
            return m.cases(
                [(of_time(inner, unit), _until(float(end))), (value(after, unit), _until(None))]
            )
        case Clipped(function=inner):
            inside = m.bracketed(m.row("<mn>0</mn>", m.op(","), of_time(inner, unit)))
            return m.row('<mi mathvariant="normal">max</mi>', inside)
        case Steps() | PiecewiseLinear():
            times, values = np.asarray(function.times), np.asarray(function.values)
            kind = "steps" if isinstance(function, Steps) else "straight lines"
            return m.text(
                f"{kind} through {values.size} values from {values.min():.6g} to "
                f"{values.max():.6g} {m.units(unit)}, {times[0]:.6g} s to {times[-1]:.6g} s"
            )
    return m.text(f"a function of time ({type(function).__name__})")


def _until(end: float | None) -> str:
    if end is None:
        return m.text("then")
    return m.row(m.text("for\u00a0"), "<mi>t</mi>", m.op("<"), m.quantity(float(end), "s"))


def _signed(shown: str, x: float) -> tuple[str, str]:
    return m.op(m.MINUS if x < 0 else "+"), shown


def combination(coefficients: dict[str, Any], order: int = 0) -> str:
    """``w^T q`` of a direction, or a derivative of it."""
    parts: list[str] = []
    for name, x in coefficients.items():
        of = m.symbol(name) if order == 0 else m.dotted(m.symbol(name), order)
        size = float(np.asarray(x))
        if size == 0.0:
            continue
        shown = of if abs(size) == 1.0 else m.row(m.number(abs(size)), of)
        if parts or size < 0:
            parts.append(m.op(m.MINUS if size < 0 else "+"))
        parts.append(shown)
    return m.row(*parts) if parts else "<mn>0</mn>"


def entries(direction: Direction) -> dict[str, Any]:
    """Coefficients of a direction by name."""
    if direction.signs is not None:
        return dict(zip(direction.names, direction.signs, strict=True))
    return dict(direction.coefficients or {})


def along(direction: Direction, order: int = 0, most: int = 6) -> str:
    """A direction's displacement, velocity; of long ones their first terms."""
    found = entries(direction)
    first = dict(list(found.items())[:most])
    shown = combination(first, order)
    return shown if len(found) <= most else m.row(shown, m.op("+"), m.op("…"))
