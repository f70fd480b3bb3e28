"""The equation of motion with its assembled matrices, as MathML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from generators.manual import mathml as m
from generators.manual.contact_laws import Line
from generators.manual.functions import entries
from jfric.system.linkage import LINKAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jfric.system.mechanics import Mechanics
    from jfric.system.problem import Problem

#: Larger matrices are described.
LARGEST = 8


def motion_lines(problem: Problem, mechanics: Mechanics, others: Sequence[str]) -> list[Line]:
    """The equation of motion; ``others``: sections of elements with a force of their own."""
    varies = mechanics.varying is not None and bool(mechanics.varying.energies)
    found = {name: np.asarray(getattr(mechanics, name)) for name in "MCK"}
    shown = {k: x for k, x in found.items() if np.any(x) and not (k == "M" and varies)}
    if mechanics.n == 1 and mechanics.varying is None:
        return [_one_equation(problem, mechanics, shown, others)]
    terms = [_term(name, varies) for name in "MCK" if name in shown or (name == "M" and varies)]
    q = m.bold("q")
    if varies:
        terms.append(m.of(m.bold("h"), q, m.dotted(q)))
    right = _right_side(problem, mechanics, others)
    plus = m.op("+")
    lines = [("Equations of motion, in SI units", m.display(plus.join(terms), m.op("="), right))]
    if varies:
        words = "Mass matrix and h follow from the energies by Lagrange's equations"
        lines.append((words, _lagrange()))
    return [*lines, *_matrices(mechanics, shown)]


def _term(name: str, varies: bool) -> str:
    q = m.bold("q")
    order = "KCM".index(name)
    matrix = m.of(m.bold("M"), q) if name == "M" and varies else m.bold(name)
    return m.row(matrix, m.dotted(q, order) if order else q)


def _one_equation(
    problem: Problem, mechanics: Mechanics, shown: dict[str, np.ndarray], others: Sequence[str]
) -> Line:
    """With numbers, of one degree of freedom."""
    (axis,) = mechanics.axes
    q, left, right = m.symbol(axis), [], []
    for name, x in shown.items():
        order = "KCM".index(name)
        left.append(m.times(x[0, 0], m.dotted(q, order) if order else q))
    if float(np.asarray(mechanics.f0)[0]):
        right.append(m.number(float(np.asarray(mechanics.f0)[0])))
    for label, load in problem.labelled("load").items():
        factor = float(np.asarray(entries(load.direction).get(axis, 0.0)))
        right.append(m.times(factor, m.of(m.sub("<mi>F</mi>", label), "<mi>t</mi>")))
    right += [m.sub("<mi>f</mi>", label) for label in problem.labelled(*others)]
    if problem.section("base"):
        right.append(m.text("forces of the moving support"))
    for letter, rows in (("T", mechanics.W_T), ("N", mechanics.W_N)):
        names = mechanics.contact_names[len(mechanics.contact_names) - rows.shape[0] :]
        for name, x in zip(names, np.asarray(rows)[:, 0], strict=True):
            if x:
                right.append(m.times(float(x), m.sub("<mi>λ</mi>", f"{letter}, {name}")))
    words = "Equation of motion, in SI units"
    return words, m.display(m.added(left), m.op("="), m.added(right))


def _right_side(problem: Problem, mechanics: Mechanics, others: Sequence[str]) -> str:
    parts = []
    if problem.section("load") or np.any(np.asarray(mechanics.f0)):
        parts.append(m.of(m.bold("f"), "<mi>t</mi>"))
    parts += [m.sub(m.bold("f"), label) for label in problem.labelled(*others)]
    if problem.section("base"):
        parts.append(m.text("forces of the moving supports"))
    for letter, rows in (("T", mechanics.W_T), ("N", mechanics.W_N)):
        if np.size(rows):
            force = f"<msub>{m.bold('λ')}<mi>{letter}</mi></msub>"
            parts.append(m.row(m.transposed("W", letter), force))
    if any(problem.section(x) for x in ("joint", "velocity", *LINKAGE)):
        parts.append(m.row(m.transposed("Φ"), m.bold("λ")))
    return m.added(parts)


def _matrices(mechanics: Mechanics, shown: dict[str, np.ndarray]) -> list[Line]:
    """The vector of coordinates, and matrices that are small."""
    n, axes = mechanics.n, mechanics.axes
    if n > LARGEST:
        sizes = ", ".join(f"{np.count_nonzero(x)} of {k}" for k, x in shown.items())
        words = (
            f"q has {n} coordinates, {axes[0]} to {axes[-1]}; entries that are not zero: {sizes}"
        )
        return [(words, "")]
    parts = [m.row(m.bold("q"), m.op("="), m.matrix([[m.symbol(axis)] for axis in axes]))]
    for name, x in shown.items():
        rows = [[m.number(value) for value in row] for row in x]
        parts.append(m.row(m.bold(name), m.op("="), m.matrix(rows)))
    if mechanics.varying is None and np.size(mechanics.W_T) and len(mechanics.W_T) <= LARGEST:
        for letter, w in (("T", mechanics.W_T), ("N", mechanics.W_N)):
            if np.size(w):
                rows = [[m.number(value) for value in row] for row in np.asarray(w)]
                left = f"<msub>{m.bold('W')}<mi>{letter}</mi></msub>"
                parts.append(m.row(left, m.op("="), m.matrix(rows)))
    return [("", m.display(part)) for part in parts]


def _lagrange() -> str:
    def by(letter: str, below: str) -> str:
        above = m.row("<mo>∂</mo>", f"<mi>{letter}</mi>")
        return m.fraction(above, m.row("<mo>∂</mo>", below))

    q, d = m.bold("q"), '<mi mathvariant="normal">d</mi>'
    rate = m.fraction(d, m.row(d, "<mi>t</mi>"))
    return m.display(
        *(rate, by("T", m.dotted(q)), m.op(m.MINUS), by("T", q), m.op("+"), by("V", q), m.op("+")),
        *(by("D", m.dotted(q)), m.op("="), m.text("forces of all other elements")),
    )
