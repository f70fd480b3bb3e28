"""One door to all methods for the contact problem of a step, with one judge of their answers.

A method finds the modes of the contacts; the impulses then follow from one linear system, which
also gives their derivatives, and :func:`impulse_residual` decides whether they count as solved.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.contact.closed_form import closed_form
from jfric.contact.contact_lcp import ContactProblem, solve_contacts
from jfric.contact.gauss_seidel import gauss_seidel
from jfric.contact.impulses import impulses_in_mode, modes_of, unit_scale
from jfric.contact.residual import impulse_residual
from jfric.contact.semismooth_newton import semismooth_newton
from jfric.errors import ProblemError, nearest
from jfric.numerics.linear_algebra import matvec
from jfric.results.modes import Mode
from jfric.results.status import Status

Method = Literal["auto", "closed-form", "lemke", "newton", "gauss-seidel"]
METHODS: tuple[Method, ...] = ("auto", "closed-form", "lemke", "newton", "gauss-seidel")


class Impulses(NamedTuple):
    """Impulses (m,) of tangents and normals, relative velocities ``gamma`` with them, modes.

    ``iterations``: pivots, linear systems or sweeps. ``residual``: see
    :func:`impulse_residual`. ``status``: ``OK``, ``INCONSISTENT`` (there is no solution) or
    ``UNSOLVED`` (not found within the iterations allowed).
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
) -> Impulses:
    """Impulses that obey the laws of contact and friction, by the named method.

    ``closed-form``: one contact. ``lemke``: pivoting, finds a solution wherever friction does not
    forbid one. ``newton``: semismooth Newton from the modes ``start`` (stick without them).
    ``gauss-seidel``: projected sweeps. ``auto``: closed form for one contact, else Newton, and
    Lemke where Newton fails. Raises :class:`jfric.ProblemError` for an unknown method.
    """
    contacts = problem.decided.shape[0]
    require_method(method, contacts)
    if contacts == 0:
        return _nothing(problem)
    tolerance = solved_below(problem.D.dtype)
    scaled, weight = unit_scale(problem)
    # Decisions have no derivatives.
    frozen = jax.lax.stop_gradient(scaled)
    begin = jnp.full((contacts,), Mode.STICK, jnp.int32) if start is None else start
    iterations, impossible = jnp.asarray(1, jnp.int32), jnp.asarray(False)
    candidate = None
    if method == "auto":
        method = "closed-form" if contacts == 1 else "auto"
    if method == "closed-form":
        mode = closed_form(frozen)
    elif method == "gauss-seidel":
        candidate, iterations = gauss_seidel(frozen, 0.01 * tolerance)
        mode = modes_of(frozen, candidate, frozen.gamma + matvec(frozen.D, candidate))
    elif method == "lemke":
        mode, solved, iterations = solve_contacts(frozen)
        impossible = ~solved
    else:
        mode, solved, iterations = semismooth_newton(frozen, begin, 0.01 * tolerance)
        if method == "auto":
            pivoted = solve_contacts(frozen, needed=~solved)
            mode = jnp.where(solved, mode, pivoted.mode)
            impossible = ~solved & ~pivoted.solved
            iterations = iterations + jnp.where(solved, 0, pivoted.pivots)
    impulse = impulses_in_mode(scaled, mode)
    residual = impulse_residual(frozen, jax.lax.stop_gradient(impulse))
    if candidate is not None:
        # Where contacts are redundant the modes do not determine the impulses.
        keep = impulse_residual(frozen, candidate) < jnp.where(
            jnp.isnan(residual), jnp.inf, residual
        )
        impulse = jnp.where(keep, candidate, impulse)
        residual = impulse_residual(frozen, jax.lax.stop_gradient(impulse))
    solved = residual <= tolerance
    failure = jnp.where(impossible, int(Status.INCONSISTENT), int(Status.UNSOLVED))
    status = jnp.where(solved, int(Status.OK), failure).astype(jnp.int32)
    impulse = impulse * weight
    gamma = problem.gamma + matvec(problem.D, impulse)
    return Impulses(impulse, gamma, mode, iterations, residual, status)


def require_method(method: str, contacts: int) -> None:
    """Raise :class:`jfric.ProblemError` for a method that cannot solve ``contacts`` contacts."""
    if method not in METHODS:
        raise ProblemError(
            f"method: found {method!r}{nearest(method, METHODS)}, allowed are {', '.join(METHODS)}"
        )
    if method == "closed-form" and contacts > 1:
        raise ProblemError(
            f"method: 'closed-form' solves one contact, found {contacts}; use 'auto'"
        )


def solved_below(dtype) -> float:
    """Largest residual of a solved problem."""
    return 1e-10 if jnp.finfo(dtype).bits >= 64 else 1e-3


def _nothing(problem: ContactProblem) -> Impulses:
    empty = jnp.zeros((0,), problem.D.dtype)
    zero = jnp.asarray(0, jnp.int32)
    none = jnp.zeros((0,), jnp.int32)
    return Impulses(empty, empty, none, zero, jnp.zeros((), problem.D.dtype), zero)
