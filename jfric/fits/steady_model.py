"""Fits to steady states: amplitudes and phases over frequency and load, limit cycles."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jfric.errors import ProblemError, nearest, within
from jfric.fits.data.experiment import Experiment
from jfric.fits.data.stacking import Data
from jfric.fits.measurement import DELAY, SENSOR_FIELDS
from jfric.fits.model import AbstractModel, OutputModel, Prediction
from jfric.periodic.cycle_quantities import Harmonics
from jfric.periodic.forcing import forcing_of
from jfric.periodic.orbit import OrbitStatus, PeriodicOrbit
from jfric.periodic.solving import EVENTS, TRANSIENT, periodic_orbit
from jfric.results.signals import look_up
from jfric.results.status import Status
from jfric.solvers.event_driven.solver import EventDriven
from jfric.system.model import build
from jfric.system.naming import find_path, parameters, set_parameters
from jfric.system.problem import Problem

#: Highest harmonic that a measured quantity may have.
HARMONICS = 100
_TEXT = re.compile(r"(amplitude|phase|mean)\.(.+?)(?:\((\d+)\))?")


class _Measured(NamedTuple):
    """A measured quantity: the word, the signal, the number of the harmonic."""

    word: str
    signal: str
    harmonic: int


def steady_states(
    conditions: Mapping[str, Any],
    y: Mapping[str, Any],
    *,
    sigma: float | Mapping[str, float] | None = None,
    mask: Any = None,
    meta: Mapping[str, Any] | None = None,
) -> Experiment:
    """Measured steady states, one a row, for fits with :class:`jfric.SteadyStates`.

    ``conditions``: settings of each row, (m,) [SI] by the path of a parameter: the frequency
    ``"load.F.omega"`` [rad/s], the level ``"load.F.amplitude"``, the speed of a belt. ``y``:
    measured quantities, (m,): ``"amplitude.S"``, ``"phase.S"`` [rad] and ``"mean.S"`` of a signal
    ``S`` (``x``, ``v.x``, ``a.x``, ``force.NAME``), with ``(k)`` behind it those of the ``k``-th
    harmonic; of limit cycles ``"period"`` [s]. With the load ``P cos(omega t + a)`` the signal is
    ``sum_k amplitude_k cos(k (omega t + a) + phase_k)`` and its mean, so that a phase is relative
    to the load, zero in phase with it and negative where the signal lags. A backbone curve is rows
    with the phase ``-pi/2``. ``sigma``, ``mask``, ``meta``: as in :class:`jfric.Experiment`, which
    is returned with the rows as samples; ``mask`` leaves rows out. Raises
    :class:`jfric.ProblemError` for lengths that differ and numbers that are not finite::

        >>> data = jfric.steady_states(
        ...     {"load.F.omega": [0.8, 1.0, 1.2]},
        ...     {"amplitude.x": [2.4, 9.1, 2.1], "phase.x": [-0.3, -1.5, -2.8]},
        ...     sigma={"amplitude.x": 0.01, "phase.x": 0.005},
        ... )
        >>> data.t.tolist(), list(data.u)
        ([0.0, 1.0, 2.0], ['load.F.omega'])
    """
    for what, table in (("conditions", conditions), ("y", y)):
        if not isinstance(table, Mapping) or not table:
            raise ProblemError(
                f"{what}: found {table!r}, needs a mapping from names to lists of numbers"
            )
    rows = np.size(next(iter(y.values())))
    try:
        return Experiment(np.arange(rows), conditions, y, sigma, None, mask, meta)
    except ProblemError as error:
        words = str(error)
        words = f"conditions.{words[2:]}" if words.startswith("u.") else words
        raise ProblemError(words.replace("samples for", "rows for")) from None


class SteadyModel(AbstractModel):
    """Periodic motions under the conditions of each row, all in one batch.

    ``problem``: the system; ``solver``: :class:`jfric.EventDriven` with settings; ``transient``,
    ``section`` and ``segments`` are those of :func:`jfric.periodic_orbit`. Parameter values for
    which the orbit of a row is not found are rejected by the search; :meth:`orbits` has the status
    of every row. Parameters that are not fitted keep the value of the problem::

        >>> data = jfric.steady_states(
        ...     {"load.F.omega": [0.8, 1.2]}, {"amplitude.x": [2.4, 2.1]}, sigma=0.1
        ... )
        >>> shaken = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "spring": jfric.Spring("x", 1.0),
        ...         "friction": jfric.Friction("x", limit=0.2),
        ...         "load": jfric.Load("x", jfric.Harmonic(1.0, 0.8)),
        ...     },
        ... )
        >>> model = jfric.SteadyModel(shaken)
        >>> model.check([data], ["amplitude.x"])
        >>> float(model.default("friction.limit", data))
        0.2
    """

    runs_in_time = False

    problem: Problem
    solver: EventDriven = None  # pyright: ignore
    transient: float | None = None
    section: str | None = eqx.field(static=True, default=None)
    segments: int = eqx.field(static=True, default=1)

    def __post_init__(self):
        self.problem = build(self.problem)
        own = EventDriven(max_events=0) if self.solver is None else self.solver
        if isinstance(own, EventDriven) and own.max_events == 0:
            # Only the log of an orbit is used, so there is room for its events.
            own = dataclasses.replace(own, max_events=EVENTS)
        self.solver = own

    def check(self, experiments: Sequence[Experiment], signals: Sequence[str]) -> None:
        if not isinstance(self.solver, EventDriven):
            raise ProblemError(
                f"solver: found {type(self.solver).__name__}, a fit to steady states takes "
                "EventDriven with settings"
            )
        self.solver.require(self.problem)
        forced = forcing_of(self.problem) is not None
        for name in signals:
            found = measured(self.problem, name)
            if found.word == "phase" and not forced:
                raise ProblemError(
                    f"y.{name}: found a phase, but nothing depends on time: there is no load that "
                    "it could be relative to"
                )
            if found.word == "period" and forced:
                raise ProblemError(f"y.{name}: the period is that of the load, nothing to fit")
        for i, e in enumerate(experiments):
            if not np.array_equal(e.t, np.arange(e.t.size)) or not e.u:
                raise ProblemError(
                    f"experiment {e.name or i + 1}: found samples over time; residual='steady' "
                    "takes rows of jfric.steady_states(conditions, y)"
                )
            for path, values in e.u.items():
                name = self._condition(path)
                for value in np.unique(values):
                    with within(f"conditions.{path}: ", ValueError):
                        set_parameters(self.problem, {name: float(value)})

    def _condition(self, path: str) -> str:
        try:
            return find_path(self.problem, path)
        except KeyError:
            known = list(parameters(self.problem))
            raise ProblemError(
                f"conditions: no parameter {path!r}{nearest(path, known)}; jfric show or "
                "jfric.parameters lists those of the problem"
            ) from None

    def default(self, path: str, experiment: Experiment) -> float:
        for name in experiment.u or {}:
            if self._condition(name) == path:
                raise ProblemError(f"free: {path} is a condition, which is set in each row")
        word, _, rest = path.partition(".")
        if path == DELAY or word == "input" or rest.endswith((".delay", ".lag")):
            raise ProblemError(f"free: {path} changes nothing that steady states have")
        return OutputModel(self.problem, self.solver).default(path, experiment)

    def initial(self, experiment: Experiment) -> tuple[float, dict[str, float]]:
        del experiment
        return 0.0, {}

    def orbits(self, values: Mapping[str, Any], rows: Experiment | Data) -> PeriodicOrbit:
        """The orbits of all rows as one batch, with the status of each; ``values``: numbers by
        path, of the problem."""
        conditions = {self._condition(k): jnp.asarray(x) for k, x in (rows.u or {}).items()}
        problem = set_parameters(self.problem, dict(values)) if values else self.problem
        transient: Any = self.transient
        if transient is None and forcing_of(self.problem) is not None:
            transient = TRANSIENT
        return periodic_orbit(
            problem,
            values=conditions,
            solver=self.solver,
            transient=transient,
            section=self.section,
            segments=self.segments,
        )

    def simulate_outputs(self, values: Mapping[str, Array], data: Data) -> Prediction:
        fields = {name: SENSOR_FIELDS[name] for name in ("gain", "offset")}
        own = {f"sensor.{s}.{f}": x for s in data.signals for f, x in fields.items()}
        sensor = {**own, **values}
        system = {path: x for path, x in values.items() if path not in own}
        orbits = self.orbits(system, data)
        every = [measured(self.problem, name) for name in data.signals]
        coefficients = self._coefficients(every, orbits)
        columns = []
        for j, (name, asked) in enumerate(zip(data.signals, every, strict=True)):
            column = self._column(asked, orbits, coefficients)
            column = sensor[f"sensor.{name}.gain"] * column + sensor[f"sensor.{name}.offset"]
            if asked.word == "phase":
                # Phases differ by less than half a turn.
                turns = jnp.round((column - data.y[:, j]) / (2.0 * jnp.pi))
                column = column - 2.0 * jnp.pi * jax.lax.stop_gradient(turns)
            columns.append(column)
        bad = orbits.status != int(OrbitStatus.CONVERGED)
        bad = bad & jnp.isfinite(data.t)
        y = jnp.where(bad[:, None], jnp.nan, jnp.stack(columns, axis=1))
        status = jnp.where(bad.any(), int(Status.UNSOLVED), int(Status.OK))
        return Prediction(y, status.astype(jnp.int32))

    def _coefficients(self, every: Sequence[_Measured], orbits: PeriodicOrbit) -> dict[str, Array]:
        """Fourier coefficients (m, k) of all signals, by one run over a period of each orbit."""
        counts: dict[str, int] = {}
        for asked in every:
            if asked.signal:
                counts[asked.signal] = max(counts.get(asked.signal, 0), self._order(asked))
        chosen = [
            Harmonics(look_up(self.problem, signal)[1], count, signal)
            for signal, count in counts.items()
        ]
        found = orbits.observe(chosen) if chosen else {}
        return {k: jax.lax.complex(x[..., 0, :], x[..., 1, :]) for k, x in found.items()}

    def _order(self, asked: _Measured) -> int:
        """Number of the harmonic in periods of the orbit, which may be several of the load."""
        forcing = forcing_of(self.problem)
        return asked.harmonic * (1 if forcing is None else forcing.cycles)

    def _column(self, asked: _Measured, orbits: PeriodicOrbit, coefficients) -> Array:
        if asked.word == "period":
            return orbits.period
        value = coefficients[asked.signal][:, self._order(asked)]
        if asked.word == "mean":
            return jnp.real(value)
        if asked.word == "amplitude":
            return jnp.abs(value)
        forcing = forcing_of(self.problem)
        assert forcing is not None
        # A load sin(a) is the cosine with a phase a quarter of a turn less.
        load = jax.vmap(lambda p: forcing.angle(p.resolved()))(orbits.problem) - 0.5 * jnp.pi
        return jnp.angle(value) - asked.harmonic * load


def measured(problem: Problem, name: str) -> _Measured:
    """The measured quantity ``name``; raises :class:`jfric.ProblemError` for anything else."""
    if name == "period":
        return _Measured(name, "", 0)
    match = _TEXT.fullmatch(name)
    if match is None:
        raise ProblemError(
            f"y.{name}: found {name!r}, a steady state is measured by amplitude.S, phase.S, "
            "amplitude.S(3), phase.S(3), mean.S with a signal S, and period"
        )
    word, signal, order = match.groups()
    with within(f"y.{name}: "):
        signal = look_up(problem, signal)[0]
    harmonic = 1 if order is None else int(order)
    if word == "mean":
        if order is not None:
            raise ProblemError(f"y.{name}: a mean has no harmonics")
        harmonic = 0
    elif not 1 <= harmonic <= HARMONICS:
        raise ProblemError(f"y.{name}: found the harmonic {harmonic}, there are 1 to {HARMONICS}")
    return _Measured(word, signal, harmonic)
