"""The delay of a sampled controller, found from records of its reference, reading and force.

The controller computes its output once more from what was measured, without any model of the
machine. The whole number of samples by which the recorded force follows this output is the delay.
A wrong delay in a simulated loop would be made up for by wrong friction and mass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.fits.data.experiment import Experiment
from jfric.fits.sampled_model import REFERENCE
from jfric.system.controller import Controller

#: Longest delay that is tried [samples].
LONGEST = 20
#: Part of the variance of the force that the recomputed output may leave: a controller that
#: explains less is another one than that of the record, and says nothing about the delay.
EXPLAINED = 0.1
#: The given delay stays unless another one lowers the error by this factor.
BETTER = 0.5
#: Samples that count at least.
FEWEST = 100


def found_delay(
    controller: Controller, experiments: Sequence[Experiment]
) -> tuple[Controller, str | None]:
    """``controller`` with the delay that ``experiments`` show, and a remark if it is another one.

    The given delay stays where the records do not have force, reference and reading, where the
    recomputed output is not close to the force, and where no other delay is clearly better.
    """
    given = float(controller.delay)
    squares = np.zeros(LONGEST + 2)  # of every delay, and of the given one
    size, count = 0.0, 0
    for e in experiments:
        rows = _errors(controller, e, given)
        if rows is not None:
            off, force = rows
            squares += np.sum(off**2, axis=1)
            size += float(np.sum((force - force.mean()) ** 2))
            count += force.size
    best = int(np.argmin(squares[:-1]))
    left = np.sqrt(squares / size) if size > 0.0 else squares
    known = count >= FEWEST and left[best] ** 2 < EXPLAINED
    if not known or best == given or not left[best] < BETTER * left[-1]:
        return controller, None
    said = (
        f"controller.delay: {best} samples as the records show, not {given:g}: the controller "
        f"computed again from its reading is off by {100 * left[best]:.2g} % of the force, with "
        f"{given:g} by {100 * left[-1]:.2g} %; free controller.delay to fit it"
    )
    delay = jnp.asarray(float(best), jnp.result_type(controller.delay))
    return replace(controller, delay=delay, longest=max(controller.longest, best)), said


def _errors(
    controller: Controller, e: Experiment, given: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Differences (LONGEST + 2, m) of the recomputed force, for every delay and the ``given`` one,
    from the recorded force (m,); without their means, as the first integral is unknown."""
    recorded = {**e.y, **(e.u or {})}
    names = (REFERENCE, controller.reads, controller.drives)
    if any(name not in recorded for name in names) or e.mask or e.t.size < 2 * LONGEST:
        return None
    r, y, force = (np.asarray(recorded[name]) for name in names)
    numbers = {
        name: jnp.asarray(x)
        for path, x in (e.known or {}).items()
        if (name := path.removeprefix("controller.")) != path
    }
    own = replace(controller, **{**numbers, "delay": jnp.zeros(())}, longest=1)
    output = np.asarray(_recomputed(own, jnp.asarray(e.t), jnp.asarray(r), jnp.asarray(y)))
    i = np.arange(LONGEST + controller.mean, e.t.size)
    delays = np.append(np.arange(LONGEST + 1.0), min(given, float(LONGEST)))
    off = np.stack([np.interp(i - late, np.arange(e.t.size), output) - force[i] for late in delays])
    return off - off.mean(axis=1, keepdims=True), force[i]


@eqx.filter_jit
def _recomputed(controller: Controller, t, r, y):
    """Output (m,) of a controller without delay at readings ``y`` (m,)."""
    dt = jnp.diff(t, append=2.0 * t[-1:] - t[-2:-1])

    def one(memory, row):
        force, memory = controller.step(memory, *row)
        return memory, force

    first = controller.start(r[0], y[0], (y[1] - y[0]) / dt[0], dt[0])
    return jax.lax.scan(one, first, (r, y, dt))[1]


def with_found_delay(
    controller: Controller, experiments: Sequence[Experiment], free: Iterable[str]
) -> tuple[Controller, list[Experiment]]:
    """``controller`` and ``experiments`` for a fit of the parameters ``free``: the delay is that of
    :func:`found_delay`, with its remark at the records, unless numbers of the controller are free
    or the records have a known delay."""
    chosen = list(experiments)
    told = any(path.startswith("controller.") for path in free)
    told = told or any("controller.delay" in (e.known or {}) for e in chosen)
    controller, said = (controller, None) if told else found_delay(controller, chosen)
    return controller, chosen if said is None else [e.with_remarks(said) for e in chosen]
