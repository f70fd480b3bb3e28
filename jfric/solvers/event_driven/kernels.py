"""Forms of the computation: all give the same result, and differ in how sums are formed."""

from __future__ import annotations

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp

from jfric.errors import ProblemError, require_one_of
from jfric.numerics.by_batch import Sizes
from jfric.numerics.compilation import compiles_lowered, warn_if_lowered_compiles_slowly
from jfric.numerics.lowering import Constants, constants_of
from jfric.solvers.event_driven.prepared import Prepared, prepare
from jfric.system.problem import Problem

#: ``"general"``: small arrays; any system. ``"lowered"``: the general pass decomposed into scalars.
#: ``"one-dof"``: also in scalars, with the motion in closed form.
Kernel = Literal["auto", "general", "lowered", "one-dof"]

#: Systems beyond these become programs that take minutes to compile.
MAX_DOFS, MAX_ROWS = 6, 4
#: Lowered programs of one contact compile at least as fast as others, those of two frictions about
#: as fast; derivatives of these, and programs of further frictions, take some ten seconds more.
ONE_CONTACT = Sizes(values=64, derivatives=64, sweep=64)
TWO_FRICTIONS = Sizes(values=64, derivatives=50_000, sweep=5_000)
SEVERAL_FRICTIONS = Sizes(values=20_000, derivatives=50_000, sweep=100_000)
#: Degrees of freedom and frictions up to which lowering pays.
MAX_PAYS = 4


def require_kernel(found: str) -> None:
    """Raise :class:`jfric.ProblemError` unless ``found`` is one of :data:`Kernel`."""
    require_one_of("kernel", found, get_args(Kernel))


def require_one_dof(*, one_dof: bool, reverse: bool, events: bool) -> None:
    """Raise :class:`jfric.ProblemError` where the closed form does not apply."""
    if not one_dof:
        raise ProblemError(
            "kernel: 'one-dof' is for one degree of freedom with springs, stops, sliders and at "
            "most one friction element, under piecewise constant loads; choose 'auto' or 'general'"
        )
    if events:
        raise ProblemError(
            "kernel: 'one-dof' does not locate events of your own; choose 'auto' or 'general'"
        )
    if reverse:
        raise ProblemError(
            "kernel: 'one-dof' has no reverse mode with stored states, but adjoint is 'reverse'; "
            "choose 'general'"
        )


def require_lowered(prepared: Prepared, *, reverse: bool) -> None:
    """Raise :class:`jfric.ProblemError` for a system that the loop in scalars cannot run."""
    n, rows = prepared.mechanics.n, prepared.nt + prepared.nu
    varying = prepared.mechanics.varying
    if varying is not None:
        what = "is a joint" if varying.straight else "depends on position"
        raise ProblemError(
            "kernel: 'lowered' needs constant mass matrices and directions and no joints, but "
            f"{varying.labels[0]} {what}; choose 'general'"
        )
    if prepared.mechanics.planes:
        raise ProblemError("kernel: 'lowered' has no friction in a plane; choose 'general'")
    if prepared.mechanics.stiff:
        raise ProblemError("kernel: 'lowered' takes no implicit steps; choose 'general'")
    if reverse:
        raise ProblemError(
            "kernel: 'lowered' has forward derivatives alone, but adjoint is 'reverse'; "
            "choose 'general'"
        )
    if n > MAX_DOFS or rows > MAX_ROWS:
        raise ProblemError(
            f"kernel: 'lowered' takes up to {MAX_DOFS} degrees of freedom and {MAX_ROWS} contact "
            f"rows (a friction element has one, a contact two), found {n} and {rows}; "
            "choose 'general'"
        )
    warn_if_lowered_compiles_slowly()


def lowered_from(prepared: Prepared) -> Sizes | None:
    """Batches from which lowering the general pass pays; None where it never does."""
    mechanics = prepared.mechanics
    if prepared.events is not None or mechanics.piecewise.count or mechanics.n > MAX_PAYS:
        return None
    if mechanics.varying is not None or mechanics.planes or not compiles_lowered():
        return None
    if prepared.nt == 1:
        return ONE_CONTACT
    if prepared.nu or prepared.nt > MAX_PAYS:
        return None
    return TWO_FRICTIONS if prepared.nt == 2 else SEVERAL_FRICTIONS


def structural_constants(problem: Problem, prepared: Prepared) -> Constants:
    """Entries of the assembled arrays that do not depend on the values of the parameters."""
    numbers, rest = eqx.partition(
        problem, lambda x: isinstance(x, float) or eqx.is_inexact_array(x)
    )
    numbers = jax.tree.map(jnp.asarray, numbers)

    def assembled(numbers):
        return jax.tree.leaves(eqx.filter(prepare(eqx.combine(numbers, rest)), eqx.is_array))

    known = constants_of(assembled, numbers)
    arrays = jax.tree.leaves(eqx.filter(prepared, eqx.is_array))
    if [len(k) for k in known] != [x.size for x in arrays]:
        return Constants([], [])
    return Constants(arrays, known)
