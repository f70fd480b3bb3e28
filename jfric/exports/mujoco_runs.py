"""Runs of the installed MuJoCo: equal input, and friction under loads below its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jfric.exports.mjcf import Model, Row

#: A passive joint with a bristle: a MuJoCo that can read it has this friction.
_PROBE = """<mujoco><worldbody><body><joint name="q" type="hinge"/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody><actuator>
<dcmotor joint="q" input="none" motorconst="0" resistance="1" lugre="1 1 1 1 1"/>
</actuator></mujoco>"""
#: Duration [s] of the test for creep; the second half counts.
HOLD = 10.0
#: Parts of the limit that hold and shake, and the frequency [Hz].
STEADY, SHAKEN, FREQUENCY = 0.5, 0.4, 10.0


@dataclass(frozen=True)
class Creep:
    """Mean velocities [m/s or rad/s] in stick under half of the limit, and shaken around it."""

    steady: float
    shaken: float


def installed() -> Any:
    """The package, or None."""
    try:
        import mujoco  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    return mujoco


def has_bristles(mujoco: Any) -> bool:
    """Whether the installed MuJoCo has LuGre friction."""
    try:
        mujoco.MjModel.from_xml_string(_PROBE)
    except ValueError:
        return False
    return True


def motion(mujoco: Any, model: Model, times: np.ndarray, timestep: float):
    """Positions (m, n) at ``times`` [s], of which the first is the start."""
    compiled = mujoco.MjModel.from_xml_string(model.xml)
    data = mujoco.MjData(compiled)
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    steps = np.rint((times - times[0]) / timestep).astype(int)
    count, middles = int(steps[-1]), times[0] + timestep * (np.arange(int(steps[-1])) + 0.5)
    at = jnp.asarray(middles)
    controls = [np.broadcast_to(np.asarray(jax.vmap(f)(at)), (count,)) for f in model.loads]
    found, wanted = (
        np.zeros((len(times), compiled.nq)),
        dict(zip(steps, range(len(times)), strict=True)),
    )
    order = _order(compiled, model)
    found[0] = data.qpos[order]
    for i in range(count):
        for j, values in enumerate(controls):
            data.ctrl[j] = values[i]
        mujoco.mj_step(compiled, data)
        if i + 1 in wanted:
            found[wanted[i + 1]] = data.qpos[order]
    return found


def _order(compiled: Any, model: Model) -> np.ndarray:
    """Places of the degrees of freedom in MuJoCo's vectors."""
    return np.array([compiled.joint(dof).qposadr[0] for dof in model.dofs])


def creep(mujoco: Any, model: Model, row: Row, timestep: float) -> Creep:
    """Creep of one friction element from rest, without springs, gravity and other loads."""
    compiled = mujoco.MjModel.from_xml_string(model.xml)
    compiled.opt.gravity[:] = 0.0
    compiled.jnt_stiffness[:] = 0.0
    compiled.tendon_stiffness[:] = 0.0
    limit, w = row.friction.limit, row.direction
    order = _order(compiled, model)
    push = limit * w

    def run(shake: float) -> float:
        data = mujoco.MjData(compiled)
        count = round(HOLD / timestep)
        half = 0.0
        for i in range(count):
            wave = np.sin(2.0 * np.pi * FREQUENCY * i * timestep)
            data.qfrc_applied[order] = push * (STEADY + shake * wave)
            mujoco.mj_step(compiled, data)
            if i + 1 == count // 2:
                half = float(w @ data.qpos[order])
        return (float(w @ data.qpos[order]) - half) / (0.5 * HOLD)

    return Creep(run(0.0), run(SHAKEN))
