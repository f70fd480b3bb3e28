"""All equilibria of the static problem, by exhausting the modes or from many starts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import require_one_of
from jfric.numerics.limits import STARTS, require_count
from jfric.numerics.printing import Shown, printable, short
from jfric.results.modes import Mode
from jfric.statics.candidate import Candidate, candidate, distinct
from jfric.statics.held_position import is_mechanism
from jfric.statics.many_contacts import from_many_starts
from jfric.statics.position_problem import at_rest, facts_of, require_position
from jfric.statics.position_search import position_candidates, position_modes
from jfric.statics.reading import as_table, combinations, possible_modes
from jfric.statics.rest_states import RestStates, require_rest, rest_states
from jfric.statics.static_mode_equations import split
from jfric.statics.static_problem import (
    StaticProblem,
    require_no_belt,
    require_static,
    static_problem,
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
        rows = []
        for row in self.table():
            ends = zip(row["q"].tolist(), row["q_to"].tolist(), strict=True)
            shown = [" to ".join(f"{x:.6g}" for x in dict.fromkeys(pair)) for pair in ends]
            rows.append((*shown, ", ".join(row["mode"])))
        title = f"Equilibria: {int(self.count)}{'' if self.exhaustive else ', there may be others'}"
        return Shown(title, (*self.axes, "mode"), rows)

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
    if is_mechanism(problem):
        require_position(problem)
        return position_equilibria(problem, t)
    require_static(problem)
    require_no_belt(problem)
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
    facts = facts_of(problem, rest.mechanics)
    mode = jnp.asarray(position_modes(facts))
    found = position_candidates(rest, facts, mode)
    ends = np.cumsum([facts.n, facts.nt, facts.nu])

    def split(x):
        return jnp.split(x, ends)

    names = facts.axes, facts.names, facts.joints
    made = _made(found, mode, facts.n, split, names, exhaustive=False)
    return dataclasses.replace(made, curved=True)


def exhaust(static: StaticProblem) -> Equilibria:
    """Equilibria of a problem with few contacts: all combinations of modes, as one batch."""
    modes = combinations(possible_modes(static.rubs, static.n_friction))
    mode = jnp.asarray(as_table(modes, len(static.names)))
    found = jax.vmap(lambda m: candidate(static, m))(mode)
    return _result(static, found, mode, exhaustive=True)


def _result(static: StaticProblem, found, mode, *, exhaustive: bool) -> Equilibria:
    def unknowns(x):
        return *split(static, x), x[:0]

    names = static.axes, static.names, ()
    return _made(found, mode, static.K.shape[0], unknowns, names, exhaustive=exhaustive)


def _made(found: Candidate, mode, n: int, unknowns, names, *, exhaustive: bool) -> Equilibria:
    """The solutions among candidates with ``n`` positions; ``unknowns``: their parts."""
    exists = distinct(found, n)
    q, lambda_t, lambda_n, reaction = jax.vmap(unknowns)(found.x)
    q_to, lambda_t_to, lambda_n_to, _ = jax.vmap(unknowns)(found.x_to)
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
