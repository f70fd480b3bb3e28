"""The equation of motion at measured samples: its unbalanced force, and filters of positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import with_inputs
from jfric.system.assembly import assemble
from jfric.system.forces import applied_force, normal_forces_at, sliding_friction
from jfric.system.problem import Problem

#: Order of the low-pass filter of the positions (applied forwards and backwards).
ORDER = 4
#: Default ratio of cut-off frequency to sampling rate.
CUTOFF = 0.1
#: Part of the variance of accelerations that may be noise of the positions.
NOISE = 2e-3
#: Part of the variance of velocities that may be noise where states follow from them.
NOISE_ALONG = 2e-5
#: Highest cut-off frequency there, as a part of the sampling rate.
HIGHEST = 0.4
#: Factor from one tried cut-off frequency to the next lower one.
LOWER = 0.8
#: Least length of a record, in periods of the cut-off frequency.
PERIODS = 40.0
#: Part of the mean step by which steps may differ that count as even.
UNEVEN = 1e-2
#: Longest step of a record with uneven steps, as a multiple of the median.
GAP = 5.0
#: Rows that the filter spoils at each end, in periods of the cut-off frequency.
SPOILT = 5.0
#: Length of one box of a local mean, in periods of the cut-off frequency: accelerations after the
#: mean have the noise of an ideal low pass, ``8/(3 D^5) = 2 (2 pi)^4 f^5/5``.
BOX = (20.0 / 3.0 / (2.0 * np.pi) ** 4) ** 0.2


def unbalanced(problem: Problem, t, q, v, a, u: Mapping[str, Any], z=None):
    """Unbalanced force (n,) of the equation of motion at one instant [N or N m], all contacts
    sliding; ``z``: states of elements."""
    held, n = {name: value[None] for name, value in u.items()}, q.shape[0]
    mechanics = assemble(with_inputs(problem, t[None], held)).at(t, q, v)
    q, v = mechanics.complete(q, v, z)
    gamma = mechanics.sliding_velocities(t, v)
    normal = normal_forces_at(mechanics, t, q, v)
    friction = mechanics.R_T.T @ sliding_friction(mechanics, gamma, normal)
    applied = applied_force(mechanics, t, q, v, None, z)
    return mechanics.M[:n, :n] @ a - applied[:n] - friction[:n]


def slowest_sliding(problem: Problem, t, q, v):
    """The lowest sliding speed of all contacts at one instant; infinite without contacts."""
    gamma = assemble(problem).at(t, q, v).sliding_velocities(t, v)
    return jnp.min(jnp.abs(gamma), initial=jnp.inf)


def low_pass(rate: float, cutoff: float | None) -> tuple[np.ndarray, float]:
    """The filter of positions that are sampled at ``rate`` [Hz], and its cut-off frequency [Hz]."""
    from scipy import signal  # slow to import

    cutoff = CUTOFF * rate if cutoff is None else cutoff
    if not 0.0 < cutoff < 0.5 * rate:
        raise ProblemError(
            f"cutoff: found {cutoff:g} Hz, must lie between 0 and half the sampling rate "
            f"({0.5 * rate:g} Hz)"
        )
    sections: Any = signal.butter(ORDER, cutoff / (0.5 * rate), output="sos")
    return sections, cutoff


def smooth(x: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Columns ``x`` (m, ...) behind the low pass at ``cutoff`` [Hz], forwards and backwards."""
    from scipy import signal  # slow to import

    return signal.sosfiltfilt(low_pass(rate, cutoff)[0], x, axis=0)


def local_mean(rate: float, cutoff: float) -> np.ndarray:
    """Weights (2 r + 1,) of a mean over neighbours of samples at ``rate`` [Hz], zero outside.

    The weights are a cubic B-spline, four boxes of ``BOX/cutoff`` in sequence: accelerations are as
    quiet as behind a low pass at ``cutoff`` [Hz]. Samples outside its length have no effect,
    whereas a recursive filter keeps ringing behind every jump of friction.
    """
    box = BOX / cutoff * rate
    reach = max(int(np.ceil(2.0 * box)) - 1, 0)
    x = np.abs(np.arange(-reach, reach + 1)) / box
    weights = np.where(x < 1.0, 4.0 - 6.0 * x**2 + 3.0 * x**3, (2.0 - x) ** 3)
    return weights / weights.sum()


def local_means(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Means over neighbours; at both ends over those that exist, used for signs only."""
    from scipy import signal  # slow to import

    there = signal.oaconvolve(np.ones(x.shape[0]), weights, "same")
    columns = x.reshape(x.shape[0], -1)
    means = signal.oaconvolve(columns, weights[:, None], "same", axes=0) / there[:, None]
    return means.reshape(x.shape)


def complete_positions(dofs: Iterable[str], experiment: Experiment) -> np.ndarray:
    """Measured positions (m, n); raises :class:`jfric.ProblemError` where some are missing."""
    missing = [dof for dof in dofs if dof not in experiment.y]
    if missing:
        raise ProblemError(f"y.{missing[0]}: the regression needs the measured position")
    for dof in dofs:
        there = (experiment.mask or {}).get(dof, True) & np.isfinite(experiment.y[dof])
        if not there.all():
            i = int(np.argmin(there))
            raise ProblemError(
                f"y.{dof}: found {np.sum(~there):,} missing samples, the first at "
                f"t = {experiment.t[i]:g} s; a regression filters the whole record, cut it with "
                "between or fit by simulation"
            )
    return np.stack([np.asarray(experiment.y[dof]) for dof in dofs], axis=1)


def at_even_steps(
    dofs: Iterable[str], e: Experiment, hold: str, allowed: float = 0.0
) -> Experiment:
    """Positions and inputs of a record at as many even steps; ``e`` itself where they are even.

    Positions follow cubic splines. Inputs are their means over a step if they are held, else they
    go on straight lines. A remark of the record says so. Raises :class:`jfric.ProblemError` for a
    step of more than ``GAP`` of the usual ones and than ``allowed`` [s], in which nothing is known
    of the motion.
    """
    from scipy.interpolate import CubicSpline  # slow to import

    steps = np.diff(e.t)
    usual, dt = float(np.median(steps)), float(np.mean(steps))
    off = float(np.max(np.abs(steps - dt)))
    if off <= UNEVEN * dt:
        return e
    worst = int(np.argmax(steps))
    longest = max(GAP * usual, allowed)
    if steps[worst] > longest:
        raise ProblemError(
            f"t: found a step of {steps[worst]:g} s at {e.t[worst]:g} s among steps of {usual:g} "
            f"s, inverse dynamics need steps of at most {longest:g} s"
        )
    t = np.linspace(e.t[0], e.t[-1], e.t.size)
    q = CubicSpline(e.t, complete_positions(dofs, e))(t)
    y = {dof: q[:, i] for i, dof in enumerate(dofs)}

    def even(values: np.ndarray) -> np.ndarray:
        if hold == "linear":
            return np.interp(t, e.t, values)
        impulse = np.concatenate([[0.0], np.cumsum(values[:-1] * steps)])
        return np.append(np.diff(np.interp(t, e.t, impulse)) / (t[1] - t[0]), values[-1])

    u = {name: even(values) for name, values in (e.u or {}).items()}
    said = (
        f"steps differed by {100 * off / dt:.0f} %: samples were brought to even ones of {dt:.4g} s"
    )
    resolution = {k: v for k, v in (e.resolution or {}).items() if k in y}
    even_one = Experiment(t, u, y, x0=e.x0, meta=e.meta, start=e.start, resolution=resolution)
    return even_one.with_remarks(said)


def quiet_cutoff(
    rate: float,
    positions: np.ndarray,
    steps: np.ndarray,
    order: int = 2,
    share: float = NOISE,
    highest: float = CUTOFF,
) -> float:
    """The highest cut-off frequency [Hz], at most the part ``highest`` of the ``rate`` [Hz], behind
    which the accelerations of measured ``positions`` (m, n) contain hardly any noise: a ``share``
    of their variance. ``order``: of the derivative, 1 for velocities.

    ``steps`` (n,): resolutions of the readings, zero where unknown. The noise of positions is taken
    as white, estimated from the part that a cut-off at a tenth removes, but at least the noise of
    the steps. In derivatives of the order ``k`` up to ``f`` it has the variance ``2 sigma^2 (2
    pi)^(2 k) f^(2 k + 1)/((2 k + 1) rate)``: a mass fitted to accelerations is too small by the
    noise's share of their variance.
    """
    removed = positions - smooth(positions, rate, CUTOFF * rate)
    variance = np.maximum(np.var(removed, axis=0) / (1.0 - 2.0 * CUTOFF), steps**2 / 12.0)
    cutoff, lowest = highest * rate, PERIODS * rate / positions.shape[0]
    while LOWER * cutoff > lowest:
        slope, power = smooth(positions, rate, cutoff), 2 * order + 1
        for _ in range(order):
            slope = np.gradient(slope, 1.0 / rate, axis=0)
        noise = 2.0 * variance * (2.0 * np.pi) ** (power - 1) * cutoff**power / (power * rate)
        if np.all(noise <= share * np.var(slope, axis=0)):
            break
        cutoff *= LOWER
    return cutoff


def resolutions(dofs: Iterable[str], e: Experiment) -> np.ndarray:
    """Steps (n,) of the readings of all positions, zero where unknown."""
    return np.array([(e.resolution or {}).get(dof, 0.0) for dof in dofs])


def smooth_motion(dofs: Iterable[str], e: Experiment, least: float = 0.0) -> Any:
    """The positions (m, n) of a record with even steps as a cubic spline of time, whose velocities
    contain hardly any noise. ``least`` [Hz]: lowest cut-off frequency."""
    from scipy.interpolate import CubicSpline  # slow to import

    measured, rate = complete_positions(dofs, e), 1.0 / float(np.mean(np.diff(e.t)))
    steps = resolutions(dofs, e)
    quiet = max(quiet_cutoff(rate, measured, steps, 1, NOISE_ALONG, HIGHEST), least)
    weights = local_mean(rate, quiet)
    once = local_means(measured, weights)
    # A mean flattens a turn, by the acceleration; what it took away is mostly given back.
    return CubicSpline(e.t, once + local_means(measured - once, weights))
