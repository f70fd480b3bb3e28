"""Loop over the samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from jfric.results.status import Status
from jfric.solvers.given_forces import first_negative_force, status_of_numbers
from jfric.solvers.sampled.equations import Equations, State, require_one_degree
from jfric.solvers.sampled.update import update
from jfric.system.assembly import assemble
from jfric.system.controller import Controller
from jfric.system.held import Held, hold, with_held
from jfric.system.problem import Problem


class SampledMotion(NamedTuple):
    """Motion at the samples, and the inputs that acted from each sample to the next."""

    q: Float[Array, " m"]
    v: Float[Array, " m"]
    #: Inputs by path, with the load of the controller.
    inputs: dict[str, Float[Array, " m"]]
    #: :class:`jfric.Status` code.
    status: Int[Array, ""]


def run_sampled(
    problem: Problem,
    t: Float[Array, " m"],
    inputs: Mapping[str, Float[Array, " m"]],
    slots: Mapping[str, tuple[str, str, str]],
    *,
    controller: Controller | None = None,
    reference: Float[Array, " m"] | None = None,
    linear: bool = False,
    substeps: int = 1,
    width: float | None = None,
    states: tuple[Float[Array, "e N"], Float[Array, " b"]] | None = None,
) -> SampledMotion:
    """Motion of a system with one degree of freedom at the samples ``t`` [s].

    ``inputs``: samples of functions of time by path, held until the next sample or, if ``linear``,
    connected by straight lines; ``slots``: section, name and field of every driven path, including
    that of the controller. The motion is unknown (NaN) from the sample on at which a given normal
    force has become negative. Times that are not finite lie after the end, where the motion stands
    still. ``substeps``: steps of the integrator in a sample. ``width``: see :class:`Equations`.
    ``states``: elongations of springs with sliders and states of bristles at the start, in place of
    those of the problem.
    """
    mechanics = assemble(with_held(problem, slots))
    require_one_degree(mechanics)
    start = problem.resolved().initial[problem.axes[0]]
    finite = jnp.isfinite(t)
    t = jnp.where(finite, t, jnp.max(jnp.where(finite, t, -jnp.inf)))
    dt = jnp.diff(t, append=t[-1:])
    q0 = jnp.asarray(start.q, t.dtype)
    v0 = jnp.asarray(start.v, t.dtype)
    sliders = mechanics.piecewise.sliders
    if states is None:
        springs = jnp.zeros((0, 0), t.dtype) if sliders is None else sliders.z0
        states = springs, problem.resolved().start()[2][1:]
    x0 = State(q0, v0, *states)
    rate = jnp.where(dt > 0, dt, 1.0)
    given = {
        path: (u, (jnp.diff(u, append=u[-1:]) / rate) if linear else jnp.zeros_like(u))
        for path, u in inputs.items()
    }
    memory = None
    if controller is not None and reference is not None:
        memory = controller.start(reference[0], q0, v0, dt[0])
    r = t if reference is None else reference

    def one(carry, row):
        x, memory, complete, lawful = carry
        t, h, r, given = row
        pieces = {path: Held(path, value, slope, t) for path, (value, slope) in given.items()}
        if controller is not None:
            force, moved = controller.step(memory, r, x.q, jnp.where(h > 0, h, dt[0]))
            # After the end the controller stands still, too.
            memory = jax.tree.map(lambda a, b: jnp.where(h > 0, a, b), moved, memory)
            pieces[controller.drives] = Held(controller.drives, force, jnp.zeros_like(force), t)
        held = hold(mechanics, pieces)
        equations = Equations(held, width)
        after = x
        for i in range(substeps):
            after, done = update(equations, t + i * h / substeps, after, h / substeps)
            complete = complete & done
        seen = {path: piece.value for path, piece in pieces.items()}
        row = jnp.where(lawful, x.q, jnp.nan), jnp.where(lawful, x.v, jnp.nan), seen
        lawful = lawful & ~(first_negative_force(held, t, t + h) < t + h)
        return (after, memory, complete, lawful), row

    wrong = status_of_numbers(problem, mechanics, t[0], t[0] + 1.0)
    allowed = wrong == int(Status.OK)
    first = (x0, memory, jnp.asarray(True), allowed)
    (_, _, complete, lawful), (q, v, seen) = lax.scan(one, first, (t, dt, r, given))
    status = jnp.where(complete, int(Status.OK), int(Status.STALLED))
    broken = ~(jnp.all(jnp.isfinite(q)) & jnp.all(jnp.isfinite(v)))
    status = jnp.where(broken, int(Status.NON_FINITE), status)
    status = jnp.where(lawful, status, int(Status.NEGATIVE_FORCE))
    status = jnp.where(allowed, status, wrong)
    return SampledMotion(q, v, seen, status)
