"""A small network as a friction law, trained through the simulation, compared with a curve.

    python experiments/network_law.py [--samples 500] [--steps 200] [--json]

The axis of `identify_curve.py` without ripple and side load: friction dips in one direction alone.
The law is two networks of `equinox`, one for each direction, of the logarithm of the speed; their
values are positive, and the limit in stick is their value at rest, so that the axis sticks exactly.
Networks and mass are trained with `optax` on the force of the position loop, by its exact
derivatives, forward through all samples. The script prints the errors on a record that was not used
in training, compared with those of `jfric.fit_curve` and of the true law, and the time in stick.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import ClassVar

import equinox as eqx
import identify_curve
import jax
import jax.numpy as jnp
import numpy as np
import optax
from identify_curve import CONTROLLER, NOISE, SPEEDS, STEP, AxisLaw, axis, rms
from jax.flatten_util import ravel_pytree

import jfric
from jfric.fits.recipe import prepare

#: Speed [m/s] by which speeds are divided before the logarithm, and number of neurons.
SLOW, WIDTH = 0.01, 6


class NetworkLaw(jfric.laws.AbstractLaw):
    """Coefficients of sliding friction by one hidden layer for each direction."""

    velocity_independent: ClassVar[bool] = False
    hidden: eqx.nn.Linear
    last: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.hidden = eqx.nn.Linear(1, 2 * WIDTH, key=first)
        self.last = eqx.nn.Linear(2 * WIDTH, 2, key=second)

    def static(self):
        return self.kinetic(jnp.zeros(()))

    def kinetic(self, gamma):
        x = jnp.log1p(gamma / SLOW) - 2.0
        forward, backward = jax.nn.softplus(self.last(jnp.tanh(self.hidden(x[None]))) + 0.5)
        return forward, backward


def simulated(problem: jfric.Problem, data: jfric.Experiment) -> tuple[np.ndarray, np.ndarray]:
    """Force of the loop and velocity on a record."""
    mass = float(jfric.get_parameter(problem, "mass.m"))
    plan = jfric.Experiment(data.t, data.u, {k: np.sin(data.t) for k in ("load.drive.F", "v.x")})
    task = prepare(
        jfric.SampledModel(problem, CONTROLLER), plan, {"mass.m": jfric.Free(1.0, 100.0)}
    )
    force, velocity = task.objective.predict(np.array([[mass]]))[0, 0].T
    return force, velocity


def record(samples: int, seed: int) -> tuple[jfric.Experiment, np.ndarray, np.ndarray]:
    """A record of the axis without side load, its force without noise and its velocity."""
    t = STEP * np.arange(samples)
    u = {
        "controller.reference": identify_curve.reference(t, np.random.default_rng(seed)),
        "load.process.F": np.zeros(samples),
    }
    clean, velocity = simulated(axis(AxisLaw()), jfric.Experiment(t, u, {"v.x": np.sin(t)}))
    noise = NOISE * np.random.default_rng(seed).normal(size=samples)
    return jfric.Experiment(t, u, {"load.drive.F": clean + noise}), clean, velocity


def trained(data: jfric.Experiment, steps: int) -> tuple[jfric.Problem, list[float]]:
    """The axis with a network, and the root mean square error in training."""
    guess = axis(NetworkLaw(jax.random.key(0)))
    task = prepare(
        jfric.SampledModel(guess, CONTROLLER), data,
        {"mass.m": jfric.Free(1.0, 100.0)}, observe="load.drive.F",
    )  # fmt: skip
    model, samples = task.objective.model, jax.tree.map(lambda a: a[0], task.objective.data)
    first = (guess.section("friction")["friction"].law, jnp.log(jnp.asarray(30.0)))
    z, unravel = ravel_pytree(first)
    transform = optax.adam(optax.cosine_decay_schedule(0.05, steps))

    def error(z):
        law, log_mass = unravel(z)
        changed = eqx.tree_at(lambda m: m.problem.elements["friction"]["friction"].law, model, law)
        force = changed.simulate_outputs({"mass.m": jnp.exp(log_mass)}, samples).y
        value = jnp.mean((force - samples.y) ** 2)
        return value, value

    @jax.jit
    def step(z, state):
        slope, value = jax.jacfwd(error, has_aux=True)(z)
        change, state = transform.update(slope, state)
        return optax.apply_updates(z, change), state, value

    state, errors = transform.init(z), []
    for _ in range(steps):
        z, state, value = step(z, state)
        errors.append(float(jnp.sqrt(value)))
    law, log_mass = unravel(z)
    found = eqx.tree_at(lambda p: p.elements["friction"]["friction"].law, guess, law)
    return jfric.set_parameters(found, {"mass.m": float(jnp.exp(log_mass))}), errors


def study(samples: int, steps: int) -> dict:
    train, _, _ = record(samples, 0)
    test, clean, true_velocity = record(samples, 1000)
    measured = test.y["load.drive.F"]
    began = time.perf_counter()
    network, errors = trained(train, steps)
    seconds = time.perf_counter() - began
    flat = jfric.FrictionCurve(SPEEDS, jfric.laws.Directional([1.0] * 7, [1.0] * 7))
    curve = jfric.fit_curve(
        axis(flat), train, {"mass.m": jfric.Free(5.0, 80.0)}, observe="load.drive.F",
        residual=jfric.ClosedLoop(CONTROLLER),
    ).problem  # fmt: skip
    force, velocity = simulated(network, test)
    own = {"network": force, "curve": simulated(curve, test)[0]}
    speeds = np.linspace(0.0, 0.3, 61)
    true, law = AxisLaw(), network.section("friction")["friction"].law
    off = [np.abs(np.array(law.kinetic(v)) - np.array(true.kinetic(v))).max() for v in speeds]
    return {
        "samples of a record": samples,
        "sample time [s]": STEP,
        "training error, first and last [N]": [errors[0], errors[-1]],
        "training [s]": seconds,
        "held-out error [N]": {
            "true law": rms(clean - measured),
            **{k: rms(x - measured) for k, x in own.items()},
        },
        "held-out error without noise [N]": {k: rms(x - clean) for k, x in own.items()},
        "mass [kg]": {
            "network": float(jfric.get_parameter(network, "mass.m")),
            "curve": float(jfric.get_parameter(curve, "mass.m")),
        },
        "largest error of the coefficients up to 0.3 m/s": float(np.max(off)),
        "part of the samples exactly at rest": {
            "true law": float(np.mean(true_velocity == 0.0)),
            "network": float(np.mean(velocity == 0.0)),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    found = study(options.samples, options.steps)
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
