"""Digital controllers: each reads signals at its samples, and sets functions of time until the
next."""

# No annotations as text here: equinox must see which of them are abstract.
import abc
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Float

from jfric.numerics.choice import select
from jfric.numerics.limits import SAMPLES
from jfric.system.fields import Scalar, holds, scalar, written
from jfric.system.functions import AbstractFunction, as_function
from jfric.system.units import UnitError

On = Literal["measurement", "error"]
#: Longest delay [samples].
MOST = float(SAMPLES)


class Reading(NamedTuple):
    """Knowledge of a controller at a sample.

    ``t``: time [s]; ``dt``: length of a sample [s]; ``r``, ``rate``, ``rate2``: values of the
    references (k,) and their first two rates; ``y``: the signals that it reads (m,). An error
    of 0.6::

        >>> still = jnp.zeros(1)
        >>> reading = jfric.Reading(0.0, 0.1, jnp.ones(1), still, still, jnp.array([0.4]))
        >>> round(float((reading.r - reading.y)[0]), 12)
        0.6
    """

    t: Float[Array, ""]
    dt: Float[Array, ""]
    r: Float[Array, " k"]
    rate: Float[Array, " k"]
    rate2: Float[Array, " k"]
    y: Float[Array, " m"]


class AbstractController(eqx.Module):
    """A sampled controller as a part of a system: between samples its outputs are constant.

    Samples are at ``start + phase + k period`` [s], exactly: no step goes beyond one. A subclass
    has the fields below, and defines :meth:`begin` and :meth:`command`. ``reads``: positions
    (``"x"``), velocities (``"v.x"``) and states (``"z.NAME"``), one name or several; readings are
    rounded to multiples of ``resolution``. ``drives``: paths of functions of time that it sets
    (``"load.motor.F"``), also the reference of another controller
    (``"controller.inner.reference"``): of samples at the same time the outer comes first. An output
    acts ``delay`` samples and ``dead_time`` [s] after its sample; it is zero before the first.
    ``longest``: most samples until an output acts, where these numbers are to be varied.
    Example: see :class:`jfric.elements.StepController`.
    """

    reads: eqx.AbstractVar[Any]
    drives: eqx.AbstractVar[Any]
    period: eqx.AbstractVar[Any]
    phase: eqx.AbstractVar[Any]
    resolution: eqx.AbstractVar[Any]
    delay: eqx.AbstractVar[Any]
    dead_time: eqx.AbstractVar[Any]
    #: Most samples that pass between a sample and the beginning of its effect.
    longest: eqx.AbstractVar[int]

    def __post_init__(self) -> None:
        if not self.longest:
            self.longest = longest_of(self.delay, self.dead_time, self.period)

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that it reads."""
        return _names(self.reads)

    @property
    def targets(self) -> tuple[str, ...]:
        """Paths of the functions of time that it sets."""
        return _names(self.drives)

    @property
    def references(self) -> tuple[AbstractFunction, ...]:
        """Functions of time that it follows."""
        return ()

    @abc.abstractmethod
    def begin(self, reading: Reading, v: Float[Array, " m"]) -> Any:
        """Memory before the first sample; ``v``: rates of the signals there."""

    @abc.abstractmethod
    def command(self, memory: Any, reading: Reading) -> tuple[Float[Array, " d"], Any]:
        """Outputs, in the order of ``drives``, and the new memory."""


def _names(value) -> Any:
    """Names as a tuple, from one or several."""
    return (value,) if isinstance(value, str) else tuple(value)


def _numbers(values) -> Any:
    return {name: scalar(x) for name, x in values.items()}


def _functions(values) -> Any:
    return tuple(as_function(x) for x in values)


def _known(value) -> float:
    """A number that is known, else 0."""
    if value is None or isinstance(value, Tracer):
        return 0.0
    try:
        return float(value)
    except (TypeError, ValueError, UnitError):
        return 0.0


class Memory(NamedTuple):
    """Values that a controller keeps from sample to sample, newest first."""

    y: Float[Array, " mean"]
    e: Float[Array, " mean"]
    integral: Float[Array, ""]
    #: Filtered rate of the derivative action.
    rate: Float[Array, ""]
    #: State of the notch filter, and the smoothed output.
    notch: Float[Array, " 2"]
    smooth: Float[Array, ""]
    output: Float[Array, " longest"]
    #: Present value of the output after delay and filter of the drive.
    drive: Float[Array, ""]


class Controller(AbstractController):
    """Sampled PID law with saturation and feed-forward, and a drive with a delay and a filter::

        e[k] = r[k] - y[k]
        u[k] = kp e[k] + ki dt sum e + kd D[k] + kv r' + ka r'' + kc sign r'
        u filtered by a notch and a first-order lag
        u[k] clipped to +-limit, and to u[k-1] +- slew dt
        lag dw/dt + w = u[k - delay]           until the next sample
        force = gain w

    ``kp`` [V/m], ``ki`` [V/(m s)], ``kd`` [V s/m] and ``limit`` [V] where ``u`` is a voltage;
    ``gain``: force of one unit of ``u`` [N/V or N m/V]. ``D``: backward difference of the mean over
    ``mean`` samples, of ``-y`` (``on="measurement"``) or of ``e`` (``on="error"``), smoothed with
    the time constant ``tau`` [s]. The integral is constant in saturation, and where ``e`` is within
    ``deadband``. ``kv``, ``ka``: feed-forward of the velocity and acceleration of the reference,
    ``kc``: of dry friction. ``notch``: angular frequency ``w`` that the output does not contain,
    with the filter ``(s^2 + w^2)/(s^2 + notch_width w s + w^2)``, bilinear; ``smooth``: time
    constant of a lag of the output [s]. ``slew``: largest change of ``u`` per second. ``delay``
    counts samples. ``lag`` [s]: time constant of the drive. ``reads``: the signal, a degree of
    freedom or a velocity ``"v.x"``; ``drives``: path of the load that it sets; ``reference``: a
    function of time.

    With a ``period`` [s] it is an element of a problem, see :class:`AbstractController`. Without
    one it belongs to a fit, where the samples of the record are those of the controller; there
    neighbouring outputs share a sample between whole delays, and ``lag`` acts by the mean over the
    sample: the impulse of every sample is kept. In a problem, delays are exact and ``lag`` is not
    allowed. A position loop that turns a wheel to 0.5 rad::

        >>> wheel = jfric.Problem(
        ...     {"x": "rotation"},
        ...     {
        ...         "mass": jfric.Mass("x", 0.05),
        ...         "friction": jfric.Friction("x", limit=0.1),
        ...         "load": {"motor": jfric.Load("x", 0.0)},
        ...         "controller": jfric.Controller(
        ...             "x", "load.motor", kp=5.0, kd=0.5, period=1e-3, reference=0.5
        ...         ),
        ...     },
        ...     time=3.0,
        ... )
        >>> final = jfric.simulate(wheel).check().final
        >>> bool(abs(final.q[0] - 0.5) <= 0.1 / 5.0), float(final.v[0])
        (True, 0.0)

    In a loop of one's own, a reference beyond the limit::

        >>> controller = jfric.Controller(reads="x", drives="load.motor.F", kp=100.0, limit=10.0)
        >>> rest = controller.start(0.0, jnp.array(0.0), 0.0, dt=1e-3)
        >>> [float(controller.step(rest, r, jnp.array(0.0), 1e-3)[0]) for r in (0.05, 0.2)]
        [5.0, 10.0]
    """

    reads: str = eqx.field(**written("name"))
    drives: str = eqx.field(**written("name"))
    kp: Scalar = eqx.field(converter=scalar)
    ki: Scalar = eqx.field(converter=scalar, default=0.0)
    kd: Scalar = eqx.field(converter=scalar, default=0.0)
    limit: Scalar = eqx.field(default=None, **holds(above=0.0))
    gain: Scalar = eqx.field(converter=scalar, default=1.0)
    delay: Scalar = eqx.field(default=0.0, **holds("pure number", at_least=0.0, at_most=MOST))
    on: On = eqx.field(static=True, default="measurement")
    mean: int = eqx.field(default=1, **written("count"))
    lag: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    reference: AbstractFunction = eqx.field(default=0.0, **holds(converter=as_function))
    period: Scalar = eqx.field(default=None, **holds("time", above=0.0))
    phase: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    resolution: Scalar = eqx.field(default=None, **holds(above=0.0))
    slew: Scalar = eqx.field(default=None, **holds(above=0.0))
    tau: Scalar = eqx.field(default=None, **holds("time", at_least=0.0))
    kv: Scalar = eqx.field(default=None, **holds())
    ka: Scalar = eqx.field(default=None, **holds())
    kc: Scalar = eqx.field(default=None, **holds())
    notch: Scalar = eqx.field(default=None, **holds("angular velocity", above=0.0))
    notch_width: Scalar = eqx.field(default=0.5, **holds("pure number", above=0.0))
    smooth: Scalar = eqx.field(default=None, **holds("time", at_least=0.0))
    deadband: Scalar = eqx.field(default=None, **holds(at_least=0.0))
    dead_time: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    #: Longest delay that can be asked for [samples].
    longest: int = eqx.field(default=0, **written("count"))

    @property
    def references(self) -> tuple[AbstractFunction, ...]:
        """The reference."""
        return (self.reference,)

    def begin(self, reading: Reading, v: Float[Array, " m"]) -> Memory:
        """Memory of a controller that has watched a motion at constant velocity."""
        return self._watched(reading.r[0], reading.y[0], v[0], reading.dt)

    def command(self, memory: Memory, reading: Reading) -> tuple[Float[Array, " d"], Memory]:
        """The force that the law sets, before its delay, and the new memory."""
        rates = reading.rate[0], reading.rate2[0]
        u, new = self._sampled(memory, reading.r[0], rates, reading.y[0], reading.dt)
        # The drive follows without a filter.
        return (self.gain * u)[None], new._replace(drive=jnp.zeros_like(new.drive))

    def start(self, r, q, v, dt) -> Memory:
        """Memory of a controller that has watched a motion at constant velocity ``v``."""
        memory = self._watched(r, q, v, dt)
        u, after = self._sampled(memory, r, (0.0, 0.0), q, dt)
        u = jnp.asarray(u, q.dtype)
        held = memory._replace(notch=after.notch, smooth=after.smooth)
        return held._replace(output=jnp.full((self.longest + 1,), u), drive=u)

    def step(self, memory: Memory, r, y, dt):
        """Force until the next sample, and the memory, for reference ``r`` and reading ``y``."""
        rate = (r - (memory.e[0] + memory.y[0])) / dt
        _, new = self._sampled(memory, r, (rate, 0.0), y, dt)
        share = jnp.maximum(0.0, 1.0 - jnp.abs(self.delay - jnp.arange(self.longest + 1)))
        late = jnp.sum(share * new.output)
        mean, drive = filtered_step(memory.drive, late, self.lag, dt)
        return self.gain * mean, new._replace(drive=drive)

    def _watched(self, r, q, v, dt) -> Memory:
        back = jnp.arange(1.0, self.mean + 1.0, dtype=q.dtype)
        y = q - back * dt * v
        none = jnp.zeros_like(q)
        output = jnp.zeros((self.longest + 1,), q.dtype)
        return Memory(y, r - y, none, none, jnp.stack([none, none]), none, output, none)

    def _sampled(self, memory: Memory, r, rates, y, dt) -> tuple[Any, Memory]:
        """The output at a sample, and the memory after it; the state of the drive is left."""
        e = r - y
        # Means over m samples differ by the newest minus the one that has left, over m.
        difference = memory.y[-1] - y if self.on == "measurement" else e - memory.e[-1]
        rate = difference / (self.mean * dt)
        if self.tau is not None:
            rate = memory.rate + (rate - memory.rate) * dt / (self.tau + dt)
        integral = memory.integral + dt * e
        u = self.kp * e + self.ki * integral + self.kd * rate
        for factor, what in ((self.kv, rates[0]), (self.ka, rates[1])):
            u = u if factor is None else u + factor * what
        if self.kc is not None:
            u = u + self.kc * jnp.sign(rates[0])
        u, notch = self._without_notch(u, memory.notch, dt)
        if self.smooth is not None:
            u = memory.smooth + (u - memory.smooth) * dt / (self.smooth + dt)
        smooth = wanted = u
        if self.limit is not None:
            u = jnp.clip(u, -self.limit, self.limit)
        if self.slew is not None:
            u = jnp.clip(u, memory.output[0] - self.slew * dt, memory.output[0] + self.slew * dt)
        kept = u != wanted
        if self.deadband is not None:
            kept = kept | (jnp.abs(e) <= self.deadband)
        new = memory._replace(
            y=jnp.concatenate([y[None], memory.y[:-1]]),
            e=jnp.concatenate([e[None], memory.e[:-1]]),
            integral=select(kept, memory.integral, integral),
            rate=jnp.asarray(rate, memory.rate.dtype),
            notch=notch,
            smooth=jnp.asarray(smooth, memory.smooth.dtype),
            output=jnp.concatenate([u[None], memory.output[:-1]]),
        )
        return u, new

    def _without_notch(self, u, state: Float[Array, " 2"], dt):
        """The filtered output, and the state of the filter: bilinear, exact at its frequency."""
        if self.notch is None:
            return u, jnp.zeros_like(state)
        w = 2.0 * jnp.tan(0.5 * self.notch * dt)
        side = 4.0 + self.notch_width * 2.0 * w + w**2
        b0, b1 = (4.0 + w**2) / side, (2.0 * w**2 - 8.0) / side
        a2 = (4.0 - self.notch_width * 2.0 * w + w**2) / side
        found = b0 * u + state[0]
        after = jnp.stack([b1 * u - b1 * found + state[1], b0 * u - a2 * found])
        return found, after.astype(state.dtype)


class StateFeedback(AbstractController):
    """Sampled state feedback ``u = sum_i K[i] (r[i] - y[i])``, clipped to ``+-limit``.

    ``reads``: the signals ``y``, positions, velocities and states; ``K``: a gain for each;
    ``follows``: functions of time ``r`` for the first of them, zero for the others. ``drives``,
    ``period``, ``longest`` and the other fields: see :class:`AbstractController`. A cart
    that goes to 0.1 m::

        >>> loop = jfric.elements.StateFeedback(
        ...     ("x", "v.x"), "load.motor", period=1e-3, K=[20.0, 6.0], follows=[0.1]
        ... )
        >>> cart = jfric.Problem(
        ...     "x",
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "load": {"motor": jfric.Load("x", 0.0)},
        ...         "state_feedback": loop,
        ...     },
        ...     time=8.0,
        ... )
        >>> round(float(jfric.simulate(cart).final.q[0]), 6)
        0.1
    """

    reads: tuple[str, ...] = eqx.field(converter=_names, **written("names"))
    drives: str = eqx.field(**written("name"))
    period: Scalar = eqx.field(**holds("time", above=0.0))
    K: Scalar = eqx.field(**holds(form="list"))
    follows: tuple[AbstractFunction, ...] = eqx.field(
        default=(), **holds(form="functions", converter=_functions)
    )
    limit: Scalar = eqx.field(default=None, **holds(above=0.0))
    phase: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    resolution: Scalar = eqx.field(default=None, **holds(above=0.0))
    delay: Scalar = eqx.field(default=0.0, **holds("pure number", at_least=0.0, at_most=MOST))
    dead_time: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    longest: int = eqx.field(default=0, **written("count"))

    @property
    def references(self) -> tuple[AbstractFunction, ...]:
        """The functions that it follows."""
        return self.follows

    def begin(self, reading: Reading, v: Float[Array, " m"]) -> tuple[()]:
        """Nothing: the output depends on the present reading alone."""
        del reading, v
        return ()

    def command(self, memory: tuple[()], reading: Reading) -> tuple[Float[Array, " d"], tuple[()]]:
        """The output, and no memory."""
        r = jnp.pad(reading.r, (0, len(reading.y) - len(reading.r)))
        u = jnp.sum(self.K * (r - reading.y))
        if self.limit is not None:
            u = jnp.clip(u, -self.limit, self.limit)
        return u[None], memory

    def problems(self) -> Iterator[tuple[str, str]]:
        """Field and message for each contradiction between the fields; numbers are known."""
        count, gains = len(self.signals), jnp.shape(self.K)
        if gains != (count,):
            yield "K", f"found {math.prod(gains)} gains, needs {count}, one for each signal"
        if len(self.follows) > count:
            yield "follows", f"found {len(self.follows)} references for {count} signals"


class StepController(AbstractController):
    """A sampled controller by a function of one's own.

    ``step``: a JAX function ``(memory, reading, gains)`` that returns the outputs, in the order of
    ``drives``, and the new memory; ``reading`` is a :class:`Reading`. ``memory``: before the first
    sample, an array or a tree of them; ``gains``: numbers by name, which sweeps and fits find as
    ``step_controller.gains.NAME``; ``follows``: functions of time as references. ``reads``,
    ``drives``, ``period``, ``longest`` and other fields: see :class:`AbstractController`.
    A load that pushes until it has seen the body move::

        >>> def push(memory, reading, gains):
        ...     seen = jnp.where(reading.y[1] > 0.0, 1.0, memory)
        ...     return jnp.where(seen > 0.0, 0.0, gains["rise"] * reading.t), seen
        >>> pushed = jfric.Problem(
        ...     "x",
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "friction": jfric.Friction("x", limit=2.0),
        ...         "load": {"push": jfric.Load("x", 0.0)},
        ...         "step_controller": jfric.elements.StepController(
        ...             push, ("x", "v.x"), "load.push", 0.1, jnp.zeros(()), {"rise": 1.0}
        ...         ),
        ...     },
        ...     time=4.0,
        ... )
        >>> float(jfric.simulate(pushed).check().final.v[0])
        0.0
    """

    step: Callable = eqx.field(**written("formula"))
    reads: Any = eqx.field(**written("name"))
    drives: Any = eqx.field(**written("name"))
    period: Scalar = eqx.field(**holds("time", above=0.0))
    memory: Any = None
    gains: dict[str, Scalar] = eqx.field(default_factory=dict, converter=_numbers)
    follows: tuple[AbstractFunction, ...] = eqx.field(default=(), converter=_functions)
    phase: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    resolution: Scalar = eqx.field(default=None, **holds(above=0.0))
    delay: Scalar = eqx.field(default=0.0, **holds("pure number", at_least=0.0))
    dead_time: Scalar = eqx.field(default=0.0, **holds("time", at_least=0.0))
    longest: int = eqx.field(default=0, **written("count"))

    def __post_init__(self) -> None:
        self.reads, self.drives = _names(self.reads), _names(self.drives)
        super().__post_init__()

    @property
    def references(self) -> tuple[AbstractFunction, ...]:
        """The functions that it follows."""
        return self.follows

    def begin(self, reading: Reading, v: Float[Array, " m"]) -> Any:
        """The memory before the first sample, as given."""
        del reading, v
        return self.memory

    def command(self, memory: Any, reading: Reading) -> tuple[Float[Array, " d"], Any]:
        """Outputs and new memory by the user's function."""
        u, new = self.step(memory, reading, self.gains)
        return jnp.atleast_1d(jnp.asarray(u)), new


def longest_of(delay, dead_time, period) -> int:
    """Samples that a delay lasts, rounded up; at least 3, so that a fit may vary it."""
    sample = _known(period)
    late = _known(delay) + (_known(dead_time) / sample if sample > 0.0 else 0.0)
    return max(3, math.ceil(late) + 1) if math.isfinite(late) else 3


def filtered_step(w, u, lag, dt):
    """Mean over a sample of length ``dt``, and value at its end, of ``lag dw/dt + w = u`` from
    ``w``, with ``u`` held; without a filter both are ``u``."""
    has = lag > 0.0
    decay = select(has, jnp.exp(-dt / select(has, lag, 1.0)), 0.0)
    share = select(dt > 0.0, lag * (1.0 - decay) / select(dt > 0.0, dt, 1.0), 0.0)
    return u + (w - u) * share, u + (w - u) * decay
