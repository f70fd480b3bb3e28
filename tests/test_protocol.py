"""What every law, element and flow must do: compile once, batch, differentiate, both precisions.

A new law fails here until it has an example below; nothing else is needed to test it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.numerics.tracing import warn_once
from jfric.results.solution import Events
from jfric.system.laws import LAWS, AbstractLaw

LAW_EXAMPLES: dict[str, Callable[[], AbstractLaw]] = {
    "coulomb": lambda: jfric.Coulomb(0.11),
    "static-dynamic": lambda: jfric.StaticDynamic(0.15, jfric.Directional(0.11, 0.09)),
    "stribeck": lambda: jfric.Stribeck(0.15, jfric.Directional(0.11, 0.09), 0.3, mu_v=0.01),
    "velocity-weakening": lambda: jfric.VelocityWeakening(0.15, 0.5, mu_d=0.05),
    "curve": lambda: jfric.FrictionCurve(
        [0.0, 0.2, 0.7], jfric.Directional([0.12, 0.1, 0.11], [0.11, 0.08, 0.09]), 0.15
    ),
}
TIMES = np.linspace(0.0, 2.0, 9)


def _oscillators(laws: tuple[str, ...]) -> jfric.Problem:
    """One oscillator for each law, at times of its own. Each reverses, with stick in between or
    at once."""
    return jfric.Problem(
        laws,
        {
            "mass": {law: jfric.Mass(law, 1.0 + 0.1 * i) for i, law in enumerate(laws)},
            "spring": {law: jfric.Spring(law, 50.0) for law in laws},
            "friction": {law: jfric.Friction(law, LAW_EXAMPLES[law](), N=10.0) for law in laws},
            "load": {law: jfric.Load(law, 15.0) for law in laws},
        },
        time=2.0,
    )


def _unilateral() -> jfric.Problem:
    """A thrown ball, and a body with clearance and a damped stop that pushes back into it."""
    return jfric.Problem(
        ("x", "z", "u"),
        {
            "mass": {name: jfric.Mass(name, 1.0) for name in ("x", "z", "u")},
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.2), e=0.5),
            "gap_spring": jfric.GapSpring("u", 60.0, 20.0, 0.1, 0.05),
            "stop": jfric.Stop("u", 200.0, gap=0.15, c=2.0),
            "load": {"weight": jfric.Load("z", -9.81), "push": jfric.Load("u", 5.0)},
        },
        initial={
            "x": jfric.InitialState(v=3.0),
            "z": jfric.InitialState(q=0.5),
            "u": jfric.InitialState(q=-0.3),
        },
        time=2.0,
    )


def _motors() -> jfric.Problem:
    """Motors whose currents reach both limits: by a voltage, with an inductance, and one that a
    controller sets."""
    wave = jfric.Harmonic(12.0, 9.0)
    circuit = {"kt": 0.3, "J": 0.02, "R": 2.0, "i_max": 2.0}
    loop = jfric.Controller("i", "motor.i", 40.0, kd=1.0, limit=5.0, period=0.05, reference=wave)
    return jfric.Problem(
        dict.fromkeys(("v", "l", "i"), "rotation"),
        {
            "motor": {
                "v": jfric.Motor("v", V=wave, **circuit),
                "l": jfric.Motor("l", V=wave, L=0.05, **circuit),
                "i": jfric.Motor("i", kt=0.3, J=0.02, i=0.0, i_max=2.0),
            },
            "damper": jfric.Damper("i", 0.2),
            "controller": loop,
        },
        time=2.0,
    )


#: The exact flow takes laws that do not depend on the sliding velocity; all others, and one of
#: these, take the Runge-Kutta flow.
INDEPENDENT = tuple(law for law in LAW_EXAMPLES if LAWS[law].velocity_independent)
LAWS_OF_FLOW = {
    "exact": INDEPENDENT,
    "runge-kutta": (INDEPENDENT[-1], *(law for law in LAW_EXAMPLES if law not in INDEPENDENT)),
}
CASES: dict[str, tuple[str, Callable[[], jfric.Problem]]] = {
    f"laws-{flow}": (flow, functools.partial(_oscillators, laws))
    for flow, laws in LAWS_OF_FLOW.items()
}
CASES["unilateral-exact"] = ("exact", _unilateral)
CASES["motors-exact"] = ("exact", _motors)
#: The Runge-Kutta flow chooses its steps; rounding shifts them within its tolerance.
SAME = {"exact": 1e-10, "runge-kutta": 1e-7}


def _free(problem: jfric.Problem) -> dict[str, jax.Array]:
    """Parameters that can vary: all but the span of time."""
    return {k: v for k, v in jfric.parameters(problem).items() if not k.startswith("time.")}


def _lanes(free: dict[str, jax.Array], count: int) -> dict[str, jax.Array]:
    """Variations by up to two percent; what is zero stays zero."""
    rng = np.random.default_rng(5)
    return {
        k: v * jnp.asarray(1.0 + 0.02 * rng.uniform(-1.0, 1.0, (count, *v.shape)), v.dtype)
        for k, v in free.items()
    }


def _changes(log: Events, elements: int) -> jax.Array:
    """Number of changes of mode of each contact and piecewise-linear element."""
    used = jnp.arange(log.time.size) < log.count
    return jnp.zeros(elements, int).at[log.contact].add(used, mode="drop")


def _fields(solution: jfric.Solution) -> dict[str, jax.Array]:
    log = solution.events
    names = ("q", "v", "a", "lambda_n", "lambda_t", "mode", "segment", "status")
    table = {name: getattr(solution, name) for name in names}
    return table | {"events": log.time, "changes": _changes(log, len(solution.names))}


def test_every_law_has_an_example():
    # Laws of discs, which need a plane and a spin, have tests of their own (test_disc.py).
    assert set(LAW_EXAMPLES) == {name for name, law in LAWS.items() if not law.spins}


#: The Runge-Kutta flow of every law compiles for longest; every law is there with the exact flow.
#: Derivatives with unilateral contacts have tests of their own (test_derivatives.py).
LONG = ("laws-runge-kutta", "unilateral-exact", "motors-exact")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c in LONG else c for c in CASES]
)
def test_protocol(case, monkeypatch):
    flow, build = CASES[case]
    problem = build()
    solver = jfric.EventDriven(flow=flow, max_events=64)
    ts = jnp.asarray(TIMES)
    traces = []
    solve = jfric.EventDriven.solve

    def counted(self, *arguments, **options):
        traces.append(self)
        return solve(self, *arguments, **options)

    monkeypatch.setattr(jfric.EventDriven, "solve", counted)

    def run(values):
        return _fields(jfric.simulate(jfric.set_parameters(problem, values), solver, ts=ts))

    lanes = _lanes(_free(problem), 3)
    # Called directly, again and again: one trace.
    single = [run({k: v[i] for k, v in lanes.items()}) for i in range(3)]
    assert len(traces) == 1
    for result in single:
        assert int(result["status"]) == jfric.Status.OK
        assert np.all(result["changes"] >= 2), result["changes"]
        assert np.isfinite(result["q"]).all()

    # Compiled, batched and differentiated at once: the same values, and finite derivatives.
    directions = {k: jnp.ones_like(v) * v for k, v in lanes.items()}
    batched = jax.jit(jax.vmap(lambda x, dx: jax.jvp(run, (x,), (dx,))))
    values, slopes = batched(lanes, directions)
    for i, result in enumerate(single):
        for field, value in result.items():
            np.testing.assert_allclose(
                values[field][i], value, rtol=SAME[flow], atol=SAME[flow], err_msg=field
            )
    for field in ("q", "v"):
        assert np.isfinite(slopes[field]).all()
        assert np.abs(slopes[field]).max() > 0
    # Inputs of other values and equal shapes: no further trace.
    before = len(traces)
    batched(_lanes(_free(problem), 3), directions)
    run({k: v[0] * 1.01 for k, v in lanes.items()})
    assert len(traces) == before


def test_another_end_is_no_reason_to_compile(monkeypatch):
    ends = []
    solve = jfric.EventDriven.solve

    def counted(self, problem, ts, start, end, **options):
        ends.append(end)
        return solve(self, problem, ts, start, end, **options)

    monkeypatch.setattr(jfric.EventDriven, "solve", counted)
    problem = _oscillators(("coulomb",))
    found = [jfric.simulate(problem, jfric.EventDriven(), end=end).final.t for end in (1, 0.5)]
    assert found == [1.0, 0.5]
    assert len(ends) == 1


_DROP = functools.partial(_oscillators, ("static-dynamic",))


@pytest.mark.parametrize(
    ("flow", "build"),
    [
        ("exact", _DROP),
        pytest.param("runge-kutta", _DROP, marks=pytest.mark.slow),
        pytest.param("exact", _motors, marks=pytest.mark.slow),
    ],
    ids=["exact", "runge-kutta", "motors-exact"],
)
def test_single_precision(flow, build):
    """Single-precision inputs give single-precision results, and one warning."""
    warn_once.cache_clear()
    reference = jfric.simulate(build(), jfric.EventDriven(flow=flow), ts=TIMES)
    with jax.enable_x64(False), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem, ts = build(), jnp.asarray(TIMES, jnp.float32)
        solutions = [jfric.simulate(problem, jfric.EventDriven(flow=flow), ts=ts) for _ in range(2)]
    about = [w for w in caught if "float32" in str(w.message)]
    assert len(about) == 1
    for solution in solutions:
        floating = [x for x in jax.tree.leaves(solution) if jnp.issubdtype(x.dtype, jnp.floating)]
        assert {x.dtype for x in floating} == {jnp.dtype("float32")}
        assert int(solution.status) == jfric.Status.OK
        for field in ("q", "v"):
            exact = np.asarray(getattr(reference, field))
            scale = np.abs(exact).max()
            np.testing.assert_allclose(
                getattr(solution, field), exact, rtol=0, atol=1e-4 * scale, err_msg=field
            )
    np.testing.assert_array_equal(solution.events.count, reference.events.count)
