"""Random systems in other units of mass, length and time: the same motions and statuses.

Springs, dampers, stops, gaps, sliders, moving bases, frictions on belts under normal forces that
change, unilateral contacts with friction and impacts, loads that change or jump. What is decided on
the edge by rounding is decided otherwise in other units, which are no powers of two: this is how
friction was found that let go of a belt for no reason.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric

LANES, END, OUTPUTS = 64, 6.0, 31
#: Grams, hundredths of a millimetre and milliseconds; tons, tens of kilometres and minutes or so.
UNITS = ((1e-3, 1e-5, 1e-3), (1e3, 1e4, 1e2))
#: In these a belt was left for no reason.
LET_GO = (19, 48, 54)
SOLVER = jfric.EventDriven(kernel="general", adjoint="none", max_events=1024, max_steps=20_000)


def _force(rng, rest: float):
    return [
        rest,
        jfric.Sum([rest, jfric.Harmonic(0.3 * rest, 2.3)]),
        jfric.Steps([1.7], [rest, 0.5 * rest]),
    ][rng.integers(3)]


def _system(seed: int) -> jfric.Problem:
    rng = np.random.default_rng(seed)
    names = tuple("abc"[: rng.integers(1, 4)])
    based = rng.random() < 0.4

    def direction() -> dict[str, float]:
        own = rng.choice(len(names), size=rng.integers(1, len(names) + 1), replace=False)
        found = {names[i]: float(rng.choice([-1, 1]) * rng.uniform(0.3, 1.5)) for i in own}
        return found | ({"floor": -1.0} if based and rng.random() < 0.3 else {})

    elements: dict = {"mass": {x: jfric.Mass(x, 1.0) for x in names}}
    elements["spring"] = {f"s{i}": jfric.Spring(direction(), k=5.0) for i in range(len(names))}
    if based:
        moves = [jfric.Harmonic(0.2, 1.3), jfric.PiecewiseLinear([1.0, 2.0, 4.0], [0.0, 0.2, -0.1])]
        elements["base"] = {"floor": jfric.Base(moves[rng.integers(2)])}
    others = {
        "damper": lambda: jfric.Damper(direction(), c=0.3),
        "stop": lambda: jfric.Stop(direction(), k=80.0, gap=0.1, c=0.5),
        "gap_spring": lambda: jfric.GapSpring(direction(), 30.0, 20.0, 0.1, 0.15),
        "jenkins": lambda: jfric.Jenkins(direction(), k=20.0, R=0.8),
        "maxwell_slip": lambda: jfric.MaxwellSlip(direction(), k=[20.0, 10.0], R=[0.5, 0.8]),
    }
    for name in rng.choice(list(others), size=2, replace=False):
        elements[str(name)] = {"one": others[str(name)]()}
    frictions, contacts = {}, {}
    for i in range(rng.integers(1, 3)):
        belt = [None, None, 0.2, jfric.Harmonic(0.3, 1.7)][rng.integers(4)]
        law = [jfric.Coulomb(0.3), jfric.StaticDynamic(0.45, 0.3)][rng.integers(2)]
        frictions[f"f{i}"] = jfric.Friction(direction(), law, N=_force(rng, 4.0), belt=belt)
    for i in range(rng.integers(0, 3)):
        e, normal = float(rng.choice([0.0, 0.3, 0.7])), direction()
        rubs = (direction(), jfric.Coulomb(0.3)) if rng.random() < 0.6 else ()
        contacts[f"c{i}"] = jfric.Contact(normal, *rubs, e=e, gap=0.2)
    elements |= {"friction": frictions} | ({"contact": contacts} if contacts else {})
    elements["load"] = {}
    for x in names:
        level = float(rng.normal())
        load = [
            jfric.Sum([1.5 * level, jfric.Harmonic(2.0, 2.0)]),
            jfric.Steps([1.0, 2.5], [level, -2.0, 1.5]),
            jfric.PiecewiseLinear([0.0, 1.5, 3.0], [0.0, 3.0, -2.0]),
        ][rng.integers(3)]
        elements["load"][f"l{x}"] = jfric.Load(x, load)
    start = {x: jfric.InitialState(q=0.0, v=float(0.5 * rng.normal())) for x in names}
    return jfric.Problem(names, elements, initial=start, time=END)


def _factor(path: str, mass: float, length: float, time: float) -> float:
    """By what the number of a parameter changes with the units."""
    section, last = path.split(".")[0], path.split(".")[-1]
    force = mass * length / time**2
    if last in ("phase", "mu", "mu_s", "mu_d"):
        return 1.0
    by_name = {"omega": 1.0 / time, "times": time, "c": mass / time}
    by_name |= {"gap": length, "gap_positive": length, "gap_negative": length, "x0": length}
    by_name |= {"z0": length, "R": force, "k": mass / time**2}
    by_name |= dict.fromkeys(("k_positive", "k_negative"), mass / time**2)
    if last in by_name:
        return by_name[last]
    if section == "friction":
        return length / time if ".belt" in path else force
    by_section = {"mass": mass, "base": length, "load": force}
    by_section["initial"] = length if last == "q" else length / time
    return by_section[section]


def _numbers(problem: jfric.Problem, seed: int) -> dict[str, np.ndarray]:
    """Parameters (lanes, ...) that are measured in units."""
    rng, found = np.random.default_rng(1000 + seed), {}
    slower = np.exp(0.3 * rng.normal(size=LANES))
    for path, value in jfric.parameters(problem).items():
        pure = ("direction", "normal", "tangent")
        if path.startswith("time.") or path.endswith(".e") or any(f".{x}." in path for x in pure):
            continue
        # Times of one function keep their order; static limits stay above the others.
        own = np.exp(0.3 * rng.normal(size=LANES))
        own = slower if path.endswith("times") else np.ones(LANES) if "mu_" in path else own
        value = np.asarray(value, float)
        found[path] = value * own.reshape(-1, *[1] * value.ndim)
    return found


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in (*range(2, 13), *LET_GO))]
)
def test_other_units_change_nothing(seed):
    problem = _system(seed)
    numbers = _numbers(problem, seed)

    @jax.jit
    def run(numbers, time):
        def one(numbers):
            here = jfric.set_parameters(problem, {**numbers, "time.end": END * time})
            found = jfric.simulate(here, SOLVER, ts=jnp.linspace(0.0, END, OUTPUTS) * time)
            return found.q, found.v, found.status, found.flags

        return jax.vmap(one)(numbers)

    def of(mass, length, time):
        scaled = {k: x * _factor(k, mass, length, time) for k, x in numbers.items()}
        q, v, status, flags = (np.asarray(x) for x in run(scaled, time))
        return q / length, v * time / length, status, flags

    q, v, status, flags = of(1.0, 1.0, 1.0)
    assert (status == 0).mean() > 0.5
    for units in UNITS:
        own_q, own_v, own_status, own_flags = of(*units)
        np.testing.assert_array_equal(own_status, status)
        # Where several contacts share a decision, static limits may leave several motions.
        shared = (flags | own_flags) & int(jfric.Flag.SIMULTANEOUS) > 0
        off = np.abs(own_q - q).max(axis=(1, 2)), np.abs(own_v - v).max(axis=(1, 2))
        good = (status == 0) & (off[0] < 1e-8) & (off[1] < 1e-6)
        assert good[(status == 0) & ~shared].all(), np.flatnonzero((status == 0) & ~shared & ~good)
        assert good[status == 0].mean() > 0.95
