"""Changes at the start of a pass: modes, segments and regions, and velocities at an impact."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.contact.pivoting import (
    Pivoting,
    flip_limit,
    rearrangement,
    select_flips,
    start_pivoting,
)
from jfric.contact.shared_loads import Sharing
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.numerics.loops import once, where_any
from jfric.results.modes import Mode
from jfric.results.status import Flag, Status
from jfric.solvers.event_driven.flow_step import Step
from jfric.solvers.event_driven.impacts import Impact, ImpactLimits, impact, no_impact
from jfric.solvers.event_driven.in_mode import InMode, share_loads
from jfric.solvers.event_driven.inputs import Given
from jfric.solvers.event_driven.mode_equations import ModeEquations
from jfric.solvers.event_driven.planes import all_components, at_rest_after_impact
from jfric.solvers.event_driven.prepared import Prepared, constants
from jfric.solvers.event_driven.state import State, elongations
from jfric.solvers.event_driven.transitions import (
    RESTARTS,
    Signs,
    Transition,
    guard_signs,
    known_after,
    modes_from_rest,
    next_modes,
)


class Start(NamedTuple):
    """Start of a pass: the system at its present position, in the mode that is tried."""

    #: System anywhere; in the regions of its polygons; there and at this instant.
    anywhere: Prepared
    assembled: Prepared
    prepared: Prepared
    common: InMode
    given: Given
    #: State as it came, and with positions and velocities projected on the constraints of the mode.
    unprojected: State
    state: State
    #: ``prepared``, equations of the mode and ``state`` without derivatives: decisions have none,
    #: and the compiler would carry the tangents of their inputs along.
    still: tuple[Prepared, ModeEquations, State]


class Choice(NamedTuple):
    """Decision of a pass: the modes that it tries next, or to move in the present mode."""

    signs: Signs
    transition: Transition
    #: Whether no guard is violated.
    settled: Bool[Array, ""]
    #: Regions of polygons that follow; None without polygons.
    regions: Move | None
    #: Contacts and elements that change; whether the accelerations propose modes instead.
    flips: Bool[Array, " c"]
    restart: Bool[Array, ""]
    pivoting: Pivoting
    released: Bool[Array, " r"]
    sharing: Sharing | None
    #: Whether only the way in which contacts share a load changes.
    rearranged: Bool[Array, ""]

    @property
    def in_vain(self) -> Bool[Array, ""]:
        """Whether the limit on the number of modes tried is exceeded."""
        return ~self.settled & (self.pivoting.flips > flip_limit(self.flips.shape[0]))


class Verdict(NamedTuple):
    """Status, flags and energy of the trajectory, as far as a pass has judged it."""

    status: Int[Array, ""]
    flags: Int[Array, ""]
    energy_gained: Float[Array, ""]

    def flagged(self, flag: Flag, where) -> Verdict:
        """Copy with ``flag`` set where ``where`` holds."""
        return self._replace(flags=self.flags | select(where, int(flag), 0))

    def ended(self, status: Status, where) -> Verdict:
        """Copy with ``status`` where ``where`` holds."""
        return self._replace(status=select(where, int(status), self.status))


class Changed(NamedTuple):
    """State after a change of modes, see :class:`jfric.solvers.event_driven.state.State`."""

    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    q_scale: Float[Array, " n"]
    v_scale: Float[Array, " n"]
    mode: Int[Array, " nt"]
    segment: Int[Array, " ns"]
    anchor: Float[Array, "e N"]
    region: Int[Array, " np"]
    known: Int[Array, " g"]
    v_before: Float[Array, " n"]
    impacted: Bool[Array, " nt"]
    due: Float[Array, " nt"]


def is_coupled(prepared: Prepared) -> bool:
    """Whether pivoting may cycle: only the matrices of independent friction elements have positive
    principal minors. False as well where a disc spins or unilateral contacts slide in planes, as no
    other proposal of modes exists there."""
    planes = prepared.mechanics.planes
    if any(len(own) > 2 or min(own) >= prepared.nf for own in planes):
        return False
    alone = prepared.nu == 0 and prepared.independent
    return prepared.nt > (2 if planes else 1) and not alone


def choose(start: Start, begun: Step, on: Bool[Array, ""]) -> Choice:
    """Modes to try next, by the signs of the guards at the start of a step."""
    prepared, state, (frozen, equations, still) = start.prepared, start.state, start.still
    nt = prepared.nt
    signs = once(guard_signs(prepared, begun, state, start.common.equations.dependent, on), on)
    transition = once(next_modes(frozen, still, signs), on)
    settled, regions = ~transition.violated.any(), None
    if prepared.mechanics.polygons:
        regions = once(next_regions(frozen, still, signs), on)
        settled = settled & ~regions.any
    lets_go, released = jnp.asarray(False), state.released
    if prepared.releases:
        # All contacts are tried at rest; the friction of those that move nevertheless drops.
        moving = start.common.rests & ~signs.null[:nt]
        lets_go = settled & moving.any()
        settled, released = settled & ~lets_go, released | (moving & lets_go)
    flips, restart, pivoting = select_flips(
        transition.violated, state.pivoting, restarts=RESTARTS * is_coupled(prepared)
    )
    pivoting = jax.tree.map(
        lambda a, b: select(lets_go, a, b),
        start_pivoting()._replace(flips=pivoting.flips),
        pivoting,
    )
    if prepared.releases:
        # Static limits of contacts that begin to slide have failed in all modes: their friction
        # drops from now on, and the modes are tried once more.
        again = ~settled & (pivoting.flips > flip_limit(flips.shape[0])) & ~released.all()
        released = released | again
        pivoting = jax.tree.map(lambda a, b: select(again, a, b), start_pivoting(), pivoting)
    sharing, rearranged = state.sharing, jnp.asarray(False)
    if sharing is not None:
        sharing, rearranged = share_loads(frozen, still, equations, begun, signs, transition)
        flips, restart = flips & ~rearranged, restart & ~rearranged
        pivoting = rearrangement(state.pivoting, pivoting, rearranged)
    if regions is not None:
        flips, restart = flips & ~regions.any, restart & ~regions.any
        transition, pivoting = only_regions(regions, transition, pivoting)
    flips = all_components(prepared, flips)
    return Choice(
        signs=signs,
        transition=transition,
        settled=settled,
        regions=regions,
        flips=flips,
        restart=restart,
        pivoting=pivoting,
        released=released,
        sharing=sharing,
        rearranged=rearranged,
    )


def changed(start: Start, begun: Step, choice: Choice, on: Bool[Array, ""]) -> Changed:
    """State with the modes to try next.

    Positions and velocities stay as they were: a mode that does not last leaves no trace, and a
    start from rest keeps its derivatives with respect to the start velocity.
    """
    prepared, state, (frozen, _, still) = start.prepared, start.state, start.still
    nt, flips, restart, signs = prepared.nt, choice.flips, choice.restart, choice.signs
    mode = select(flips[:nt], choice.transition.mode, state.mode)
    segment = select(flips[nt:], choice.transition.segment, state.segment)
    if is_coupled(prepared):

        def propose():
            whole = begun.completed(restart & on, constants(state.q.dtype).order), start.given
            return modes_from_rest(frozen, still, jax.lax.stop_gradient(whole), signs, restart)

        dear = prepared.many or prepared.mechanics.planes
        proposed = where_any(restart, propose, mode) if dear else propose()
        mode = select(restart, proposed, mode)
        segment = select(restart, state.segment, segment)
    nobody = jnp.zeros((nt,), bool)
    known = known_after(frozen, state, mode, segment, nobody, signs.order)
    if choice.sharing is not None and choice.sharing.preload is not None:
        # Another preload makes other limits; under these a contact that others hold is judged from
        # rest. One that has just begun to slide keeps its known zero: else it would be one that
        # stops.
        is_open = mode == Mode.OPEN
        moves = is_open | (rules.slides(mode) & ~signs.null[:nt])
        kept = ~choice.rearranged | jnp.concatenate([moves, is_open])
        known = known.at[: 2 * nt].set(select(kept, known[: 2 * nt], 0))
    region = state.region
    if choice.regions is not None:
        region = choice.regions.region
        mode, known = after_move(frozen, choice.regions, mode, known)
    q, v = start.unprojected.q, start.unprojected.v
    return Changed(
        t=state.t,
        q=q,
        v=v,
        q_scale=state.q_scale,
        v_scale=jax.lax.stop_gradient(jnp.abs(v)),
        mode=mode,
        segment=segment,
        anchor=prepared.mechanics.piecewise.anchored(
            state.inner, segment, elongations(prepared, state.t, state.q)
        ),
        region=region,
        known=known,
        v_before=state.v_before,
        impacted=state.impacted,
        due=state.due,
    )


def after_impact(
    start: Start,
    begun: Step,
    choice: Choice,
    found: Changed,
    verdict: Verdict,
    until: Float[Array, ""],
    limits: ImpactLimits,
) -> tuple[Changed, Verdict]:
    """The state after the impact of contacts that close with an approach velocity, if any does.

    ``until``: contacts whose impacts accumulate after this time are recorded at once.
    """
    prepared, state, signs = start.prepared, start.state, choice.signs
    nt, nf, touching = prepared.nt, prepared.nf, choice.transition.touching
    hits, waits = choice.transition.impact, state.due > state.t
    # Skipped where no trajectory of the batch hits anything.
    jump = jax.lax.cond(
        hits,
        lambda: impact(
            prepared,
            state,
            begun,
            touching,
            signs.null[nt + nf : 2 * nt],
            matvec(start.given.gap, start.given.w),
            limits.accumulation,
        ),
        lambda: no_impact(prepared, state),
    )
    touching = jnp.concatenate([jnp.zeros((nf,), bool), touching])
    after = rules.known_after_impact(state.mode, jump.mode, touching, state.known[nt : 2 * nt])
    known = jnp.concatenate([*after, state.known[2 * nt :]])
    if prepared.mechanics.planes:
        rests = at_rest_after_impact(prepared, jump.t, jump.v, jump.v_scale, jump.mode)
        known = known.at[:nt].set(select(rests, 1, known[:nt]))
    first = ~(state.impacted & ~waits).any()
    if state.watch is not None:
        first = first & jnp.all(state.watch.pending == 0)
    due = select(jump.due < until, jump.due, -jnp.inf)
    found = found._replace(
        t=select(hits, jump.t, found.t),
        v=select(hits, jump.v, found.v),
        v_scale=select(hits, jump.v_scale, found.v_scale),
        q=select(hits, jump.q, found.q),
        mode=select(hits, jump.mode, found.mode),
        known=select(hits, known, found.known),
        v_before=select(hits & first, state.v, found.v_before),
        impacted=select(hits, state.impacted | jump.impacted, found.impacted),
        due=select(hits & jump.impacted, due, found.due),
    )
    verdict = _judged_impact(hits, jump, limits, verdict)
    several = hits & ~jump.unique if prepared.mechanics.pins is None else jnp.asarray(False)
    return found, verdict.flagged(Flag.SEVERAL_MOTIONS, several)


def _judged_impact(
    hits: Bool[Array, ""], jump: Impact, limits: ImpactLimits, verdict: Verdict
) -> Verdict:
    """Status and flags that follow from an impact, and the energy that it gained."""
    verdict = verdict.flagged(Flag.ZENO, hits & jump.zeno)
    verdict = verdict.flagged(Flag.SIMULTANEOUS, hits & jump.shared)
    verdict = verdict.flagged(Flag.ONE_SIDED, hits & jump.unannounced)
    gains = hits & (jump.gained > 0)
    if limits.gain:
        verdict = verdict.flagged(Flag.ENERGY_GAIN, gains)
    else:
        verdict = verdict.ended(Status.IMPACT_ENERGY, gains)
    gained = verdict.energy_gained + select(gains, jump.gained, 0.0)
    verdict = verdict.flagged(Flag.NO_MODE, hits & jump.unique & ~jump.holds)
    verdict = verdict.ended(Status.INCONSISTENT, hits & ~(jump.unique & jump.holds))
    return verdict._replace(energy_gained=gained)


class Move(NamedTuple):
    """Next regions: ``way`` (np,) is -1, 0 or 1; ``any``: whether there is a change."""

    region: Int[Array, " np"]
    way: Int[Array, " np"]
    any: Bool[Array, ""]


def next_regions(prepared: Prepared, state: State, signs: Signs) -> Move:
    """The regions to which violated guards lead.

    Both inequalities of a corner end at once where a point comes back through the corner, and
    always for a plate: the side on which the point is decides.
    """
    polygons = prepared.mechanics.polygons
    start = prepared.n_guards - 2 * len(polygons)
    first, second = jnp.split(signs.violated[start:], 2)
    forward = jnp.stack([p.forward(state.q) for p in polygons])
    back = first & ~(second & forward)
    way = select(back, -1, select(second, 1, 0)).astype(jnp.int32)
    count = jnp.asarray([2 * p.corners.shape[-2] for p in polygons], jnp.int32)
    return Move((state.region + way) % count, way, jnp.any(way != 0))


def only_regions(
    move: Move, transition: Transition, pivoting: Pivoting
) -> tuple[Transition, Pivoting]:
    """Transition of a pass that changes regions only: modes are judged in the next pass."""
    still = ~move.any
    fresh = start_pivoting()._replace(flips=pivoting.flips)
    chosen = (select(move.any, a, b) for a, b in zip(fresh, pivoting, strict=True))
    return transition._replace(impact=transition.impact & still), Pivoting(*chosen)


def after_move(
    prepared: Prepared, move: Move, mode: Int[Array, " nt"], known: Int[Array, " g"]
) -> tuple[Int[Array, " nt"], Int[Array, " g"]]:
    """Modes and known zeros of guards in the new regions: corners let points go, and the
    inequality through which a region was entered begins at zero."""
    mechanics = prepared.mechanics
    polygons, count = mechanics.polygons, len(mechanics.polygons)
    rows = prepared.nf + np.asarray(mechanics.polygon_contacts)
    moved = move.way != 0
    bare = jnp.asarray([p.bare for p in polygons])
    opens = moved & bare & (move.region % 2 == 1)
    own = select(opens, Mode.OPEN, mode[rows]).astype(mode.dtype)
    mode = mode.at[rows].set(own)
    apart = moved & (own == Mode.OPEN)
    known = known.at[rows].set(select(apart, 0, known[rows]))
    both = jnp.asarray([p.is_plate for p in polygons]) & (move.region % 2 == 1)
    entered = jnp.stack([(move.way == 1) | both, (move.way == -1) | both]).astype(known.dtype)
    at = known.shape[0] - 2 * count
    kept = known[at:].reshape(2, count)
    return mode, known.at[at:].set(select(moved[None, :], entered, kept).ravel())
