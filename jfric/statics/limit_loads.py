"""The load, or another parameter, at which the last rest state is lost.

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

from jfric.numerics.printing import printable
from jfric.results.status import Status
from jfric.statics.path_names import checked_path
from jfric.statics.polyhedron import margin
from jfric.statics.rest_states import require_rest, rest_sets
from jfric.system.model import build
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Number of steps of the parameter in the search for the first loss of equilibrium.
SCAN = 64
_HALVINGS = 60
#: Distance before the limit, as a part of the way, at which carrying contacts are determined.
_BEFORE = 1e-7


@printable
class LimitLoad(eqx.Module):
    """The limit ``parameter``, and the rest state there.

    Positions ``q`` (n,) [m, rad] of the degrees of freedom ``axes``; friction forces ``lambda_t``
    (nt,) and normal forces ``lambda_n`` (nu,) [N] of the contacts ``names``; ``reactions`` (k,)
    [N, N m] of the equations ``joints``. ``status``:
    ``OK``; ``INCONSISTENT`` where there is no rest state at the start; ``MAX_STEPS`` if there is
    one at all values (``parameter`` is then the stop). The state at the limit is one of several
    where reactions or positions are not unique. Example: see :func:`jfric.limit_load`.
    """

    parameter: Float[Array, ""]
    q: Float[Array, " n"]
    lambda_t: Float[Array, " nt"]
    lambda_n: Float[Array, " nu"]
    reactions: Float[Array, " k"]
    status: Int[Array, ""]
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[str, ...] = eqx.field(static=True)


def limit_load(problem: Problem, path: str, start, stop, *, t=None) -> LimitLoad:
    """The value of a parameter at which the last rest state of ``problem`` is lost.

    The search covers the parameter ``path`` from ``start`` to ``stop``. ``t`` [s]: time at which
    loads are taken (default: the start). A loss and return within a 64th of the interval is not
    noticed. A mechanism is evaluated at its initial position, which may depend on the parameter
    (``initial.theta.q``). Works under ``jit``, ``vmap`` and ``jvp``. Raises
    :class:`jfric.ProblemError` for unknown parameters, and for problems whose states of rest cannot
    be computed. A block of 10 N that friction holds up to 3 N::

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
    problem = build(problem)
    require_rest(problem)
    name = checked_path(problem, path)
    for value in (start, stop):
        if not isinstance(value, Tracer):
            validate(set_parameters(problem, {name: value}))
    # Arrays, so that another number causes no new compilation.
    start, stop = (jnp.asarray(x, jnp.result_type(float)) for x in (start, stop))
    t = None if t is None else jnp.asarray(t, jnp.result_type(float))
    return _solve(problem, name, start, stop, t)


@eqx.filter_jit
def _solve(problem: Problem, path: str, start, stop, t) -> LimitLoad:
    def margins(p):
        found = rest_sets(set_parameters(problem, {path: p}), t)
        s, x = jax.vmap(margin)(found.sets)
        return found, jnp.where(jnp.isnan(s), -jnp.inf, s), x

    def at(p, chosen=None):
        found, s, x = margins(p)
        best = jnp.argmax(s) if chosen is None else chosen
        return s[best], found.split(x[best])

    search = _search(jax.lax.stop_gradient(start), jax.lax.stop_gradient(stop))
    search = jax.lax.fori_loop(
        0, SCAN + 1 + _HALVINGS, lambda _, s: s.after(at(s.next)[0] >= 0.0), search
    )
    never = ~search.lost
    p = jax.lax.stop_gradient(jnp.where(never, stop, search.held))
    # Contacts that are closed on the way, not only at the limit: a body about to tip may stand
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
    q, lambda_t, lambda_n, reactions = state
    of = rest_sets(problem, t)
    names = of.axes, of.names, of.joints
    return LimitLoad(p + shift, q, lambda_t, lambda_n, reactions, status, *names)


class _Search(eqx.Module):
    """Search for the first loss: a grid of ``SCAN`` steps, then halving from ``held`` to
    ``gone``."""

    start: Float[Array, ""]
    step: Float[Array, ""]
    held: Float[Array, ""]
    gone: Float[Array, ""]
    count: Int[Array, ""]
    lost: Bool[Array, ""]
    at_start: Bool[Array, ""]

    @property
    def next(self):
        """The next value of the parameter to be tested."""
        return jnp.where(
            self.lost, 0.5 * (self.held + self.gone), self.start + self.count * self.step
        )

    def after(self, holds) -> _Search:
        """The search after the test of ``next``, which ``holds`` if there is a rest state."""
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
