"""Accelerations and reactions of a mode, with the derivatives of the equations that they solve.

They satisfy, with the matrices of one instant::

    M a = f + R^T lambda + J^T mu,    W_a a = c_a,    J a = phi,    lambda = S y

for active rows ``a`` of the contacts. With the operators that solve ``A x = b`` the change of ``x``
is ``dx = A^-1 (db - dA x)``: no derivative goes through the elimination that found them.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.contact.reactions import Coupling
from jfric.numerics.linear_algebra import matvec
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.prepared import Prepared
from jfric.system.joints import Tied


class Matrices(NamedTuple):
    """Matrices of ``A``; ``R`` is None where it equals ``W``, ``J`` where there are no joints."""

    M: Float[Array, "n n"]
    W: Float[Array, "m n"]
    R: Float[Array, "m n"] | None
    J: Float[Array, "k n"] | None
    #: Ratios of friction to normal force, the entries of ``S``.
    ratio: Float[Array, " u"]

    @property
    def directions(self) -> Float[Array, "m n"]:
        """The matrix ``R``."""
        return self.W if self.R is None else self.R


class Sides(NamedTuple):
    """Right-hand side ``b``: forces, relative accelerations, and those that joints demand."""

    f: Float[Array, " n"]
    c: Float[Array, " m"]
    phi: Float[Array, " k"] | None


class Operators(NamedTuple):
    """Operators from right-hand sides to solutions, see
    :mod:`jfric.solvers.event_driven.mode_equations` and :mod:`jfric.system.joints`."""

    P: Float[Array, "n n"]
    PQ: Float[Array, "n m"]
    L: Float[Array, "m n"]
    Q: Float[Array, "m m"]
    tied: Tied | None

    def solution(self, A: Matrices, b: Sides) -> Solution:
        """Solution ``x`` for ``b``."""
        held, wanted, joint = None, b.c, None
        if self.tied is not None and b.phi is not None:
            held = matvec(self.tied.MJ, matvec(self.tied.S, b.phi))
            wanted = wanted - matvec(A.W, held)
        reaction = matvec(self.L, b.f) + matvec(self.Q, wanted)
        a = matvec(self.P, b.f) + matvec(self.PQ, wanted)
        if self.tied is not None and held is not None and b.phi is not None:
            a = a + held
            f = b.f + matvec(A.directions.T, reaction)
            joint = matvec(self.tied.S, b.phi - matvec(self.tied.MJ.T, f))
        return Solution(a, reaction, joint)


class Solution(NamedTuple):
    """Solution ``x``: accelerations, reactions of contacts, and one set of reactions of the joints
    that causes these accelerations."""

    a: Float[Array, " n"]
    reaction: Float[Array, " m"]
    joint: Float[Array, " k"] | None


def solved(
    now: Prepared, equations: ModeEquations, S: Coupling, b: Sides, *, still: bool
) -> Solution:
    """Solution ``x`` at an instant. ``still``: with the derivatives of the equations that it
    solves, else with those of the operators."""
    here = now.mechanics
    J = None if here.tied is None else here.tied.J
    R = None if here.reactions is None else jnp.concatenate([here.R_T, here.W_N])
    A = Matrices(here.M, now.W, R, J, S.ratio)
    e, tied = equations, here.tied
    if not still:
        return Operators(e.P, e.PQ, e.L, e.Q, tied).solution(A, b)
    operators = jax.lax.stop_gradient(Operators(e.P, e.PQ, e.L, e.Q, tied))
    carrier = None if S.carrier is None else tuple(map(int, S.carrier))
    return _implicit(carrier, operators, A, b)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _implicit(
    carrier: tuple[int, ...] | None, operators: Operators, A: Matrices, b: Sides
) -> Solution:
    return operators.solution(A, b)


@_implicit.defjvp
def _change(carrier, primals, tangents):
    operators, A, b = primals
    _, dA, db = tangents
    x = _implicit(carrier, operators, A, b)
    f = db.f + matvec(dA.directions.T, x.reaction) - matvec(dA.M, x.a)
    c, phi = db.c - matvec(dA.W, x.a), None
    if A.J is not None:
        f, phi = f + matvec(dA.J.T, x.joint), db.phi - matvec(dA.J, x.a)
    u = A.ratio.shape[0]
    if not u:
        return x, _implicit(carrier, operators, A, Sides(f, c, phi))
    # Friction of contacts that slide follows their normal forces, and changes with the ratio.
    nt = x.reaction.shape[0] - u
    normal = x.reaction[nt:]
    normal = normal if carrier is None else normal[np.asarray(carrier)]
    rubs = jnp.pad(dA.ratio * normal, (nt - u, u))
    dx = _implicit(carrier, operators, A, Sides(f + matvec(A.directions.T, rubs), c, phi))
    return x, dx._replace(reaction=dx.reaction + rubs)
