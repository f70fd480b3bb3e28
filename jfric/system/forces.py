"""Generalised forces at a state, contacts left out, and the forces of single elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jfric.numerics.choice import select
from jfric.system.bristle import BRISTLES, AbstractBristle
from jfric.system.contacts import SIDES
from jfric.system.description import AbstractProblem, element_label, state_axis
from jfric.system.elements import AbstractForce, Damper, Spring, curved_sections
from jfric.system.hysteresis import HYSTERESIS, AbstractHysteresis
from jfric.system.joint_equations import joint_equations
from jfric.system.joints import JointEquation
from jfric.system.mechanics import Mechanics
from jfric.system.piecewise import FORMS


def force_sections() -> tuple[str, ...]:
    """Sections of elements with one force along one direction."""
    return ("spring", "damper", *FORMS, *HYSTERESIS, *BRISTLES, *curved_sections())


def applied_force(mechanics: Mechanics, t, q, v, segment=None, z=None) -> Float[Array, " n"]:
    """Applied forces ``f(t, q, v)`` (n,) [N, N m]: springs, dampers, moving supports, loads,
    nonlinear elements and piecewise-linear ones; no contact and friction forces.

    ``segment`` (ns,): segments of piecewise-linear elements, by default those of the elongations;
    ``z``: states. Where ``q`` and ``v`` leave states out, the result does, too.
    """
    given = q.shape[0]
    q, v = mechanics.complete(q, v, z)
    f = mechanics.f0 - mechanics.K @ q - mechanics.C @ v
    base, base_rate = mechanics.base_motion(t)
    f = f + mechanics.K_base @ base + mechanics.C_base @ base_rate
    for direction, load in zip(mechanics.load_directions, mechanics.load_functions, strict=True):
        f = f + direction * load(t)
    for element in mechanics.nonlinear:
        f = f + element.force(mechanics.axes, t, q, v)
    piecewise, bristles = mechanics.piecewise, mechanics.bristles
    if piecewise.count:
        x = piecewise.directions @ q + piecewise.base_directions @ base
        rate = piecewise.directions @ v + piecewise.base_directions @ base_rate
        if segment is None:
            segment = segments_of(mechanics, t, q, v)
        segment = piecewise.resolved(segment, x, rate)
        nd = piecewise.tables
        k, c, offset = (piecewise.at(segment[:nd], name) for name in ("k", "c", "f"))
        own = -(k * x[:nd] + c * rate[:nd] + offset)
        if piecewise.sliders is not None:
            assert z is not None
            springs = z[: len(piecewise.states)]
            own = jnp.concatenate([own, piecewise.sliders.forces(x[nd:], springs)])
        f = f + piecewise.directions.T @ own
        if bristles is not None:
            loads = None
            if bristles.depend:
                load = loads_of_friction(mechanics, t, q, v, segment)
                loads = load, jnp.abs(load)
            f = f + bristles.force(rate, v, bristles.sides(segment), loads)
    return f[:given]


def loads_of_friction(mechanics: Mechanics, t, q, v, segment) -> Float[Array, " k"]:
    """Loads that friction grows with (:mod:`jfric.system.load_friction`), with piecewise-linear
    elements in ``segment`` (ns,)."""
    carried, piecewise = mechanics.carried, mechanics.piecewise
    assert carried is not None
    z, z_dot = mechanics.base_motion(t)
    at, moves = piecewise.directions, piecewise.base_directions
    segment = piecewise.resolved(segment, at @ q + moves @ z, at @ v + moves @ z_dot)
    rows = carried.lines(piecewise, segment)
    found = rows.q @ q + rows.v @ v + rows.z @ z + rows.z_dot @ z_dot + rows.constant
    found = found + carried.of_curved(mechanics.axes, t, q, v)
    if not mechanics.load_functions:
        return found
    return found + rows.given @ jnp.stack([jnp.asarray(f(t)) for f in mechanics.load_functions])


def normal_forces_at(mechanics: Mechanics, t, q, v, segment=None) -> Float[Array, " nf"]:
    """Normal forces of the friction elements at a state, those that grow with loads included, but
    not those of pins; ``segment`` as in :func:`applied_force`."""
    dtype = mechanics.K.dtype
    given = [jnp.asarray(n(t), dtype) for n in mechanics.normal_forces]
    normal, carried = jnp.stack(given) if given else jnp.zeros((0,), dtype), mechanics.carried
    fading = squares = jnp.zeros_like(normal)
    if carried is not None:
        if segment is None:
            segment = segments_of(mechanics, t, q, v)
        loads = loads_of_friction(mechanics, t, q, v, segment)
        grown = carried.spread(len(given), dtype) * (carried.kappa * jnp.abs(loads))
        normal = normal + jnp.sum(grown, axis=1)
        # At a sign's own event the segment decides.
        sign = segment[carried.places]
        positive = select(sign < 0, loads >= 0.0, sign == 0)
        fading, squares = carried.parts(grown, loads, positive)
    if not mechanics.modulated:
        return normal
    speed = jnp.abs(mechanics.sliding_velocities(t, v))
    left = [
        jnp.ones((), dtype) if law is None else jnp.asarray(law.kinetic(x)[0], dtype)
        for law, x in zip(mechanics.fades, speed, strict=False)
    ]
    return normal + mechanics.excess(t, q, normal, fading, squares, jnp.stack(left))


def segments_of(mechanics: Mechanics, t, q, v) -> Int[Array, " ns"]:
    """Segments of piecewise-linear elements whose guards hold at a state."""
    piecewise, (z, z_dot) = mechanics.piecewise, mechanics.base_motion(t)
    x = piecewise.directions @ q + piecewise.base_directions @ z
    rate = piecewise.directions @ v + piecewise.base_directions @ z_dot
    return piecewise.segment_at(x, rate)


def sliding_friction(mechanics: Mechanics, gamma, normal) -> Float[Array, " nt"]:
    """Friction forces (nt,) of sliding contacts: ``-mu_d(|gamma_T|) N sign(gamma_T)``.

    ``gamma`` (nt,): sliding velocities, zero where a contact sticks (its force is then no
    function of the state, and zero is returned); ``normal`` (nt,): normal forces.
    """
    forces = []
    for law, g, n in zip(mechanics.laws, gamma, normal, strict=True):
        positive, negative = law.kinetic(jnp.abs(g))
        forces.append(select(g > 0, -positive * n, select(g < 0, negative * n, 0.0)))
    return jnp.stack(forces) if forces else jnp.zeros((0,))


def joint_reactions(
    problem: AbstractProblem,
    mechanics: Mechanics,
    t,
    q,
    v,
    lambda_t,
    lambda_n,
    segment=None,
    z=None,
) -> Float[Array, " k"]:
    """Reactions (k,) of all equations of joints at a state, under the contact forces given."""
    q, v = mechanics.complete(q, v, z)
    here = mechanics.at(t, q, v)
    found, normal = [], dict(zip(here.contact_names[here.n_friction :], lambda_n, strict=True))
    if here.tied is not None:
        f = applied_force(here, t, q, v, segment, z) + here.R_T.T @ lambda_t + here.W_N.T @ lambda_n
        found = here.tied.reactions(f)
        # Equations of chosen velocities hold together: a reaction is their force along one of them.
        J = here.tied.J
        own = [e for e in joint_equations(problem.resolved()) if not e.rubs]
        found = [_share(own, i, J, found) for i in range(len(own))]
    reactions = []
    for equation in joint_equations(problem.resolved()):
        if equation.rubs:
            positive, negative = (normal[f"{equation.name}.{side}"] for side in SIDES)
            reactions.append(positive - negative)
        else:
            reactions.append(found.pop(0))
    return jnp.stack(reactions) if reactions else jnp.zeros((0,))


def _share(equations: Sequence[JointEquation], i: int, J, reactions) -> Float[Array, ""]:
    """Reaction of equation ``i``; of equations that hold together, their force on its degree of
    freedom."""
    held = equations[i].held
    if held is None:
        return reactions[i]
    first, m = i - held.row, len(held.of.dofs)
    return reactions[first : first + m] @ J[first : first + m, held.of.rows[held.row]]


def force_keys(problem: AbstractProblem) -> dict[str, tuple[str, str]]:
    """Section and own name of all elements with a force along a direction, by name in results."""
    return {
        element_label(s, name): (s, name) for s in force_sections() for name in problem.section(s)
    }


def element_forces(
    problem: AbstractProblem,
    mechanics: Mechanics,
    keys: Sequence[tuple[str, str]],
    t,
    q,
    v,
    segment,
    base=None,
    states=None,
) -> Float[Array, " k"]:
    """Forces of the elements ``keys`` (section, name) along their directions [N, N m], as they act
    on the system: a compressed stop pushes back, so its force is negative.

    ``segment`` (ns,): segments of the piecewise-linear elements, -1 where they are not known.
    ``base``: displacements and velocities of the supports, each (nb,), if not those of ``t``;
    ``states``: states of elements.
    """
    problem = problem.resolved()
    q, v = mechanics.complete(q, v, states)
    z, z_dot = mechanics.base_motion(t) if base is None else base
    both = problem.axes + problem.bases
    w = jnp.stack([problem.section(s)[name].direction.vector(both) for s, name in keys])
    x, rate = w @ jnp.concatenate([q, z]), w @ jnp.concatenate([v, z_dot])
    lines, others, piecewise = [], [], mechanics.piecewise
    if piecewise.count:
        at, moves = piecewise.directions, piecewise.base_directions
        own = at @ q + moves @ z, at @ v + moves @ z_dot
        segment = piecewise.resolved(segment, *own)
    for i, (section, name) in enumerate(keys):
        element = problem.section(section)[name]
        if isinstance(element, AbstractHysteresis):
            others.append((i, _of_sliders(mechanics, element_label(section, name), x[i], states)))
        if isinstance(element, AbstractBristle):
            place = mechanics.piecewise.names.index(element_label(section, name))
            side = select(segment[place] == 0, 1.0, -1.0)
            state = v[mechanics.axes.index(state_axis(element_label(section, name)))]
            loads = []
            if element.growth():
                assert mechanics.bristles is not None
                j = list(problem.labelled(*BRISTLES)).index(element_label(section, name))
                own = loads_of_friction(mechanics, t, q, v, segment)[mechanics.bristles.loads[j]]
                loads = [own, jnp.abs(own)]
            others.append((i, -element.friction(rate[i], state, side, *loads)))
        curved = isinstance(element, (AbstractForce, AbstractHysteresis, AbstractBristle))
        row = (0.0, 0.0, 0.0) if curved else _line(problem, mechanics, section, name, segment)
        lines.append(jnp.stack([jnp.asarray(y, q.dtype) for y in row]))
        if isinstance(element, AbstractForce):
            own = w[i, : mechanics.n]
            force = element.bound(problem).force(mechanics.axes, t, q, v)
            others.append((i, own @ force / (own @ own)))
    k, c, offset = jnp.stack(lines, axis=1)
    forces = -(k * x + c * rate + offset)
    for i, force in others:
        forces = forces.at[i].set(force)
    return forces


def _of_sliders(mechanics: Mechanics, label: str, x, states):
    sliders = mechanics.piecewise.sliders
    assert sliders is not None
    states = states[: len(sliders.states)]
    i = sliders.names.index(label)
    return sliders.forces(jnp.zeros_like(sliders.residual).at[i].set(x), states)[i]


def _line(problem: AbstractProblem, mechanics: Mechanics, section: str, name: str, segment):
    """Coefficients ``k``, ``c`` and ``f`` of the force ``-(k x + c x' + f)`` of an element."""
    element: Any = problem.section(section)[name]
    if isinstance(element, Spring):
        return element.k, 0.0, -element.k * element.x0
    if isinstance(element, Damper):
        return 0.0, element.c, 0.0
    piecewise = mechanics.piecewise
    index = piecewise.names.index(element_label(section, name))
    s = segment[index]
    tables = (piecewise.k, piecewise.c, piecewise.f)
    return tuple(select(s < 0, jnp.nan, table[index, s]) for table in tables)
