"""Systems with periodic motions, for several files of tests."""

import jax.numpy as jnp
import numpy as np

import jfric

GRAVITY, OMEGA, E = 9.81, 2 * np.pi, 0.8
#: ``Gamma = A omega^2 / g`` at which the motion with one impact in each period doubles its period.
FLIP = 1.070836468248


def ball_on_table(gamma, e=E):
    """A ball on a vibrating table, half a period after an impact of its motion of one period, if
    ``e`` is :data:`E`."""
    amplitude = gamma * GRAVITY / OMEGA**2
    phase = np.arccos((1 - E) / (1 + E) * GRAVITY / 2 / (amplitude * OMEGA))
    v0, half = 0.5 * GRAVITY, 0.5
    z = amplitude * np.sin(phase) + v0 * half - 0.5 * GRAVITY * half**2
    table = jfric.Harmonic("$Gamma*9.81/(4*pi**2)", OMEGA, phase + OMEGA * half)
    return jfric.Problem(
        ["z"],
        {
            "mass": jfric.Mass("z", 1.0),
            "load": jfric.Load("z", -GRAVITY),
            "base": {"table": jfric.Base(table)},
            "contact": jfric.Contact(("table", "z"), e=e),
        },
        parameters={"Gamma": gamma},
        initial={"z": jfric.InitialState(z, v0 - GRAVITY * half)},
        time=100.0,
    )


def damped(c=0.2, k=4.0, **elements):
    """A damped oscillator under a harmonic force."""
    return jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", k),
            "damper": jfric.Damper("x", c),
            "load": jfric.Load("x", jfric.Harmonic(1.0, 1.0, 0.5 * jnp.pi)),
            **elements,
        },
    )
