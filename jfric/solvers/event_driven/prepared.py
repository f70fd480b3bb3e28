"""Data that stay the same during a run, computed once before the loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jfric.contact.reactions import active_rows
from jfric.contact.rules import Flag, Kind
from jfric.numerics.choice import select
from jfric.numerics.linear_algebra import UNROLLED_INVERSE, diagonal_of, matmul
from jfric.numerics.tolerances import DOUBLE, SINGLE
from jfric.results.formulas import UserEvents, user_events
from jfric.system.assembly import assemble
from jfric.system.mechanics import Mechanics, WithContacts
from jfric.system.problem import Problem


class Constants(NamedTuple):
    """Orders and thresholds for one floating-point type."""

    #: Order of the Taylor form of the exact flow.
    order: int
    #: Largest step times the spectral scale of the mode; theta^(p+1)/(p+1)! is below rounding.
    theta: float
    #: Order for steps up to this fraction of the longest, with the same remainder.
    short_order: int
    short: float
    #: Degree up to which guards enter the certificate; the rest is bounded.
    certificate_order: int
    #: As in :class:`jfric.numerics.tolerances.Tolerances`.
    zero: float
    #: Rounding error of a polynomial's coefficients relative to the sum of their magnitudes.
    rounding: float
    #: Newton steps on a bracketed root.
    newton: int


_DOUBLE = Constants(28, 3.4, 8, 0.01, 18, DOUBLE.zero, 4e-15, 4)
_SINGLE = Constants(14, 2.2, 8, 0.2, 12, SINGLE.zero, 2e-6, 4)

#: A step is not halved below this fraction of the natural step to resolve nearby crossings.
SMALLEST_FRACTION = 1e-7
#: Fraction of a contact's inertia below which friction has consumed it, if steps are too small.
VANISHING = 1e-3
#: Newton steps, each a real step of the flow, to land on an event.
LANDINGS = 6
#: Remaining time to an event, relative to the step, below which the event is reached without
#: another step: the neglected part is of third order in it.
CLOSE = 1e-6


def constants(dtype) -> Constants:
    """Constants for ``dtype``."""
    return _DOUBLE if jnp.finfo(dtype).bits >= 64 else _SINGLE


class Prepared(WithContacts):
    """Mechanics with its contact-space matrices. Rows: tangents (nt), then normals (nu)."""

    mechanics: Mechanics
    W: Float[Array, "m n"]
    W_base: Float[Array, "m nb"]
    #: ``M^-1 R^T`` and ``W M^-1 R^T``. ``R`` equals ``W`` except for friction elements with a
    #: reaction of their own, which make ``D`` unsymmetric.
    MW: Float[Array, "n m"]
    D: Float[Array, "m m"]
    #: Diagonal of ``D`` without the part that joints take away; None without joints.
    D_size: Float[Array, " m"] | None
    #: ``W M^-1`` where it is not the transpose of ``MW``, else None.
    own_WM: Float[Array, "m n"] | None
    #: Entries of ``W`` at the only degree of freedom of a row; 1 for rows that act on several.
    own_entry: Float[Array, " m"]
    static_positive: Float[Array, " nt"]
    static_negative: Float[Array, " nt"]
    kinetic_positive: Float[Array, " nt"]
    kinetic_negative: Float[Array, " nt"]
    #: Contacts without a tangent. A contact with a coefficient of zero is not among them: it keeps
    #: its sign of sliding, or derivatives with respect to the coefficient would be wrong.
    frictionless: Bool[Array, " nt"]
    #: Unilateral contacts whose limits of friction are both zero.
    unlimited: Bool[Array, " nt"]
    breakpoints: Float[Array, " b"]
    #: Largest angular frequency of the loads.
    frequency: Float[Array, ""]
    #: Square roots of the inertias: coordinates scaled by them are comparable.
    inertia_scale: Float[Array, " n"]
    end: Float[Array, ""]
    #: Time at which the run ends, in whose final state an event there has not happened yet.
    last: Float[Array, ""]
    #: User events, or None.
    events: UserEvents | None = None

    def at(self, t, q, v) -> Prepared:
        """System as evaluated at one instant, where something depends on position."""
        if self.mechanics.varying is None:
            return self
        mechanics, matrices = _seen_at(self.mechanics, t, q, v)
        return replace(self, mechanics=mechanics, **matrices)

    def near(self, t, q, v) -> Prepared:
        """System with the directions of an instant close by, and the operators that solve its
        equations unchanged."""
        here = self.mechanics.near(t, q, v)
        return replace(self, mechanics=here, W=jnp.concatenate([here.W_T, here.W_N]))

    def in_regions(self, regions: Int[Array, " np"]) -> Prepared:
        """System with polygons touched in these ``regions``."""
        if not self.mechanics.polygons:
            return self
        return replace(self, mechanics=self.mechanics.in_regions(regions))

    @property
    def let_go(self) -> Bool[Array, " nu"] | None:
        """Unilateral contacts that cannot touch: points next to corners of polygons; None where
        there are no polygons."""
        polygons = self.mechanics.polygons
        if not polygons:
            return None
        at = np.asarray(self.mechanics.polygon_contacts)
        return jnp.zeros((self.nu,), bool).at[at].set(jnp.stack([p.lets_go for p in polygons]))

    @property
    def kind(self) -> Kind:
        """Kinds of the contacts (nt,); a fact that all share by structure is a single bool."""
        unilateral = _flag(np.arange(self.nt) >= self.nf)
        unlimited = self.unlimited if self.nu else False
        return Kind(unilateral, _flag(self.mechanics.frictionless), unlimited)

    def active_rows(self, mode: Int[Array, " nt"]) -> Bool[Array, " m"]:
        """Rows that hold an equation, see :func:`jfric.contact.reactions.active_rows`."""
        return active_rows(mode, self.nf, self.mechanics.contact_planes)

    @property
    def WM(self) -> Float[Array, "m n"]:
        """``W M^-1``: relative accelerations that forces cause."""
        return self.MW.T if self.own_WM is None else self.own_WM

    @property
    def WM_size(self) -> Float[Array, "m n"]:
        """Reference sizes for rounding errors of :attr:`WM`."""
        if self.mechanics.tied is None:
            return jnp.abs(self.WM)
        return matmul(jnp.abs(self.W), self.mechanics.inverse_size)

    @property
    def many(self) -> bool:
        """Whether there are so many rows that rarely needed parts are skipped instead of masked."""
        return self.D.shape[0] > UNROLLED_INVERSE

    @property
    def releases(self) -> bool:
        """Whether the release of a contact, whose friction then drops, may make others slide."""
        drops = any(law.drops_at_onset for law in self.mechanics.laws)
        return self.nt > 1 and not self.independent and drops

    @property
    def driven(self) -> bool:
        """Whether belts, bases or the shape of contacts prescribe a motion of contacts."""
        mechanics = self.mechanics
        moves = bool(mechanics.base_functions) or mechanics.varying is not None
        return moves or any(b is not None for b in mechanics.belts)

    @property
    def implicit(self) -> bool:
        """Whether Runge-Kutta steps are implicit: for elements with stiff states, and for friction
        in planes, which is stiff towards the end of sliding and not defined where sliding
        begins."""
        return bool(self.mechanics.planes) or self.mechanics.stiff

    @property
    def regular(self) -> bool:
        """Whether reactions are always unique, so that not even friction makes a pivot vanish."""
        rough = [not f for f in self.mechanics.frictionless[self.nf :]]
        return self.independent and not any(rough)

    @property
    def shares(self) -> bool:
        """Whether contacts may share a load in different ways, of which some hold.

        Friction along lines with given limits alone has one motion, which pivoting finds. The two
        sides of a joint do not press against each other: with friction on its reaction nothing is
        shared.
        """
        planes = bool(self.mechanics.planes)
        several = self.nt > 1 and (self.nu > 0 or planes)
        return several and not self.independent and not self.mechanics.opposed

    @property
    def n_guards(self) -> int:
        """Number of guards: two for each contact, piecewise-linear element and polygon."""
        return 2 * (self.nt + self.mechanics.piecewise.count + len(self.mechanics.polygons))

    @property
    def n_watched(self) -> int:
        """Number of guards and user events."""
        return self.n_guards + (0 if self.events is None else self.events.count)


# Structural queries and runs share one trace.
@eqx.filter_jit(inline=True)  # pyright: ignore[reportCallIssue]
def prepare(problem: Problem) -> Prepared:
    """Assemble a problem and its contact-space matrices."""
    problem = problem.resolved()
    mechanics = assemble(problem)
    static = [law.static() for law in mechanics.laws]
    kinetic = [law.kinetic(0.0) for law in mechanics.laws]
    static_positive, static_negative = _columns(static)
    # In a plane the coefficient depends on the velocity.
    kinetic_positive, kinetic_negative = (
        select(mechanics.in_plane, 0.0, x) for x in _columns(kinetic)
    )
    return Prepared(
        mechanics=mechanics,
        **_contact_space(mechanics),
        W_base=jnp.concatenate([mechanics.W_T_base, mechanics.W_N_base]),
        static_positive=static_positive,
        static_negative=static_negative,
        kinetic_positive=kinetic_positive,
        kinetic_negative=kinetic_negative,
        frictionless=jnp.asarray(mechanics.frictionless, bool),
        unlimited=_unilateral(mechanics) & (static_positive + static_negative == 0.0),
        breakpoints=mechanics.breakpoints(),
        frequency=mechanics.frequency(),
        end=jnp.asarray(problem.time.end),
        last=jnp.asarray(problem.time.end),
        events=user_events(problem),
    )


@jax.jit
def _seen_at(mechanics: Mechanics, t, q, v) -> tuple[Mechanics, dict[str, Any]]:
    """Mechanics at an instant with its matrices; traced once for its many uses in a pass."""
    here = mechanics.at(t, q, v)
    return here, _contact_space(here)


def _contact_space(mechanics: Mechanics) -> dict[str, Any]:
    """Fields of :class:`Prepared` that follow from mass matrix and directions."""
    W = jnp.concatenate([mechanics.W_T, mechanics.W_N])
    R = W if mechanics.reactions is None else jnp.concatenate([mechanics.R_T, mechanics.W_N])
    MW, D_size = mechanics.accelerations(W, R)
    return {
        "W": W,
        "MW": MW,
        "D": matmul(W, MW),
        "D_size": D_size,
        "own_WM": None if mechanics.reactions is None else matmul(W, mechanics.M_inverse),
        "own_entry": _own_entry(mechanics, W),
        "inertia_scale": jnp.sqrt(diagonal_of(mechanics.M)),
    }


def _flag(values) -> Flag:
    """A single bool for a fact that is the same for all contacts, else an array."""
    values = np.asarray(values, bool)
    return bool(values.any()) if values.all() or not values.any() else values


def _unilateral(mechanics: Mechanics) -> Bool[Array, " nt"]:
    return jnp.arange(mechanics.n_contacts) >= mechanics.n_friction


def _own_entry(mechanics: Mechanics, W) -> Float[Array, " m"]:
    dofs = mechanics.single_dofs
    column = np.asarray([0 if dof is None else dof for dof in dofs], int)
    several = np.asarray([dof is None for dof in dofs], bool)
    return select(several, 1.0, W[np.arange(len(dofs)), column])


def _columns(pairs):
    if not pairs:
        return jnp.zeros((0,)), jnp.zeros((0,))
    return jnp.stack([p[0] for p in pairs]), jnp.stack([p[1] for p in pairs])
