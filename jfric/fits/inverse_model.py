"""Inverse dynamics as a model of fits: forces that a measured motion needs, without simulation.

With filtered positions, velocities and accelerations each sample says what is missing in the
equation of motion of each degree of freedom::

    e  =  M dv/dt - f(t, q, v, u) - R_T^T lambda_T

Compared are ``g + e`` and ``g``, where ``g`` is the force of the measured inputs, or ``M dv/dt`` of
the given problem where none are measured; so every parameter may be free, those in the law of
friction, masses, and delays and filters of sensors and inputs. Positions and inputs pass the same
zero-phase low-pass filter; rows follow each other at 2.5 times its cut-off frequency. In samples
in which something sticks the friction force is not known, they do not count.
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
from jfric.fits.data.stacking import Data
from jfric.fits.force_balance import (
    SPOILT,
    complete_positions,
    low_pass,
    quiet_cutoff,
    sampling_step,
    unbalanced,
)
from jfric.fits.measurement import acting, at_times, slopes, total_delay
from jfric.fits.model import AbstractModel, OutputModel, Prediction
from jfric.fits.sampled_model import REFERENCE
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.assembly import assemble
from jfric.system.naming import function_paths, set_parameters
from jfric.system.problem import Problem
from jfric.system.refuse_varying import refuse_varying

#: Rows per second over the cut-off frequency: more would be of noise that has no highest
#: frequencies, which no autoregression follows.
ROWS = 2.5
#: Slower sliding, as a part of its root mean square over the record, may be stick.
SLOW = 0.02
#: Periods of the cut-off frequency around a reversal in which the filter mixes both directions.
SPREAD = 0.7
#: Names of the signals of the motion among the inputs of an experiment, and of what is compared.
MOTION, FORCE = "motion", "force"
LEAST_ROWS = 20


class InverseModel(AbstractModel):
    """Forces that a measured motion needs, compared with the measured ones.

    Experiments are those of :func:`inverse_experiments`.
    """

    problem: Problem

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        """Raise :class:`jfric.ProblemError` for records that are not of this kind."""
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
        # The filter has made the inputs smooth.
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
    """The rows of the ``experiments`` for :class:`InverseModel`; ``cutoff`` [Hz]: of the filter;
    unless given the highest behind which accelerations are hardly noise, a tenth of the sampling
    rate at most. ``hold``: how inputs go on between samples. Raises :class:`jfric.ProblemError` for
    what has no inverse dynamics: missing positions, uneven steps, unilateral contacts."""
    refuse_varying(problem, "inverse dynamics")
    if problem.section("contact"):
        raise ProblemError(
            "contact: normal forces of unilateral contacts are not measured, inverse dynamics need "
            "friction with a given normal force"
        )
    return [_rows(problem, e, cutoff, hold) for e in experiments]


def _rows(problem: Problem, e: Experiment, cutoff: float | None, hold: str) -> Experiment:
    from scipy import signal  # slow to import

    rate = 1.0 / sampling_step(e.t)
    measured = complete_positions(problem, e)
    steps = np.array([(e.resolution or {}).get(dof, 0.0) for dof in problem.axes])
    if cutoff is None:
        cutoff = quiet_cutoff(rate, measured, steps)
    sections, cutoff = low_pass(rate, cutoff)
    q = signal.sosfiltfilt(sections, measured, axis=0)
    v = np.gradient(q, 1.0 / rate, axis=0)
    a = np.gradient(v, 1.0 / rate, axis=0)
    spoilt, every = round(SPOILT / cutoff * rate), max(1, int(rate / (ROWS * cutoff)))
    inside = slice(spoilt, e.t.size - spoilt, every)
    t = e.t[inside]
    if t.size < LEAST_ROWS:
        raise ProblemError(
            f"t: found {e.t.size} samples, {t.size} of which are left behind a filter with a "
            f"cut-off of {cutoff:g} Hz, at least {LEAST_ROWS} are needed"
        )
    u = {
        path: signal.sosfiltfilt(sections, _at_samples(x, hold))[inside]
        for path, x in (e.u or {}).items()
        if path != REFERENCE
    }
    slots = function_paths(problem)
    u = {path: x for path, x in u.items() if path in slots}
    rows = [jnp.asarray(x) for x in (t, q[inside], v[inside], a[inside])]
    force, speed = _known_force(problem, rows, {k: jnp.asarray(x) for k, x in u.items()})
    fast = np.ones(t.size, bool)
    if speed.size:
        slow = np.any(np.abs(speed) <= SLOW * np.sqrt(np.mean(speed**2)), axis=1)
        slow[1:] |= np.any(speed[1:] * speed[:-1] < 0.0, axis=1)
        # The filter spreads the jump of friction at a reversal.
        reach = int(np.ceil(SPREAD * rate / cutoff / every))
        fast = np.convolve(slow, np.ones(2 * reach + 1), "same") == 0
    if not fast.any():
        raise ProblemError(
            f"{e.name or 'experiment'}: in all samples something rests or reverses too soon"
        )
    motion = {
        f"{MOTION}.{dof}.{letter}": x[inside, i]
        for i, dof in enumerate(problem.axes)
        for letter, x in (("q", q), ("v", v), ("a", a))
    }
    y = {f"{FORCE}.{dof}": force[:, i] for i, dof in enumerate(problem.axes)}
    return Experiment(t, {**u, **motion}, y, mask=dict.fromkeys(y, fast), meta=e.meta)


def _at_samples(u: np.ndarray, hold: str) -> np.ndarray:
    """What acts at the samples: between what is held before and behind."""
    return u if hold == "linear" else 0.5 * (u + np.r_[u[:1], u[:-1]])


def _known_force(problem: Problem, rows, u) -> tuple[np.ndarray, np.ndarray]:
    """The force of the inputs (m, n), or of inertia where there are none; sliding velocities (m,
    nt)."""

    @eqx.filter_jit
    def known(problem, t, q, v, a, u):
        def one(t, q, v, a, u):
            zero = {k: jnp.zeros_like(x) for k, x in u.items()}
            without, given = (unbalanced(problem, t, q, v, a, x) for x in (zero, u))
            mechanics = assemble(problem).at(t, q, v)
            force = without - given if u else mechanics.M @ a
            return force, mechanics.sliding_velocities(t, v)

        return jax.vmap(one)(t, q, v, a, u)

    t, q, v, a = rows
    force, speed = known(problem, t, q, v, a, u)
    return np.asarray(force), np.asarray(speed)


def _motion(problem: Problem, values: Mapping[str, Array], data: Data):
    """Positions, velocities and accelerations (m, n) from what the sensors show."""
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
    """The experiment with its positions among the measured quantities, for names of sensors."""
    e = experiment
    y = {k.removeprefix(f"{MOTION}.").removesuffix(".q"): x for k, x in (e.u or {}).items()
         if k.startswith(f"{MOTION}.") and k.endswith(".q")}  # fmt: skip
    return Experiment(e.t, _inputs(e.u or {}), y)


def force_names(signals: Sequence[str]) -> list[str]:
    """Degrees of freedom of the signals of this model."""
    return [name.partition(".")[2] for name in signals]
