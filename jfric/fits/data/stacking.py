"""Experiments as arrays of one shape, so that one program simulates all of them, and the noise of
readings in steps, such as those of an encoder.

A reading is off by up to half a step ``D``. While the motion goes through steps the errors are
nearly independent from sample to sample and uniform, of variance ``D^2/12``, uncorrelated with the
motion (B. Widrow, I. Kollar, Quantization Noise, 2008, chapter 5). ``n`` samples in a row with the
same reading share one error: their mean has the variance ``sigma^2/n + D^2/12`` with other noise
``sigma``. Each sample counts with the variance ``sigma^2 + n D^2/12``, as if it were independent,
which gives that mean the same variance; a record at rest does not count for more than it tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jfric.errors import ProblemError, require_known, require_one_of
from jfric.fits.data.experiment import Experiment
from jfric.system.functions import AbstractFunction, PiecewiseLinear, Steps
from jfric.system.naming import function_paths
from jfric.system.problem import Problem


class Data(eqx.Module):
    """One experiment as a model reads it. Stacked arrays have the axis of experiments in front, and
    shorter experiments are filled up with infinite times."""

    t: Float[Array, " m"]
    start: Float[Array, ""]
    end: Float[Array, ""]
    #: Measured quantities in the order of ``signals``; zero where there is no sample.
    y: Float[Array, "m k"]
    #: Measured inputs by name, held constant behind the last sample.
    u: dict[str, Float[Array, " m"]]
    #: Initial state of the experiment by path (``initial.u.q``), if it has its own.
    x0: dict[str, Float[Array, ""]]
    signals: tuple[str, ...] = eqx.field(static=True)


def labels(experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """Names of the experiments, all different: their own, or their numbers."""
    own = [e.name for e in experiments]
    unique = len(set(own)) == len(own)
    return tuple(str(n) if unique and n else str(i + 1) for i, n in enumerate(own))


def signals_of(
    experiments: Sequence[Experiment], observe: Sequence[str] | str | None
) -> tuple[str, ...]:
    """Names of the measured quantities that are compared: all, or those of ``observe``."""
    measured = tuple(dict.fromkeys(name for e in experiments for name in e.y))
    if observe is None:
        return measured
    chosen = (observe,) if isinstance(observe, str) else tuple(observe)
    for name in chosen:
        require_one_of("observe", name, measured, "measured are")
    return chosen


def stack(
    experiments: Sequence[Experiment],
    signals: tuple[str, ...],
    starts: Sequence[float],
    x0: Sequence[dict[str, float]],
) -> tuple[Data, np.ndarray, np.ndarray]:
    """Data of all experiments, which samples count (E, m, k), and the standard deviations of their
    noise (E, m, k), NaN where unknown."""
    count, longest = len(experiments), max(e.t.size for e in experiments)
    t = np.full((count, longest), np.inf)
    y = np.zeros((count, longest, len(signals)))
    used = np.zeros((count, longest, len(signals)), bool)
    sigma = np.full((count, longest, len(signals)), np.nan)
    names = dict.fromkeys(name for e in experiments for name in e.u or {})
    u = {name: np.zeros((count, longest)) for name in names}
    for i, e in enumerate(experiments):
        m = e.t.size
        t[i, :m] = e.t
        for j, name in enumerate(signals):
            if name not in e.y:
                continue
            mask = (e.mask or {}).get(name, np.ones(m, bool))
            used[i, :m, j] = mask
            y[i, :m, j] = np.where(mask, e.y[name], 0.0)
            if isinstance(e.sigma, Mapping):
                sigma[i, :, j] = e.sigma.get(name, np.nan)
        for name, values in u.items():
            if name not in (e.u or {}):
                raise ProblemError(
                    f"u.{name}: missing in experiment {i + 1}, all experiments of a fit need the "
                    "same inputs"
                )
            own = e.u[name]  # pyright: ignore[reportOptionalSubscript]
            values[i, :m], values[i, m:] = own, own[-1]
    if not used.any():
        raise ProblemError("mask: found no sample that counts")
    # Times behind the end only need to increase: those of inputs are breakpoints.
    end = np.array([e.t[-1] for e in experiments])
    paths = dict.fromkeys(path for table in x0 for path in table)
    data = Data(
        t=jnp.asarray(t),
        start=jnp.asarray(np.asarray(starts, float)),
        end=jnp.asarray(end),
        y=jnp.asarray(y),
        u={name: jnp.asarray(values) for name, values in u.items()},
        x0={path: jnp.asarray([table[path] for table in x0]) for path in paths},
        signals=signals,
    )
    return data, used, sigma


class ReadingNoise(NamedTuple):
    """Variances (E, m, k): of the errors of single readings, and as used in a fit."""

    variance: np.ndarray
    counted: np.ndarray

    @property
    def more(self) -> np.ndarray:
        """Variance (E, m, k) used in a fit in excess of that of single readings."""
        return self.counted - self.variance


def steps_of(
    experiments: Sequence[Experiment], signals: Sequence[str], used: np.ndarray
) -> ReadingNoise:
    """Variances that the resolution of readings adds to the noise; zero without one."""
    variance, counted = np.zeros(used.shape), np.zeros(used.shape)
    for i, e in enumerate(experiments):
        for j, name in enumerate(signals):
            step = (e.resolution or {}).get(name)
            if step is None or name not in e.y:
                continue
            there = np.flatnonzero(used[i, : e.t.size, j])
            variance[i, there, j] = step**2 / 12.0
            counted[i, there, j] = run_lengths(e.y[name][there], step) * step**2 / 12.0
    return ReadingNoise(variance, counted)


def run_lengths(values: np.ndarray, step: float) -> np.ndarray:
    """Number of samples in a row with the same reading, for each sample (m,)."""
    if not values.size:
        return np.zeros(0)
    starts = np.flatnonzero(np.r_[True, np.abs(np.diff(values)) > 0.5 * step])
    lengths = np.diff(np.r_[starts, values.size])
    return np.repeat(lengths, lengths)


HOLDS = ("zero", "linear")


def with_inputs(problem: Problem, t, u: Mapping[str, Any], hold: str = "zero") -> Problem:
    """``problem`` with the functions of time at the paths of ``u`` replaced by samples (m,) at the
    times ``t``, held (``"zero"``) or connected by straight lines (``"linear"``)."""
    if not u:
        return problem
    slots = function_paths(problem)
    # Samples behind the end are never reached; their times only need to increase.
    index = jnp.arange(t.shape[0])
    finite = jnp.isfinite(t)
    last = jnp.max(jnp.where(finite, t, -jnp.inf))
    times = jnp.where(finite, t, last + 1.0 + index)

    def replaced(values):
        if hold == "zero":
            return Steps(times[1:], values)
        return PiecewiseLinear(times, values)

    chosen = [slots[path] for path in u]

    def where(p):
        return [getattr(p.elements[s][n], f) for s, n, f in chosen]

    return eqx.tree_at(
        where,
        problem,
        [replaced(values) for values in u.values()],
        is_leaf=lambda x: isinstance(x, AbstractFunction),
    )


def check_inputs(problem: Problem, names: tuple[str, ...], hold: str) -> None:
    """Raise :class:`jfric.ProblemError` for an input that drives nothing in ``problem``."""
    require_one_of("hold", hold, HOLDS)
    for name in names:
        require_known(f"u.{name}", "function of time", name, function_paths(problem))
