"""A digital controller: it reads a position at each sample and sets a force until the next."""

from __future__ import annotations

from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jfric.system.fields import Scalar, holds, scalar, written

On = Literal["measurement", "error"]


class Memory(NamedTuple):
    """Values that a controller keeps from sample to sample, newest first."""

    y: Float[Array, " mean"]
    e: Float[Array, " mean"]
    integral: Float[Array, ""]
    output: Float[Array, " longest"]
    #: Present value of the output after delay and filter of the drive.
    drive: Float[Array, ""]


class Controller(eqx.Module):
    """Sampled PID law with saturation, and a drive with a delay and a filter::

        e[k] = r[k] - y[k]
        u[k] = clip(kp e[k] + ki dt sum e + kd D[k], -limit, limit)
        lag dw/dt + w = u[k - delay]           until the next sample
        force = gain (mean of w over the sample)

    ``kp`` [V/m], ``ki`` [V/(m s)], ``kd`` [V s/m] and ``limit`` [V] where ``u`` is a voltage;
    ``gain``: force of one unit of ``u`` [N/V or N m/V]. ``D``: backward difference of the mean over
    ``mean`` samples, of ``-y`` (``on="measurement"``) or of ``e`` (``on="error"``). The integral
    is constant in saturation. ``delay`` counts samples; between whole numbers two neighbouring
    outputs share the sample. ``lag`` [s]: time constant of the drive, zero for none. As with a
    fraction of a sample, the impulse of every sample is kept, and the motion differs from that
    under the true force in second order of the sample's length. ``reads``: the degree of freedom;
    ``drives``: path of the load that it sets. A reference beyond the limit::

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
    limit: Scalar = eqx.field(converter=scalar, default=jnp.inf)
    gain: Scalar = eqx.field(converter=scalar, default=1.0)
    delay: Scalar = eqx.field(converter=scalar, default=0.0)
    on: On = eqx.field(static=True, default="measurement")
    mean: int = eqx.field(static=True, default=1)
    #: Longest delay that can be asked for [samples].
    longest: int = eqx.field(static=True, default=3)
    lag: Scalar = eqx.field(default=0.0, **holds("time"))

    def start(self, r, q, v, dt) -> Memory:
        """Memory of a controller that has watched a motion at constant velocity ``v``."""
        back = jnp.arange(1, self.mean + 1)
        y = q - back * dt * v
        none = jnp.zeros_like(q)
        memory = Memory(y, r - y, none, jnp.zeros((self.longest + 1,), q.dtype), none)
        u, _ = self._output(memory, r, q, dt)
        u = jnp.asarray(u, q.dtype)
        return memory._replace(output=jnp.full((self.longest + 1,), u), drive=u)

    def step(self, memory: Memory, r, y, dt):
        """Force until the next sample, and the memory, for reference ``r`` and reading ``y``."""
        u, integral = self._output(memory, r, y, dt)
        output = jnp.concatenate([u[None], memory.output[:-1]])
        share = jnp.maximum(0.0, 1.0 - jnp.abs(self.delay - jnp.arange(self.longest + 1)))
        late = jnp.sum(share * output)
        mean, drive = filtered_step(memory.drive, late, self.lag, dt)
        new = Memory(
            jnp.concatenate([y[None], memory.y[:-1]]),
            jnp.concatenate([(r - y)[None], memory.e[:-1]]),
            integral,
            output,
            drive,
        )
        return self.gain * mean, new

    def _output(self, memory: Memory, r, y, dt):
        e = r - y
        # Means over m samples differ by the newest minus the one that has left, over m.
        rate = (memory.y[-1] - y if self.on == "measurement" else e - memory.e[-1]) / (
            self.mean * dt
        )
        integral = memory.integral + dt * e
        wanted = self.kp * e + self.ki * integral + self.kd * rate
        u = jnp.clip(wanted, -self.limit, self.limit)
        return u, jnp.where(jnp.abs(wanted) > self.limit, memory.integral, integral)


def filtered_step(w, u, lag, dt):
    """Mean over a sample of length ``dt``, and value at its end, of ``lag dw/dt + w = u`` from
    ``w``, with ``u`` held; without a filter both are ``u``."""
    has = lag > 0.0
    decay = jnp.where(has, jnp.exp(-dt / jnp.where(has, lag, 1.0)), 0.0)
    share = jnp.where(dt > 0.0, lag * (1.0 - decay) / jnp.where(dt > 0.0, dt, 1.0), 0.0)
    return u + (w - u) * share, u + (w - u) * decay
