"""A controller that sets the voltage of a motor: cascade of position, speed and current."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy.linalg import expm

import jfric

J, KT, R, L, C = 0.02, 0.3, 1.5, 4e-3, 0.01
PERIODS = {"position": 4e-3, "speed": 1e-3, "current": 2.5e-4}


def axis(time: float = 0.5) -> jfric.Problem:
    loops = {
        "position": jfric.Controller(
            "x", "controller.speed", kp=15.0, limit=8.0, period=PERIODS["position"], reference=1.0
        ),
        "speed": jfric.Controller(
            "v.x", "controller.current", kp=0.8, ki=6.0, limit=6.0, period=PERIODS["speed"]
        ),
        "current": jfric.Controller(
            "z.motor", "motor.V", kp=5.0, ki=900.0, limit=24.0, period=PERIODS["current"]
        ),
    }
    return jfric.Problem(
        {"x": "rotation"},
        {
            "mass": jfric.Mass("x", J),
            "damper": jfric.Damper("x", C),
            "motor": jfric.elements.Motor("x", kt=KT, V=0.0, R=R, L=L),
            "controller": loops,
        },
        time=time,
    )


class Loop:
    """PI law with a limit, at its own samples."""

    def __init__(self, kp, ki, limit, T):
        self.kp, self.ki, self.limit, self.T, self.sum = kp, ki, limit, T, 0.0

    def __call__(self, e):
        u = self.kp * e + self.ki * (self.sum + self.T * e)
        found = min(max(u, -self.limit), self.limit)
        self.sum += self.T * e if found == u else 0.0
        return found


def test_a_cascade_down_to_the_current_agrees_with_an_exact_reference():
    """Three loops with periods of their own; the motor is a matrix exponential between samples."""
    solution = jfric.simulate(axis(), ts=jnp.linspace(0.0, 0.5, 501)).check()
    outer, middle, inner = (
        Loop(15.0, 0.0, 8.0, 4e-3),
        Loop(0.8, 6.0, 6.0, 1e-3),
        Loop(5.0, 900.0, 24.0, 2.5e-4),
    )
    A = np.zeros((4, 4))
    A[0, 1] = 1.0
    A[1, 1:3] = -C / J, KT / J
    A[2, 1:] = -KT / L, -R / L, 1.0 / L
    step, z, speed, current = expm(A * 2.5e-4), np.zeros(4), 0.0, 0.0
    rows = []
    for k in range(2000):
        if k % 4 == 0:
            rows.append(z[:3].copy())
        speed = outer(1.0 - z[0]) if k % 16 == 0 else speed
        current = middle(speed - z[1]) if k % 4 == 0 else current
        z[3] = inner(current - z[2])
        z = step @ z
    rows = np.array([*rows, z[:3]])
    found = np.stack([solution.q[:, 0], solution.v[:, 0], solution.z[:, 0]], axis=1)
    assert np.abs(found - rows).max() < 1e-9
    assert 0.8 < float(solution.q[-1, 0]) < 1.0
