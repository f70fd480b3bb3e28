"""``jfric.harmonic_balance``: periodic motions from their harmonics, with a status for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Complex, Float, Int

from jfric.errors import ProblemError, require_one_of
from jfric.numerics.limits import require_count, require_part
from jfric.numerics.printing import printable
from jfric.periodic.forcing import carrier, highest
from jfric.periodic.harmonic_balance_curve import Corrected, Curve, Ended, correct_many, follow
from jfric.periodic.harmonic_balance_equations import (
    Setting,
    at_parameter,
    finite_numbers,
    motion,
    remainder,
    require_balance,
    width,
)
from jfric.results.status import AbstractOutcome
from jfric.statics.path_names import checked_interval, checked_path
from jfric.system.assembly import assemble
from jfric.system.mechanics import Mechanics
from jfric.system.model import build
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem
from jfric.system.validation import validate

#: Samples of a period per harmonic, and their least number.
SAMPLES, FEWEST = 16, 128
#: Most harmonics: the equations are solved as a full matrix.
HARMONICS = 500
#: Least unit of unknowns, as a part of the largest unit.
SMALLEST = 1e-3
#: Parts of the usual steepness of friction, tried if the usual one finds no solution.
GENTLER = (1e-2, 0.1, 1.0)
#: Rounds in which points without a solution start from solutions of their neighbours.
ROUNDS = 8
#: Number of phases at which extrema are searched, and of Newton steps from the best one.
PHASES, POLISH = 2048, 4


class BalanceStatus(AbstractOutcome):
    """Outcome of harmonic balance at one point::

    >>> jfric.BalanceStatus(2).message
    'a contact opens: harmonic balance knows no impacts'
    """

    OK = 0, "ok"
    #: Newton's method did not solve the equations.
    UNSOLVED = 1, "the equations were not solved"
    #: A rigid contact opens. The equations do not describe its impact when it closes again.
    OPENS = 2, "a contact opens: harmonic balance knows no impacts"
    #: A given normal force or friction limit is negative at some time.
    NEGATIVE_FORCE = 3, "a given normal force or friction limit is negative"


@printable
@dataclass(frozen=True)
class HarmonicBalance:
    """Periodic motions with ``H`` harmonics, one for each of ``p`` points, in their order.

    ``q(t) = Re sum_k Q_k exp(i k omega t)``, ``k = 0 .. H``, in the time of the problem's loads.
    Example: see :func:`jfric.harmonic_balance`.
    """

    #: Degrees of freedom, and contacts in the order of ``friction`` and ``normal``.
    axes: tuple[str, ...]
    contacts: tuple[str, ...]
    #: Path of the parameter that varies, and its values (p,) [SI]; the path is None for one point.
    path: str | None
    parameter: Float[np.ndarray, " p"]
    #: Base frequency (p,) [rad/s].
    omega: Float[np.ndarray, " p"]
    #: ``Q_k`` (p, H + 1, n) [m, rad]; likewise friction forces (p, H + 1, nt) and normal forces of
    #: the unilateral contacts (p, H + 1, nu) [N].
    coefficients: Complex[np.ndarray, "p h n"]
    friction: Complex[np.ndarray, "p h nt"]
    normal: Complex[np.ndarray, "p h nu"]
    #: Largest relative residual (p,) of the equations in the harmonics, and relative part of the
    #: forces in harmonics beyond ``H``, which nothing balances.
    residual: Float[np.ndarray, " p"]
    remainder: Float[np.ndarray, " p"]
    #: Part of the period in which the friction of each contact is below its limit (p, nt).
    stick: Float[np.ndarray, "p nt"]
    #: :class:`jfric.BalanceStatus` (p,), and steps of Newton's method.
    status: Int[np.ndarray, " p"]
    iterations: Int[np.ndarray, " p"]
    #: Values of the parameter (f,) at which a followed curve turns back, and amplitudes of all
    #: degrees of freedom there (f, n).
    folds: Float[np.ndarray, " f"]
    fold_amplitudes: Float[np.ndarray, "f n"]
    #: End of a followed curve: at ``"stop"``, back at ``"start"``, after ``"max_points"``, or
    #: ``"stalled"`` if even the shortest step had no solution.
    ended: Ended

    @property
    def ok(self) -> Bool[np.ndarray, " p"]:
        """Whether each point (p,) may be used."""
        return self.status == int(BalanceStatus.OK)

    @property
    def harmonics(self) -> int:
        """Number ``H`` of harmonics."""
        return self.coefficients.shape[1] - 1

    def _of(self, dof: str) -> Complex[np.ndarray, "p h"]:
        """Coefficients of a degree of freedom."""
        require_one_of("dof", dof, self.axes, "there are")
        return self.coefficients[:, :, self.axes.index(dof)]

    def positions(self, dof: str, phases) -> Float[np.ndarray, "p m"]:
        """``q`` of ``dof`` [m, rad] at ``phases`` (m,) ``omega t`` [rad] of each point."""
        k = np.arange(self.harmonics + 1)
        waves = np.exp(1j * np.outer(k, np.asarray(phases, float)))
        return np.real(self._of(dof) @ waves)

    def states(self, t: float = 0.0) -> Float[np.ndarray, "p x"]:
        """States ``(q, v)`` (p, 2n) of all points at the time ``t`` [s].

        They can start :func:`jfric.periodic_orbit`. For a linear system one harmonic is its linear
        response.
        """
        turning = 1j * self.omega[:, None] * np.arange(self.harmonics + 1)
        waves = self.coefficients * np.exp(turning * t)[:, :, None]
        q, v = waves.sum(axis=1), (turning[:, :, None] * waves).sum(axis=1)
        return np.real(np.concatenate([q, v], axis=1))

    def amplitude(self, dof: str, harmonic: int | None = None) -> Float[np.ndarray, " p"]:
        """Half of the distance between the largest and the smallest ``q`` of ``dof`` (p,) [m, rad];
        for one ``harmonic`` its ``|Q_k|``."""
        if harmonic is not None:
            return np.abs(self._part(dof, harmonic))
        return half_range(self._of(dof))

    def phase(self, dof: str, harmonic: int = 1) -> Float[np.ndarray, " p"]:
        """Angle of ``Q_k`` of ``dof`` (p,) [rad]: ``|Q_k| cos(k omega t + phase)``."""
        return np.angle(self._part(dof, harmonic))

    def rms(self, dof: str) -> Float[np.ndarray, " p"]:
        """Root mean square of ``q`` of ``dof`` over a period (p,) [m, rad]."""
        Q = self._of(dof)
        return np.sqrt(np.abs(Q[:, 0]) ** 2 + 0.5 * np.sum(np.abs(Q[:, 1:]) ** 2, axis=1))

    def _part(self, dof: str, harmonic: int) -> Complex[np.ndarray, " p"]:
        waves = self._of(dof)
        if not 0 <= harmonic <= self.harmonics:
            raise ProblemError(
                f"harmonic: found {harmonic}, there are those from 0 to {self.harmonics}"
            )
        return waves[:, harmonic]


def half_range(Q: Complex[np.ndarray, "p h"]) -> Float[np.ndarray, " p"]:
    """Half of the distance between the largest and the smallest value of each motion."""
    k = np.arange(Q.shape[1])
    phases = 2.0 * np.pi * np.arange(PHASES) / PHASES
    sampled = np.real(Q @ np.exp(1j * np.outer(k, phases)))

    def extreme(tau):
        for _ in range(POLISH):
            wave = Q * np.exp(1j * np.outer(tau, k))
            slope, curvature = np.real(1j * k * wave).sum(1), np.real(-(k**2) * wave).sum(1)
            bends = np.abs(curvature) > 0.0
            move = np.where(bends, slope / np.where(bends, curvature, 1.0), 0.0)
            tau = tau - np.clip(move, -np.pi / PHASES, np.pi / PHASES)
        return np.real(Q * np.exp(1j * np.outer(tau, k))).sum(1)

    largest = np.maximum(sampled.max(1), extreme(phases[sampled.argmax(1)]))
    smallest = np.minimum(sampled.min(1), extreme(phases[sampled.argmin(1)]))
    return 0.5 * (largest - smallest)


def harmonic_balance(
    problem: Problem,
    path: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    *,
    at: Sequence[float] | np.ndarray | None = None,
    harmonics: int = 21,
    samples: int | None = None,
    periods: int = 1,
    step: float = 0.05,
    max_points: int = 2000,
) -> HarmonicBalance:
    """Periodic motions of ``problem`` under periodic loads, by harmonic balance.

    The motion is a sum of ``harmonics`` ``H`` of the base frequency, the largest frequency of which
    those of all loads, supports and belts are multiples; ``periods``: number of load periods in one
    period of the motion. Forces are evaluated at ``samples`` of a period (by default 16 per
    harmonic), and their first ``H`` harmonics balance::

        P [M q'' - f(t, q, q') - R_T^T lambda_T - W_N^T lambda_N] = 0

    Friction is set-valued: its force is the projection of ``lambda_T - r gamma_T`` on what the law
    allows, for any ``r > 0`` (:mod:`jfric.periodic.harmonic_balance_equations`). The error of
    motions with friction falls with ``1/H``, that of smooth ones faster than any power.

    Without ``path`` the result is one motion. ``path`` is a parameter such as ``"load.F.omega"``.
    With ``at`` (p,) the motions at these values are found side by side from rest, with more and
    more harmonics; where several motions exist at one value, ``at`` finds one of them. With
    ``start`` and ``stop`` the motions follow one another along the curve, round its folds
    (pseudo-arclength continuation): at most ``max_points``, in steps of at most ``step``, where 1
    is the whole interval, or the amplitude. Stability is not judged.

    Returns a :class:`jfric.HarmonicBalance` with a status for each point. A rigid contact that
    opens gets the status ``OPENS``: the equations do not contain its impacts. Raises
    :class:`jfric.ProblemError` for loads without a common period, joints, friction in planes,
    events, mass matrices and directions that depend on position, and laws that drop when sliding
    begins. Sources: T. M. Cameron, J. H. Griffin, J. Appl. Mech. 56 (1989); S. Nacivet et al., J.
    Sound Vib. 265 (2003); M. Krack, J. Gross, Harmonic Balance for Nonlinear Vibration Problems
    (2019), for continuation. A linear oscillator, and the same with friction::

        >>> elements = {
        ...     "mass": jfric.Mass("x", 1.0),
        ...     "spring": jfric.Spring("x", 1.0),
        ...     "damper": jfric.Damper("x", 0.1),
        ...     "load": jfric.Load("x", jfric.Harmonic(1.0, omega=2.0)),
        ... }
        >>> found = jfric.harmonic_balance(jfric.Problem(["x"], elements), harmonics=3)
        >>> bool(abs(found.amplitude("x")[0] - abs(1.0 / (1.0 - 2.0**2 + 0.2j))) < 1e-12)
        True
        >>> elements["friction"] = jfric.Friction("x", limit=0.2)
        >>> found = jfric.harmonic_balance(jfric.Problem(["x"], elements), harmonics=7)
        >>> found.coefficients.shape, round(float(found.amplitude("x")[0]), 3)
        ((1, 8, 1), 0.313)
    """
    problem = build(problem)
    require_count("harmonics", harmonics, 1, HARMONICS)
    require_count("periods", periods, 1, HARMONICS)
    require_count("max_points", max_points, 2, 10**6)
    require_part("step", step)
    if samples is None:
        samples = max(FEWEST, 2 ** math.ceil(math.log2(SAMPLES * harmonics)))
    require_count("samples", samples, 4 * harmonics, 10**6)
    values, name = _values(problem, path, start, stop, at)
    setting = _setting(problem, name, values, harmonics, samples, periods)
    solver = _Solver(problem, setting, abs(values[-1] - values[0]) or 1.0)
    if at is not None or name is None:
        return solver.result(Curve(solver.from_rest(values), [], "points"))
    first = solver.from_rest(values[:1])[0]
    if not first.converged:
        return solver.result(Curve([first], [], "stalled"))
    settings: dict[str, Any] = {"largest": step, "max_points": max_points}
    return solver.result(follow(solver.correct, first, values[1], solver.unit, **settings))


def _setting(
    problem: Problem,
    name: str | None,
    values: list[float],
    harmonics: int,
    samples: int,
    periods: int,
) -> Setting:
    """The structure of the equations over ``values`` of the parameter ``name``."""
    ends = [values[0], 0.5 * (values[0] + values[-1]), values[-1]] if name is not None else values
    if name is None:
        require_balance(problem)
    else:
        for value in ends:
            changed = set_parameters(problem, {name: value})
            validate(changed)
            require_balance(changed)
    index, divisor = carrier(problem, name, ends)
    first = problem if name is None else set_parameters(problem, {name: values[0]})
    needed = highest(first, (index, divisor)) * periods
    if needed > harmonics:
        raise ProblemError(
            f"harmonics: found {harmonics}, a load has the harmonic {needed} of the base "
            f"frequency; needs at least that many"
        )
    return Setting(name, harmonics, samples, (index, divisor * periods))


def _values(problem, path, start, stop, at) -> tuple[list[float], str | None]:
    if path is None:
        if start is not None or stop is not None or at is not None:
            raise ProblemError("path: found none, start, stop and at need the path of a parameter")
        return [0.0], None
    name = checked_path(problem, path)
    if at is not None:
        if start is not None or stop is not None:
            raise ProblemError("at: found values and an interval, give at, or start and stop")
        return finite_numbers("at", at).tolist(), name
    if start is None or stop is None:
        raise ProblemError(f"{name}: found no values, give at, or start and stop")
    return [*checked_interval(problem, name, start, stop)], name


class _Solver:
    """Newton's method with the numbers of one call, over an interval of the length ``span``. Places
    are coefficients, and the value of the parameter as the last number."""

    def __init__(self, problem: Problem, setting: Setting, span: float):
        self._problem, self._setting, self._span = problem, setting, span
        self._mechanics: Mechanics = eqx.filter_eval_shape(assemble, problem)
        self._shape = 2 * setting.harmonics + 1, width(self._mechanics)

    def unit(self, u: np.ndarray) -> np.ndarray:
        """Units of a place: amplitudes of the motion there, and the interval of the parameter;
        reactions do not count."""
        (rows, columns), n = self._shape, self._mechanics.n
        q = np.abs(u[:-1].reshape(rows, columns)[:, :n]).max(axis=0)
        q = np.maximum(q, SMALLEST * q.max())
        own = np.concatenate([np.where(q > 0.0, q, 1.0), np.full(columns - n, np.inf)])
        return np.append(np.tile(own, rows), self._span)

    def correct(self, u: np.ndarray, along: np.ndarray) -> Corrected:
        """The solution on the plane through ``u`` at right angles to ``along``."""
        return self._solved(u[None], along, self.unit(u), self._setting.harmonics)[0]

    def from_rest(self, values: Sequence[float]) -> list[Corrected]:
        """Solutions at values of the parameter, found with more and more harmonics from rest, or
        else from the nearest solution."""
        p, along = np.asarray(values), np.zeros(math.prod(self._shape) + 1)
        rest, unit = np.zeros((len(p), len(along))), self.unit(along)
        along[-1], rest[:, -1] = 1.0, p
        most = self._setting.harmonics

        def starts(spots: Sequence[np.ndarray]) -> np.ndarray:
            """Coefficients of ``spots`` at the values of the parameter."""
            found = np.append(np.stack(spots)[:, :-1], p[:, None], axis=1)
            return np.where(np.isfinite(found), found, rest)

        def by_levels(steep: float) -> list[Corrected]:
            level, reached = 1, rest
            while True:
                found = self._solved(reached, along, unit, level, steep)
                if level == most:
                    return found
                reached = starts([s.u for s in found])
                level = min(2 * level + 1, most)

        spots = by_levels(1.0)
        if not all(s.converged for s in spots):
            # The solution does not depend on the steepness: gentler friction is found more easily.
            gentle = by_levels(GENTLER[0])
            for steep in GENTLER[1:]:
                begins = [g.u if g.converged else row for g, row in zip(gentle, rest, strict=True)]
                tried = self._solved(starts(begins), along, unit, most, steep)
                gentle = _better(tried, gentle)
            spots = _better(spots, gentle)
        for _ in range(ROUNDS):
            good = np.array([s.converged for s in spots])
            if good.all() or not good.any():
                break
            known = np.flatnonzero(good)
            nearest = known[np.argmin(np.abs(p[:, None] - p[known][None, :]), axis=1)]
            tried = self._solved(starts([spots[i].u for i in nearest]), along, unit, most)
            better = _better(spots, tried)
            if sum(s.converged for s in better) == good.sum():
                break
            spots = better
        return spots

    def _solved(self, starts, along, unit, level: int, steep: float = 1.0) -> list[Corrected]:
        dtype = self._mechanics.K.dtype
        starts, along, unit = (jnp.asarray(x, dtype) for x in (starts, along, unit))
        how = jnp.asarray(level, jnp.int32), jnp.asarray(steep, dtype)
        found = correct_many(self._problem, self._setting, starts, along, unit, *how)
        found = jax.tree.map(np.asarray, found)
        return [jax.tree.map(lambda x, i=i: x[i], found) for i in range(len(found.u))]

    def result(self, curve: Curve) -> HarmonicBalance:
        """The motions of all points of ``curve``."""
        setting, mechanics, spots = self._setting, self._mechanics, curve.spots
        u = np.stack([s.u for s in spots])
        y, p = u[:, :-1], u[:, -1]
        found = _examined(self._problem, setting, jnp.asarray(y), jnp.asarray(p))
        seen = {k: np.asarray(x) for k, x in found.items()}
        status = np.where(seen["opens"], int(BalanceStatus.OPENS), int(BalanceStatus.OK))
        status = np.where(seen["pushes"], status, int(BalanceStatus.NEGATIVE_FORCE))
        converged = np.array([s.converged for s in spots])
        status = np.where(converged, status, int(BalanceStatus.UNSOLVED))
        n, nt = mechanics.n, mechanics.n_contacts
        # Unknowns that do not solve the equations are no motion.
        waves = _complex(np.where(converged[:, None], y, np.nan), *self._shape)
        folds = np.reshape([s.u for s in curve.folds], (-1, u.shape[1]))
        at_folds = _complex(folds[:, :-1], *self._shape)
        return HarmonicBalance(
            axes=mechanics.axes,
            contacts=mechanics.contact_names,
            path=setting.path,
            parameter=p,
            omega=seen["omega"],
            coefficients=waves[:, :, :n],
            friction=waves[:, :, n : n + nt],
            normal=waves[:, :, n + nt :],
            residual=np.array([s.residual for s in spots]),
            remainder=seen["remainder"],
            stick=seen["stick"],
            status=status.astype(np.int32),
            iterations=np.array([s.iterations for s in spots], np.int32),
            folds=folds[:, -1],
            fold_amplitudes=np.stack([half_range(at_folds[:, :, i]) for i in range(n)], axis=1),
            ended=curve.ended,
        )


def _better(first: list[Corrected], second: list[Corrected]) -> list[Corrected]:
    """The first of two solutions at each place, or the second where it is none."""
    return [a if a.converged else b for a, b in zip(first, second, strict=True)]


@eqx.filter_jit
def _examined(problem: Problem, setting: Setting, y, p) -> dict[str, Any]:
    def one(y, p):
        found = motion(at_parameter(problem, setting, p), setting, y)
        return {
            "omega": found.omega,
            "remainder": remainder(found, setting),
            "stick": jnp.mean(found.sticks.astype(y.dtype), axis=0),
            "opens": jnp.any(found.opens),
            "pushes": found.pushes,
        }

    return jax.vmap(one)(y, p)


def _complex(y: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Complex coefficients from ``A cos + B sin = Re (A - i B) exp(i ...)``."""
    parts, cosines = y.reshape(y.shape[0], rows, columns), (rows + 1) // 2
    waves = parts[:, 1:cosines] - 1j * parts[:, cosines:]
    return np.concatenate([parts[:, :1] + 0j, waves], axis=1)
