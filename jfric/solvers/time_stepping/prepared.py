"""The assembled system and the matrices of a step, computed once where they never change, and the
state between steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.numerics.linear_algebra import UNROLLED_INVERSE, eliminate, matmul, matvec
from jfric.numerics.tolerances import tolerance_of
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.states import AbstractState
from jfric.system.assembly import assemble
from jfric.system.fields import Scalar
from jfric.system.joints import generalised_inverse
from jfric.system.laws import Coulomb
from jfric.system.mechanics import Mechanics, WithContacts
from jfric.system.problem import Problem
from jfric.system.start import started


class Scheme(NamedTuple):
    """Weights and rules of a scheme, in which all forces are linearised. ``P``: impulses of
    contacts, ``h``: the step::

        M (v+ - v) = h f_theta + W^T P,     q+ = q + h (theta v+ + (1 - theta) v)
        f_theta = f(t_theta, q + theta (q+ - q), v + theta (v+ - v))

        friction    gamma_T+ + kappa gamma_T  in  -N(P_T)        (Coulomb's law for impulses)
        contact     0 <= gamma_N+ + e gamma_N  _|_  P_N >= 0     (Newton's law at closed gaps)

    ``theta``: weight of the end of the step. ``kappa``: weight of the sliding velocity at the start
    in the friction law, relative to that at the end: 0 where the law holds at the end, 1 where it
    holds in the middle (``gamma_T+ + gamma_T`` is twice the velocity there). ``middle``: loads are
    evaluated in the middle of the step, not at both ends. ``stops``: the end velocity of a sticking
    contact is set to zero.
    """

    theta: Scalar
    kappa: float
    middle: bool
    stops: bool

    @property
    def rests(self) -> bool:
        """Whether a contact that sticks has zero velocity at the end of a step."""
        return self.kappa == 0.0 or self.stops


#: Systems with one contact and up to this many degrees of freedom run in scalars.
SCALARS = 4


class StepMatrices(NamedTuple):
    """Matrices of a step without contact, ``free = Bq q + Bv v + push impulse``, and of contacts.

    With ``A = M + h theta C + h^2 theta^2 K``: ``push = A^-1``, ``X = A^-1 W^T``, ``D = W X``.
    Joints with the directions ``J`` are eliminated: ``hold = A^-1 J^T (J A^-1 J^T)^-1`` gives the
    velocity that they require, and ``push = A^-1 - hold J A^-1``.
    """

    Bq: Float[Array, "n n"]
    Bv: Float[Array, "n n"]
    push: Float[Array, "n n"]
    X: Float[Array, "n m"]
    D: Float[Array, "m m"]
    hold: Float[Array, "n k"] | None = None


def step_matrices(scheme: Scheme, h, M, C, K, W, J=None) -> StepMatrices:
    """Matrices of a step of length ``h`` for the given stiffness and damping."""
    n = M.shape[0]
    theta = scheme.theta
    push, hold = _inverse(M + h * theta * (C + h * theta * K)), None
    if J is not None:
        along = matmul(push, J.T)
        hold = matmul(along, generalised_inverse(matmul(J, along))[0])
        push = push - matmul(hold, matmul(J, push))
    X = matmul(push, W.T)
    return StepMatrices(
        Bq=-h * matmul(push, K),
        Bv=jnp.eye(n, dtype=M.dtype) - h * matmul(push, h * theta * K + C),
        push=push,
        X=X,
        D=matmul(W, X),
        hold=hold,
    )


def _inverse(a):
    # Not symmetric positive definite where a stiffness or damping is negative.
    return eliminate(a, 0.0).inverse if a.shape[0] <= UNROLLED_INVERSE else jnp.linalg.inv(a)


class Prepared(WithContacts):
    """The assembled system and its step. Rows: tangents (nt), then normals (nu)."""

    mechanics: Mechanics
    scheme: Scheme
    h: Float[Array, ""]
    W: Float[Array, "m n"]
    #: ``M^-1 W^T`` and ``W M^-1 W^T``.
    MW: Float[Array, "n m"]
    D_mass: Float[Array, "m m"]
    #: Diagonal of ``D_mass`` without the part that joints take away; None without joints.
    D_size: Float[Array, " m"] | None
    end: Float[Array, ""]
    #: The step's matrices where they never change, else None.
    constant: StepMatrices | None
    #: Whether static and kinetic coefficients differ for some contact.
    breakaway: bool = eqx.field(static=True)
    method: str = eqx.field(static=True)

    def at(self, t, q, v) -> Prepared:
        """System as evaluated at one instant, where something depends on position."""
        if self.mechanics.varying is None:
            return self
        mechanics = self.mechanics.at(t, q, v)
        return replace(self, mechanics=mechanics, **contact_space(mechanics))

    @property
    def partners_move(self) -> bool:
        """Whether belts or supports have a velocity."""
        return any(b is not None for b in self.mechanics.belts) or bool(
            self.mechanics.base_functions
        )

    @property
    def in_scalars(self) -> bool:
        """Whether the step is decomposed into scalars: one contact, few degrees of freedom."""
        small = self.nt == 1 and self.mechanics.n <= SCALARS
        return small and self.constant is not None and self.method in ("auto", "closed-form")


def contact_space(mechanics: Mechanics) -> dict[str, Any]:
    """Matrices ``W``, ``M^-1 W^T`` and ``W M^-1 W^T``, by field of :class:`Prepared`."""
    W = jnp.concatenate([mechanics.W_T, mechanics.W_N])
    MW, size = mechanics.accelerations(W, W)
    return {"W": W, "MW": MW, "D_mass": matmul(W, MW), "D_size": size}


def prepare(problem: Problem, scheme: Scheme, h, method: str) -> Prepared:
    """Assemble ``problem`` for steps of length ``h``."""
    problem = problem.resolved()
    mechanics = assemble(problem)
    space = contact_space(mechanics)
    if mechanics.varying is not None:
        # These fields hold at the start only; each step evaluates its own.
        mechanics = replace(mechanics, rate=None, bias=None, tied=None)
    dtype = mechanics.M.dtype
    h = jnp.asarray(h, dtype)
    changes = mechanics.has_curved_forces or mechanics.piecewise.count
    changes = changes or mechanics.varying is not None
    scheme = scheme._replace(theta=jnp.asarray(scheme.theta, dtype))
    matrices = None
    if not changes:
        matrices = step_matrices(scheme, h, mechanics.M, mechanics.C, mechanics.K, space["W"])
    return Prepared(
        mechanics=mechanics,
        scheme=scheme,
        h=h,
        **space,
        end=jnp.asarray(problem.time.end, dtype),
        constant=matrices,
        breakaway=not all(isinstance(law, Coulomb) for law in mechanics.laws),
        method=method,
    )


def with_step(prepared: Prepared, h) -> Prepared:
    """A copy of ``prepared`` for steps of length ``h``."""
    mechanics = prepared.mechanics
    h = jnp.asarray(h, prepared.h.dtype)
    matrices = prepared.constant
    if matrices is not None:
        matrices = step_matrices(
            prepared.scheme, h, mechanics.M, mechanics.C, mechanics.K, prepared.W
        )
    return eqx.tree_at(changing, prepared, (h, matrices), is_leaf=lambda x: x is None)


def changing(prepared: Prepared):
    """Parts of ``prepared`` that depend on the length of the step."""
    return prepared.h, prepared.constant


#: Rounding of gaps and velocities relative to the sum of their contributions.
RELATIVE = 1e-12
#: Gaps below this fraction of the path of a step count as closed; impacts are late by whole steps.
OF_A_STEP = 1e-9
#: Sliding velocities, and pivots of a unit diagonal, that a contact problem leaves at zero.
DEPENDENT = 1e-10


def touches(gap, size, way):
    """Whether a gap, were the contact to close in this step, is closed at its end.

    ``size``: magnitude of the terms of the gap; ``way``: change of the gap in a step without
    contacts. A contact at rest keeps its gap only to the rounding of these: one with a gap of
    rounding errors alone would otherwise open, and its neighbours would slide without its share of
    the load.
    """
    # In float32 the gap itself is not known better than its rounding error.
    eps = jnp.finfo(jnp.result_type(gap)).eps
    known, moved = jnp.maximum(RELATIVE, 16 * eps), jnp.maximum(OF_A_STEP, 16 * eps)
    return gap <= known * size + moved * way


def moves(gamma, size, parts):
    """Sign of the relative velocities ``gamma`` after the impulses, zero for those at rest.

    ``size``: magnitude of the terms that the contact problem sums to ``gamma``; ``parts``:
    magnitude of the velocities of which relative velocities are sums.
    """
    eps = jnp.finfo(jnp.result_type(gamma)).eps
    solved, rounding = jnp.maximum(DEPENDENT, 128 * eps), jnp.maximum(RELATIVE, 16 * eps)
    return jnp.where(jnp.abs(gamma) <= solved * size + rounding * parts, 0.0, jnp.sign(gamma))


def is_negative(force, magnitude):
    """Whether a given normal force is negative beyond the rounding of its parts."""
    return force < -tolerance_of(jnp.result_type(force), OF_A_STEP) * magnitude


def gains_energy(impulse, before, after):
    """Whether impulses (m,) feed energy into relative velocities ``before`` and ``after``."""
    # An elastic impact leaves rounding errors only, relative to the terms that cancel.
    parts = rules.impulse_energy(jnp.abs(impulse), jnp.abs(before), jnp.abs(after))
    energy = jnp.sum(rules.impulse_energy(impulse, before, after))
    return rules.energy_gain(energy, jnp.sum(parts)) > 0.0


class Row(NamedTuple):
    """End of a step and actions of its contacts. Rows (m,): tangents, then normals."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    impulse: Float[Array, " m"]
    #: Unilateral contacts that closed with an approach velocity.
    impact: Bool[Array, " nu"]
    #: Whether the impulses of impacts feed energy into the motion.
    gains: Bool[Array, ""]
    #: Remarks on new modes (:class:`jfric.results.status.Flag`); None where there are none.
    flags: Int[Array, ""] | None
    #: Residual of the contact problem, iterations, and status.
    residual: Float[Array, ""]
    iterations: Int[Array, ""]
    status: Int[Array, ""]


class State(AbstractState):
    """Motion, modes and bookkeeping of one trajectory."""

    origin: ClassVar[str] = "time-stepping"

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: Modes of the contacts and segments of the piecewise-linear elements on the last step.
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Whether a step was made: the modes of the first step are not an event.
    settled: Bool[Array, ""]
    #: Largest residual of a step's contact problem, and iterations of all steps together.
    residual: Float[Array, ""]
    iterations: Int[Array, ""]
    status: Int[Array, ""]
    flags: Int[Array, ""]
    steps: Int[Array, ""]
    event_count: Int[Array, ""]
    #: State of the controllers, see :mod:`jfric.solvers.control_loops`.
    loops: Any = None


class Motion(NamedTuple):
    """The part of the state that a step changes."""

    q: Float[Array, " n"]
    v: Float[Array, " n"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    #: Whether these modes were those of a step already.
    settled: Bool[Array, ""] | bool = True


def initial_state(problem: Problem, prepared: Prepared) -> State:
    """State at the start time; contacts with zero sliding velocity begin in stick."""
    return start_at(prepared, *(x.astype(prepared.h.dtype) for x in started(problem).start()))


def start_at(prepared: Prepared, t, q, v) -> State:
    """State with position ``q`` and velocity ``v`` (n,) at time ``t``."""
    mechanics, nf = prepared.mechanics.at(t, q, v), prepared.nf
    gamma, small, flags = mechanics.sliding_velocities(t, v), 0.0, 0
    if mechanics.varying is not None:
        terms = matvec(jnp.abs(mechanics.W_T), jnp.abs(v)) + jnp.abs(mechanics.belt_velocities(t))
        small = RELATIVE * terms
    if mechanics.tied is not None:
        flags = jnp.where(mechanics.tied.redundant, int(Flag.REDUNDANT), 0)
    mode = rules.closed_mode(False, gamma, small)
    for i, j in mechanics.planes:
        both = jnp.where((mode[i] == Mode.STICK) & (mode[j] == Mode.STICK), Mode.STICK, Mode.SLIP)
        mode = mode.at[np.asarray([i, j])].set(both)
    if prepared.nu:
        is_open = (mechanics.gaps(t, q) > 0) | _approaches(mechanics, t, v)
        mode = mode.at[nf:].set(jnp.where(is_open, Mode.OPEN, mode[nf:]))
    piecewise = mechanics.piecewise
    segment = jnp.zeros((piecewise.count,), jnp.int32)
    if piecewise.count:
        z, _ = mechanics.base_motion(t)
        x = matvec(piecewise.directions, q) + matvec(piecewise.base_directions, z)
        # The first step settles guards on the rate.
        segment = piecewise.segment_at(x)
    zero = jnp.asarray(0, jnp.int32)
    return State(
        t=t,
        q=q,
        v=v,
        mode=mode.astype(jnp.int32),
        segment=segment,
        settled=jnp.asarray(False),
        residual=jnp.zeros((), q.dtype),
        iterations=zero,
        status=jnp.asarray(int(Status.OK), jnp.int32),
        flags=jnp.asarray(flags, jnp.int32),
        steps=zero,
        event_count=zero,
    )


def _approaches(mechanics: Mechanics, t, v):
    """Unilateral contacts (nu,) that close with a velocity: one with zero gap is about to hit."""
    _, z_dot = mechanics.base_motion(t)
    along, moved = matvec(mechanics.W_N, v), matvec(mechanics.W_N_base, z_dot)
    if mechanics.rate is not None:
        moved = moved + mechanics.rate[mechanics.n_contacts :]
    size = matvec(jnp.abs(mechanics.W_N), jnp.abs(v)) + jnp.abs(moved)
    eps = jnp.finfo(v.dtype).eps
    return along + moved < -jnp.maximum(RELATIVE, 16 * eps) * size
