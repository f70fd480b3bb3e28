"""Solution of a contact problem by any of the methods, with one check of all results.

Along lines a method finds the modes of the contacts; the impulses then follow from one linear
system, which also gives their derivatives. In planes a method finds the impulses. The residual of
:mod:`jfric.contact.contact_problem` decides whether they count as solved.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact.contact_problem import ContactProblem, modes_of, natural_map, residual_in_units
from jfric.contact.direct_methods import closed_form, solve_contacts
from jfric.contact.iterative_methods import (
    differentiable,
    gauss_seidel,
    impulses_in_mode,
    newton_step,
    semismooth_newton,
    sweep,
)
from jfric.errors import ProblemError, require_one_of
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.results.status import Status

Method = Literal["auto", "closed-form", "lemke", "newton", "gauss-seidel"]
METHODS: tuple[Method, ...] = ("auto", "closed-form", "lemke", "newton", "gauss-seidel")
#: Methods that can solve friction in a plane.
OF_PLANES: tuple[Method, ...] = ("auto", "newton", "gauss-seidel")


class Impulses(NamedTuple):
    """Impulses (m,) of tangents and normals, relative velocities ``gamma`` that result, and modes.

    ``iterations``: pivots, linear systems, sweeps, or rounds of these. ``residual``: see
    :func:`jfric.contact.contact_problem.impulse_residual`. ``status``: ``OK``, ``INCONSISTENT``
    (there is no solution) or ``UNSOLVED`` (not found within the iterations allowed).
    """

    impulse: Float[Array, " m"]
    gamma: Float[Array, " m"]
    mode: Int[Array, " nt"]
    iterations: Int[Array, ""]
    residual: Float[Array, ""]
    status: Int[Array, ""]


def solve_impulses(
    problem: ContactProblem,
    method: Method = "auto",
    start: Int[Array, " nt"] | None = None,
    *,
    exact: bool = False,
) -> Impulses:
    """Impulses that obey the laws of contact and friction, by the named method, with derivatives.

    ``closed-form``: one contact. ``lemke``: pivoting; finds a solution wherever friction does not
    forbid one. ``newton``: semismooth Newton from the modes ``start`` (stick without them).
    ``gauss-seidel``: projected sweeps. ``auto``: closed form for one contact, else Newton, and
    Lemke where Newton fails; for friction in planes sweeps and Newton steps (see
    :func:`cone_impulses`), with ``exact`` down to rounding errors. Raises
    :class:`jfric.ProblemError` for a method that does not fit.
    """
    contacts = problem.nt
    require_method(method, contacts, in_planes=bool(problem.planes))
    if contacts == 0:
        return _nothing(problem)
    tolerance = solved_below(problem.D.dtype)
    scaled, factor = problem.in_units()
    # Decisions have no derivatives.
    frozen = jax.lax.stop_gradient(scaled)
    impossible = jnp.asarray(False)
    if problem.planes:
        impulse, iterations = cone_impulses(scaled, method, 0.01 * tolerance, exact=exact)
        still = jax.lax.stop_gradient(impulse)
        mode = modes_of(frozen, still, frozen.gamma + matvec(frozen.D, still))
    else:
        impulse, mode, iterations, impossible = _along_lines(scaled, frozen, method, start)
    residual = residual_in_units(frozen, jax.lax.stop_gradient(impulse))
    failure = select(impossible, int(Status.INCONSISTENT), int(Status.UNSOLVED))
    status = select(residual <= tolerance, int(Status.OK), failure).astype(jnp.int32)
    impulse = problem.full(impulse * factor)
    gamma = problem.gamma + matvec(problem.D, impulse)
    return Impulses(impulse, gamma, mode, iterations, residual, status)


def _along_lines(scaled: ContactProblem, frozen: ContactProblem, method: Method, start):
    """Impulses, modes, iterations, and whether there is no solution."""
    tolerance, contacts = 0.01 * solved_below(frozen.D.dtype), frozen.nt
    begin = jnp.full((contacts,), Mode.STICK, jnp.int32) if start is None else start
    iterations, impossible = jnp.asarray(1, jnp.int32), jnp.asarray(False)
    if method == "closed-form" or (method == "auto" and contacts == 1):
        mode = closed_form(frozen)
    elif method == "gauss-seidel":
        candidate, iterations = gauss_seidel(frozen, tolerance)
        mode = modes_of(frozen, candidate, frozen.gamma + matvec(frozen.D, candidate))
        impulse = impulses_in_mode(scaled, mode)
        # Where contacts are redundant the modes do not determine the impulses.
        found = residual_in_units(frozen, jax.lax.stop_gradient(impulse))
        keep = residual_in_units(frozen, candidate) < found
        return select(keep, candidate, impulse), mode, iterations, impossible
    elif method == "lemke":
        mode, solved, iterations = solve_contacts(frozen)
        impossible = ~solved
    else:
        mode, solved, iterations = semismooth_newton(frozen, begin, tolerance)
        if method == "auto":
            pivoted = solve_contacts(frozen, needed=~solved)
            mode = select(solved, mode, pivoted.mode)
            impossible = ~solved & ~pivoted.solved
            iterations = iterations + select(solved, 0, pivoted.pivots)
    return impulses_in_mode(scaled, mode), mode, iterations, impossible


def require_method(method: str, contacts: int, *, in_planes: bool = False) -> None:
    """Raise :class:`jfric.ProblemError` for a method that cannot solve ``contacts`` contacts, or
    friction ``in_planes``."""
    require_one_of("method", method, METHODS)
    if method == "closed-form" and contacts > 1:
        raise ProblemError(
            f"method: 'closed-form' solves one contact, found {contacts}; use 'auto'"
        )
    if in_planes and method not in OF_PLANES:
        raise ProblemError(
            f"method: {method!r} takes friction along lines, found friction in a plane; allowed "
            f"are {', '.join(OF_PLANES)}"
        )


def solved_below(dtype) -> float:
    """Largest residual of a solved problem."""
    return 1e-10 if jnp.finfo(dtype).bits >= 64 else 1e-3


def _nothing(problem: ContactProblem) -> Impulses:
    empty = jnp.zeros((0,), problem.D.dtype)
    zero = jnp.asarray(0, jnp.int32)
    none = jnp.zeros((0,), jnp.int32)
    return Impulses(empty, empty, none, zero, jnp.zeros((), problem.D.dtype), zero)


#: Rounds after which the method gives up; a round is one Newton step or a group of sweeps.
ROUNDS = 100
#: Sweeps in a round, and the part of the residual by which a Newton step must reduce it to count.
SOME, ENOUGH = 20, 0.1


def cone_impulses(
    problem: ContactProblem, method: str, tolerance: float, *, exact: bool = False
) -> tuple[Float[Array, " m"], Int[Array, ""]]:
    """Impulses (m,) of a problem in units, with their derivatives, and the number of rounds.

    Planes are second-order cones, lines cones of one dimension. ``newton``: semismooth Newton's
    method. ``gauss-seidel``: sweeps. ``auto``: sweeps first, and again where a Newton step reduces
    the residual too little. ``exact``: one more round follows after the tolerance is reached, down
    to rounding errors.
    """
    frozen = jax.lax.stop_gradient(problem)
    if problem.nt == 1 + len(problem.planes) and not problem.touching.shape[0]:
        # One friction element with a given limit: a single sweep is exact.
        found, rounds = sweep(frozen, jnp.zeros_like(frozen.gamma)), jnp.asarray(1, jnp.int32)
    elif method == "gauss-seidel":
        found, rounds = gauss_seidel(frozen, tolerance)
    else:
        found, rounds = _rounds(frozen, tolerance, sweeps=method == "auto", exact=exact)
    return differentiable(problem, found), rounds


def _rounds(p: ContactProblem, tolerance: float, *, sweeps: bool, exact: bool):
    def missed(x):
        return natural_map(p, x, p.gamma + matvec(p.D, x))

    def running(carry):
        _, now, before, rounds = carry
        return ((before if exact else now) > tolerance) & (rounds < ROUNDS)

    def swept(x):
        x = jax.lax.fori_loop(0, SOME, lambda _, x: sweep(p, x), x)
        return x, residual_in_units(p, x)

    def one_round(carry):
        x, now, _, rounds = carry
        following = newton_step(missed, x)
        after = residual_in_units(p, following)
        better = after < now
        found = select(better, following, x), select(better, after, now)
        if sweeps:
            lost = ~(after < (1.0 - ENOUGH) * now) & (now > tolerance)
            found = jax.lax.cond(lost | (rounds == 0), swept, lambda _: found, x)
        return *found, now, rounds + 1

    x = jnp.zeros_like(p.gamma)
    now = residual_in_units(p, x)
    x, _, _, rounds = jax.lax.while_loop(
        running, one_round, (x, now, now, jnp.asarray(0, jnp.int32))
    )
    return x, rounds
