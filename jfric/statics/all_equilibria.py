"""All equilibria of the static problem, by exhausting the modes or from many starts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jfric.contact import rules
from jfric.errors import require_one_of
from jfric.numerics.limits import STARTS, require_count
from jfric.numerics.printing import Shown, printable, short
from jfric.results.modes import Mode
from jfric.statics.branch import MAX_COLUMNS, listed, without_rounding
from jfric.statics.candidate import ON_EDGE, Candidate, candidate, distinct, single
from jfric.statics.position_problem import (
    at_rest,
    position_candidates,
    position_modes,
    require_reference,
)
from jfric.statics.rest_states import RestStates, require_rest, rest_states
from jfric.statics.static_problem import (
    Parts,
    StaticProblem,
    as_table,
    combinations,
    mode_equations,
    possible_modes,
    static_problem,
    static_residual,
)
from jfric.system.model import build
from jfric.system.problem import Problem

#: Number of combinations of modes up to which all are tried.
MAX_MODES = 256

Meaning = Literal["reference", "rest"]
MEANINGS: tuple[Meaning, ...] = ("reference", "rest")


@printable
class Equilibria(eqx.Module):
    """Solutions of the static problem: the rows with ``exists``, ``count`` of them.

    A row is one combination of modes ``mode`` (or one start), with positions ``q`` (c, n) [m, rad]
    of the degrees of freedom ``axes``, friction forces ``lambda_t`` (c, nt) and normal forces
    ``lambda_n`` (c, nu) [N] of the contacts ``names``, and reactions ``reaction`` (c, k) [N, N m]
    of the equations ``joints``. In a ``continuum`` the row is a segment of solutions from
    ``(q, lambda_t, lambda_n)`` to ``(q_to, lambda_t_to, lambda_n_to)``, infinite where it has no
    end; otherwise both are equal. Under ``vmap`` arrays have the batch axis in front. Example: see
    :func:`jfric.equilibria`.
    """

    q: Float[Array, "c n"]
    lambda_t: Float[Array, "c nt"]
    lambda_n: Float[Array, "c nu"]
    q_to: Float[Array, "c n"]
    lambda_t_to: Float[Array, "c nt"]
    lambda_n_to: Float[Array, "c nu"]
    reaction: Float[Array, "c k"]
    mode: Int[Array, "c nt"]
    exists: Bool[Array, " c"]
    continuum: Bool[Array, " c"]
    #: Some inequality holds with equality: two modes meet here (a fold, or a change of mode).
    boundary: Bool[Array, " c"]
    #: Certificate: largest relative violation of equilibrium and of the laws.
    residual: Float[Array, " c"]
    count: Int[Array, ""]
    #: Whether some modes leave more than one parameter open; these are neither counted nor
    #: excluded.
    unresolved: Bool[Array, ""]
    #: Whether all modes were tried, so that there are no other solutions.
    exhaustive: bool = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    joints: tuple[str, ...] = eqx.field(static=True)
    #: Whether the equilibria are those of a mechanism, searched from its initial position.
    curved: bool = eqx.field(static=True, default=False)

    def _shown(self) -> Shown:
        if isinstance(self.exists, Tracer) or self.exists.ndim != 1:
            return Shown("Equilibria", (), [(n, short(getattr(self, n))) for n in ("q", "count")])
        normals = self.names[len(self.names) - self.lambda_n.shape[-1] :]
        # The reactions of joints belong to mechanisms, which have no segments.
        groups = {"q": self.axes, "lambda_t": self.names, "lambda_n": normals}
        groups |= {"reaction": self.joints} if self.joints else {}
        heads = [
            f">{name}" if field == "q" else f">{field}.{name}"
            for field, names in groups.items()
            for name in names[:MAX_COLUMNS]
        ]
        rows: list[tuple[str, ...]] = []
        for i, row in enumerate(self.table(), start=1):
            for suffix in ("", "_to") if row["continuum"] else ("",):
                values = [x for field in groups for x in row[field + suffix][:MAX_COLUMNS]]
                numbers = [f"{x:.10g}" for x in without_rounding(values)]
                remark = "from" if row["continuum"] else "modes meet" if row["boundary"] else ""
                if suffix:
                    rows.append(("", "", *numbers, "", "to: all between are equilibria"))
                else:
                    modes, residual = listed(row["mode"]), f"{row['residual']:.0e}"
                    rows.append((str(i), modes, *numbers, residual, remark))
        count, below = int(self.count), []
        if not self.exhaustive:
            where = "from the initial position" if self.curved else "from many starts"
            below.append(f"found {where}: there may be others")
        if bool(self.unresolved):
            what = "positions or reactions" if self.curved else "several parameters"
            below.append(f"some modes leave {what} open and are left out")
        columns = ("", "modes", *heads, ">residual", "remark")
        title = f"{count} equilibri{'um' if count == 1 else 'a'}"
        return Shown(title, columns, rows, "; ".join(below))

    def table(self) -> list[dict[str, Any]]:
        """The solutions of one problem as rows, in the order of their modes."""
        arrays = ("q", "lambda_t", "lambda_n", "q_to", "lambda_t_to", "lambda_n_to", "reaction")
        return [
            {name: np.asarray(getattr(self, name)[i]) for name in arrays}
            | {
                "mode": tuple(Mode(int(m)).label for m in np.asarray(self.mode[i])),
                "continuum": bool(self.continuum[i]),
                "boundary": bool(self.boundary[i]),
                "residual": float(self.residual[i]),
            }
            for i in np.flatnonzero(np.asarray(self.exists))
        ]


def equilibria(
    problem: Problem, *, meaning: Meaning = "reference", t=None, starts: int = 64, seed: int = 0
) -> Equilibria | RestStates:
    """All equilibria of ``problem`` under its loads at the time ``t`` [s] (default: the start).

    ``meaning="reference"``: the static problem from a reference state, the initial position.
    Coulomb's law applies to the displacement from the reference state::

        K q = f + W_T^T lambda_T + W_N^T lambda_N
        0 <= g_N _|_ lambda_N >= 0,    lambda_T in -mu N Sign(W_T (q - q_0))

    For few contacts (up to 256 combinations of modes) every combination is solved, as one batch,
    and accepted by its inequalities: these are all solutions. For more contacts, semismooth
    Newton's method runs from ``starts`` modes drawn at random (``seed``); there may be others. For
    a mechanism (joints, directions that depend on its position, or forces that are not linear)
    Newton's method tries every combination from the initial position: it finds the equilibria
    nearby, with the reactions of joints in ``reaction``. Where bodies are held in more ways than
    one, reactions are not unique; such modes are left out, and ``unresolved`` says so.

    ``meaning="rest"``: states in which the system can stay at rest, whatever its history. These are
    intervals, not points; see :class:`jfric.RestStates`. A mechanism (joints, or directions that
    depend on its position) is evaluated at its initial position, with the intervals of all
    reactions that hold it there.

    Works under ``jit`` and ``vmap``; solutions are differentiable. The function is compiled once
    for each structure of the problem. Raises :class:`jfric.ProblemError` for elements with kinks or
    a memory and for belts in the first meaning, for belts of mechanisms and pins with friction in
    both. Sources: V. Janovsky, Numerical analysis of a lumped parameter friction model, 2015,
    section 2; P. Hild, Y. Renard, Local uniqueness and continuation of solutions for the discrete
    Coulomb friction problem in elastostatics, Quart. Appl. Math. 63 (2005). The problem of
    :class:`jfric.Problem` slides until the spring holds the load minus friction, (1500 - 100) N /
    5000 N/m::

        >>> found = jfric.equilibria(problem)
        >>> [(row["mode"], round(float(row["q"][0]), 6)) for row in found.table()]
        [(('slip+',), 0.28)]
    """
    problem = build(problem)
    require_one_of("meaning", meaning, MEANINGS)
    t = None if t is None else jnp.asarray(t, jnp.result_type(float))
    if meaning == "rest":
        require_rest(problem)
        return rest_states(problem, t)
    if require_reference(problem):
        return position_equilibria(problem, t)
    require_count("starts", starts, 1, STARTS)
    return _solve(problem, t, jax.random.key(seed), starts)


@eqx.filter_jit
def _solve(problem: Problem, t, key, starts: int) -> Equilibria:
    static = static_problem(problem, t)
    if math.prod(map(len, possible_modes(static.rubs, static.n_friction))) <= MAX_MODES:
        return exhaust(static)
    found = from_many_starts(static, key, starts)
    return _result(static, *found, exhaustive=False)


@eqx.filter_jit
def position_equilibria(problem: Problem, t) -> Equilibria:
    """Equilibria of a mechanism that Newton's method finds from its initial position."""
    rest = at_rest(problem, t)
    mode, mechanics = jnp.asarray(position_modes(rest)), rest.mechanics
    found = position_candidates(rest, mode)
    names = mechanics.axes, mechanics.contact_names, rest.joints
    made = _made(found, mode, rest.parts, names, exhaustive=False)
    return dataclasses.replace(made, curved=True)


def exhaust(static: StaticProblem) -> Equilibria:
    """Equilibria of a problem with few contacts: all combinations of modes, as one batch."""
    modes = combinations(possible_modes(static.rubs, static.n_friction))
    mode = jnp.asarray(as_table(modes, len(static.names)))
    found = jax.vmap(lambda m: candidate(static, m))(mode)
    return _result(static, found, mode, exhaustive=True)


def _result(static: StaticProblem, found, mode, *, exhaustive: bool) -> Equilibria:
    names = static.axes, static.names, ()
    return _made(found, mode, static.parts, names, exhaustive=exhaustive)


def _made(found: Candidate, mode, parts: Parts, names, *, exhaustive: bool) -> Equilibria:
    """The solutions among candidates."""
    exists = distinct(found, parts.n)
    q, lambda_t, lambda_n, reaction = parts.of(found.x)
    q_to, lambda_t_to, lambda_n_to, _ = parts.of(found.x_to)
    axes, contacts, joints = names
    return Equilibria(
        q=q,
        lambda_t=lambda_t,
        lambda_n=lambda_n,
        q_to=q_to,
        lambda_t_to=lambda_t_to,
        lambda_n_to=lambda_n_to,
        reaction=reaction,
        mode=mode,
        exists=exists,
        continuum=found.continuum & exists,
        boundary=found.boundary & exists,
        residual=found.residual,
        count=jnp.sum(exists, dtype=jnp.int32),
        unresolved=jnp.any(found.unresolved),
        exhaustive=exhaustive,
        axes=axes,
        names=contacts,
        joints=joints,
    )


#: Number of linear systems after which a start is given up.
STEPS = 60
#: Largest residual of a solution.
SOLVED = 1e-10


def from_many_starts(
    problem: StaticProblem, key, starts: int
) -> tuple[Candidate, Int[Array, "s nt"]]:
    """The end points of Newton's method from ``starts`` starts, and the modes there."""
    found = jax.lax.map(lambda mode: newton(problem, mode), start_modes(problem, key, starts))

    def as_candidate(result: NewtonResult) -> Candidate:
        x, equations = result.x, mode_equations(problem, result.mode)
        size = jnp.maximum(jnp.abs(x), 1e-6 * jnp.max(jnp.abs(x), initial=0.0))
        margin = equations.G @ x + equations.h
        zero = ON_EDGE * (jnp.abs(equations.G) @ size + jnp.abs(equations.h))
        solved, no = result.residual <= SOLVED, jnp.asarray(False)
        edge = solved & jnp.any(equations.used & (margin <= zero))
        judged = {"accepted": solved, "boundary": edge, "unresolved": no}
        return single(x, size, **judged, residual=result.residual)

    return jax.vmap(as_candidate)(found), found.mode


class NewtonResult(NamedTuple):
    """Unknowns (m,), the modes (nt,) they belong to, their residual, and linear systems solved."""

    x: Float[Array, " m"]
    mode: Int[Array, " nt"]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


def newton(problem: StaticProblem, start: Int[Array, " nt"]) -> NewtonResult:
    """Result of semismooth Newton's method on the projection form from the modes ``start``.

    Equation (1) of Janovsky (2015), with ``r > 0`` and the limits ``c+-`` of the current normal
    force::

        lambda_N = max(0, lambda_N - r g_N)
        lambda_T = clip(lambda_T - r s, -c+, c-)

    A step of Newton's method is the linear system of the modes in which the arguments of the
    projections lie. A few steps suffice from modes near a solution; from others it may cycle, and
    the start is given up. Source: P. Alart, A. Curnier, A mixed formulation for frictional contact
    problems prone to Newton like solution methods, Comput. Methods Appl. Mech. Engrg. 92 (1991).
    """

    def step(following, steps):
        x = solve_mode(problem, following)
        residual = static_residual(problem, x)
        residual = jnp.where(jnp.isnan(residual), jnp.inf, residual)
        return NewtonResult(x, following, residual, steps + 1)

    def running(found: NewtonResult):
        return (found.residual > 0.01 * SOLVED) & (found.steps < STEPS)

    first = step(start, jnp.asarray(0, jnp.int32))
    return jax.lax.while_loop(
        running, lambda found: step(projected_modes(problem, found.x), found.steps), first
    )


def solve_mode(problem: StaticProblem, mode: Int[Array, " nt"]) -> Float[Array, " m"]:
    """Unknowns in the modes ``mode``; not finite where they are undetermined."""
    equations = mode_equations(problem, mode)
    x = jnp.linalg.solve(equations.A, equations.b)
    return x + jnp.linalg.solve(equations.A, equations.b - equations.A @ x)


def projected_modes(problem: StaticProblem, x: Float[Array, " m"]) -> Int[Array, " nt"]:
    """Modes in which the arguments of the projections lie."""
    p, nf = problem, problem.n_friction
    q, lambda_t, lambda_n, _ = p.parts.of(x)
    trial_n = lambda_n - _stiffness(p.K, p.W_N) * (p.gap0 + p.W_N @ q)
    normal_force = jnp.maximum(trial_n, 0.0)
    trial_t = lambda_t - _stiffness(p.K, p.W_T) * (p.W_T @ q - p.slip0)
    upper, lower = p.cap_static + p.mu_static * p.own_normal(normal_force)
    mode = rules.projected_mode(trial_t, upper, lower)
    mode = jnp.where(p.frictionless, Mode.CLOSED, mode)
    opened = jnp.concatenate([jnp.zeros((nf,), bool), ~(trial_n > 0.0)])
    return jnp.where(opened, Mode.OPEN, mode).astype(jnp.int32)


def _stiffness(K, W):
    """Stiffness along each row of ``W``: the parameter ``r`` of the projections."""
    size = jnp.sum(W * W, axis=1)
    along = jnp.sum((W @ K) * W, axis=1) / jnp.where(size > 0, size, 1.0) ** 2
    return jnp.where(along > 0, along, jnp.max(jnp.abs(K), initial=1e-300))


def start_modes(problem: StaticProblem, key, starts: int) -> Int[Array, "s nt"]:
    """Modes of the starts: all contacts alike, then zones of random length and mode."""
    nt = len(problem.names)
    alike = jnp.asarray([Mode.STICK, Mode.SLIP_POS, Mode.SLIP_NEG, Mode.OPEN], jnp.int32)
    first = jnp.broadcast_to(alike[:, None], (4, nt))
    where, what = jax.random.split(key)
    # Neighbouring contacts tend to share their mode: a new zone begins at one contact in four.
    begins = jax.random.bernoulli(where, 0.25, (starts, nt))
    zone = jnp.cumsum(begins, axis=1)
    drawn = jnp.take_along_axis(jax.random.randint(what, (starts, nt + 1), 0, 4), zone, axis=1)
    table = jnp.concatenate([first, alike[drawn]])[:starts]
    return jax.vmap(lambda mode: admissible(problem, mode))(table)


def admissible(problem: StaticProblem, mode: Int[Array, " nt"]) -> Int[Array, " nt"]:
    """``mode`` with modes that a contact cannot have replaced by possible ones."""
    unilateral = jnp.asarray(problem.unilateral, bool)
    mode = jnp.where((mode == Mode.OPEN) & ~unilateral, Mode.STICK, mode)
    frictionless = problem.frictionless & (mode != Mode.OPEN)
    return jnp.where(frictionless, Mode.CLOSED, mode).astype(jnp.int32)
