"""Degrees of freedom without mass between springs and friction, eliminated exactly."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError
from jfric.system.direction import Direction, vector
from jfric.system.elements import Spring
from jfric.system.friction import Friction
from jfric.system.functions import as_function
from jfric.system.hysteresis import Jenkins
from jfric.system.inertia import has_inertia, is_concrete
from jfric.system.problem import Problem

#: Sections whose elements act along their directions alone.
KNOWN = (
    "mass",
    "spring",
    "damper",
    "load",
    "base",
    "friction",
    "contact",
    "stop",
    "gap_spring",
    "diagram_spring",
    "polynomial_spring",
    "pendulum",
    "drag",
    "jenkins",
    "maxwell_slip",
    "masing_spring",
    "iwan",
    "dahl",
    "bouc_wen",
    "lugre",
    "rate_state",
)


class WithoutMassless(NamedTuple):
    """What :func:`eliminate_massless` gives.

    ``problem``: the same motion without the degree of freedom ``dof``. ``slider``: name of the
    slider in it that stands for friction, None without friction; the position is ``shift`` plus the
    factors of ``along`` (degrees of freedom and bases by name) times positions, less ``per_z``
    times the slider's spring.
    """

    problem: Problem
    dof: str
    slider: str | None
    along: dict[str, Any]
    shift: Any
    per_z: Any

    def position(self, solution) -> Float[Array, " m"]:
        """Position of ``dof`` at the outputs of a solution of ``problem``."""
        found = self.shift + jnp.zeros_like(solution.ts)
        for name, factor in self.along.items():
            if name in solution.axes:
                x = solution.q[:, solution.axes.index(name)]
            else:
                x = jnp.stack([self._base(name)(t) for t in solution.ts])
            found = found + factor * x
        if self.slider is None:
            return found
        return found - self.per_z * solution.z[:, solution.states.index(self.slider)]

    def _base(self, name: str):
        return self.problem.section("base")[name].displacement


def eliminate_massless(problem: Problem, dof: str) -> WithoutMassless:
    """The same motion without ``dof``, which has no mass and which springs and friction hold.

    With springs ``k_i`` along ``a_i^T x + c_i y`` and friction of the limit ``R`` on the degree of
    freedom ``y``, all others being ``x``, the equation of ``y`` is one of forces alone::

        sum_i c_i k_i (a_i^T x + c_i y - x0_i) = lambda,    |lambda| <= R

    Its reaction is unique, and so is the motion: ``y`` is left out exactly, without an artificial
    mass. What remains are springs between all pairs, ``k_i k_j/K`` along ``c_j a_i - c_i a_j`` with
    ``K = sum_i k_i c_i^2``, and a spring ``K`` in series with a slider, a :class:`jfric.Jenkins`
    along ``-sum_i k_i c_i a_i/K``. Friction may also act between ``dof`` and others. Derivatives
    pass through; paths of the springs that are left out end.

    ``problem``: of springs, friction with a constant limit and equal static and kinetic
    coefficients, and any elements that do not act on ``dof``. Returns a :class:`WithoutMassless`.
    Raises :class:`jfric.ProblemError` where the motion of ``dof`` would not be unique (no spring
    holds it, static friction above kinetic makes it jump), and for elements that cannot be
    eliminated: give ``dof`` a mass then.

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
    if dof not in problem.dofs:
        known = ", ".join(problem.dofs)
        raise ProblemError(f"eliminate_massless: no degree of freedom {dof!r}; there are {known}")
    concrete = is_concrete(problem)
    resolved = problem.resolved()
    if concrete and has_inertia(problem):
        raise ProblemError(f"eliminate_massless: {dof!r} has a mass; there is nothing to eliminate")
    springs, friction = _elements_at(resolved, dof, concrete=concrete)
    names = tuple(n for n in (*resolved.dofs, *resolved.bases) if n != dof)
    rows, c, k, x0 = [], [], [], []
    for spring in springs.values():
        w = spring.direction.vector((*names, dof))
        rows.append(w[:-1])
        c.append(w[-1])
        k.append(spring.k)
        x0.append(spring.x0)
    # Friction acts along r = c_f y + a_f^T x, which takes the place of y.
    a_f, c_f = jnp.zeros((len(names),)), jnp.ones(())
    if friction is not None:
        w = cast(Direction, friction[1].direction).vector((*names, dof))
        a_f, c_f = w[:-1], w[-1]
    a = [row - ci / c_f * a_f for row, ci in zip(rows, c, strict=True)]
    c = [ci / c_f for ci in c]
    K = sum((ki * ci * ci for ki, ci in zip(k, c, strict=True)), jnp.zeros(()))
    if not springs or (concrete and float(K) <= 0):
        raise ProblemError(
            f"{dof}: has no mass and no spring holds it, its motion is not unique; add a spring or "
            "a [mass] element"
        )
    count = range(len(k))
    way = -sum((k[i] * c[i] / K * a[i] for i in count), jnp.zeros((len(names),)))
    shift = sum((k[i] * c[i] / K * x0[i] for i in count), jnp.zeros(()))
    labels, pairs = list(springs), {}
    for i, j in itertools.combinations(count, 2):
        along = c[j] * a[i] - c[i] * a[j]
        if concrete and not np.any(np.asarray(along)):
            continue
        rest = c[j] * x0[i] - c[i] * x0[j]
        name = f"{labels[i]}_{labels[j]}"
        pairs[name] = Spring(_direction(resolved, names, along), k[i] * k[j] / K, rest)
    elements = _without(resolved, springs, friction)
    if pairs:
        elements["spring"] = {**elements.get("spring", {}), **pairs}
    slider = None
    if friction is not None:
        name, element = friction
        start = {n: resolved.initial[n].q for n in resolved.dofs}
        t = resolved.time.start
        start |= {n: b.displacement(t) for n, b in resolved.section("base").items()}
        at = jnp.stack([jnp.asarray(start[n], K.dtype) for n in names])
        R = element.coefficients.static()[0] * element.normal_force(t)
        z0 = way @ at + shift - (c_f * start[dof] + a_f @ at)
        if concrete and abs(float(K * z0)) > float(R):
            low, high = sorted(
                float((way @ at + shift - s * R / K - a_f @ at) / c_f) for s in (1, -1)
            )
            raise ProblemError(
                f"initial.{dof}: found {float(start[dof]):g}, where springs pull it with "
                f"{abs(float(K * z0)):g}, more than friction holds ({float(R):g}); it can rest "
                f"from {low:g} to {high:g}"
            )
        own = Jenkins(_direction(resolved, names, way), K, R, z0)
        elements["jenkins"] = {**elements.get("jenkins", {}), name: own}
        slider = "jenkins" if name == "jenkins" else f"jenkins.{name}"
    left = Problem(
        {n: kind for n, kind in resolved.dofs.items() if n != dof},
        elements,
        initial={n: x for n, x in resolved.initial.items() if n != dof},
        time=resolved.time,
        parameters=resolved.parameters,
    )
    back = {n: (way[i] - a_f[i]) / c_f for i, n in enumerate(names)}
    return WithoutMassless(left, dof, slider, back, shift / c_f, 1.0 / c_f)


def _direction(problem: Problem, names: tuple[str, ...], row) -> Direction:
    """Along the parts of ``row`` that are there by structure."""
    kinds = {problem.dofs[n] for n in names if n in problem.dofs}
    measures = None if len(kinds) == 1 else "translation"
    return vector({n: row[i] for i, n in enumerate(names)}, measures)


def _elements_at(problem: Problem, dof: str, *, concrete: bool):
    """Springs on ``dof``, and its friction element with its name, or None."""
    for name, matrix in (
        ("M", problem.matrices.M),
        ("C", problem.matrices.C),
        ("K", problem.matrices.K),
    ):
        if matrix is not None:
            raise ProblemError(
                f"matrices.{name}: cannot be split to eliminate {dof!r}; give masses, dampers and "
                "springs as elements"
            )
    springs, friction = {}, None
    for section, group in problem.elements.items():
        if section not in KNOWN:
            raise ProblemError(
                f"{section}: may act on {dof!r} by a function of positions, which cannot be "
                "eliminated; give it a [mass] element"
            )
        for name, element in group.items():
            directions = [getattr(element, x, None) for x in ("direction", "normal", "tangent")]
            if not any(isinstance(d, Direction) and dof in d.names for d in directions):
                continue
            where = section if name == section else f"{section}.{name}"
            if section == "spring":
                springs[name] = element
            elif section == "friction" and friction is None:
                _require_simple(where, element, dof, values=concrete)
                friction = name, element
            else:
                second = " besides another" if section == "friction" else ""
                raise ProblemError(
                    f"{where}: acts on {dof!r}, which has no mass,{second or ' too'}; springs and "
                    "one friction element can be eliminated, else give it a [mass] element"
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


def _without(problem: Problem, springs, friction: tuple[str, Friction] | None) -> dict[str, dict]:
    """Elements but for those at the degree of freedom."""
    found = {}
    for section, group in problem.elements.items():
        left = dict(group)
        if section == "spring":
            left = {k: v for k, v in left.items() if k not in springs}
        if section == "friction" and friction is not None:
            left.pop(friction[0])
        if left:
            found[section] = left
    return found
