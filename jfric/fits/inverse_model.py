"""Inverse dynamics as a model of fits: forces that a measured motion needs, without simulation.

With filtered positions, velocities and accelerations each sample gives the unbalanced force of the
equation of motion of each degree of freedom::

    e  =  M dv/dt - f(t, q, v, u) - R_T^T lambda_T

The model compares ``g + e`` with ``g``, where ``g`` is the force of the measured inputs, or ``M
dv/dt`` of the given problem if no inputs are measured. So every parameter may be free: those of the
friction law, masses, and delays and filters of sensors and inputs. All terms are means over the
same neighbours of a sample, with the weights of :func:`jfric.fits.force_balance.local_mean`: means
of second differences of the positions, and of the inputs between samples. For a mass under held
forces both are equal without error. There are 2.5 rows per period of the cut-off frequency. Where a
contact sticks the friction force is not known, and where it reverses the mean is that of two
directions: rows with such a sample among their neighbours do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.measured_inputs import with_inputs
from jfric.fits.data.stacking import Data
from jfric.fits.force_balance import (
    BOX,
    at_even_steps,
    complete_positions,
    local_mean,
    low_pass,
    quiet_cutoff,
    unbalanced,
)
from jfric.fits.measurement import acting, at_times, slopes, total_delay
from jfric.fits.model import AbstractModel, OutputModel, Prediction
from jfric.fits.sampled_model import REFERENCE
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.assembly import assemble
from jfric.system.features import CONSTANT, require_features
from jfric.system.naming import function_paths, set_parameters
from jfric.system.problem import Problem

#: Rows per second over the cut-off frequency: with more, the noise would have no highest
#: frequencies, and no autoregression fits that.
ROWS = 2.5
#: Sliding speed, as a part of its root mean square over the record, below which stick is possible.
SLOW = 0.02
#: Most that a mean may move a reversal, as a part of the reach of the mean.
MOVED = 0.25
#: Prefixes of the signals of the motion among an experiment's inputs, and of the compared forces.
MOTION, FORCE = "motion", "force"
LEAST_ROWS = 20


class InverseModel(AbstractModel):
    """Forces that a measured motion needs, compared with the measured ones.

    The experiments are those of :func:`inverse_experiments`.
    """

    problem: Problem

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        """Raise :class:`jfric.ProblemError` for records that are no rows of inverse dynamics."""
        del signals
        for e in experiments:
            if f"{MOTION}.{self.problem.axes[0]}.a" not in (e.u or {}):
                raise ProblemError("experiments: found none of inverse_experiments")

    def default(self, path: str, experiment: Experiment) -> float:
        if path.startswith(("controller.", "initial.")):
            raise ProblemError(f"free: {path} changes nothing in the equation of motion")
        return OutputModel(self.problem, EventDriven()).default(path, _named(experiment))

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        return float(experiment.t[0]), {}

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        measured = {k for k in values if k.partition(".")[0] in ("sensor", "input", "delay")}
        problem = set_parameters(
            self.problem, {k: x for k, x in values.items() if k not in measured}
        )
        q, v, a = _motion(self.problem, values, data)
        inputs = _inputs(data.u)
        # Inputs are smooth behind the filter.
        own = {k: acting(data.t, x, k, values, "linear") for k, x in inputs.items()}
        missing = jax.vmap(lambda t, q, v, a, u: unbalanced(problem, t, q, v, a, u))(
            data.t, q, v, a, own
        )
        columns = [
            data.y[:, j] + missing[:, self.problem.axes.index(name.partition(".")[2])]
            for j, name in enumerate(data.signals)
        ]
        y = jnp.stack(columns, axis=1)
        return Prediction(y, jnp.asarray(int(Status.OK)))


def inverse_experiments(
    problem: Problem,
    experiments: Sequence[Experiment],
    cutoff: float | None = None,
    hold: str = "zero",
) -> list[Experiment]:
    """The rows of the ``experiments`` for :class:`InverseModel`. ``cutoff`` [Hz]: of the filter; by
    default the highest one behind which accelerations contain hardly any noise, at most a tenth of
    the sampling rate. ``hold``: how inputs go on between samples. Raises
    :class:`jfric.ProblemError` for records and problems without inverse dynamics: missing
    positions, long gaps, unilateral contacts. Uneven steps are made even."""
    require_features(problem, "inverse dynamics", CONSTANT)
    if problem.section("contact"):
        raise ProblemError(
            "contact: normal forces of unilateral contacts are not measured, inverse dynamics need "
            "friction with a given normal force"
        )
    return [_rows(problem, e, cutoff, hold) for e in experiments]


def _rows(problem: Problem, e: Experiment, cutoff: float | None, hold: str) -> Experiment:
    e = at_even_steps(problem, e, hold)
    rate = 1.0 / float(np.mean(np.diff(e.t)))
    measured = complete_positions(problem, e)
    steps = np.array([(e.resolution or {}).get(dof, 0.0) for dof in problem.axes])
    if cutoff is None:
        cutoff = quiet_cutoff(rate, measured, steps)
    low_pass(rate, cutoff)  # refuses a wrong cut-off
    weights = local_mean(rate, cutoff)
    reach, every = weights.size // 2, max(1, int(rate / (ROWS * cutoff)))
    # All samples except the first and the last, which have no second differences.
    rows = slice(reach, max(e.t.size - 2 - reach, reach), every)
    t = e.t[1:-1]
    if t[rows].size < LEAST_ROWS:
        raise ProblemError(
            f"t: found {e.t.size} samples, {t[rows].size} of which are left behind a filter with a "
            f"cut-off of {cutoff:g} Hz, at least {LEAST_ROWS} are needed"
        )
    before, here, after = measured[:-2], measured[1:-1], measured[2:]
    q = _means(here, weights)
    v = _means(0.5 * rate * (after - before), weights)
    a = _means(rate**2 * (after - 2.0 * here + before), weights)
    slots = function_paths(problem)
    u = {
        path: _means(_at_samples(np.asarray(x, float), hold), weights)
        for path, x in (e.u or {}).items()
        if path != REFERENCE and path in slots
    }
    force, speed = _known_force(problem, t, q, v, a, u)
    fast = _slides(speed, (1.0 + MOVED) * 2.0 * BOX / cutoff * rate)[rows]
    if not fast.any():
        raise ProblemError(
            f"{e.name or 'experiment'}: in all samples something rests or reverses too soon"
        )
    motion = {
        f"{MOTION}.{dof}.{letter}": x[rows, i]
        for i, dof in enumerate(problem.axes)
        for letter, x in (("q", q), ("v", v), ("a", a))
    }
    y = {f"{FORCE}.{dof}": force[rows, i] for i, dof in enumerate(problem.axes)}
    inputs = {path: x[rows] for path, x in u.items()}
    return Experiment(t[rows], {**inputs, **motion}, y, mask=dict.fromkeys(y, fast), meta=e.meta)


def _means(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Means over neighbours; at both ends over those that exist, used for signs only."""
    from scipy import signal  # slow to import

    there = signal.oaconvolve(np.ones(x.shape[0]), weights, "same")
    columns = x.reshape(x.shape[0], -1)
    means = signal.oaconvolve(columns, weights[:, None], "same", axes=0) / there[:, None]
    return means.reshape(x.shape)


def _at_samples(u: np.ndarray, hold: str) -> np.ndarray:
    """Inputs as they act on second differences of the position of a mass: the mean over both steps
    if inputs are held, else the mean with the weights of a triangle."""
    if hold == "linear":
        return (u[:-2] + 4.0 * u[1:-1] + u[2:]) / 6.0
    return 0.5 * (u[1:-1] + u[:-2])


def _slides(speed: np.ndarray, reach: float) -> np.ndarray:
    """Whether no contact rests or reverses within ``reach`` [samples] of each sample (m,);
    ``speed`` (m, nt): of all contacts."""
    from scipy import ndimage  # slow to import

    if not speed.size:
        return np.ones(speed.shape[0], bool)
    slow = np.any(np.abs(speed) <= SLOW * np.sqrt(np.mean(speed**2)), axis=1)
    turns = np.any(speed[1:] * speed[:-1] < 0.0, axis=1)
    slow[1:] |= turns
    slow[:-1] |= turns
    near = ndimage.maximum_filter1d(slow, 2 * int(np.ceil(reach)) + 1, mode="constant")
    return np.logical_not(near)


def _known_force(problem: Problem, t, q, v, a, u) -> tuple[np.ndarray, np.ndarray]:
    """The force of the inputs (m, n), or of inertia if there are no inputs, and the sliding
    velocities (m, nt)."""

    @eqx.filter_jit
    def known(problem, t, q, v, a, u):
        def one(t, q, v, a, u):
            zero = {k: jnp.zeros_like(x) for k, x in u.items()}
            without, given = (unbalanced(problem, t, q, v, a, x) for x in (zero, u))
            held = {k: x[None] for k, x in u.items()}
            mechanics = assemble(with_inputs(problem, t[None], held)).at(t, q, v)
            force = without - given if u else mechanics.M @ a
            return force, mechanics.sliding_velocities(t, v)

        return jax.vmap(one)(t, q, v, a, u)

    force, speed = known(problem, *jax.tree.map(jnp.asarray, (t, q, v, a, u)))
    return np.asarray(force), np.asarray(speed)


def _motion(problem: Problem, values: Mapping[str, Array], data: Data):
    """Positions, velocities and accelerations (m, n) from the readings of the sensors."""
    columns = []
    for dof in problem.axes:
        q, v, a = (data.u[f"{MOTION}.{dof}.{letter}"] for letter in "qva")
        lag, gain, offset = (values.get(f"sensor.{dof}.{f}") for f in ("lag", "gain", "offset"))
        q = q if offset is None else q - offset
        if gain is not None:
            q, v, a = q / gain, v / gain, a / gain
        if lag is not None:
            jerk = slopes(data.t, a)
            q, v, a = q + lag * v, v + lag * a, a + lag * jerk
        delay = total_delay(dof, values)
        if delay is not None:
            q, v, a = (at_times(data.t + delay, data.t, x) for x in (q, v, a))
        columns.append((q, v, a))
    return (jnp.stack(x, axis=1) for x in zip(*columns, strict=True))


def _inputs(u: Mapping[str, Any]) -> dict[str, Any]:
    return {k: x for k, x in u.items() if not k.startswith(f"{MOTION}.")}


def _named(experiment: Experiment) -> Experiment:
    """The experiment with its positions among the measured quantities, as sensor names need."""
    e = experiment
    y = {k.removeprefix(f"{MOTION}.").removesuffix(".q"): x for k, x in (e.u or {}).items()
         if k.startswith(f"{MOTION}.") and k.endswith(".q")}  # fmt: skip
    return Experiment(e.t, _inputs(e.u or {}), y)


def force_names(signals: Sequence[str]) -> list[str]:
    """Degrees of freedom of the signals of this model."""
    return [name.partition(".")[2] for name in signals]
