"""A friction curve of no standard law, identified from the force of a position loop.

    python experiments/identify_curve.py [--samples 1500] [--seed 0] [--json]

An axis of 20 kg follows a reference. The data are the force of its controller, with white noise.
Friction falls with the speed when the axis moves forward, only rises when it moves back, ripples
with the position, and grows with a side load. The fit determines the curve at seven speeds for each
direction, the ripple, the share of the side load and the mass. The standard laws are fitted to the
same data for comparison. The script prints the errors of all of them on a record that was not
fitted, next to the error of the true law, and how much of the true curve lies within the band.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from prediction import relative_error

import jfric
from jfric.fits.comparison.candidates import candidate_laws
from jfric.fits.recipe import prepare
from jfric.numerics.compilation import use_compilation_cache

jax.config.update("jax_enable_x64", True)
use_compilation_cache()

SPEEDS = (0.0, 0.01, 0.03, 0.08, 0.2, 0.4, 0.8)
NOISE = 0.5  # N
STEP = 4e-3  # s
#: Free parameters in addition to the curve.
FREE = {
    "mass.m": jfric.Free(5.0, 80.0),
    "friction.kappa": jfric.Free(0.01, 1.0, init=0.05),
    "friction.position.cosine.0": jfric.Free(-0.5, 0.5, init=0.0, scale="linear"),
    "friction.position.sine.0": jfric.Free(-0.5, 0.5, init=0.0, scale="linear"),
}
CONTROLLER = jfric.Controller("x", "load.drive.F", kp=2e4, kd=900.0)


class AxisLaw(jfric.laws.AbstractLaw):
    """A dip in forward motion only, and a rise with the speed that depends on the direction."""

    velocity_independent: ClassVar[bool] = False

    def static(self):
        return self.kinetic(jnp.zeros(()))

    def kinetic(self, gamma):
        forward = 0.8 + 0.6 * jnp.exp(-gamma / 0.03) + 0.8 * jnp.tanh(gamma / 0.6)
        return forward, 1.0 + 0.35 * jnp.log1p(gamma / 0.1)


def axis(law, position=None, kappa: float = 0.0) -> jfric.Problem:
    """The axis; its friction is a factor on 20 N and on a part that grows with the side load."""
    return jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 20.0),
            "friction": jfric.Friction(
                "x", law, limit=20.0, position=position, kappa=kappa, load="load.process"
            ),
            "load": {"drive": jfric.Load("x", 0.0), "process": jfric.Load("x", 0.0)},
        },
        time=1.0,
    )


TRUE = axis(AxisLaw(), jfric.laws.PeriodicFactor(0.05, cosine=[0.12], sine=[0.06]), 0.15)


def reference(t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The position that the axis has to follow: four sines."""
    found = np.zeros(t.size)
    for period, speed in zip((1.0, 2.7, 0.6, 5.3), (0.05, 0.2, 0.25, 0.02), strict=True):
        w = 2 * np.pi / (period * rng.uniform(0.8, 1.25))
        found += speed / w * np.sin(w * t + rng.uniform(0, 2 * np.pi))
    # The reference begins at rest, without a jump that would be faster than all knots.
    return found * (1.0 - np.exp(-((t / 0.3) ** 2)))


def record(samples: int, seed: int) -> tuple[jfric.Experiment, np.ndarray]:
    """A record of the true axis, and its force without noise."""
    rng = np.random.default_rng(seed)
    t = STEP * np.arange(samples)
    followed = reference(t, rng)
    w = 2 * np.pi / 2.3
    process = 30.0 * np.sin(w * t + rng.uniform(0, 2 * np.pi))
    u = {"controller.reference": followed, "load.process.F": process}
    force = predicted(TRUE, jfric.Experiment(t, u, {"load.drive.F": np.sin(t)}))
    noisy = force + NOISE * rng.normal(size=samples)
    return jfric.Experiment(t, u, {"load.drive.F": noisy}), force


def predicted(problem: jfric.Problem, experiment: jfric.Experiment) -> np.ndarray:
    """Force of the loop of ``problem`` on the record of an experiment."""
    mass = float(jfric.get_parameter(problem, "mass.m"))
    task = prepare(
        jfric.SampledModel(problem, CONTROLLER), experiment,
        {"mass.m": jfric.Free(1.0, 100.0)}, observe="load.drive.F",
    )  # fmt: skip
    return task.objective.predict(np.array([[mass]]))[0, 0, :, 0]


def rms(x) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def study(samples: int, seed: int) -> tuple[dict, jfric.CurveFit]:
    train, _ = record(samples, seed)
    test, clean = record(samples, seed + 1000)
    measured = test.y["load.drive.F"]
    flat = jfric.FrictionCurve(SPEEDS, jfric.laws.Directional([1.0] * 7, [1.0] * 7))
    guess = axis(flat, jfric.laws.PeriodicFactor(0.05, [0.0], [0.0]), 0.05)
    began = time.perf_counter()
    found = jfric.fit_curve(
        guess, train, FREE, observe="load.drive.F",
        residual=jfric.ClosedLoop(CONTROLLER),
    )  # fmt: skip
    seconds = time.perf_counter() - began
    rows = {"true law": rms(clean - measured)}
    own = predicted(found.problem, test)
    rows["curve"] = rms(own - measured)
    errors = {"true law": 0.0, "curve": rms(own - clean)}
    plain = axis(jfric.Coulomb(1.0), None, 0.05)
    plain = replace_friction(plain)
    for candidate in candidate_laws(plain, 0.2, loads=False):
        fitted = jfric.fit(
            jfric.SampledModel(candidate.problem, CONTROLLER), train,
            {"mass.m": FREE["mass.m"], **candidate.free}, observe="load.drive.F", starts=1,
        )  # fmt: skip
        scale = float(np.linalg.norm(measured)) / np.sqrt(measured.size)
        rows[candidate.name] = relative_error(fitted, test) * scale
    stribeck = jfric.Stribeck(*(jfric.laws.Directional(x, x) for x in (1.2, 1.0, 0.03, 1.0, 0.3)))
    surrounded = axis(stribeck, guess.section("friction")["friction"].position, 0.05)
    sided = {
        f"friction.{name}.{side}": jfric.Free(*bounds)
        for name, bounds in {
            "mu_s": (0.5, 3.0), "mu_d": (0.3, 3.0), "v_s": (3e-3, 0.3), "mu_v": (1e-3, 3.0),
        }.items()
        for side in ("positive", "negative")
    }  # fmt: skip
    fitted = jfric.fit(
        jfric.SampledModel(surrounded, CONTROLLER), train, {**FREE, **sided},
        observe="load.drive.F", starts=1,
    )  # fmt: skip
    rows["Stribeck, with ripple and load"] = relative_error(fitted, test) * scale
    return {
        "samples": samples,
        "seconds": seconds,
        "fits": len(found.rounds),
        "tau": found.rounds[-1],
        "rms error on the other record [N]": rows,
        "rms error without noise [N]": errors,
        "curve over true law": rows["curve"] / rows["true law"],
        "inside the band": band(found, train),
        "found": {
            name: [found.fit.values[name], found.fit.covariance().standard_errors[name]]
            for name in FREE
        },
    }, found


def replace_friction(problem: jfric.Problem) -> jfric.Problem:
    """The axis with its friction replaced by the standard laws, which depend on velocity only."""
    element = problem.section("friction")["friction"]
    elements = {k: dict(v) for k, v in problem.elements.items()}
    elements["friction"]["friction"] = replace(element, load=None, kappa=None, position=None)
    return jfric.Problem(problem.dofs, elements, time=problem.time)


def band(found: jfric.CurveFit, train: jfric.Experiment) -> dict[str, dict]:
    """Share of speeds at which the true curve lies within the 95 % band, up to the last knot that
    the record reaches, and the largest error."""
    reference = (train.u or {})["controller.reference"]
    v = np.gradient(reference, train.t)
    result = {}
    for i, direction in enumerate(("positive", "negative")):
        fastest = float(np.max(v if i == 0 else -v))
        speeds = np.geomspace(2e-3, fastest, 200)
        b = found.band(speeds, direction)
        true = true_curve(speeds, direction)
        result[direction] = {
            "inside": float(np.mean((b.low <= true) & (true <= b.high))),
            "largest error": float(np.max(np.abs(b.mu - true))),
            "mean standard error": float(np.mean(b.standard_error)),
        }
    return result


def true_curve(speeds: np.ndarray, direction: str) -> np.ndarray:
    """The true law at sliding speeds."""
    return np.asarray(AxisLaw().kinetic(jnp.asarray(speeds))[direction == "negative"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/figures"), help="folder")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()
    result, found = study(options.samples, options.seed)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "identify_curve.png"
    figure = jfric.plot_friction_curve(found, beside={"true law": true_curve})
    figure.savefig(path, dpi=150)
    print(f"{result['fits']} fits in {result['seconds']:.0f} s, bends of {result['tau']:.3g}")
    for name, error in result["rms error on the other record [N]"].items():
        print(f"{name:32} {error:.4f} N on the other record")
    print(f"curve over true law: {result['curve over true law']:.4f}")
    for direction, row in result["inside the band"].items():
        print(
            f"{direction}: {100 * row['inside']:.0f} % of speeds inside the 95 % band, largest "
            f"error {row['largest error']:.3f}, mean standard error "
            f"{row['mean standard error']:.3f}"
        )
    for name, (value, error) in result["found"].items():
        print(f"{name:28} {value:.4f} +- {error:.4f}")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
