"""What is given from outside, in scalars: the rows of :mod:`jfric.solvers.event_driven.given`."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jfric.solvers.event_driven.given import functions_after
from jfric.solvers.event_driven.prepared import Prepared
from jfric.solvers.event_driven.scalar_rows import Row, combine, magnitudes, times


class Basis(NamedTuple):
    """Powers of the time since the start of the step, then a sine and cosine for each ``omega``,
    then ``others``: forces that depend on the motion, which the basis only has places for."""

    powers: int
    omegas: list
    #: Values at the start of the step.
    w: Row
    others: int = 0

    def rate(self, row: Row) -> Row:
        """The time derivative of ``row @ w``."""
        p = self.powers
        result = [times(row[j], float(j)) for j in range(1, p)]
        result.append(0.0)
        for k, omega in enumerate(self.omegas):
            sine, cosine = row[p + 2 * k : p + 2 * k + 2]
            result += [times(-omega, cosine), times(omega, sine)]
        return [*result, *[0.0] * self.others]

    def at(self, s) -> Row:
        """Values at the time ``s`` after the start, without those of the others."""
        return functions_after(self.powers, self.omegas, self._waves, s)

    @property
    def _waves(self) -> Row:
        return self.w[self.powers : self.powers + 2 * len(self.omegas)]

    def derivatives(self, order: int) -> list[Row]:
        """All derivatives at the start up to an order, without those of the others."""
        p, waves = self.powers, self._waves
        result = []
        for k in range(order + 1):
            powers: Row = [self.w[0] * math.factorial(k) if j == k else 0.0 for j in range(p)]
            result.append([*powers, *waves])
            waves = [
                x
                for omega, sine, cosine in zip(self.omegas, waves[::2], waves[1::2], strict=True)
                for x in (omega * cosine, -omega * sine)
            ]
        return result

    def sizes(self, order: int = 0) -> Row:
        """Magnitudes of the derivatives of this order at the start: of a sine its amplitude, as the
        rounding error of a sine near its zero is that of its argument."""
        powers: Row = [
            math.factorial(order) * jnp.ones_like(self.w[0]) if j == order else 0.0
            for j in range(self.powers)
        ]
        waves = [x for omega in self.omegas for x in [jnp.abs(omega) ** order] * 2]
        return [*powers, *waves]

    @property
    def size(self) -> int:
        """Number of functions."""
        return self.powers + 2 * len(self.omegas) + self.others


class ScalarGiven(NamedTuple):
    """Rows over the basis; one velocity and acceleration for the tangent and one for the normal.

    ``bound``: the same from the magnitudes of contributions.
    """

    basis: Basis
    force: list[Row]
    #: Given normal force of a friction element.
    normal: Row
    velocity: list[Row]
    acceleration: list[Row]
    gap: Row
    bound: ScalarGiven | None = None


def scalar_given(prepared: Prepared, t, force, others: int = 0) -> ScalarGiven:
    """Everything that is given on the smooth piece that begins at or holds ``t``.

    ``others``: forces that depend on the motion. The first act on the degrees of freedom.
    """
    mechanics = prepared.mechanics
    belts = [b for b in mechanics.belts if b is not None]
    groups = [mechanics.base_functions, mechanics.load_functions, belts, mechanics.normal_forces]
    basis, rows, sizes = _basis([f for group in groups for f in group], jnp.asarray(t), others)
    ends = np.cumsum([0, *(len(group) for group in groups)]).tolist()

    def split(rows):
        return [rows[a:b] for a, b in itertools.pairwise(ends)]

    signed = _given(prepared, basis, split(rows), force, absolute=False)
    return signed._replace(bound=_given(prepared, basis, split(sizes), force, absolute=True))


def _given(prepared: Prepared, basis: Basis, rows: list, force, *, absolute: bool) -> ScalarGiven:
    """From the rows of bases, loads, belts and normal forces; of magnitudes if ``absolute``."""
    mechanics = prepared.mechanics
    n, nb = mechanics.n, len(mechanics.base_functions)
    base, load, belt, normal = rows
    sized = magnitudes if absolute else (lambda row: row)
    nothing: Row = [0.0] * basis.size

    def rate(row: Row) -> Row:
        return magnitudes(basis.rate(row)) if absolute else basis.rate(row)

    def constant(x) -> Row:
        return [*sized([x]), *nothing[1:]]

    rates = [rate(row) for row in base]
    forces = []
    for i in range(n):
        weights = [mechanics.load_directions[j, i] for j in range(len(load))]
        weights += [mechanics.K_base[i, j] for j in range(nb)]
        weights += [mechanics.C_base[i, j] for j in range(nb)]
        extra = [constant(mechanics.f0[i]), constant(force[i])]
        extra += [_unit(basis, i)] if basis.others else []
        weights = [*sized(weights), *[1.0] * len(extra)]
        forces.append(combine(weights, [*load, *base, *rates, *extra]))
    velocity = []
    for r in range(prepared.W.shape[0]):
        weights = [-prepared.W_base[r, j] for j in range(nb)]
        moving = belt if r == 0 else []
        weights = [*sized(weights), *[1.0] * len(moving), 1.0]
        velocity.append(combine(weights, [*rates, *moving, nothing]))
    gap = nothing
    if prepared.nu:
        weights = [mechanics.W_N_base[0, j] for j in range(nb)]
        gap = combine([*sized(weights), 1.0], [*base, constant(mechanics.gap0[0])])
    return ScalarGiven(
        basis=basis,
        force=forces,
        normal=normal[0] if normal else nothing,
        velocity=velocity,
        acceleration=[rate(row) for row in velocity],
        gap=gap,
    )


def _unit(basis: Basis, place: int) -> Row:
    """The row of one of the others."""
    start = basis.size - basis.others
    return [float(j == start + place) for j in range(basis.size)]


def _basis(functions: list, t, others: int) -> tuple[Basis, list[Row], list[Row]]:
    """The basis, one row for each function, and the magnitudes of these rows."""
    parts = [f.components(t) for f in functions]
    powers = max([1, *(len(p.polynomial) for p in parts)])
    harmonics = [(i, h) for i, p in enumerate(parts) for h in p.harmonics]
    zero = jnp.zeros_like(t)

    def filled(polynomial) -> Row:
        missing = powers - len(polynomial) + 2 * len(harmonics) + others
        return [*(zero + p for p in polynomial), *[0.0] * missing]

    rows = [filled(p.polynomial) for p in parts]
    sizes = [filled(f.magnitudes(t)) for f in functions]
    w: Row = [zero + 1.0, *[0.0] * (powers - 1)]
    omegas = []
    for k, (i, (amplitude, angle, omega)) in enumerate(harmonics):
        w += [jnp.sin(angle) + zero, jnp.cos(angle) + zero]
        omegas.append(omega + zero)
        rows[i][powers + 2 * k] = amplitude + zero
        sizes[i][powers + 2 * k] = jnp.abs(amplitude + zero)
    return Basis(powers, omegas, [*w, *[0.0] * others], others), rows, sizes
