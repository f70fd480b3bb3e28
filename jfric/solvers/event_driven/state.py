"""State of the event-driven solver between passes, and coefficients of sliding at a state."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.pivoting import Pivoting, start_pivoting
from jfric.contact.shared_loads import Sharing
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec, picked
from jfric.results.modes import Mode
from jfric.results.status import Status
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.states import AbstractState, generic_change
from jfric.system.forces import loads_of_friction
from jfric.system.joints import off_velocity
from jfric.system.laws import AbstractLaw
from jfric.system.mechanics import Mechanics
from jfric.system.piecewise import Inner
from jfric.system.problem import Problem
from jfric.system.start import started


class Watch(NamedTuple):
    """State of the user events between passes.

    ``side`` (e,): sign of the watched value just before this instant, 0 where it was zero;
    ``pending``: events that fired at this instant and are not logged yet, by their side before;
    ``count``: how often each was logged; ``known``: whether its zero ended the last step;
    ``largest``: reference size for its rounding errors; ``value``: value before the jump at this
    instant, NaN where nothing jumped; ``exact``: whether the value is known to rounding since it
    jumped, and is near zero; ``near``: band that cannot be distinguished from the value at which
    the event last fired; ``changed``: when the event last changed the state [s]; ``far``: whether
    the value has been farther from zero than rounding since; ``stopped``: whether an event has
    ended the run; ``q_before`` (n,): positions before the changes at this instant; ``numbers``:
    present numbers of the problem that events change, by path.
    """

    side: Int[Array, " e"]
    pending: Int[Array, " e"]
    count: Int[Array, " e"]
    known: Bool[Array, " e"]
    largest: Float[Array, " e"]
    value: Float[Array, " e"]
    exact: Bool[Array, " e"]
    near: Float[Array, " e"]
    changed: Float[Array, " e"]
    far: Bool[Array, " e"]
    stopped: Bool[Array, ""]
    q_before: Float[Array, " n"]
    numbers: dict[str, Array]

    def begins(self, steps) -> Bool[Array, " e"]:
        """Mask of events whose motion begins now: their value has jumped, or the run starts."""
        return ~jnp.isnan(self.value) | (steps == 0)


def start_watching(prepared: Prepared, q: Float[Array, " n"]) -> Watch | None:
    """Watch at the start of a run, where no value has been away from zero; None without events."""
    if prepared.events is None:
        return None
    zero = jnp.zeros((prepared.events.count,), jnp.int32)
    none = zero.astype(q.dtype)
    return Watch(
        side=zero,
        pending=zero,
        count=zero,
        known=zero == 1,
        largest=none,
        value=none + jnp.nan,
        exact=zero == 0,
        near=none,
        changed=none - jnp.inf,
        far=zero == 1,
        stopped=jnp.asarray(False),
        q_before=q,
        numbers=prepared.events.numbers(),
    )


class State(AbstractState):
    """Motion, modes and bookkeeping of one trajectory."""

    origin: ClassVar[str] = "event-driven"

    #: Time, and its rounding error (time left out by rounding).
    t: Float[Array, ""]
    t_rest: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    #: Largest magnitudes of ``q`` and ``v`` on the last step: reference sizes for rounding errors.
    q_scale: Float[Array, " n"]
    v_scale: Float[Array, " n"]
    mode: Int[Array, " nt"]
    #: How contacts share a load, where they may; else None.
    sharing: Sharing | None
    segment: Int[Array, " ns"]
    #: Where springs in series with stuck sliders have no force.
    anchor: Float[Array, "e N"]
    #: Modes and segments as last recorded, and whether anything was recorded yet.
    recorded: Int[Array, " c"]
    settled: Bool[Array, ""]
    #: Longest step to try next.
    h_max: Float[Array, ""]
    pivoting: Pivoting
    #: Number of leading coefficients of each guard that are zero by construction.
    known: Int[Array, " g"]
    #: Whether an event has ended the last step.
    arrived: Bool[Array, ""]
    #: Guard whose zero the next step lands on, and landings tried.
    landing: Bool[Array, " w"]
    landings: Int[Array, ""]
    #: Impacts since the last record, velocity before them, and the time before which a contact that
    #: ended an accumulating sequence is not recorded.
    impacted: Bool[Array, " nt"]
    v_before: Float[Array, " n"]
    due: Float[Array, " nt"]
    #: Energy that impacts have added, where this is allowed [J].
    energy_gained: Float[Array, ""]
    #: Time of the last impact and largest velocity so far, where contacts can push each other off.
    last_impact: Float[Array, " i"]
    fastest: Float[Array, "i n"]
    start: Float[Array, ""]
    status: Int[Array, ""]
    flags: Int[Array, ""]
    steps: Int[Array, ""]
    event_count: Int[Array, ""]
    #: Contacts whose static limit could not keep them at rest at this instant (nt,), of systems in
    #: which this affects the other contacts.
    released: Bool[Array, " r"]
    #: Regions in which polygons are touched, see :mod:`jfric.system.polygons`.
    region: Int[Array, " np"]
    watch: Watch | None = None
    #: A small change of ``q`` and ``v`` that is carried along with implicit steps, see
    #: :mod:`jfric.solvers.event_driven.small_change`.
    change: Float[Array, " y"] | None = None
    #: State of the controllers, see :mod:`jfric.solvers.control_loops`.
    loops: Any = None

    @property
    def inner(self) -> Inner:
        """Segments and anchors."""
        return Inner(self.segment, self.anchor)


def _not_shared(prepared: Prepared) -> Sharing | None:
    if not prepared.shares:
        return None
    if prepared.mechanics.planes:
        return Sharing(None, jnp.zeros_like(prepared.D[0]))
    return Sharing(jnp.zeros((2 * prepared.nt,), bool), None)


def initial_state(problem: Problem, prepared: Prepared) -> State:
    """State at the start time; the first passes settle the modes."""
    dtype = prepared.mechanics.M.dtype
    t, q, v = (x.astype(dtype) for x in started(problem).start())
    q, v = _on_joints(prepared, t, q, v)
    mode = modes_at(prepared, t, q, v)
    inner = prepared.mechanics.piecewise.start(elongations(prepared, t, q))
    segment, anchor = with_sides(prepared, t, q, v, inner)
    pairs = int(prepared.nu > 1)
    return State(
        t=t,
        t_rest=jnp.zeros((), dtype),
        q=q,
        v=v,
        q_scale=jnp.abs(q),
        v_scale=jnp.abs(v),
        mode=mode,
        sharing=_not_shared(prepared),
        segment=segment,
        anchor=anchor,
        recorded=jnp.concatenate([mode, segment]),
        settled=jnp.asarray(False),
        h_max=jnp.asarray(jnp.inf, dtype),
        pivoting=start_pivoting(),
        known=jnp.zeros((prepared.n_guards,), jnp.int32),
        arrived=jnp.asarray(False),
        landing=jnp.zeros((prepared.n_watched,), bool),
        landings=jnp.asarray(0, jnp.int32),
        impacted=jnp.zeros((prepared.nt,), bool),
        v_before=v,
        due=jnp.full((prepared.nt,), -jnp.inf, dtype),
        energy_gained=jnp.zeros((), dtype),
        last_impact=jnp.full((pairs,), -jnp.inf, dtype),
        fastest=jnp.zeros((pairs, len(v)), dtype),
        start=t,
        status=jnp.asarray(int(Status.OK), jnp.int32),
        flags=jnp.asarray(0, jnp.int32),
        steps=jnp.asarray(0, jnp.int32),
        event_count=jnp.asarray(0, jnp.int32),
        released=jnp.zeros((prepared.nt if prepared.releases else 0,), bool),
        watch=start_watching(prepared, q),
        region=regions_at(prepared, q),
        change=generic_change(prepared.inertia_scale) if prepared.implicit else None,
    )


def _on_joints(prepared: Prepared, t, q, v):
    """Start that satisfies the equations of joints to rounding, if the given one nearly does."""
    tied, varying = prepared.mechanics.tied, prepared.mechanics.varying
    if tied is None or varying is None or varying.joints is None:
        return q, v
    near = ~jax.lax.stop_gradient(tied.fails(v, q, v))
    q = select(near, varying.joints.put_on(tied, t, q), q)
    # The position hardly moved: the operators of before suffice, and what they leave of a velocity
    # falls by as much again in the second round.
    here = prepared.near(t, q, v).mechanics.tied
    assert here is not None
    moved = v + off_velocity(here, v)
    return q, select(near, moved + off_velocity(here, moved), v)


def unlogged(state: State) -> Bool[Array, ""]:
    """Whether velocities have jumped at this instant; ``v_before`` holds those before."""
    jumped = state.impacted.any()
    return jumped if state.watch is None else jumped | jnp.any(state.watch.pending != 0)


def velocity_tolerance(prepared: Prepared, t, v_scale):
    """Relative velocities (m,) that count as zero: the rounding error of their contributions."""
    mechanics = prepared.mechanics
    scale = matvec(jnp.abs(prepared.W), v_scale)
    if mechanics.rate is not None:
        scale = scale + jnp.abs(mechanics.rate)
    bases = [f.size(t, 1) for f in mechanics.base_functions]
    scale = scale + _of_bases(prepared.W_base, bases)
    belts = [b.size(t) if b is not None else 0.0 for b in mechanics.belts]
    if belts:
        scale = scale.at[: prepared.nt].add(
            jnp.stack([jnp.asarray(b, v_scale.dtype) for b in belts])
        )
    return constants(v_scale.dtype).zero * scale


def _of_bases(directions, sizes: list):
    """Magnitudes of the contributions of the bases along ``directions``."""
    if not sizes:
        return jnp.zeros((directions.shape[0],), directions.dtype)
    return matvec(jnp.abs(directions), jnp.stack([jnp.asarray(x, directions.dtype) for x in sizes]))


def relative_velocities(prepared: Prepared, t, v):
    """Sliding velocities (nt,), then rates of the gaps (nu,)."""
    _, z_dot = prepared.mechanics.base_motion(t)
    gap_rate = matvec(prepared.mechanics.W_N, v)
    gap_rate = gap_rate + matvec(prepared.mechanics.W_N_base, z_dot)
    if prepared.mechanics.rate is not None:
        gap_rate = gap_rate + prepared.mechanics.rate[prepared.nt :]
    return jnp.concatenate([prepared.mechanics.sliding_velocities(t, v), gap_rate])


def prescribed_velocities(prepared: Prepared, t):
    """Prescribed ``W v`` (m,) of active contacts, by bases, belts and shapes, right after ``t``."""
    _, z_dot = prepared.mechanics.base_motion(t)
    belts = prepared.mechanics.belt_velocities(t)
    normal = -matvec(prepared.mechanics.W_N_base, z_dot)
    if prepared.mechanics.rate is not None:
        normal = normal - prepared.mechanics.rate[prepared.nt :]
    return jnp.concatenate([belts, normal])


def modes_at(prepared: Prepared, t, q, v) -> Int[Array, " nt"]:
    """Modes at the start, by gaps and velocities alone; transitions settle the rest."""
    prepared = prepared.at(t, q, v)
    mechanics, nt, nf = prepared.mechanics, prepared.nt, prepared.nf
    velocity = relative_velocities(prepared, t, v)
    small = velocity_tolerance(prepared, t, jnp.abs(v))
    mode = closed_modes(prepared, t, v)
    if prepared.nu:
        gap = mechanics.gaps(t, q)
        scale = (
            jnp.abs(mechanics.gap0)
            + matvec(jnp.abs(mechanics.W_N), jnp.abs(q))
            + _of_bases(mechanics.W_N_base, [f.size(t) for f in mechanics.base_functions])
        )
        gap_zero = constants(q.dtype).zero * scale
        is_open = rules.starts_open(gap, gap_zero, velocity[nt:], small[nt:])
        mode = mode.at[nf:].set(select(is_open, Mode.OPEN, mode[nf:]))
    return together(prepared, mode).astype(jnp.int32)


def closed_modes(prepared: Prepared, t, v) -> Int[Array, " nt"]:
    """Modes by velocities alone, of contacts that touch."""
    velocity = relative_velocities(prepared, t, v)[: prepared.nt]
    small = velocity_tolerance(prepared, t, jnp.abs(v))[: prepared.nt]
    return rules.closed_mode(prepared.kind.frictionless, velocity, small)


def together(prepared: Prepared, mode: Int[Array, " nt"]) -> Int[Array, " nt"]:
    """Modes with one common mode for all directions of a plane."""
    for rows in map(np.asarray, prepared.mechanics.planes):
        mode = mode.at[rows].set(rules.plane_mode(mode[rows]))
    return mode


def with_sides(prepared: Prepared, t, q, v, inner: Inner) -> Inner:
    """``inner`` with the segments that belong to a state: of sliding against elements with a state,
    and of the loads of friction."""
    bristles, carried = prepared.mechanics.bristles, prepared.mechanics.carried
    if bristles is not None:
        piecewise, (_, z_dot) = prepared.mechanics.piecewise, prepared.mechanics.base_motion(t)
        rate = matvec(piecewise.directions, v) + matvec(piecewise.base_directions, z_dot)
        places = np.asarray(bristles.places)
        back = (rate[places] < 0.0).astype(jnp.int32)
        inner = inner._replace(segment=inner.segment.at[places].set(back))
    if carried is None:
        return inner
    loads = loads_of_friction(prepared.mechanics, t, q, v, inner.segment)
    signs = (loads < 0.0).astype(jnp.int32)
    return inner._replace(segment=inner.segment.at[carried.places].set(signs))


def elongations(prepared: Prepared, t, q) -> Float[Array, " ns"]:
    """Elongations of the piecewise-linear elements."""
    piecewise = prepared.mechanics.piecewise
    z, _ = prepared.mechanics.base_motion(t)
    return matvec(piecewise.directions, q) + matvec(piecewise.base_directions, z)


def regions_at(prepared: Prepared, q: Float[Array, " n"]) -> Int[Array, " np"]:
    """Regions of the polygons at the places nearest to ``q``."""
    found = [p.located(p.seen(q)) for p in prepared.mechanics.polygons]
    return jnp.stack(found) if found else jnp.zeros((0,), jnp.int32)


class Onset(NamedTuple):
    """Planes that begin to slide from rest, the direction of this sliding in all components of all
    planes, and whether friction could hold the planes."""

    rests: Bool[Array, " np"]
    direction: Float[Array, " k"]
    holds: Bool[Array, " np"]


def kinetic(prepared: Prepared, state: State, gamma, onset: Onset | None = None):
    """Coefficients of sliding (nt,) of all laws at the sliding velocities ``gamma`` (nt,), for the
    two directions; in a plane both are the components of ``-lambda_T / N``."""
    laws, planes = prepared.mechanics.laws, prepared.mechanics.planes
    lines = [i for i in range(len(laws)) if not any(i in rows for rows in planes)]
    found: dict[int, tuple[Array, Array]] = {}
    if lines:
        speed = select(state.mode == Mode.SLIP_NEG, -gamma, gamma)
        for i in lines:
            positive, negative = continued(laws[i], speed[i])
            found[i] = positive[None], negative[None]
    for k, rows in enumerate(planes):
        along = picked(gamma, rows)
        if onset is not None:
            own = components(prepared.mechanics)[k]
            along = select(onset.rests[k], onset.direction[own], along)
        ratio = plane_limits(prepared, k, gamma).kinetic(along)
        found[rows[0]] = ratio, ratio
    # The rows of a plane follow each other.
    in_order = [found[i] for i in sorted(found)]
    positive, negative = (jnp.concatenate(x) for x in zip(*in_order, strict=True))
    return positive, negative


def plane_limits(prepared: Prepared, k: int, gamma=None) -> rules.Ellipse | rules.Disc:
    """Limits of friction in a plane: static, or kinetic at the sliding velocities (nt,)."""
    rows, two = prepared.mechanics.planes[k], prepared.mechanics.planes[k][:2]
    own = rows[:1] if prepared.mechanics.even[k] else rows
    laws = [prepared.mechanics.laws[row] for row in own]
    if gamma is None:
        mu = picked(prepared.static_positive, own)
    else:
        speed = rules.speed_of(picked(gamma, two))
        mu = jnp.stack([law.kinetic(speed)[0] for law in laws])
    # With a third component the limits are those of a disc.
    return rules.Ellipse(mu) if len(rows) == 2 else rules.Disc(mu[0], laws[0].spins_within)


def components(mechanics: Mechanics) -> list[slice]:
    """Slices of the components of each plane among those of all planes."""
    ends = np.cumsum([0, *map(len, mechanics.planes)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]


def continued(law: AbstractLaw, speed):
    """Coefficients of sliding, continued by their tangent at zero to negative speeds: a step may
    overshoot the end of sliding, and the derivatives there must be those of the law."""
    zero = jnp.zeros_like(speed)
    values = law.kinetic(select(speed >= 0, speed, zero))
    start, slope = jax.jvp(law.kinetic, (zero,), (jnp.ones_like(zero),))
    return tuple(
        select(speed >= 0, x, a + b * speed) for x, a, b in zip(values, start, slope, strict=True)
    )
