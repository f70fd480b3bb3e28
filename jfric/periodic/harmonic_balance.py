"""``jfric.harmonic_balance``: periodic motions from their harmonics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.numerics.limits import require_count, require_part
from jfric.periodic.harmonic_balance_curve import Corrected, Curve, Place, correct_many, follow
from jfric.periodic.harmonic_balance_equations import (
    Setting,
    at_parameter,
    carrier,
    finite_numbers,
    highest,
    motion,
    remainder,
    require_balance,
    width,
)
from jfric.periodic.harmonic_balance_result import BalanceStatus, HarmonicBalance, half_range
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
    setting, name, values = _checked(
        problem, path, start, stop, at, harmonics, samples, periods, step, max_points
    )
    mechanics = eqx.filter_eval_shape(assemble, problem)
    size = width(mechanics)
    rest = np.zeros((len(values), (2 * harmonics + 1) * size))
    solver = _Solver(problem, setting, mechanics, abs(values[-1] - values[0]) or 1.0)
    if at is None and name is not None:
        assert stop is not None
        first = solver.from_rest(rest[:1], np.asarray(values[:1]))[0]
        if not first.converged:
            return _result(problem, setting, mechanics, Curve([first], [], "stalled"), name)
        curve = follow(
            solver.correct, first, float(stop), solver.unit, largest=step, max_points=max_points
        )
        return _result(problem, setting, mechanics, curve, name)
    spots = solver.from_rest(rest, np.asarray(values))
    return _result(problem, setting, mechanics, spots, name)


def _checked(
    problem, path, start, stop, at, harmonics, samples, periods, step, max_points
) -> tuple[Setting, str | None, list[float]]:
    """The structure of the equations and the checked values of the parameter."""
    require_count("harmonics", harmonics, 1, HARMONICS)
    require_count("periods", periods, 1, HARMONICS)
    require_count("max_points", max_points, 2, 10**6)
    require_part("step", step)
    if samples is None:
        samples = max(FEWEST, 2 ** math.ceil(math.log2(SAMPLES * harmonics)))
    require_count("samples", samples, 4 * harmonics, 10**6)
    values, name = _values(problem, path, start, stop, at)
    ends = [values[0], 0.5 * (values[0] + values[-1]), values[-1]] if name is not None else values
    if name is None:
        require_balance(problem)
    else:
        for value in ends:
            changed = set_parameters(problem, {name: value})
            validate(changed)
            require_balance(changed)
    found = carrier(problem, name, ends)
    index, divisor = found[0], found[1] * periods
    first = problem if name is None else set_parameters(problem, {name: values[0]})
    needed = highest(first, found)
    if needed * periods > harmonics:
        raise ProblemError(
            f"harmonics: found {harmonics}, a load has the harmonic {needed * periods} of the base "
            f"frequency; needs at least that many"
        )
    return Setting(name, harmonics, samples, (index, divisor)), name, values


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
    """Newton's method with the numbers of one call."""

    def __init__(self, problem: Problem, setting: Setting, mechanics: Mechanics, span: float):
        self._problem, self._setting, self._span = problem, setting, span
        self._dtype = mechanics.K.dtype
        self._n, self._width = mechanics.n, width(mechanics)
        self._rows = 2 * setting.harmonics + 1

    def unit(self, y: np.ndarray) -> np.ndarray:
        """Amplitudes of the motion, the units of the unknowns; reactions do not count."""
        q = np.abs(y.reshape(self._rows, self._width)[:, : self._n]).max(axis=0)
        q = np.maximum(q, SMALLEST * q.max())
        own = np.concatenate([np.where(q > 0.0, q, 1.0), np.full(self._width - self._n, np.inf)])
        return np.tile(own, self._rows)

    def correct(self, y: np.ndarray, p: float, dy: np.ndarray, dp: float) -> Corrected:
        """The solution on the plane through ``(y, p)`` at right angles to ``(dy, dp)``."""
        along, unit = self._place(dy, dp), self._place(self.unit(y), self._span)
        return self._solved(y[None], np.array([p]), along, unit, self._setting.harmonics)[0]

    def from_rest(self, y: np.ndarray, p: np.ndarray) -> list[Corrected]:
        """Solutions at the values ``p`` (b,), found with more and more harmonics from rest, or else
        from the nearest solution."""
        along = self._place(np.zeros(y.shape[1]), 1.0)
        unit = self._place(self.unit(np.zeros(y.shape[1])), self._span)
        most = self._setting.harmonics

        def by_levels(steep: float) -> list[Corrected]:
            level, reached = 1, y
            while True:
                found = self._solved(reached, p, along, unit, level, steep)
                if level == most:
                    return found
                reached = np.stack([np.where(np.isfinite(s.at.y), s.at.y, 0.0) for s in found])
                level = min(2 * level + 1, most)

        spots = by_levels(1.0)
        found = np.array([s.converged for s in spots])
        if not found.all():
            # The solution does not depend on the steepness: gentler friction is found more easily.
            gentle = by_levels(GENTLER[0])
            for steep in GENTLER[1:]:
                starts = np.stack(
                    [g.at.y if g.converged else rest for g, rest in zip(gentle, y, strict=True)]
                )
                tried = self._solved(starts, p, along, unit, most, steep)
                gentle = [t if t.converged else g for t, g in zip(tried, gentle, strict=True)]
            spots = [s if s.converged else g for s, g in zip(spots, gentle, strict=True)]
        for _ in range(ROUNDS):
            good = np.array([s.converged for s in spots])
            if good.all() or not good.any():
                break
            places = np.arange(len(spots))
            known = places[good]
            nearest = known[np.argmin(np.abs(p[places][:, None] - p[known][None, :]), axis=1)]
            tried = self._solved(np.stack([spots[i].at.y for i in nearest]), p, along, unit, most)
            better = [a if a.converged else b for a, b in zip(spots, tried, strict=True)]
            if sum(s.converged for s in better) == good.sum():
                break
            spots = better
        return spots

    def _solved(
        self, y, p, along: Place, unit: Place, level: int, steep: float = 1.0
    ) -> list[Corrected]:
        places, taking_part = self._place(y, p), jnp.asarray(level, jnp.int32)
        how = taking_part, jnp.asarray(steep, self._dtype)
        found = correct_many(self._problem, self._setting, places, along, unit, *how)
        found = jax.tree.map(np.asarray, found)
        return [jax.tree.map(lambda x, i=i: x[i], found) for i in range(len(found.at.p))]

    def _place(self, y: np.ndarray, p: np.ndarray | float) -> Place:
        return Place(jnp.asarray(y, self._dtype), jnp.asarray(p, self._dtype))


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


def _result(
    problem: Problem, setting: Setting, mechanics: Mechanics, found: Curve | list[Corrected], name
) -> HarmonicBalance:
    curve = found if isinstance(found, Curve) else Curve(found, [], "stop")
    y = np.stack([s.at.y for s in curve.spots])
    p = np.array([s.at.p for s in curve.spots])
    seen = {
        k: np.asarray(x)
        for k, x in _examined(problem, setting, jnp.asarray(y), jnp.asarray(p)).items()
    }
    status = np.where(seen["opens"], int(BalanceStatus.OPENS), int(BalanceStatus.OK))
    status = np.where(seen["pushes"], status, int(BalanceStatus.NEGATIVE_FORCE))
    converged = np.array([s.converged for s in curve.spots])
    status = np.where(converged, status, int(BalanceStatus.UNSOLVED))
    n, nt = mechanics.n, mechanics.n_contacts
    # Unknowns that do not solve the equations are no motion.
    y = np.where(converged[:, None], y, np.nan)
    waves = _complex(y, setting.harmonics, width(mechanics))
    folds = np.stack([s.at.y for s in curve.folds]) if curve.folds else np.zeros((0, y.shape[1]))
    at_folds = _complex(folds, setting.harmonics, width(mechanics))
    return HarmonicBalance(
        axes=mechanics.axes,
        contacts=mechanics.contact_names,
        path=name,
        parameter=p,
        omega=seen["omega"],
        coefficients=waves[:, :, :n],
        friction=waves[:, :, n : n + nt],
        normal=waves[:, :, n + nt :],
        residual=np.array([s.residual for s in curve.spots]),
        remainder=seen["remainder"],
        stick=seen["stick"],
        status=status.astype(np.int32),
        iterations=np.array([s.iterations for s in curve.spots], np.int32),
        folds=np.array([s.at.p for s in curve.folds]),
        fold_amplitudes=np.stack([half_range(at_folds[:, :, i]) for i in range(n)], axis=1),
        ended=curve.ended if isinstance(found, Curve) else "points",
    )


def _complex(y: np.ndarray, harmonics: int, columns: int) -> np.ndarray:
    """Complex coefficients from ``A cos + B sin = Re (A - i B) exp(i ...)``."""
    parts = y.reshape(y.shape[0], 2 * harmonics + 1, columns)
    return np.concatenate(
        [parts[:, :1] + 0j, parts[:, 1 : harmonics + 1] - 1j * parts[:, harmonics + 1 :]], axis=1
    )
