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

States of elements that remember follow from the motion, which is then smoothed less than for the
rows and has several instants between two of them (:mod:`jfric.fits.memory`). Their forces are
known at rest and at reversals, too, and are averaged over the same neighbours.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jfric.errors import ProblemError
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data, with_inputs
from jfric.fits.force_balance import (
    BOX,
    at_even_steps,
    complete_positions,
    local_mean,
    local_means,
    quiet_cutoff,
    resolutions,
    smooth_motion,
    unbalanced,
)
from jfric.fits.measurement import acting, at_times, slopes, total_delay
from jfric.fits.memory import along_motion, has_memory, own_forces, with_starts
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
#: Prefix of the instants between two rows, and the name of the length of a box of the mean in them.
PATH = "path"
BOXES = f"{PATH}.box"
LEAST_ROWS = 20


class InverseModel(AbstractModel):
    """Forces that a measured motion needs, compared with the measured ones.

    The experiments are those of :func:`inverse_experiments`. ``steady``: whether states without a
    value begin as in steady sliding.
    """

    problem: Problem
    steady: bool = eqx.field(static=True, default=False)

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        del signals
        for e in experiments:
            if f"{MOTION}.{self._dofs[0]}.a" not in (e.u or {}):
                raise ProblemError("experiments: found none of inverse_experiments")

    def default(self, path: str, experiment: Experiment) -> float:
        if path.startswith(("controller.", "initial.")):
            raise ProblemError(f"free: {path} changes nothing in the equation of motion")
        return OutputModel(self.problem, EventDriven()).default(path, _named(experiment))

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        return float(experiment.t[0]), {}

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        measured = {k for k in values if k.partition(".")[0] in ("sensor", "input", "delay")}
        given = {k: x for k, x in values.items() if k not in measured}
        q, v, a = _motion(self.problem, values, data)
        own = _acting(data.t, data.u, values)
        status, more = jnp.asarray(int(Status.OK)), jnp.zeros(())
        z = jnp.zeros((data.t.shape[0], 0))
        if BOXES in data.u:
            found = self._remembered(given, values, data)
            problem, z, more = found.problem, found.z, found.more
            status = jnp.where(found.converged, status, int(Status.STALLED))
        else:
            problem = set_parameters(self.problem, given)
        missing = jax.vmap(lambda *row: unbalanced(problem, *row))(data.t, q, v, a, own, z) - more
        columns = [
            data.y[:, j] + missing[:, self._dofs.index(name.partition(".")[2])]
            for j, name in enumerate(data.signals)
        ]
        return Prediction(jnp.stack(columns, axis=1), status)

    @property
    def _dofs(self) -> list[str]:
        return [*self.problem.dofs]

    def _remembered(self, given: Mapping[str, Any], values, data: Data) -> _Remembered:
        """States at the rows, and what the means of the forces are above the forces at means."""
        count = sum(k.startswith(f"{PATH}.{MOTION}.{self._dofs[0]}.q.") for k in data.u)
        motion = _between(data, count)
        q, v, _ = _motion(self.problem, values, motion)
        u = _acting(motion.t, motion.u, values)
        problem = with_starts(self.problem, given, v[0] if self.steady else None)
        found = along_motion(problem, motion.t, q, v, u)
        # Loads are no part of the forces here: those of the problem cancel.
        force = own_forces(problem, motion.t, q, v, found.z)
        box = data.u[BOXES][0]
        rows = slice(count - 1, None, count)
        force, q, v = (_means_along(x, box, count)[rows] for x in (force, q, v))
        z = found.z[rows]
        more = force - own_forces(problem, data.t, q, v, z)
        return _Remembered(problem, z, more, found.converged)


class _Remembered(NamedTuple):
    problem: Problem
    z: Array
    more: Array
    converged: Array


def inverse_experiments(
    problem: Problem, experiments: Sequence[Experiment], hold: str = "zero"
) -> list[Experiment]:
    """The rows of the ``experiments`` for :class:`InverseModel`, behind the highest cut-off
    frequency with which accelerations contain hardly any noise, at most a tenth of the sampling
    rate. ``hold``: how inputs go on between samples. Raises :class:`jfric.ProblemError` for records
    and problems without inverse dynamics: missing positions, long gaps, unilateral contacts. Uneven
    steps are made even."""
    remembers = CONSTANT - {"reacting"} | {"sliders", "states"}
    require_features(problem, "inverse dynamics", remembers if has_memory(problem) else CONSTANT)
    if problem.section("contact"):
        raise ProblemError(
            "contact: normal forces of unilateral contacts are not measured, inverse dynamics need "
            "friction with a given normal force"
        )
    filters = [_filter(problem, at_even_steps(problem.dofs, e, hold)) for e in experiments]
    count = max(x.every for x in filters) if has_memory(problem) else 0
    return [_rows(problem, x, hold, count) for x in filters]


class _Filter(NamedTuple):
    """A record with even steps, its filter and the spacing of its rows."""

    record: Experiment
    rate: float
    cutoff: float
    every: int


def _filter(problem: Problem, e: Experiment) -> _Filter:
    rate = 1.0 / float(np.mean(np.diff(e.t)))
    measured = complete_positions(problem.dofs, e)
    cutoff = quiet_cutoff(rate, measured, resolutions(problem.dofs, e))
    return _Filter(e, rate, cutoff, max(1, int(rate / (ROWS * cutoff))))


def _rows(problem: Problem, own: _Filter, hold: str, count: int) -> Experiment:
    """Rows of a record, with ``count`` instants between two of them (0: only rows)."""
    e, rate, cutoff, every = own
    measured, weights = complete_positions(problem.dofs, e), local_mean(rate, cutoff)
    reach = weights.size // 2
    # All samples except the first and the last, which have no second differences.
    t = e.t[1:-1]
    rows = slice(reach, max(t.size - reach, reach), every)
    if t[rows].size < LEAST_ROWS:
        raise ProblemError(
            f"t: found {e.t.size} samples, {t[rows].size} of which are left behind a filter with a "
            f"cut-off of {cutoff:g} Hz, at least {LEAST_ROWS} are needed"
        )
    counted = np.ones(t[rows].size, bool)
    if count:
        # States begin with the record, and means need what follows: rows that do not count.
        inner, rows = rows, slice(reach - every * max((reach - every + 1) // every, 0), None, every)
        places = np.arange(t.size)[rows]
        counted = (places >= inner.start) & (places + reach <= places[-1])
    before, here, after = measured[:-2], measured[1:-1], measured[2:]
    q = local_means(here, weights)
    v = local_means(0.5 * rate * (after - before), weights)
    a = local_means(rate**2 * (after - 2.0 * here + before), weights)
    slots = function_paths(problem)
    u = {
        path: local_means(_at_samples(np.asarray(x, float), hold), weights)
        for path, x in (e.u or {}).items()
        if path != REFERENCE and path in slots
    }
    force, speed = map(np.asarray, _known(problem, *jax.tree.map(jnp.asarray, (t, q, v, a, u))))
    fast = _slides(speed, (1.0 + MOVED) * 2.0 * BOX / cutoff * rate)[rows] & counted
    if not fast.any():
        raise ProblemError(
            f"{e.name or 'experiment'}: in all samples something rests or reverses too soon"
        )
    motion = {
        f"{MOTION}.{dof}.{letter}": x[rows, i]
        for i, dof in enumerate(problem.dofs)
        for letter, x in (("q", q), ("v", v), ("a", a))
    }
    y = {f"{FORCE}.{dof}": force[rows, i] for i, dof in enumerate(problem.dofs)}
    inputs = {path: x[rows] for path, x in u.items()}
    if count:
        inputs |= _path(
            problem, own, t[rows], count, {k: x for k, x in (e.u or {}).items() if k in u}, hold
        )
    return Experiment(t[rows], {**inputs, **motion}, y, mask=dict.fromkeys(y, fast), meta=e.meta)


def _path(problem: Problem, own: _Filter, t, count: int, u: Mapping[str, Any], hold: str):
    """Motion and inputs at ``count`` instants up to each row at ``t``, by name and instant."""
    e, rate, cutoff, every = own
    smooth = smooth_motion(problem.dofs, e, cutoff)
    instants = t[:, None] + every / rate * (np.arange(1, count + 1) / count - 1.0)
    found = {BOXES: np.full(t.size, BOX / cutoff * rate * count / every)}
    columns = {
        f"{MOTION}.{dof}.{letter}": smooth(instants, order)[..., i]
        for i, dof in enumerate(problem.dofs)
        for order, letter in enumerate("qva")
    }
    for path, x in u.items():
        columns[path] = np.interp(instants, e.t[1:-1], _at_samples(np.asarray(x, float), hold))
    more = {f"{PATH}.{name}.{k}": x[:, k] for name, x in columns.items() for k in range(count)}
    return found | more


def _between(data: Data, count: int) -> Data:
    """The motion and the inputs at all instants, in the form of rows."""
    step = (data.t[1] - data.t[0]) / count
    t = data.t[0] + step * jnp.arange(1 - count, (data.t.shape[0] - 1) * count + 1)

    def joined(name):
        return jnp.stack([data.u[f"{PATH}.{name}.{k}"] for k in range(count)], axis=1).reshape(-1)

    names = [k[len(PATH) + 1 : -2] for k in data.u if k.startswith(f"{PATH}.") and k[-2:] == ".0"]
    return dataclasses.replace(data, t=t, u={k: joined(k) for k in names})


def _means_along(x: Array, box, count: int) -> Array:
    """Means (m, n) over neighbours with the weights of :func:`local_mean` for boxes of this length
    in instants, of which there are ``count`` between two rows."""
    reach = math.ceil(2.0 * BOX * ROWS * 2.0 * count)  # rows are at least half as far apart
    at = jnp.abs(jnp.arange(-reach, reach + 1)) / box
    weights = jnp.where(at < 1.0, 4.0 - 6.0 * at**2 + 3.0 * at**3, jnp.maximum(2.0 - at, 0.0) ** 3)
    weights = weights / jnp.sum(weights)
    return jax.vmap(lambda y: jnp.convolve(y, weights, mode="same"), 1, 1)(x)


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


@eqx.filter_jit
def _known(problem: Problem, t, q, v, a, u):
    def one(t, q, v, a, u):
        zero = {k: jnp.zeros_like(x) for k, x in u.items()}
        held = {k: x[None] for k, x in u.items()}
        mechanics, n = assemble(with_inputs(problem, t[None], held)).at(t, q, v), q.shape[0]
        z = jnp.zeros((len(mechanics.states),))
        without, given = (unbalanced(problem, t, q, v, a, x, z) for x in (zero, u))
        force = without - given if u else mechanics.M[:n, :n] @ a
        return force, mechanics.sliding_velocities(t, mechanics.complete(q, v, z)[1])

    return jax.vmap(one)(t, q, v, a, u)


def _motion(problem: Problem, values: Mapping[str, Array], data: Data):
    """Positions, velocities and accelerations (m, n) from the readings of the sensors."""
    columns = []
    for dof in problem.dofs:
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


def own_inputs(u: Mapping[str, Any]) -> dict[str, Any]:
    """The measured inputs without the motion of the record."""
    return {k: x for k, x in u.items() if not k.startswith((f"{MOTION}.", f"{PATH}."))}


def _acting(t, u: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as they act. They are smooth behind the filter."""
    return {k: acting(t, x, k, values, "linear") for k, x in own_inputs(u).items()}


def _named(experiment: Experiment) -> Experiment:
    """The experiment with its positions among the measured quantities, as sensor names need."""
    e = experiment
    y = {k.removeprefix(f"{MOTION}.").removesuffix(".q"): x for k, x in (e.u or {}).items()
         if k.startswith(f"{MOTION}.") and k.endswith(".q")}  # fmt: skip
    return Experiment(e.t, own_inputs(e.u or {}), y)
