"""Elements that remember, in fits: their states at the start, and along a measured motion.

The state of such an element is not measured. At the start of a record or a window it is a share of
its largest value, the free parameter ``start.NAME``, or that of steady sliding at the first
velocity, or what the measured motion before a window has left. Along a measured motion it follows
by integration. Springs in series with sliders are exact where the motion does not reverse between
two samples. All other states are found by a method of order two, stiffly accurate and L-stable,
because bristles are stiff in gross sliding.

Source of the method: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996),
section IV.6 (SDIRK, gamma = 1 - 1/sqrt 2).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from jfric.fits.data.experiment import Experiment
from jfric.fits.free import Free
from jfric.numerics.linear_algebra import inverse
from jfric.system.assembly import assemble
from jfric.system.bristle import BRISTLES, DirectionalLoss, RateState
from jfric.system.description import element_label
from jfric.system.forces import applied_force
from jfric.system.functions import Held, hold, with_held
from jfric.system.hysteresis import HYSTERESIS, AbstractHysteresis
from jfric.system.mechanics import Mechanics
from jfric.system.naming import function_paths, set_parameters, with_numbers
from jfric.system.problem import Problem

#: First word of the parameters that are states at the start, as shares of their largest values.
START = "start"
#: States at the start: free shares, those of steady sliding, or the numbers of the problem.
StartOfStates = Literal["free", "steady", "given"]
#: States at the start of a window: or those after the measured motion before it.
StartInWindow = Literal["followed", "free", "steady", "given"]
STARTS = ("free", "steady", "given")
#: Prefix of the motion before a window among the inputs of its record.
HISTORY = "history"
#: Speed, as a part of the root mean square, below which a body rests where its history begins.
RESTS = 0.02
#: Largest number of Newton steps, and the relative change with which they end.
NEWTON, CONVERGED = 30, 1e-11
_GAMMA = 1.0 - 1.0 / np.sqrt(2.0)


def has_memory(problem: Problem) -> bool:
    """Whether any element of ``problem`` has a state."""
    return bool(problem.states() or problem.labelled(*HYSTERESIS))


def bounded_states(problem: Problem) -> dict[str, Any]:
    """Elements of ``problem`` whose states have a largest value, by label: springs with sliders
    that pull on no other, and bristles that do not bend beyond a limit."""
    sections = (*(() if "jenkins_coupling" in problem.elements else HYSTERESIS), *BRISTLES)
    return {
        element_label(section, name): element
        for section in sections
        for name, element in problem.elements.get(section, {}).items()
        if not isinstance(element, RateState | DirectionalLoss)
    }


def free_starts(problem: Problem, free: Mapping[str, Free]) -> dict[str, Free]:
    """Free shares of all states at the start, one for each record, in addition to the
    parameters ``free``, which may have that state themselves."""
    item = Free(-1.0, 1.0, init=0.0, scale="linear", per_experiment=True)
    return {
        f"{START}.{label}": item
        for label, element in bounded_states(problem).items()
        if f"{label}.{element.starts}" not in free and f"{START}.{label}" not in free
    }


def with_starts(problem: Problem, values: Mapping[str, Any], v: Any = None) -> Problem:
    """``problem`` with the parameters ``values``, among them shares of states at the start.

    ``v`` (n,): velocities of the degrees of freedom, with which states without a value of their own
    begin as in steady sliding; or ``"initial"``, those at the start of the problem.
    """
    shares = {k: x for k, x in values.items() if k.startswith(f"{START}.")}
    changed = set_parameters(problem, {k: x for k, x in values.items() if k not in shares})
    if not shares and v is None:
        return changed
    found, resolved = {}, changed.resolved()
    if isinstance(v, str):
        v = resolved.start()[2][: len(resolved.dofs)]
    for label, element in bounded_states(resolved).items():
        path, share = f"{label}.{element.starts}", shares.get(f"{START}.{label}")
        if share is not None:
            found[path] = share * _largest(element)
        elif v is not None and path not in values:
            w = element.direction.vector(tuple(resolved.dofs) + resolved.bases)
            gamma = w[: v.shape[0]] @ v
            found[path] = jnp.where(gamma == 0.0, element.z0, _steady(element, gamma))
    return with_numbers(changed, found)


def _largest(element: Any) -> Float[Array, ""]:
    """Largest magnitude of a state, zero where it has no limit."""
    if isinstance(element, AbstractHysteresis):
        return jnp.max(element.branches().slip)
    limit = element.largest()
    assert limit is not None
    return jnp.where(jnp.isfinite(limit), limit, 0.0)


def _steady(element: Any, gamma) -> Float[Array, ""]:
    """State in steady sliding at the velocity ``gamma``."""
    side, largest = jnp.where(gamma < 0.0, -1.0, 1.0), _largest(element)
    if isinstance(element, AbstractHysteresis):
        return side * largest
    # A step over this many deflections ends where the rate is zero.
    far = 1e9 * largest / jnp.where(gamma == 0.0, 1.0, jnp.abs(gamma))
    first = (side * largest)[None]
    found = implicit(lambda z: element.rate(gamma, z[0], side)[None], first, far)
    return jnp.clip(found.z[0], -largest, largest)


class Implicit(NamedTuple):
    """Solution (b,) of an implicit equation, and whether Newton's method found it."""

    z: Float[Array, " b"]
    converged: Bool[Array, ""]


def implicit(rate: Callable, base: Float[Array, " b"], c) -> Implicit:
    """Solution of ``z = base + c rate(z)`` from ``base``, with its exact derivatives."""

    def missed(z):
        return z - base - c * rate(z)

    def solve(missed, start):
        least = jnp.max(jnp.abs(start)) + jnp.finfo(start.dtype).tiny

        def unfinished(state):
            i, _, size = state
            return (i < NEWTON) & (size > CONVERGED)

        def improved(state):
            i, z, _ = state
            change = inverse(jax.jacfwd(missed)(z)) @ missed(z)
            return i + 1, z - change, jnp.max(jnp.abs(change)) / (jnp.max(jnp.abs(z)) + least)

        _, z, size = lax.while_loop(unfinished, improved, (0, start, jnp.asarray(jnp.inf)))
        return z, size

    def tangent_solve(linear, y):
        return inverse(jax.jacfwd(linear)(jnp.zeros_like(y))) @ y

    z, size = lax.custom_root(missed, lax.stop_gradient(base), solve, tangent_solve, has_aux=True)
    return Implicit(z, size <= CONVERGED)


class AlongMotion(NamedTuple):
    """States of all elements at the instants of a motion, and whether all steps were solved."""

    #: Springs with sliders, then the other states, in the order of :class:`jfric.Solution`.
    z: Float[Array, "m z"]
    #: Elongations of the springs of each element, and other states, after the motion.
    end: tuple[Float[Array, "e N"], Float[Array, " b"]]
    converged: Bool[Array, ""]


class _Instant(NamedTuple):
    t: Float[Array, ""]
    q: Float[Array, " n"]
    v: Float[Array, " n"]
    u: dict[str, Float[Array, ""]]


def along_motion(problem: Problem, t, q, v, u: Mapping[str, Any]) -> AlongMotion:
    """States along a motion that is known, from those at the start of ``problem``.

    ``t`` (m,), ``q``, ``v`` (m, n): instants, positions and velocities of the degrees of freedom,
    straight between instants, as are the inputs ``u`` (m,) by path.
    """
    slots = {path: x for path, x in function_paths(problem).items() if path in u}
    slotted = assemble(with_held(problem, slots, lines=False))
    motion = _Motion(slotted, q.shape[1])
    rows = _Instant(t, q, v, dict(u))
    first = jax.tree.map(lambda x: x[0], rows)
    springs = jnp.zeros((0, 0)) if motion.sliders is None else motion.sliders.z0
    others = problem.resolved().start()[2][q.shape[1] :]

    def one(carry, row):
        before, springs, others, good = carry
        springs = motion.pulled(springs, before, row)
        others, done = motion.stepped(others, springs, before, row)
        return (row, springs, others, good & done), (springs, others)

    later = jax.tree.map(lambda x: x[1:], rows)
    carry = (first, springs, others, jnp.asarray(True))
    (_, *end, good), states = lax.scan(one, carry, later)
    springs, others = (
        jnp.concatenate([x[None], y]) for x, y in zip((springs, others), states, strict=True)
    )
    z = jnp.concatenate([jax.vmap(motion.joined)(springs), others], axis=1)
    return AlongMotion(z, (end[0], end[1]), good)


def own_forces(problem: Problem, t, q, v, z) -> Float[Array, "m n"]:
    """Applied forces [N or N m] at the instants of a motion with the states ``z``, as in
    :func:`along_motion`."""
    motion = _Motion(assemble(problem), q.shape[1])

    def one(t, q, v, z):
        return motion.force(_Instant(t, q, v, {}), z)[: motion.n]

    return jax.vmap(one)(t, q, v, z)


def with_history(piece: Experiment, times: np.ndarray, smooth: Callable) -> Experiment:
    """A window with as many instants of the motion up to its start, among its inputs. ``times``: of
    the record; ``smooth(t, order)``: its positions and velocities (m, n)."""
    count, typical = piece.t.size, np.sqrt(np.mean(smooth(times, 1) ** 2, axis=0))
    t = times[times <= piece.t[0]][-count:]
    v = smooth(t, 1)
    # Before these instants nothing is known: the body rests, or has been sliding steadily.
    v[0] = np.where(np.abs(v[0]) < RESTS * typical, 0.0, v[0])
    lacking = count - t.size
    step = piece.t[1] - piece.t[0]
    rows = {"t": np.concatenate([t[0] - step * np.arange(lacking, 0, -1), t])}
    for letter, x in (("q", smooth(t)), ("v", v)):
        for i in range(x.shape[1]):
            rows[f"{letter}.{i}"] = np.concatenate([np.full(lacking, x[0, i]), x[:, i]])
    more = {f"{HISTORY}.{name}": x for name, x in rows.items()}
    return dataclasses.replace(piece, u={**(piece.u or {}), **more})


def history_of(u: Mapping[str, Any], n: int) -> tuple[Array, Array, Array] | None:
    """Times (m,), positions and velocities (m, n) before a window; None where not known."""
    if f"{HISTORY}.t" not in u:
        return None
    q, v = (jnp.stack([u[f"{HISTORY}.{x}.{i}"] for i in range(n)], axis=1) for x in "qv")
    return u[f"{HISTORY}.t"], q, v


def without_history(u: Mapping[str, Any] | None) -> dict[str, Any]:
    """The inputs without the motion before a window."""
    return {k: x for k, x in (u or {}).items() if not k.startswith(f"{HISTORY}.")}


class _Motion(NamedTuple):
    """A system whose degrees of freedom move as given."""

    mechanics: Mechanics
    n: int

    @property
    def sliders(self):
        return self.mechanics.piecewise.sliders

    def joined(self, springs):
        """Elongations of all springs in one row."""
        return springs.reshape(-1) if self.sliders is None else self.sliders.joined(springs)

    def force(self, at: _Instant, z):
        """Forces on all coordinates: on those of states their rates."""
        held = hold(self.mechanics, {k: Held(k, x) for k, x in at.u.items()})
        q, v = held.complete(at.q, at.v, z)
        return applied_force(held, at.t, q, v, None, z)

    def pulled(self, springs, before: _Instant, after: _Instant):
        """Elongations of springs after a step in one direction."""
        sliders = self.sliders
        if sliders is None:
            return springs
        moved = sliders.directions[:, : self.n] @ (after.q - before.q)
        bases = [self.mechanics.base_motion(x.t)[0] for x in (before, after)]
        moved = moved + sliders.base_directions @ (bases[1] - bases[0])
        return jnp.clip(springs + moved[:, None], -sliders.slip, sliders.slip)

    def stepped(self, others, springs, before: _Instant, after: _Instant):
        """Other states after a step."""
        if not others.shape[0]:
            return others, jnp.asarray(True)
        h = after.t - before.t
        middle = jax.tree.map(lambda a, b: a + _GAMMA * (b - a), before, after)

        def rate(at):
            pulled = self.joined(springs)
            return lambda z: self.force(at, jnp.concatenate([pulled, z]))[self.n :]

        one = implicit(rate(middle), others, _GAMMA * h)
        # The rate at the first stage, from its equation: it may be large, and its error with it.
        slope = (one.z - others) / _GAMMA
        two = implicit(rate(after), others + (1.0 - _GAMMA) * slope, _GAMMA * h)
        return two.z, one.converged & two.converged
