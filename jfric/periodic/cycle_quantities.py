"""Quantities of periodic motions by name: amplitudes, phases, harmonics, losses; in batches."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, within
from jfric.periodic.forcing import Place, function_at, harmonics_in
from jfric.periodic.shooting import Shooting
from jfric.periodic.state_vector import axes_of, joined, with_start
from jfric.results.abstract_observables import Observable, OfIntegral
from jfric.results.grammar import parse_observable, split
from jfric.results.signals import look_up
from jfric.solvers.simulation import call_compiled
from jfric.sweeps.observing import observe
from jfric.system.functions import Harmonic
from jfric.system.naming import set_parameters
from jfric.system.problem import Problem, TimeSpan
from jfric.system.states import state_units


@dataclass(frozen=True)
class Harmonics(Observable):
    """Real and imaginary parts (2, count + 1) of the Fourier coefficients of ``function`` over the
    whole run, which is one period."""

    function: Callable
    count: int
    name: str = "harmonics"
    unit: str = ""

    def start(self, problem, mechanics, dtype):
        return jnp.zeros((2, self.count + 1), dtype)

    def update(self, carry, piece):
        orders = jnp.arange(self.count + 1, dtype=carry.dtype)
        time = piece.problem.time
        rate = 2.0 * np.pi / (time.end - time.start)

        def integrand(point):
            angle = orders * rate * (point.t - time.start)
            value = self.function(point)
            return value * jnp.concatenate([jnp.cos(angle), -jnp.sin(angle)])

        return carry + piece.integrals(integrand).reshape(2, -1)

    def finish(self, carry, q, v, duration):
        weight = jnp.asarray([1.0] + [2.0] * self.count, carry.dtype)
        return carry * weight[None, :] / duration


@dataclass(frozen=True)
class Work(OfIntegral):
    """Work [J] of all loads and belts."""

    name: str = "work"
    unit: str = "J"

    def quantity(self, x):
        mechanics = x.mechanics
        power = jnp.sum(x.lambda_t * mechanics.belt_velocities(x.t))
        pushes = zip(mechanics.load_directions, mechanics.load_functions, strict=True)
        return power + sum(jnp.sum(direction * x.v) * load(x.t) for direction, load in pushes)


def work_of_loads(problem: Problem) -> Work:
    """Observable of the energy lost in a cycle: the work of loads and belts; raises
    :class:`ProblemError` where a support moves."""
    for name in problem.bases:
        raise ProblemError(
            f"base.{name}: the work of a support that moves is not known; observe 'dissipated'"
        )
    return Work()


#: Number of orbits that are measured in one batch.
ROW = 32
#: Highest harmonic that may be asked for.
HIGHEST = 1000


@dataclass(frozen=True)
class CycleQuantity:
    """A number of a cycle. ``form``: half of the distance between extremes of a signal
    (``"amplitude"``), the size of a ``"harmonic"`` or its ``"phase"`` relative to the load, the
    ``"energy_loss"``, or any ``"observable"``; ``order``: of a harmonic, in periods of the orbit,
    None for that of the load."""

    text: str
    form: str
    signal: str = ""
    order: int | None = None
    unit: str = ""


class Drive(NamedTuple):
    """The load whose frequency varies: where it stands, the full path of its frequency, and how
    often it repeats in a period of the orbit."""

    place: Place
    path: str
    order: int

    def wave(self, problem: Problem) -> Harmonic:
        """The load as a function of time, in a resolved problem."""
        return harmonics_in(function_at(problem, self.place))[0]

    def repeating(self, problem: Problem, period: float) -> Drive:
        """The load, which repeats in a ``period`` [s] of the orbit of ``problem``."""
        omega = abs(float(self.wave(problem.resolved()).omega))
        return self._replace(order=round(omega * period / (2.0 * np.pi)))


class Driven(NamedTuple):
    """Orbits under a load whose frequency varies: their equations, the system and the load."""

    shooting: Shooting
    problem: Problem
    drive: Drive


def parse_cycle_quantities(problem: Problem, given: str | Sequence[str]) -> list[CycleQuantity]:
    """Quantities by name: ``x`` or ``amplitude.x``, ``harmonic.x(3)``, ``phase.x``,
    ``energy_loss``, or any observable (``rms.x``, ``max.v.x``, ``dissipated``)."""
    texts = split(given) if isinstance(given, str) else list(given)
    if not texts:
        raise ProblemError("quantity: found none, give one such as 'x', 'phase.x' or 'energy_loss'")
    return [_parsed(problem, str(text).strip()) for text in texts]


def _parsed(problem: Problem, text: str) -> CycleQuantity:
    first, _, rest = text.partition(".")
    if text == "energy_loss":
        work_of_loads(problem)
        return CycleQuantity(text, "energy_loss", unit="J")
    if first in ("amplitude", "harmonic", "phase") and rest:
        match = re.fullmatch(r"(.*?)\s*(?:\((\d+)\))?", rest)
        assert match is not None
        order = None if match[2] is None else int(match[2])
        if order is not None and (first == "amplitude" or order > HIGHEST):
            raise ProblemError(
                f"quantity: found {text!r}, a number in parentheses is that of a harmonic, up to "
                f"{HIGHEST}"
            )
        with within(f"quantity {text}: "):
            signal, function = look_up(problem, match[1])
        unit = "rad" if first == "phase" else function.unit
        return CycleQuantity(text, first, signal, order, unit)
    with contextlib.suppress(ProblemError):
        signal, function = look_up(problem, text)
        return CycleQuantity(text, "amplitude", signal, unit=function.unit)
    with within("quantity: "):
        found = parse_observable(problem, text)
    if found.dims:
        raise ProblemError(f"quantity: found {text!r}, which is more than one number of a cycle")
    return CycleQuantity(text, "observable", unit=found.unit)


def _observables(problem: Problem, quantities: Sequence[CycleQuantity], order: int) -> list[Any]:
    found: dict[str, Any] = {}
    highest: dict[str, int] = {}
    for q in quantities:
        if q.form == "amplitude":
            for word in ("max", "min"):
                found[f"{word}.{q.signal}"] = parse_observable(problem, f"{word}.{q.signal}")
        elif q.form == "energy_loss":
            found["work"] = work_of_loads(problem)
        elif q.form == "observable":
            found[q.text] = parse_observable(problem, q.text)
        else:
            wanted = order if q.order is None else q.order
            highest[q.signal] = max(highest.get(q.signal, 0), wanted)
    for signal, count in highest.items():
        name = f"harmonics.{signal}"
        found[name] = Harmonics(look_up(problem, signal)[1], count, name)
    return list(found.values())


def _value(q: CycleQuantity, values: dict[str, Any], order: int, angle):
    """One quantity from the observed ``values``; ``angle`` [rad] of the load at the start."""
    if q.form == "amplitude":
        return 0.5 * (values[f"max.{q.signal}"] - values[f"min.{q.signal}"])
    if q.form == "energy_loss":
        return values["work"]
    if q.form == "observable":
        return values[q.text]
    k = order if q.order is None else q.order
    real, imaginary = values[f"harmonics.{q.signal}"][:, k]
    if q.form == "harmonic":
        size = real**2 + imaginary**2
        return jnp.where(size > 0, jnp.sqrt(jnp.where(size > 0, size, 1.0)), 0.0)
    late = jnp.arctan2(imaginary, real) - (k / order) * angle
    return late - 2.0 * jnp.pi * jnp.round(late / (2.0 * jnp.pi))


def cycle(driven: Driven, values, quantities, start, state):
    """State (2n,) after the cycle that begins with ``state`` at ``start`` [s] with the parameters
    ``values``, and the quantities (k,) over it."""
    shooting, drive = driven.shooting, driven.drive
    problem = set_parameters(driven.problem, values)
    resolved = problem.resolved()
    begins = jnp.asarray(start, state.dtype)
    period = shooting.period_of(problem, jnp.zeros(()))
    begun = with_start(problem, begins, state)
    begun = eqx.tree_at(lambda p: p.time, begun, TimeSpan(begins + period, begins))
    dofs, states = list(problem.dofs), list(state_units(problem))
    forms = {"": dofs, "v.": dofs, "z.": states}
    ends = [f"final.{form}{name}" for form, names in forms.items() for name in names]
    chosen = _observables(problem, quantities, drive.order)
    names = {o.name for o in chosen}
    chosen += [parse_observable(problem, name) for name in ends if name not in names]
    found = observe(begun, chosen, shooting.solver).values
    # Angle [rad] of the load, written as a cosine, at the time t [s].
    first = drive.wave(resolved)
    back = jnp.where(first.amplitude < 0, -0.5 * jnp.pi, 0.5 * jnp.pi)
    angle = first.omega * begins + first.phase - back
    values = [_value(q, found, drive.order, angle) for q in quantities]
    x, n = jnp.stack([found[name] for name in ends]), len(dofs)
    return joined(x[:n], x[n : 2 * n], x[2 * n :]), jnp.stack(values)


def _measured(solver, end, driven: Driven, quantities, values, starts, states):
    del solver, end

    def one(values, start, state):
        return cycle(driven, values, quantities, start, state)[1]

    return jax.vmap(one)(values, starts, states)


def measure(
    driven: Driven,
    quantities: Sequence[CycleQuantity],
    values: dict[str, np.ndarray],
    starts: np.ndarray,
    states: np.ndarray,
) -> np.ndarray:
    """The quantities (r, k) of orbits (r,) with parameters ``values`` (r,) that begin at ``starts``
    (r,) [s] with ``states`` (r, 2n)."""
    found = np.zeros((len(starts), len(quantities)))
    for begin in range(0, len(starts), ROW):
        # Batches have one size, so that they are compiled once.
        rows = np.minimum(np.arange(begin, begin + ROW), len(starts) - 1)
        own = {path: jnp.asarray(x[rows], float) for path, x in values.items()}
        numbers = own, jnp.asarray(starts[rows], float), jnp.asarray(states[rows], float)
        solver = driven.shooting.solver
        part = call_compiled(_measured, solver, None, driven, tuple(quantities), *numbers)
        count = min(ROW, len(starts) - begin)
        found[begin : begin + count] = np.asarray(part)[:count]
    return found


def _sloped(solver, end, driven: Driven, quantity, paths, start, unknowns):
    del solver, end
    size = 2 * len(axes_of(driven.problem))

    def one(x):
        values = {path: x[size + i] for i, path in enumerate(paths)}
        both = jnp.concatenate(cycle(driven, values, (quantity,), start, x[:size]))
        return both, both

    slopes, values = jax.jacfwd(one, has_aux=True)(unknowns)
    return values, slopes


def with_slopes(
    driven: Driven,
    quantity: CycleQuantity,
    paths: tuple[str, ...],
    start: float,
    unknowns: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """State after a cycle and a quantity (2n + 1,), and their derivatives (2n + 1, 2n + p) by the
    state at ``start`` [s] and the parameters ``paths`` (p,), whose values are ``unknowns``."""
    numbers = jnp.asarray(start, float), jnp.asarray(unknowns, float)
    solver = driven.shooting.solver
    found = call_compiled(_sloped, solver, None, driven, quantity, paths, *numbers)
    values, slopes = (np.asarray(x) for x in found)
    return values, slopes
