"""The load, or any other parameter, at which no rest state is left.

The margin ``s`` of the rest states is the largest number by which all inequalities (limits of
friction, contact forces, gaps) can be tightened at once; there is a rest state where ``s >= 0``.
The limit is the first zero of ``s`` on the way from one value of the parameter to another.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jfric.numerics.linear_program import maximise
from jfric.results.status import Status
from jfric.statics.path_names import checked_path
from jfric.statics.rest_states import Polyhedron, patterns, polyhedron
from jfric.statics.static_mode_equations import split
from jfric.statics.static_problem import require_static, static_problem
from jfric.system.assembly import assemble
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Values of the parameter looked at before the first loss of equilibrium is narrowed down.
SCAN = 64
_HALVINGS = 60
#: Part of the way back from the limit at which it is looked which contacts carry.
_BEFORE = 1e-7


class LimitLoad(eqx.Module):
    """The limit ``parameter``, and the state there.

    Positions ``q`` (n,) [m, rad] of the degrees of freedom ``axes``; friction forces ``lambda_t``
    (nt,) and normal forces ``lambda_n`` (nu,) [N] of the contacts ``names``. ``status``:
    ``OK``; ``INCONSISTENT`` where there is no rest state at the start; ``MAX_STEPS`` where there is
    one all the way (``parameter`` is then the stop). The state at the limit is one of several where
    reactions or positions are not unique.
    """

    parameter: Float[Array, ""]
    q: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    status: Int[Array, ""]
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)


def limit_load(problem: Problem, path: str, start, stop, *, t=None) -> LimitLoad:
    """The value of a parameter at which the last rest state of ``problem`` is lost.

    It is looked for between ``start`` and ``stop`` of the parameter ``path``. ``t`` [s]: time at
    which loads are taken (default: the start). A loss and return within a 64th of the way is not
    seen. Works under ``jit``, ``vmap`` and ``jvp``. Raises :class:`jfric.ProblemError` for unknown
    parameters and nonlinear elements. A block of 10 N that friction holds up to 3 N::

        >>> block = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "friction": jfric.Friction("x", jfric.Coulomb(0.3), N=10.0),
        ...         "load": jfric.Load("x", 0.0),
        ...     },
        ... )
        >>> round(float(jfric.limit_load(block, "load.F", 0.0, 10.0).parameter), 6)
        3.0
    """
    require_static(problem)
    name = checked_path(problem, path)
    for value in (start, stop):
        if not isinstance(value, Tracer):
            validate(set_parameters(problem, {name: value}))
    # Arrays: another number is no reason to compile anew.
    start, stop = (jnp.asarray(x, jnp.result_type(float)) for x in (start, stop))
    t = None if t is None else jnp.asarray(t, jnp.result_type(float))
    return _solve(problem, name, start, stop, t)


@eqx.filter_jit
def _solve(problem: Problem, path: str, start, stop, t) -> LimitLoad:
    def margins(p):
        static = static_problem(set_parameters(problem, {path: p}), t)
        closed = jnp.asarray(patterns(static))
        s, x = jax.vmap(lambda c: _margin(polyhedron(static, c)))(closed)
        return static, jnp.where(jnp.isnan(s), -jnp.inf, s), x

    def at(p, chosen=None):
        static, s, x = margins(p)
        best = jnp.argmax(s) if chosen is None else chosen
        return s[best], split(static, x[best])

    search = _search(jax.lax.stop_gradient(start), jax.lax.stop_gradient(stop))
    search = jax.lax.fori_loop(
        0, SCAN + 1 + _HALVINGS, lambda _, s: s.after(at(s.next)[0] >= 0.0), search
    )
    never = ~search.lost
    p = jax.lax.stop_gradient(jnp.where(never, stop, search.held))
    # Contacts that are closed on the way, not at the limit alone: a body about to tip may stand
    # there on one foot.
    _, before, _ = margins(p - _BEFORE * (p - search.start))
    chosen = jax.lax.stop_gradient(jnp.argmax(before))
    (s, state), (slope, rate) = jax.jvp(lambda p: at(p, chosen), (p,), (jnp.ones_like(p),))
    # Implicit function theorem: the zero of s moves with all other numbers of the problem.
    slope, rate = jax.lax.stop_gradient((slope, rate))
    moves = search.lost & jnp.isfinite(s) & (slope != 0.0)
    shift = jnp.where(moves, -s / jnp.where(moves, slope, 1.0), 0.0)
    state = jax.tree.map(lambda x, dx: x + jnp.where(moves, dx * shift, 0.0), state, rate)
    status = jnp.where(search.at_start, int(Status.INCONSISTENT), int(Status.OK))
    status = jnp.where(never, int(Status.MAX_STEPS), status).astype(jnp.int32)
    names = eqx.filter_eval_shape(assemble, problem)
    q, lambda_t, lambda_n = state
    return LimitLoad(p + shift, q, lambda_t, lambda_n, status, names.axes, names.contact_names)


class _Search(eqx.Module):
    """First loss on a grid of ``SCAN`` steps, then halving: ``held`` to ``gone``."""

    start: Float[Array, ""]
    step: Float[Array, ""]
    held: Float[Array, ""]
    gone: Float[Array, ""]
    count: Int[Array, ""]
    lost: Bool[Array, ""]
    at_start: Bool[Array, ""]

    @property
    def next(self):
        """The value to look at."""
        return jnp.where(
            self.lost, 0.5 * (self.held + self.gone), self.start + self.count * self.step
        )

    def after(self, holds) -> _Search:
        """The search after it is known whether there is a rest state at ``next``."""
        return _Search(
            start=self.start,
            step=self.step,
            held=jnp.where(holds, self.next, self.held),
            gone=jnp.where(holds, self.gone, self.next),
            count=jnp.minimum(self.count + 1, SCAN),
            lost=self.lost | ~holds,
            at_start=self.at_start | (~holds & (self.count == 0)),
        )


def _search(start, stop) -> _Search:
    no = jnp.asarray(False)
    step = (stop - start) / SCAN
    return _Search(start, step, start, start, jnp.asarray(0), lost=no, at_start=no)


def _margin(p: Polyhedron):
    """The margin ``s <= 1``, as a fraction of the numbers in each inequality, and a state that has
    it; NaN where the equations contradict each other."""
    steepest = jnp.max(jnp.abs(p.A), axis=1, initial=0.0)
    weight = jax.lax.stop_gradient(jnp.where(p.size > 0, p.size, steepest))
    last = jnp.zeros((1, p.A.shape[1]), p.A.dtype)
    A = jnp.block([[p.A, -jnp.where(p.used, weight, 0.0)[:, None]], [last, -jnp.ones((1, 1))]])
    aim = jnp.zeros((A.shape[1],), A.dtype).at[-1].set(1.0)
    z, solved = maximise(aim, A, jnp.concatenate([p.b, jnp.ones((1,), p.b.dtype)]))
    return jnp.where(solved & p.consistent, z[-1], jnp.nan), p.origin + p.N @ z[:-1]
