"""Solution that every solver returns, and its log of events."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jfric.errors import ProblemError, SimulationError
from jfric.numerics.printing import Shown, printable, short
from jfric.numerics.tolerances import ROUNDINGS
from jfric.results.dense import Dense, Moment, Side
from jfric.results.modes import Mode
from jfric.results.status import NOT_DIFFERENTIABLE, Status, flags_in

#: Numbers of degrees of freedom and contacts, and of outputs, in a print of a solution.
_COLUMNS, _ROWS = 3, 16

if TYPE_CHECKING:
    import xarray

    from jfric.system.problem import Problem


@printable
class Events(eqx.Module):
    """Log of changes of mode, padded to its capacity ``E``; rows from ``count`` on are unused.

    There is one record for each contact (or piecewise-linear element) that changes its mode, in
    order of time; an impact with its change of mode is one record; the start is not counted.
    :meth:`Solution.event_table` gives the used rows with names. Example: see
    :func:`jfric.simulate`.
    """

    #: Time [s].
    time: Float[Array, " E"]
    #: Index into ``Solution.names``: contacts first, then piecewise-linear elements; larger indices
    #: into ``Solution.event_names``.
    contact: Int[Array, " E"]
    #: :class:`Mode` of a contact, segment of a piecewise-linear element, or, for a user event,
    #: whether the watched value was (will be) positive.
    from_mode: Int[Array, " E"]
    #: Mode, segment or sign after the event.
    to_mode: Int[Array, " E"]
    #: Whether the event was an impact.
    impact: Bool[Array, " E"]
    #: State after the event, and velocity before it [m, m/s or rad, rad/s].
    q: Float[Array, "E n"]
    v: Float[Array, "E n"]
    v_before: Float[Array, "E n"]
    #: Number of changes of mode; larger than the capacity if the log overflowed.
    count: Int[Array, ""]

    def used(self) -> Events:
        """The used rows of the log of one trajectory."""
        rows = min(int(self.count), self.time.shape[0])
        return jax.tree.map(lambda x: np.asarray(x)[:rows] if np.ndim(x) else x, self)


def require_success(
    status: Any, what: str, mark: str, words: Callable[[tuple[int, ...]], str]
) -> None:
    """Raise :class:`jfric.SimulationError` for codes of outcomes of which one is not zero. The
    sentence is the ``words`` on the place of the first, for a batch after the count of ``what``
    failed and a ``mark``."""
    if isinstance(status, Tracer):
        raise ProblemError(
            "check: the status is not known while JAX traces; call it outside jit and vmap"
        )
    codes = np.asarray(status)
    failed = np.argwhere(codes != 0)
    if not len(failed):
        return
    first = tuple(failed[0].tolist())
    index = first[0] if len(first) == 1 else first
    batch = f"{len(failed)} of {codes.size} {what} failed, first number {index}{mark} "
    raise SimulationError((batch if first else "") + words(first))


@printable
class Solution(eqx.Module):
    """A trajectory at the requested times, its events and its outcome.

    Arrays are in SI units, (m, ...) over the output times; under ``vmap`` every array has the batch
    axis in front. The first event of the problem of :class:`jfric.Problem`::

        >>> solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 5))
        >>> row = solution.event_table()[0]
        >>> row["contact"], row["from"], row["to"], round(row["time"], 6)
        ('friction', 'slip+', 'slip-', 0.444288)
    """

    #: Output times [s]; positions, velocities and accelerations [m, rad and per s, s^2].
    ts: Float[Array, " m"]
    q: Float[Array, "m n"]
    v: Float[Array, "m n"]
    a: Float[Array, "m n"]
    #: Normal forces of the unilateral contacts [N].
    lambda_n: Float[Array, "m nu"]
    #: Friction forces of all contacts [N].
    lambda_t: Float[Array, "m nt"]
    #: :class:`Mode` of each contact.
    mode: Int[Array, "m nt"]
    #: Segment of each piecewise-linear element.
    segment: Int[Array, "m ns"]
    #: States of elements, named in :attr:`states`: elongations of springs in series with sliders
    #: (:class:`jfric.Jenkins`).
    z: Float[Array, "m z"]
    #: Log of the changes of mode.
    events: Events
    #: :class:`Status` code.
    status: Int[Array, ""]
    #: :class:`Flag` bits.
    flags: Int[Array, ""]
    #: State at the end, from which a run restarts: ``simulate(problem, start=solution.final)``.
    final: Any
    #: Number of passes of the solver's loop.
    steps: Int[Array, ""]
    #: Names of the degrees of freedom.
    axes: tuple[str, ...] = eqx.field(static=True)
    #: Names of the contacts, then of the piecewise-linear elements.
    names: tuple[str, ...] = eqx.field(static=True)
    #: Names of the segments of each piecewise-linear element.
    segment_labels: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    #: Names of the states of elements.
    states: tuple[str, ...] = eqx.field(static=True)
    #: Polynomials for :meth:`evaluate`, where dense output was requested.
    dense: Dense | None = None
    #: Names of the user events.
    event_names: tuple[str, ...] = eqx.field(static=True, default=())
    #: What controllers set, with the names :attr:`command_names`.
    commands: Float[Array, "m c"] | None = None
    command_names: tuple[str, ...] = eqx.field(static=True, default=())

    def evaluate(self, t, *, side: Side = "before") -> Moment:
        """The trajectory at any times ``t`` [s] of the run, a number or an array; needs
        ``simulate(..., dense=True)``.

        Values come from the solver's own polynomials, those of :class:`jfric.EventDriven` and
        :class:`jfric.QuasiStatic`; with other solvers from cubics through position and velocity at
        the outputs and logged events, and straight lines for reactions. At the time of an event, or
        of a load that jumps, ``side`` selects the values ``"before"`` or ``"after"`` it. Values are
        not a number (modes: -1) outside the run (or the outputs that represent it), and after the
        last piece that was stored (flag ``DENSE_FULL``).

        Works under ``jit``, ``vmap`` and derivatives; those with respect to parameters are taken at
        fixed ``t``. For a batch of solutions, the axes of the batch come before those of ``t``.
        Raises :class:`jfric.ProblemError` where there is no dense output.
        """
        if self.dense is None:
            raise ProblemError(
                "evaluate: the solution has no dense output; simulate with dense=True"
            )

        def call(dense: Dense, t) -> Moment:
            return dense.evaluate(t, side=side)

        for _ in range(self.dense.count.ndim):
            call = jax.vmap(call, in_axes=(0, None))
        return call(self.dense, jnp.asarray(t))

    def check(self) -> Self:
        """The solution itself; raises :class:`jfric.SimulationError` unless its status is ``OK``.

        For a batch the error names the first trajectory that failed.
        """

        def words(place: tuple[int, ...]) -> str:
            code = Status(int(np.asarray(self.status)[place]))
            return f"status {code.name.lower()}: {code.message}"

        require_success(self.status, "trajectories", ",", words)
        return self

    def to_xarray(self, problem: Problem | None = None) -> xarray.Dataset:
        """The solution as a labelled table, axes of a batch first (``batch`` or ``batch_0``, ...).

        With the ``problem`` that was simulated, variables have their units as an attribute. Needs
        xarray (``pip install jfric[sweep]``).
        """
        from jfric.results.columns import labelled

        return labelled(self, problem)

    def _shown(self) -> Shown:
        codes = self.status
        if isinstance(codes, Tracer) or self.q.ndim != 2:
            fields = [(name, short(getattr(self, name))) for name in ("ts", "q", "v", "flags")]
            fields += [(f"final.{x}", short(getattr(self.final, x, None))) for x in ("t", "q", "v")]
            if isinstance(codes, Tracer):
                return Shown("Solution that JAX traces", (), fields)
            kinds, counts = np.unique(np.asarray(codes), return_counts=True)
            outcome = ", ".join(
                f"{count} {Status(int(code)).name.lower()}"
                for code, count in zip(kinds, counts, strict=True)
            )
            return Shown(f"Solution of {codes.size} trajectories: {outcome}", (), fields)
        ts, q, v, mode = (np.asarray(x) for x in (self.ts, self.q, self.v, self.mode))
        flags = ", ".join(str(flag.name) for flag in flags_in(int(self.flags)))
        title = f"Solution: {self.outcome()}, {len(ts)} outputs, {int(self.events.count)} events"
        title += f", {int(self.steps)} passes" + (f", flags {flags}" if flags else "")
        if not len(ts) and self.final is not None:
            ts, q, v = (np.asarray(x)[None] for x in (self.final.t, self.final.q, self.final.v))
            mode = mode[:0]
        axes, contacts = self.axes[:_COLUMNS], self.names[: min(mode.shape[1], _COLUMNS)]
        columns = ["t [s]", *axes, *(f"v.{axis}" for axis in axes)]
        rows = [
            [f"{x:.6g}" for x in (t, *q[i, : len(axes)], *v[i, : len(axes)])]
            for i, t in enumerate(ts)
        ]
        if len(mode):
            columns += [f"mode.{name}" for name in contacts]
            for i, row in enumerate(rows):
                row += [self.mode_label(k, mode[i, k]) for k in range(len(contacts))]
        chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).round().astype(int))
        return Shown(title, tuple(columns), [tuple(rows[i]) for i in chosen])

    @property
    def differentiable(self):
        """Whether no event occurred at which derivatives may not exist (see :class:`Flag`)."""
        return (self.flags & int(NOT_DIFFERENTIABLE)) == 0

    def mode_label(self, contact: int, code: int) -> str:
        """Name of a mode of ``names[contact]``; ``"unknown"`` at times that were not reached."""
        return mode_label(self.segment_labels, len(self.names), contact, int(code))

    def event_table(self) -> list[dict[str, Any]]:
        """The events of one trajectory as rows: time, contact, from, to, impact, q, v, v_before."""
        e = self.events.used()
        names = self.names + self.event_names
        return [
            {
                "time": float(e.time[i]),
                "contact": names[int(e.contact[i])],
                "from": self.mode_label(int(e.contact[i]), int(e.from_mode[i])),
                "to": self.mode_label(int(e.contact[i]), int(e.to_mode[i])),
                "impact": bool(e.impact[i]),
                "q": np.asarray(e.q[i]),
                "v": np.asarray(e.v[i]),
                "v_before": np.asarray(e.v_before[i]),
            }
            for i in range(len(e.time))
        ]

    def one_sided_events(self) -> list[dict[str, Any]]:
        """The rows of :meth:`event_table` that lie on an output of one trajectory: values and
        derivatives there are those of one side (``Flag.ONE_SIDED``). An event on the end has not
        happened yet."""
        places, rows = np.asarray(self.ts), self.event_table()
        near = ROUNDINGS * np.finfo(places.dtype).eps
        return [r for r in rows if np.isclose(places, r["time"], rtol=near, atol=0.0).any()]

    def outcome(self) -> str:
        """The status of one trajectory in words."""
        return Status(int(self.status)).message


def mode_label(
    segment_labels: tuple[tuple[str, ...], ...], count: int, place: int, code: int
) -> str:
    """Name of a mode of what stands at ``place`` in a log of events: contacts first, then
    piecewise-linear elements, ``count`` of both; user events follow."""
    if code < 0:
        return "unknown"
    if place >= count:
        return ("below", "above")[code]
    n_contacts = count - len(segment_labels)
    if place < n_contacts:
        return Mode(code).label
    labels = segment_labels[place - n_contacts]
    return labels[min(code, len(labels) - 1)]


def reached(solution: Solution) -> Solution:
    """One trajectory without the outputs that an early end left unknown."""
    rows = np.all(np.isfinite(np.asarray(solution.q)), axis=1)
    return solution if rows.all() else rows_of(solution, rows)


def rows_of(solution: Solution, rows: np.ndarray) -> Solution:
    """One trajectory with the outputs that ``rows`` (m,) marks, and all its events."""
    outputs = ("ts", "q", "v", "a", "lambda_n", "lambda_t", "mode", "segment", "z")
    return dataclasses.replace(solution, **{k: getattr(solution, k)[rows] for k in outputs})


def reached_time(solution: Solution) -> float:
    """The last time [s] at which the state of one trajectory is known."""
    # The smoothed solver does not know the time after the last output that it reached.
    times = [np.asarray(reached(solution).ts)[-1:]]
    if solution.final is not None:
        times.append(np.ravel(solution.final.t))
    return float(np.max(np.concatenate(times), initial=-np.inf))
