"""Degrees of freedom without mass between springs and friction, eliminated exactly."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError, require_known
from jfric.numerics.choice import select
from jfric.system.assembly import known_mass_matrix
from jfric.system.description import element_label
from jfric.system.direction import Direction, vector
from jfric.system.elements import Spring
from jfric.system.expression import Expression, is_expression
from jfric.system.forces import force_sections
from jfric.system.friction import Friction
from jfric.system.functions import as_function
from jfric.system.functions_of_state import functions_of
from jfric.system.hysteresis import ROUNDING, Jenkins, JenkinsCoupling
from jfric.system.inertia import is_concrete
from jfric.system.model import build
from jfric.system.problem import Problem

#: Sections whose elements act only along their directions, in addition to those with one force.
KNOWN = ("mass", "load", "base", "friction", "contact", "jenkins_coupling")


class WithoutMassless(NamedTuple):
    """Result of :func:`eliminate_massless`.

    ``problem``: the same motion without the degrees of freedom ``dofs`` (p,). ``sliders`` (m,):
    names of its sliders that replace friction. Positions are ``shift`` (p,) plus factors ``along``
    (p, n + nb) times the positions of the degrees of freedom and bases ``names``, minus ``per_z``
    (p, m) times the elongations of the sliders' springs.
    """

    problem: Problem
    dofs: tuple[str, ...]
    sliders: tuple[str, ...]
    names: tuple[str, ...]
    along: Float[Array, "p nnb"]
    shift: Float[Array, " p"]
    per_z: Float[Array, "p m"]

    def position(self, solution, dof: str | None = None) -> Float[Array, " m"]:
        """Position of ``dof``, by default the first of ``dofs``, at the outputs of a solution of
        ``problem``."""
        row = self.dofs.index(self.dofs[0] if dof is None else dof)
        found = self.shift[row] + jnp.zeros_like(solution.ts)
        for name, factor in zip(self.names, self.along[row], strict=True):
            if name in solution.axes:
                x = solution.q[:, solution.axes.index(name)]
            else:
                x = jnp.stack([self._base(name)(t) for t in solution.ts])
            found = found + factor * x
        for slider, factor in zip(self.sliders, self.per_z[row], strict=True):
            found = found - factor * solution.z[:, solution.states.index(slider)]
        return found

    def _base(self, name: str):
        return self.problem.section("base")[name].displacement


def eliminate_massless(problem: Problem, *dofs: str) -> WithoutMassless:
    """Exact elimination of ``dofs`` without mass, which springs and friction hold.

    With springs ``k_i`` along ``a_i^T x + c_i^T y`` and friction with the limits ``R`` on the
    degrees of freedom ``y`` (all others are ``x``), the equations of ``y`` contain only forces::

        sum_i c_i k_i (a_i^T x + c_i^T y - x0_i) = lambda,    |lambda_j| <= R_j

    With ``K = sum_i k_i c_i c_i^T`` positive definite the motion is unique, whichever nodes slip:
    ``y`` is left out exactly, without an artificial mass. The result has springs between the others
    (for one node between all pairs, ``k_i k_j/K`` along ``c_j a_i - c_i a_j``), and for each
    friction element a :class:`jfric.Jenkins` element along the place ``-K^-1 sum_i k_i c_i a_i``
    that the node would have without friction, with the stiffness ``K_jj``, coupled to those of
    other nodes by ``K_ij`` (:class:`jfric.JenkinsCoupling`). Nodes without friction may be among
    them. Friction may also act between nodes, or between them and others. Derivatives pass through.
    Springs that are left out have no paths any more, and all expressions become numbers: shared
    parameters, which only some of these numbers could follow, are removed.

    ``problem``: consists of springs, friction with a constant limit and equal static and kinetic
    coefficients, and any elements that do not act on ``dofs``. Returns a :class:`WithoutMassless`.
    Raises :class:`jfric.ProblemError` where the motion of a degree of freedom would not be unique
    (no spring holds it, static friction above kinetic makes it jump), and for elements that cannot
    be eliminated: give it a mass then.

    Source: static condensation of the potential energy; the series of spring and slider is that of
    W. D. Iwan, J. Applied Mechanics 33 (1966). A spring of 100 N/m to a node with friction of 2 N
    that another spring holds pulls with both in series until the node slips::

        >>> chain = jfric.Problem(
        ...     ["u", "node"],
        ...     {
        ...         "mass": jfric.Mass("u", 1.0),
        ...         "spring": {
        ...             "a": jfric.Spring(("node", "u"), 100.0),
        ...             "b": jfric.Spring("node", 300.0),
        ...         },
        ...         "friction": jfric.Friction("node", limit=2.0),
        ...     },
        ... )
        >>> found = jfric.eliminate_massless(chain, "node")
        >>> found.problem.dofs, sorted(found.problem.elements)
        ({'u': 'translation'}, ['jenkins', 'mass', 'spring'])
        >>> float(found.problem.elements["jenkins"]["friction"].k)
        400.0
    """
    problem = build(problem)
    for dof in dofs:
        require_known("eliminate_massless", "degree of freedom", dof, problem.dofs)
    if not dofs or len(set(dofs)) < len(dofs):
        raise ProblemError(
            f"eliminate_massless: found {list(dofs)}, names of degrees of freedom are needed, each "
            f"once; there are {', '.join(problem.dofs)}"
        )
    concrete = is_concrete(problem)
    resolved = problem.resolved()
    M = np.asarray(known_mass_matrix(resolved)) if concrete else ()
    heavy = {name for name, row in zip(resolved.axes, M, strict=False) if np.any(row)}
    for dof in dofs:
        if dof in heavy:
            raise ProblemError(
                f"eliminate_massless: {dof!r} has a mass; there is nothing to eliminate"
            )
    springs, friction = _elements_at(resolved, dofs, concrete=concrete)
    names = tuple(n for n in (*resolved.dofs, *resolved.bases) if n not in dofs)
    split = len(names)

    def rows(elements) -> tuple[Array, Array]:
        found = [cast(Direction, x.direction).vector((*names, *dofs)) for x in elements]
        table = jnp.stack(found) if found else jnp.zeros((0, split + len(dofs)))
        return table[:, :split], table[:, split:]

    A, B = rows(springs.values())
    # Friction acts along C y + A_f x, which replaces y; nodes without friction keep their own.
    A_f, C = rows(friction.values())
    A_f, C = _completed(A_f, C, dofs, friction)
    back = jnp.linalg.inv(C)
    k = jnp.stack([x.k for x in springs.values()]) if springs else jnp.zeros((0,))
    x0 = jnp.stack([x.x0 for x in springs.values()]) if springs else jnp.zeros((0,))
    B = B @ back
    A = A - B @ A_f
    K = (B.T * k) @ B
    if concrete:
        _require_held(dofs, friction, np.asarray(K), np.asarray(back))
    solved = jnp.linalg.solve(K, B.T * k)
    way, shift = -solved @ A, solved @ x0
    elements = _without(resolved, springs, friction)
    between = _joined(springs, A, B, x0, concrete=concrete)
    left = dict(elements.get("spring", {}))
    for name, (a, stiffness, rest) in between.items():
        left[_unused(name, left)] = Spring(_direction(resolved, names, a), stiffness, rest)
    elements |= {"spring": left} if left else {}
    # Nodes without friction follow the others: their z is a linear function of the others' z.
    m = len(friction)
    follow = -jnp.linalg.solve(K[m:, m:], K[m:, :m])
    K = K[:m, :m] + K[:m, m:] @ follow
    start = {n: resolved.initial[n].q for n in resolved.dofs}
    t = resolved.time.start
    start |= {n: b.displacement(t) for n, b in resolved.section("base").items()}
    at, own = (jnp.stack([jnp.asarray(start[n], K.dtype) for n in ns]) for ns in (names, dofs))
    z0 = (way @ at + shift - C @ own - A_f @ at)[:m]
    R = [f.coefficients.static()[0] * f.normal_force(t) for f in friction.values()]
    if concrete:
        tables = _Tables(*(np.asarray(x) for x in (K, z0, R, C)))
        _require_rest(tables, dofs, start)
    sliders = _add_sliders(resolved, elements, names, friction, way, K, R, z0, concrete=concrete)
    without = Problem(
        {n: kind for n, kind in resolved.dofs.items() if n not in dofs},
        elements,
        initial={n: x for n, x in resolved.initial.items() if n not in dofs},
        time=resolved.time,
        parameters=_shared(problem, elements),
    )
    per_z = back @ jnp.concatenate([jnp.eye(m, dtype=K.dtype), follow])
    return WithoutMassless(without, dofs, sliders, names, back @ (way - A_f), back @ shift, per_z)


def _shared(problem: Problem, elements) -> dict[str, Any]:
    """Shared parameters that functions of the state in the remaining ``elements`` may name."""
    left = [element for group in elements.values() for element in group.values()]
    if not any(functions_of(element) for element in left):
        return {}
    leaves = jax.tree.leaves(problem, is_leaf=is_expression)
    for leaf in leaves:
        if isinstance(leaf, Expression) and leaf.references:
            raise ProblemError(
                f"eliminate_massless: found {leaf.text!r}; numbers take the place of shared "
                "parameters, which functions of the state would go on to follow: give a number "
                "there, or the function another parameter"
            )
    return dict(problem.parameters)


def _completed(A_f, C, dofs: tuple[str, ...], friction: dict[str, Friction]):
    """Rows of friction, then of degrees of freedom without friction, so that ``C`` is square."""
    free = list(dofs)
    for name, element in friction.items():
        mine = [n for n in free if n in cast(Direction, element.direction).names]
        if not mine:
            raise ProblemError(
                f"friction.{name}: acts on nothing but {', '.join(dofs)} with friction of their "
                "own, the forces of all would not be unique; leave it out, or give a [mass] element"
            )
        free.remove(mine[0])
    own = jnp.eye(len(dofs), dtype=C.dtype)[np.asarray([dofs.index(n) for n in free], int)]
    nothing = jnp.zeros((len(free), A_f.shape[1]), A_f.dtype)
    return jnp.concatenate([A_f, nothing]), jnp.concatenate([C, own])


def _require_held(dofs, friction, K, back) -> None:
    values, vectors = np.linalg.eigh(K)
    if values[0] > 1e-12 * max(values[-1], 0.0):
        return
    dof = dofs[int(np.argmax(np.abs(back @ vectors[:, 0])))]
    raise ProblemError(
        f"{dof}: has no mass and no spring holds it, its motion is not unique; add a spring or a "
        "[mass] element"
    )


class _Tables(NamedTuple):
    """Numbers of the nodes with friction: stiffnesses, springs' elongations, limits, directions."""

    K: np.ndarray
    z0: np.ndarray
    R: np.ndarray
    C: np.ndarray


def _require_rest(tables: _Tables, dofs, start) -> None:
    """Raise where springs pull a node with more than friction holds; others stay where they are."""
    K, z0, R, C = tables
    for i, force in enumerate(K @ z0):
        if abs(force) <= R[i] * (1.0 + ROUNDING):
            continue
        j = int(np.argmax(np.abs(C[i])))
        at, dof = float(start[dofs[j]]), dofs[j]
        low, high = sorted(at + (force - s * R[i]) / K[i, i] / C[i, j] for s in (1, -1))
        raise ProblemError(
            f"initial.{dof}: found {at:g}, where springs pull it with {abs(force):g}, more than "
            f"friction holds ({R[i]:g}); it can rest from {low:g} to {high:g}"
        )


def _joined(springs, A, B, x0, *, concrete: bool) -> dict[str, tuple[Any, Any, Any]]:
    """Springs between the remaining degrees of freedom: directions, stiffnesses and lengths, by
    name. Nodes are eliminated one after the other."""
    left = {name: (A[i], B[i], spring.k, x0[i]) for i, (name, spring) in enumerate(springs.items())}
    for j in range(B.shape[1]):
        on = {n: x for n, x in left.items() if not (concrete and float(x[1][j]) == 0.0)}
        total = sum((k * b[j] ** 2 for _, b, k, _ in on.values()), jnp.zeros(()))
        left = {n: x for n, x in left.items() if n not in on}
        for (first, (a1, b1, k1, x1)), (second, (a2, b2, k2, x2)) in itertools.combinations(
            on.items(), 2
        ):
            c1, c2 = b1[j], b2[j]
            a, b = c2 * a1 - c1 * a2, c2 * b1 - c1 * b2
            if concrete and not (np.any(np.asarray(a)) or np.any(np.asarray(b))):
                continue
            left[f"{first}_{second}"] = a, b, k1 * k2 / total, c2 * x1 - c1 * x2
    found = {n: (a, k, x) for n, (a, _, k, x) in left.items()}
    if concrete:
        return found
    # Where numbers are not known yet, a spring whose two ends have the same motion remains, with
    # zero stiffness.
    acts = {n: jnp.any(a != 0.0) for n, (a, _, _) in found.items()}
    return {
        n: (select(acts[n], a, jnp.zeros_like(a).at[0].set(1.0)), select(acts[n], k, 0.0), x)
        for n, (a, k, x) in found.items()
    }


def _add_sliders(
    problem: Problem, elements, names, friction, way, K, R, z0, *, concrete: bool
) -> tuple[str, ...]:
    """Names of the Jenkins elements that replace friction; adds them and their couplings."""
    own, joined = dict(elements.get("jenkins", {})), dict(elements.get("jenkins_coupling", {}))
    labels = []
    for i, name in enumerate(friction):
        label = _unused(name, own)
        own[label] = Jenkins(_direction(problem, names, way[i]), K[i, i], R[i], z0[i])
        labels.append(label)
    for (i, a), (j, b) in itertools.combinations(enumerate(labels), 2):
        if not (concrete and float(K[i, j]) == 0.0):
            joined[_unused(f"{a}_{b}", joined)] = JenkinsCoupling((a, b), K[i, j])
    elements |= {k: v for k, v in (("jenkins", own), ("jenkins_coupling", joined)) if v}
    return tuple(element_label("jenkins", label) for label in labels)


def _unused(name: str, group) -> str:
    return name if name not in group else _unused(f"{name}_node", group)


def _direction(problem: Problem, names: tuple[str, ...], row) -> Direction:
    """Direction with the coefficients ``row`` of ``names``."""
    kinds = {problem.dofs[n] for n in names if n in problem.dofs}
    measures = None if len(kinds) == 1 else "translation"
    return vector({n: row[i] for i, n in enumerate(names)}, measures)


def _elements_at(
    problem: Problem, dofs: tuple[str, ...], *, concrete: bool
) -> tuple[dict[str, Spring], dict[str, Friction]]:
    """Springs on ``dofs``, and friction elements, by name."""
    for name, matrix in (
        ("M", problem.matrices.M),
        ("C", problem.matrices.C),
        ("K", problem.matrices.K),
    ):
        if matrix is not None:
            raise ProblemError(
                f"matrices.{name}: cannot be split to eliminate {dofs[0]!r}; give masses, dampers "
                "and springs as elements"
            )
    springs: dict[str, Spring] = {}
    friction: dict[str, Friction] = {}
    for section, group in problem.elements.items():
        if section not in (*KNOWN, *force_sections()):
            raise ProblemError(
                f"{section}: may act on {dofs[0]!r} by a function of positions, which cannot be "
                "eliminated; give it a [mass] element"
            )
        for name, element in group.items():
            directions = [getattr(element, x, None) for x in ("direction", "normal", "tangent")]
            touched = {n for d in directions if isinstance(d, Direction) for n in d.names}
            mine = [n for n in dofs if n in touched]
            if not mine:
                continue
            where = section if name == section else f"{section}.{name}"
            if isinstance(element, Spring):
                springs[name] = element
            elif isinstance(element, Friction) and len(friction) < len(dofs):
                _require_simple(where, element, mine[0], values=concrete)
                friction[name] = element
            else:
                second = " besides another" if section == "friction" else ""
                raise ProblemError(
                    f"{where}: acts on {mine[0]!r}, which has no mass,{second or ' too'}; springs "
                    "and one friction element can be eliminated, else give it a [mass] element"
                )
    return springs, friction


def _require_simple(where: str, friction: Friction, dof: str, *, values: bool) -> None:
    law, normal = friction.coefficients, friction.normal_force
    others = (friction.plane, friction.belt, friction.load, friction.position, friction.sliding)
    constant = type(normal) is type(as_function(1.0))
    if any(x is not None for x in others) or friction.redirected or not constant:
        raise ProblemError(
            f"{where}: friction on {dof!r}, which has no mass, must have a constant limit, and no "
            "belt, load, plane or factor of position; else give it a [mass] element"
        )
    pairs = (*law.static(), *law.kinetic(jnp.zeros(()))) if values else (1.0,)
    found = [float(x) for x in pairs]
    if not law.velocity_independent or max(found) - min(found) > 0:
        raise ProblemError(
            f"{where}.law: static and sliding friction differ, {dof!r} has no mass and would jump "
            "when it slips; give one coefficient, or a [mass] element"
        )


def _without(problem: Problem, springs, friction) -> dict[str, dict]:
    """Elements of the problem without ``springs`` and ``friction``."""
    found = {}
    for section, group in problem.elements.items():
        left = dict(group)
        if section == "spring":
            left = {k: v for k, v in left.items() if k not in springs}
        if section == "friction":
            left = {k: v for k, v in left.items() if k not in friction}
        if left:
            found[section] = left
    return found
