"""Derivatives through events against closed forms, in forward and in reverse mode.

Every derivative is taken under ``vmap``: the cases of one structure are lanes of one batch, so
that each structure is compiled once for each mode. Runs have no outputs: the end of a lane is the
time at which its state is wanted.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import jfric
from jfric.numerics.by_batch import MOST, with_sensitivities
from jfric.system.derived_functions import Limited

MODES = ("forward", "reverse")

Values = Mapping[str, object]


def _one(array: jax.Array) -> jax.Array:
    """One, in the first place where the parameter is an array."""
    return jnp.zeros(array.size).at[0].set(1.0).reshape(array.shape)


@functools.partial(jax.jit, static_argnames=("solver", "components"))
def _evaluate(problem, solver, components, values, seeds):
    """Components, their derivatives, status and flags for each row of ``values``.

    ``seeds``: in forward mode a direction in parameter space for each row, which gives the
    derivatives of all components; in reverse mode weights of the components, which give the
    derivatives to all parameters.
    """

    def outcome(values):
        solution = jfric.simulate(jfric.set_parameters(problem, values), solver)
        events, final = solution.events, solution.final
        table = {f"q{i}": x for i, x in enumerate(final.q)}
        table |= {f"v{i}": x for i, x in enumerate(final.v)}
        table |= {f"t{i}": x for i, x in enumerate(events.time)}
        if solver.max_events:
            table["last"] = events.time[jnp.clip(events.count, 1, solver.max_events) - 1]
        found = jnp.stack([table[c] for c in components])
        return found, (solution.status, solution.flags)

    def row(values, seed):
        if solver.adjoint == "forward":
            value, slope, rest = jax.jvp(outcome, (values,), (seed,), has_aux=True)
        else:
            value, pull, rest = jax.vjp(outcome, values, has_aux=True)
            (slope,) = pull(seed)
        return value, slope, *rest

    return jax.vmap(row)(values, seeds)


class Lanes:
    """Derivatives of all lanes of one structure in one mode: ``lanes.d(lane, component, path)``.

    Components: ``q0, q1, ..., v0, ..., t0, ...`` for positions, velocities and event times,
    ``last`` for the time of the last event.
    """

    def __init__(
        self,
        problem: jfric.Problem,
        lanes: Mapping[str, Values],
        paths: tuple[str, ...],
        components: tuple[str, ...],
        mode: str,
        *,
        events: int = 0,
        wanted: Mapping[str, tuple[str, ...]] | None = None,
    ):
        """``wanted``: the paths of a lane in forward mode, where they are not all ``paths``."""
        self.components = components
        wanted = wanted or {}
        self.paths = {
            name: paths if mode == "reverse" else wanted.get(name, paths)
                      for name in lanes}  # fmt: skip
        known = {k: v for k, v in jfric.parameters(problem).items() if eqx.is_array(v)}
        used = dict.fromkeys((*paths, *(path for lane in lanes.values() for path in lane)))
        inner = self.paths if mode == "forward" else dict.fromkeys(lanes, components)
        rows = [(name, x) for name in lanes for x in inner[name]]
        self.row = {row: i for i, row in enumerate(rows)}
        values = {
            path: jnp.stack([jnp.asarray(lanes[name].get(path, known[path]), float)
                             for name, _ in rows])
            for path in used
        }  # fmt: skip
        if mode == "forward":
            seeds = {
                path: jnp.stack([_one(known[path]) * (path == x) for _, x in rows]) for path in used
            }
        else:
            seeds = jnp.tile(jnp.eye(len(components)), (len(lanes), 1))
        solver = jfric.EventDriven(adjoint=mode, max_steps=512, max_events=events)
        value, slope, status, flags = _evaluate(problem, solver, components, values, seeds)
        self.mode, self.values = mode, np.asarray(value)
        self.slopes = jax.tree.map(np.asarray, slope)
        self.status, self.flags = np.asarray(status), np.asarray(flags)
        first = [self.row[name, inner[name][0]] for name in lanes]
        self.primal = dict(zip(lanes, self.values[first], strict=True))

    def d(self, lane: str, component: str, path: str) -> float:
        if self.mode == "forward":
            return float(self.slopes[self.row[lane, path], self.components.index(component)])
        return float(np.ravel(self.slopes[path][self.row[lane, component]])[0])

    def value(self, lane: str, component: str) -> float:
        return float(self.primal[lane][self.components.index(component)])

    def all_finite(self, lane: str) -> bool:
        """Of positions and velocities; unused event times are not numbers."""
        state = [c for c in self.components if c[0] in "qv"]
        found = [self.value(lane, c) for c in state]
        found += [self.d(lane, c, path) for c in state for path in self.paths[lane]]
        return bool(np.isfinite(found).all())


# Two structures. Systems that lack an element have it with zero stiffness, amplitude or
# coefficient, or out of reach.

OSCILLATOR = {
    f"mu{mu}-t{end}": {"mu": mu, "time.end": float(end)}
    for mu, end in [(0.1, 1), (0.1, 2), (0.11, 1), (0.11, 2), (0.11, 4)]
}
#: Zero velocity throughout or no friction: where careless formulas give not-a-number.
AT_ZERO = {
    "rest": {"load.constant.F": 0.0},
    "stick": {"load.constant.F": 50.0},
    "frictionless": {"mu": 0.0},
    "frictionless-rest": {"mu": 0.0, "load.constant.F": 0.0},
    "no-normal-force": {"friction.N": 0.0},
    "no-friction-at-all": {"mu": 0.0, "friction.N": 0.0},
}
#: Both coefficients of the law are ``mu``.
OSCILLATOR_PATHS = ("mu", "spring.wall.k", "parameters.m", "load.constant.F", "friction.N")
AT_ZERO_PATHS = ("friction.mu_s", "friction.mu_d", "initial.x1.q", "initial.x1.v")
GAP_PATHS = (
    "parameters.m", "gap_spring.k_positive", "gap_spring.k_negative", "gap_spring.gap_positive",
    "gap_spring.gap_negative", "initial.x1.q",
)  # fmt: skip
BELT_PATHS = (
    "friction.belt", "friction.mu_s", "friction.mu_d", "spring.wall.k", "parameters.m",
)  # fmt: skip
TWO_MASSES_PATHS = (
    "parameters.m", "spring.link.k", "friction.N", "friction.mu_s", "friction.mu_d",
    "load.push.F.values", "load.push.F.times",
)  # fmt: skip
START_PATHS = ("initial.x1.q", "initial.x2.q", "initial.x1.v", "initial.x2.v")
#: State of the two masses shortly before the first sticks, at t = 0.31.
BEFORE = np.array([3.950983016310426, 3.962542012191706, 1.874107900553645, 0.5174852334043666])
#: Two masses under harmonic load; derivatives are compared with finite differences.
SHAKEN = {
    "parameters.m": 1.5, "spring.wall.k": 30.0, "spring.link.k": 50.0, "damper.c": 0.3,
    "friction.N": 10.0, "friction.mu_s": 0.3, "friction.mu_d": 0.2,
    "load.shake.F.amplitude": 12.0, "load.shake.F.omega": 4.0, "load.shake.F.phase": 0.3,
    "initial.x1.q": 0.02, "initial.x2.v": 0.5, "time.end": 5.0,
}  # fmt: skip
SHAKEN_PATHS = tuple(p for p in SHAKEN if p != "time.end")
#: Fourth-order central differences.
STEP, WEIGHTS = 1e-4, {-2: 1.0, -1: -8.0, 1: 8.0, 2: -1.0}
EVENTS = 16


@functools.cache
def masses(mode: str) -> Lanes:
    """A mass on a spring, with friction, clearance or a belt; two masses."""
    m = jfric.Expression("$m")
    problem = jfric.Problem(
        ("x1", "x2"),
        {
            "mass": {"first": jfric.Mass("x1", m), "second": jfric.Mass("x2", m)},
            "spring": {
                "wall": jfric.Spring("x1", 0.0),
                "link": jfric.Spring(("x1", "x2"), 0.0),
            },
            "damper": jfric.Damper(("x1", "x2"), 0.0),
            "gap_spring": jfric.GapSpring("x1", 0.0, 0.0, 1e3, 1e3),
            "friction": jfric.Friction("x1", jfric.StaticDynamic(0.0, 0.0), N=1.0, belt=0.0),
            "load": {
                "constant": jfric.Load("x1", 0.0),
                "push": jfric.Load("x2", jfric.Steps([0.2], [0.0, 0.0])),
                "shake": jfric.Load("x2", jfric.Harmonic(0.0, 1.0)),
            },
        },
        parameters={"m": 1.0},
    )
    lanes: dict[str, Values] = {}
    for name, lane in (OSCILLATOR | AT_ZERO).items():
        changes = dict(lane)
        mu = changes.pop("mu", 0.1)
        friction = {"friction.mu_s": mu, "friction.mu_d": mu, "friction.N": 1e3}
        system = {"parameters.m": 100.0, "spring.wall.k": 5e3, "load.constant.F": 1500.0}
        lanes[name] = system | friction | changes
    lanes["gap"] = {
        "parameters.m": 10.0, "gap_spring.k_positive": 1e5, "gap_spring.k_negative": 1e4,
        "gap_spring.gap_positive": 5e-3, "gap_spring.gap_negative": 5e-3, "initial.x1.q": 1e-2,
        "time.end": 0.25,
    }  # fmt: skip
    lanes["belt"] = {
        "spring.wall.k": 1.0, "friction.mu_s": 1.0, "friction.mu_d": 0.5, "friction.belt": 0.2,
        "time.end": 15.0,
    }  # fmt: skip
    pushed = {
        "parameters.m": 5.0, "spring.link.k": 1e4, "friction.N": 1e4, "friction.mu_s": 0.3,
        "friction.mu_d": 0.2, "load.push.F.values": (3e3, 0.0), "time.end": 0.35,
    }  # fmt: skip
    lanes["pushed-t0.15"] = pushed | {"time.end": 0.15}
    lanes["pushed"] = pushed
    restick = {"time.start": 0.31, "time.end": 0.32}
    lanes["restick"] = pushed | dict(zip(START_PATHS, BEFORE, strict=True)) | restick
    lanes["unpushed"] = pushed | {"load.push.F.values": (0.0, 0.0)}
    lanes["frictionless-pair"] = pushed | {"friction.mu_s": 0.0, "friction.mu_d": 0.0}
    lanes["shaken"] = SHAKEN
    wanted: dict[str, tuple[str, ...]] = {"shaken": SHAKEN_PATHS, "gap": GAP_PATHS}
    wanted |= {"belt": BELT_PATHS, "restick": START_PATHS}
    wanted |= dict.fromkeys((*OSCILLATOR, *AT_ZERO), (*OSCILLATOR_PATHS[1:], *AT_ZERO_PATHS))
    wanted |= {name: TWO_MASSES_PATHS for name in lanes if name not in wanted}
    if mode == "forward":
        for path in SHAKEN_PATHS:
            for k in WEIGHTS:
                lanes[f"{path}{k:+d}"] = SHAKEN | {path: SHAKEN[path] * (1.0 + k * STEP)}
                wanted[f"{path}{k:+d}"] = SHAKEN_PATHS[:1]  # only its value is used
    components = ("q0", "q1", "v0", "v1", *(f"t{i}" for i in range(EVENTS)))
    groups = (OSCILLATOR_PATHS[1:], GAP_PATHS, BELT_PATHS, TWO_MASSES_PATHS, START_PATHS)
    paths = dict.fromkeys(path for group in (*groups, SHAKEN_PATHS) for path in group)
    return Lanes(problem, lanes, tuple(paths), components, mode, events=EVENTS, wanted=wanted)


CONTACT_PATHS = (
    "parameters.a", "parameters.b", "parameters.c", "parameters.F", "parameters.fnu",
    "parameters.e", "initial.un.q", "initial.ut.q", "initial.ut.v",
)  # fmt: skip
#: State at the start of a period on the attractor.
ATTRACTOR = {
    "4.1": (-0.2945806198437921, 0.04006514979671826),
    "none": (0.3166853655145929, -0.2434791092495266),
    "coulomb": (0.2281414827240851, -0.1127200736097089),
}
PERIOD = 12.0 * np.pi
#: A ball falling along the normal.
BALL = {
    "parameters.b": 0.0, "parameters.c": 0.0, "parameters.F": 0.0, "parameters.fnu": 9.81,
    "parameters.e": 0.8, "initial.un.q": -1.0, "initial.ut.v": 0.0,
}  # fmt: skip


def _period(name: str) -> dict[str, object]:
    x, v = ATTRACTOR[name]
    return {"initial.ut.q": x, "initial.ut.v": v, "time.end": PERIOD}


@functools.cache
def contact(mode: str) -> Lanes:
    """Examples 4.1 and 4.2 under both impact laws, and a bouncing ball.

    One contact of each law; the gap of the one that takes no part is out of reach.
    """
    b, c = jfric.Expression("-$b"), jfric.Expression("-$c")
    problem = jfric.Problem(
        ("un", "ut"),
        {
            "mass": {x: jfric.Mass(x, jfric.Expression("$a")) for x in ("un", "ut")},
            "contact": {
                law: jfric.Contact(
                    {"un": -1.0}, "ut", jfric.Coulomb(jfric.Expression("$F")),
                    gap=0.0, e=jfric.Expression("$e"), impact=law,
                )
                for law in ("none", "coulomb")
            },
            "load": {
                "normal": jfric.Load("un", jfric.Expression("$fnu")),
                "tangential": jfric.Load("ut", jfric.Harmonic(1.0, 1.0 / 6.0)),
            },
        },
        initial={"ut": jfric.InitialState(v=0.1)},
        parameters={"a": 1.0, "b": -1.2, "c": 1.0, "F": 0.3, "fnu": 0.5, "e": 0.0},
        matrices=jfric.Matrices(K=[[b, c], [c, b]]),
    )  # fmt: skip
    lanes: dict[str, Values] = {}
    for law, other in (("none", "coulomb"), ("coulomb", "none")):
        away = {f"contact.{other}.gap": 1e3}
        for end in (30, 100):
            lanes[f"4.2-{law}-t{end}"] = away | {"time.end": float(end)}
        lanes[f"4.2-{law}-period"] = away | _period(law)
    sliding = {"parameters.F": 0.4, "parameters.fnu": 1.3, "contact.none.gap": 1e3}
    lanes |= {f"4.1-t{end}": sliding | {"time.end": float(end)} for end in (5, 30, 100)}
    lanes["4.1-period"] = sliding | _period("4.1")
    for end in (1.0, 1.5, 2.0, 4.5):
        lanes[f"ball-t{end}"] = BALL | {"contact.none.gap": 1e3, "time.end": end}
    components = ("q0", "q1", "v0", "v1", "last")
    return Lanes(problem, lanes, CONTACT_PATHS, components, mode, events=128)


def _both(structure: str):
    """Tests that share compiled programs stay in one process of a parallel run."""
    group = pytest.mark.xdist_group(f"derivatives-{structure}")
    # Reverse mode compiles for a minute: on request. tests/test_sweep.py has a small case of it.
    marks = {"forward": [group], "reverse": [group, pytest.mark.slow]}
    return pytest.mark.parametrize("mode", [pytest.param(m, marks=marks[m]) for m in MODES])


# Oscillator with Coulomb friction.


def _displacement(end: float, mu, k, m, F, N):
    """Closed form while sliding to the right for the second, third or last time, and at rest."""
    x, d = F / k, mu * N / k
    if end == 4.0:
        return 2.0 * x - 14.0 * d
    turning = {1.0: 4.0 * d, 2.0: 8.0 * d}[end]
    return (x - d) + (turning - (x - d)) * jnp.cos(jnp.sqrt(k / m) * end)


#: For mu, k, m, F, N.
PRINTED = {
    1: (0.5053479063084423, 7.246204152820476e-5, -5.012406263793353e-3, 5.893041873831154e-5,
        5.053479063084423e-5),
    2: (-0.2089435918386688, 1.135842847680480e-4, None, 2.009937324265188e-4, None),
}  # fmt: skip


def _slope(lanes: Lanes, lane: str, path: str) -> float:
    if path == "mu":
        return lanes.d(lane, "q0", "friction.mu_s") + lanes.d(lane, "q0", "friction.mu_d")
    return lanes.d(lane, "q0", path)


@pytest.mark.parametrize("lane", OSCILLATOR)
@_both("masses")
def test_oscillator(mode, lane):
    lanes = masses(mode)
    mu, end = OSCILLATOR[lane]["mu"], OSCILLATOR[lane]["time.end"]
    x = (mu, 5e3, 100.0, 1500.0, 1e3)
    assert lanes.value(lane, "q0") == pytest.approx(float(_displacement(end, *x)), rel=1e-12)
    exact = jax.grad(lambda x: _displacement(end, *x))(x)
    for path, value in zip(OSCILLATOR_PATHS, exact, strict=True):
        # A derivative that is zero, such as that of the rest position to the mass, has no scale.
        np.testing.assert_allclose(
            _slope(lanes, lane, path), value, rtol=1e-8, atol=1e-14, err_msg=path
        )


@pytest.mark.parametrize("end", [1, 2])
@_both("masses")
def test_oscillator_printed_values(mode, end):
    for path, value in zip(OSCILLATOR_PATHS, PRINTED[end], strict=True):
        if value is not None:
            found = _slope(masses(mode), f"mu0.1-t{end}", path)
            assert found == pytest.approx(value, rel=1e-8), path


@_both("masses")
def test_nothing_is_undefined_at_zero_velocity(mode):
    lanes = masses(mode)
    assert np.all(lanes.status == jfric.Status.OK)
    for lane in (*OSCILLATOR, *AT_ZERO):
        assert lanes.all_finite(lane), lane
    for lane in ("rest", "stick"):
        for path in OSCILLATOR_PATHS:
            assert _slope(lanes, lane, path) == 0.0, (lane, path)
        # A body at rest stays where it is put.
        assert lanes.d(lane, "q0", "initial.x1.q") == 1.0


WITHOUT_FRICTION = ("frictionless", "no-normal-force", "no-friction-at-all")


@pytest.mark.parametrize("lane", WITHOUT_FRICTION)
@_both("masses")
def test_without_friction(mode, lane):
    """u = u0 + (F/k - u0) (1 - cos wt) + (v0/w) sin wt at u0 = v0 = 0."""
    lanes = masses(mode)
    w, k = np.sqrt(50.0), 5e3
    assert lanes.value(lane, "q0") == pytest.approx(0.3 * (1.0 - np.cos(w)), rel=1e-12)
    assert _slope(lanes, lane, "load.constant.F") == pytest.approx((1.0 - np.cos(w)) / k, rel=1e-9)
    assert _slope(lanes, lane, "initial.x1.q") == pytest.approx(np.cos(w), rel=1e-9)


@pytest.mark.parametrize("lane", WITHOUT_FRICTION)
@_both("masses")
def test_start_velocity_without_friction(mode, lane):
    """Nothing holds the body: its velocity at the start is free, although it is zero."""
    w = np.sqrt(50.0)
    found = _slope(masses(mode), lane, "initial.x1.v")
    assert found == pytest.approx(np.sin(w) / w, rel=1e-9)


@pytest.mark.parametrize("lane", ["frictionless", "no-normal-force"])
@_both("masses")
def test_onset_of_friction(mode, lane):
    """The derivative to the friction coefficient at zero is that of any small one."""
    exact = jax.grad(lambda mu, N: _displacement(1.0, mu, 5e3, 100.0, 1500.0, N), (0, 1))
    mu, N = AT_ZERO[lane].get("mu", 0.1), AT_ZERO[lane].get("friction.N", 1e3)
    to_mu, to_N = exact(mu, N)
    assert _slope(masses(mode), lane, "mu") == pytest.approx(float(to_mu), rel=1e-8)
    assert _slope(masses(mode), lane, "friction.N") == pytest.approx(float(to_N), rel=1e-8)


# Spring with clearance, relaxation oscillation.


@_both("masses")
def test_gap_spring(mode):
    d = {path: masses(mode).d("gap", "q0", path) for path in GAP_PATHS}
    assert d["parameters.m"] == pytest.approx(1.206439793746548e-3, rel=1e-8)
    assert d["gap_spring.k_positive"] == pytest.approx(-1.292655098582882e-7, rel=1e-8)
    assert d["gap_spring.k_negative"] == pytest.approx(8.621530483633429e-8, rel=1e-8)
    both = d["gap_spring.gap_positive"] + d["gap_spring.gap_negative"]
    assert both == pytest.approx(4.419168422000404, rel=1e-8)
    assert d["initial.x1.q"] == pytest.approx(-4.260986220003718, rel=1e-8)


@_both("masses")
def test_period_on_a_belt(mode):
    lanes = masses(mode)
    expected = (
        -21.551724137931, 8.6206896551724, -8.6206896551724, -6.6064751177004, 2.2961302901142,
    )  # fmt: skip
    for path, value in zip(BELT_PATHS, expected, strict=True):
        # From the start of one slip phase to the start of the next.
        found = lanes.d("belt", "t3", path) - lanes.d("belt", "t1", path)
        assert found == pytest.approx(value, rel=1e-8), path


# Two masses.


TWO_MASSES = {
    ("pushed-t0.15", "q0"): (-0.236798211166, -1.69346605065e-5, -1.62816467135e-4, -0.95425424428,
                      -6.70944199033, 9.93834110748e-4, None),
    ("pushed", "t1"): (0.0244577589909, -1.22288794954e-5, -1.47335166526e-5, -0.0274544542749,
                      -0.695494151218, 4.91117221754e-5, 0.351728427694),
    ("pushed", "q0"): (-0.610477989706, -9.03215824968e-5, -8.45182344487e-4, -1.97776199277,
                      -39.2924742352, 4.13580973946e-3, 30.5238994853),
}  # fmt: skip


@pytest.mark.parametrize(("lane", "component"), TWO_MASSES)
@_both("masses")
def test_two_masses(mode, lane, component):
    for path, value in zip(TWO_MASSES_PATHS, TWO_MASSES[lane, component], strict=True):
        if value is not None:
            found = masses(mode).d(lane, component, path)
            assert found == pytest.approx(value, rel=1e-8), path


@_both("masses")
def test_two_masses_at_rest_and_without_friction(mode):
    lanes = masses(mode)
    assert np.all(lanes.status == jfric.Status.OK)
    for lane in ("unpushed", "frictionless-pair"):
        assert lanes.all_finite(lane), lane
    assert lanes.d("unpushed", "q0", "friction.mu_s") == 0.0


@_both("masses")
def test_slip_to_stick_erases_one_direction(mode):
    """The derivative of the state after the first mass sticks to the state before.

    The exact one is ``exp(A_stick s) S exp(A_slip r)`` with the saltation matrix
    ``S = I + (f_after - f_before) n^T / (n^T f_before)`` of the event ``n^T x = 0``.
    """
    lanes = masses(mode)
    state = ("q0", "q1", "v0", "v1")
    found = np.array([[lanes.d("restick", c, path) for path in START_PATHS] for c in state])
    K = 1e4 / 5.0 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    slip = np.block([[np.zeros((2, 2)), np.eye(2)], [-K, np.zeros((2, 2))]])
    stick = slip.copy()
    stick[0] = stick[2] = 0.0
    friction = np.array([0.0, 0.0, -0.2 * 1e4 / 5.0, 0.0])
    time = lanes.value("restick", "t0")
    affine = np.block([[slip, friction[:, None]], [np.zeros((1, 5))]])
    x = (scipy.linalg.expm(affine * (time - 0.31)) @ np.append(BEFORE, 1.0))[:4]
    assert abs(x[2]) < 1e-10
    x[2] = 0.0
    n = np.array([0.0, 0.0, 1.0, 0.0])
    before, after = slip @ x + friction, stick @ x
    saltation = np.eye(4) + np.outer(after - before, n) / (n @ before)
    exact = scipy.linalg.expm(stick * (0.32 - time)) @ saltation
    exact = exact @ scipy.linalg.expm(slip * (time - 0.31))
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-9 * np.abs(exact).max())
    assert np.linalg.matrix_rank(saltation, tol=1e-10) == 3
    # In units in which the entries are comparable.
    w = np.sqrt(2000.0)
    scale = np.array([1.0, 1.0, 1.0 / w, 1.0 / w])
    values = np.linalg.svd(found * scale[:, None] / scale, compute_uv=False)
    assert values[2] > 1e-2
    assert values[3] < 1e-12


@_both("masses")
def test_finite_differences_under_harmonic_load(mode):
    """Perturbed lanes keep the sequence of modes; the differences come from forward mode's."""
    lanes, perturbed = masses(mode), masses("forward")
    components = lanes.components
    count = int(np.isfinite(perturbed.primal["shaken"]).sum())
    assert count >= 4 + 6
    for path in SHAKEN_PATHS:
        values = np.array([perturbed.primal[f"{path}{k:+d}"] for k in WEIGHTS])
        assert np.all(np.isfinite(values).sum(1) == count)
        differences = np.array(list(WEIGHTS.values())) @ values / (12.0 * STEP * SHAKEN[path])
        found = np.array([lanes.d("shaken", c, path) for c in components[:count]])
        scale = np.abs(found).max()
        np.testing.assert_allclose(
            found, differences[:count], rtol=1e-7, atol=1e-8 * scale, err_msg=path
        )


# Unilateral contact.


SLIDING = {
    ("4.1-t5", "q1"): {"F": -1.184762109016, "fnu": -0.3587688125433, "b": 0.01876346824988,
                       "c": -0.00750538729995, "v": -0.08637407865304, "a": -0.06379460876622},
    ("4.1-t5", "v1"): {"F": -0.926051441057, "fnu": -0.2741148800306, "b": 0.03517808095755,
                       "c": -0.01407123238302, "v": -0.2176765531784, "a": -0.08360872642089},
    ("4.1-t30", "q1"): {"F": -0.7868104027012, "fnu": 0.2740706639479, "b": -1.488428584654,
                        "c": -0.6710160242128, "v": 0.02056434178937},
    ("4.1-t100", "q1"): {"F": 3.366068039885, "fnu": 1.082998597509, "b": -0.4042080793288},
    ("4.1-t100", "v1"): {"F": -2.585854897042, "fnu": -0.4897107887119, "b": -0.7838525168747},
}  # fmt: skip
#: Components x1, x2, x3, x4 of the paper: normal position and velocity, then tangential ones.
STATE = ("q0", "v0", "q1", "v1")
FLIGHT = {
    "F": (2.090922924247, 2.181480137044, 1.657355505095, -0.2870524480684),
    "fnu": (4.580062052146, -0.1171254860131, 4.831186154468, -0.788890000742),
    "b": (-6.540608524445, -1.021940605549, -7.246632013014, -2.264246341107),
    "c": (-7.280843281261, -1.738336405897, -7.601871200747, -1.813457482835),
    "v": (0.2072052271474, 0.2252910700775, 0.170644434697, -0.02898658647603),
}
AFTER_IMPACTS = {
    "none": (-3.46816742449, -0.04559439198634, -1.84837160499, -0.2509788662432),
    "coulomb": (-2.294256375299, -0.2757726274868, -1.220767958208, -0.03516453214911),
}
#: With an absolute tolerance: the digits known. The last by an independent period map, segment by
#: segment through matrix exponentials.
MULTIPLIER = {
    "4.1": (-0.0368849044, 5e-11),
    "none": (-9.184498649e-4, 5e-14),
    "coulomb": (-0.1019354265, 2e-10),
}


def _path(symbol: str) -> str:
    return "initial.ut.v" if symbol == "v" else f"parameters.{symbol}"


@pytest.mark.parametrize(("lane", "component"), SLIDING)
@_both("contact")
def test_sliding_contact(mode, lane, component):
    lanes = contact(mode)
    for symbol, value in SLIDING[lane, component].items():
        assert lanes.d(lane, component, _path(symbol)) == pytest.approx(value, rel=1e-8), symbol


BY_LAW = pytest.mark.parametrize("law", ["none", "coulomb"])


@BY_LAW
@_both("contact")
def test_in_flight(mode, law):
    """Before the first impact both laws agree."""
    lanes = contact(mode)
    for symbol, values in FLIGHT.items():
        found = [lanes.d(f"4.2-{law}-t30", component, _path(symbol)) for component in STATE]
        np.testing.assert_allclose(found, values, rtol=1e-8, err_msg=symbol)


@BY_LAW
@_both("contact")
def test_after_impacts(mode, law):
    found = [contact(mode).d(f"4.2-{law}-t100", x, "parameters.F") for x in STATE]
    np.testing.assert_allclose(found, AFTER_IMPACTS[law], rtol=1e-8)


@_both("contact")
def test_all_derivatives_with_contact_are_finite(mode):
    lanes = contact(mode)
    assert np.all(lanes.status == jfric.Status.OK)
    for lane in lanes.primal:
        assert lanes.all_finite(lane), lane


def _check_multiplier(lanes: Lanes, lane: str, name: str) -> None:
    """The one multiplier that stick leaves: the trace of a map of rank one."""
    start = ("initial.ut.q", "initial.ut.v")
    monodromy = np.array([[lanes.d(lane, c, path) for path in start] for c in ("q1", "v1")])
    assert np.linalg.svd(monodromy, compute_uv=False)[1] < 1e-12
    expected, digits = MULTIPLIER[name]
    assert np.trace(monodromy) == pytest.approx(expected, rel=0, abs=digits)
    # The period map returns to its start.
    found = [lanes.value(lane, c) for c in ("q1", "v1")]
    np.testing.assert_allclose(found, ATTRACTOR[name], rtol=0, atol=1e-12)


@_both("contact")
def test_floquet_multiplier_of_stick_slip(mode):
    _check_multiplier(contact(mode), "4.1-period", "4.1")


@BY_LAW
@_both("contact")
def test_floquet_multiplier_with_impacts(mode, law):
    _check_multiplier(contact(mode), f"4.2-{law}-period", law)


def _ball(e, h, end: float):
    """Height in the flight that holds ``end``."""
    t1 = jnp.sqrt(2.0 * h / 9.81)
    speed, start = 9.81 * t1 * e, t1
    while start + 2.0 * speed / 9.81 < end:
        start, speed = start + 2.0 * speed / 9.81, speed * e
    return speed * (end - start) - 0.5 * 9.81 * (end - start) ** 2


@_both("contact")
def test_bouncing_ball(mode):
    """The printed values hold ten to fourteen digits; the closed form has them all."""
    lanes = contact(mode)
    printed = {
        1.0: (2.42944691807, 1.386502226263),
        1.5: (2.6390133575781, 0.67555601091015),
        2.0: (2.4993241133171, 0.42661086416353),
    }
    for end, values in printed.items():
        # The normal points along -un: the height is -un.
        to_e = -lanes.d(f"ball-t{end}", "q0", "parameters.e")
        to_h = lanes.d(f"ball-t{end}", "q0", "initial.un.q")
        exact = jax.grad(_ball, (0, 1))(0.8, 1.0, end)
        np.testing.assert_allclose(exact, values, rtol=1e-10)
        np.testing.assert_allclose((to_e, to_h), exact, rtol=1e-8)


@_both("contact")
def test_accumulation_time_of_impacts(mode):
    """t1 (1 + e) / (1 - e); its derivative to e is 2 t1 / (1 - e)^2."""
    lanes = contact(mode)
    lane, time = "ball-t4.5", 4.063712768871578
    assert lanes.value(lane, "last") == pytest.approx(time, rel=1e-10)
    assert lanes.d(lane, "last", "parameters.e") == pytest.approx(22.576182049287, rel=1e-8)
    # Proportional to the square root of the height.
    to_height = -lanes.d(lane, "last", "initial.un.q")
    assert to_height == pytest.approx(time / 2.0, rel=1e-8)


# The default: forward sensitivities that serve every transformation.

SWINGS = jfric.Problem(
    "x",
    {
        "mass": jfric.Mass("x", 2.0),
        "spring": jfric.Spring("x", 50.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
    },
    initial={"x": jfric.InitialState(q=0.5)},
    time=1.5,
)


def _swing(solver):
    """Last position and time of the second stop against mass and stiffness."""

    def found(x):
        changed = jfric.set_parameters(SWINGS, {"mass.m": x[0], "spring.k": x[1]})
        # Outputs and events that are never reached are in the result, too.
        solution = jfric.simulate(changed, solver, ts=jnp.array([0.7, 1.4]))
        return jnp.stack([solution.final.q[0], solution.events.time[1]])

    return found


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["exact", pytest.param("runge-kutta", marks=pytest.mark.slow)])
def test_gradients_and_second_derivatives(flow):
    """``x = (-1)^n A_n cos(w t)`` about ``(-1)^n d``, each half wave loses ``2 d = 2 mu N / k``."""
    found = _swing(jfric.EventDriven(flow=flow, max_events=8))

    def exact(x):
        m, k = x
        w, d = jnp.sqrt(k / m), 2.0 / k
        # Stops at pi/w, 2 pi/w; the third half wave starts from 0.5 - 4 d.
        return jnp.stack([d + (0.5 - 5.0 * d) * jnp.cos(1.5 * w), 2.0 * jnp.pi / w])

    def derivatives(function):
        """First and second derivatives, in one program."""

        def first(x):
            value, pull = jax.vjp(function, x)
            slopes = jax.vmap(pull)(jnp.eye(2))[0]
            return slopes, (value, slopes)

        def both(x):
            second, rest = jax.jacfwd(first, has_aux=True)(x)
            return *rest, second

        return both

    x = jnp.array([2.0, 50.0])
    results = jax.jit(derivatives(found))(x)
    # The polynomials of Runge-Kutta steps are less accurate than the steps.
    tolerances = {"exact": [1e-10, 1e-9, 1e-9], "runge-kutta": [1e-9, 1e-7, 2e-5]}[flow]
    for ours, closed, rtol in zip(results, derivatives(exact)(x), tolerances, strict=True):
        np.testing.assert_allclose(ours, closed, rtol=rtol)


def _jumping(times) -> jfric.Problem:
    """A mass in motion on which loads and a normal force jump, and another load bends."""
    a, b, N, c, d = times
    bent = jnp.stack([d, jnp.asarray(1.5)])
    loads = {
        "both": jfric.functions.Sum([jfric.Steps([a], [1.0, 3.0]), jfric.Steps([c], [0.0, -0.3])]),
        "down": jfric.Steps([b], [0.0, -1.0]),
        "bent": jfric.PiecewiseLinear(bent, jnp.array([0.0, -1.0])),
    }
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 3.0),
        "damper": jfric.Damper("x", 0.4),
        "friction": jfric.Friction("x", jfric.Coulomb(0.1), N=jfric.Steps([N], [1.0, 2.0])),
        "load": {name: jfric.Load("x", load) for name, load in loads.items()},
    }
    return jfric.Problem(["x"], elements, initial={"x": (0.0, 1.0)}, time=1.3)


@pytest.mark.parametrize(
    "how", ["exact", *(pytest.param(s, marks=pytest.mark.slow) for s in ("rk", "back"))]
)
def test_functions_that_jump_at_one_instant_have_derivatives_by_their_own_times(how):
    """They shared the derivative of one instant, without a flag."""
    solver = {
        "exact": jfric.EventDriven(),
        "rk": jfric.EventDriven(flow="runge-kutta", rtol=1e-12),
        "back": jfric.EventDriven(adjoint="reverse", max_steps=60),
    }[how]

    def end(times):
        solution = jfric.simulate(_jumping(times), solver)
        return jnp.concatenate([solution.final.q, solution.final.v]), solution

    times, h = jnp.full((5,), 0.7), 1e-6
    found, solution = (jax.jacrev if how == "back" else jax.jacfwd)(end, has_aux=True)(times)
    assert bool(solution.differentiable)
    value = jax.jit(lambda x: end(x)[0])
    for k, one in enumerate(np.eye(5)):
        slope = (value(times + h * one) - value(times - h * one)) / (2.0 * h)
        np.testing.assert_allclose(found[:, k], slope, rtol=1e-7)


def _of_two_steps(times, form):
    both = [jfric.Steps([times[0]], [-1.0, 2.0]), jfric.Steps([times[1]], [0.0, -1.5])]
    load = form(jfric.functions.Sum(both))
    return jfric.Problem(
        ["x"], {"mass": jfric.Mass("x", 1.0), "load": jfric.Load("x", load)}, time=3.0
    )


def test_the_terms_of_a_single_load_have_derivatives_by_their_own_times():
    """The sum of two steps was counted as one function that jumps."""

    def end(times):
        solution = jfric.simulate(_of_two_steps(times, lambda load: load))
        return solution.final.v[0], solution

    slopes, solution = jax.jacfwd(end, has_aux=True)(jnp.ones(2))
    np.testing.assert_allclose(slopes, [-3.0, 1.5], rtol=1e-12)
    assert bool(solution.differentiable)


@pytest.mark.parametrize("form", [jfric.functions.Clipped, lambda load: Limited(load, 1.0)])
def test_jumps_at_one_instant_within_a_limit_are_flagged(form):
    """What one of them does there depends on whether the other comes before."""
    problems = [_of_two_steps(times, form) for times in ((1.0, 1.0), (1.0, 1.25))]
    flags = [int(jfric.simulate(problem).flags) for problem in problems]
    assert flags == [jfric.Flag.SIMULTANEOUS, 0]


def test_a_history_in_which_loads_jump_at_one_instant_is_flagged():
    """Applied slowly, 10 N and then -8 N leave the spring elsewhere than -8 N and then 10 N."""

    def run(*times):
        steps = zip(times, (10.0, -8.0), strict=True)
        loads = {f"by{x:g}": jfric.Load("x", jfric.Steps([t], [0.0, x])) for t, x in steps}
        elements = {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 10.0),
            "friction": jfric.Friction("x", 0.3, N=10.0),
            "load": loads,
        }
        found = jfric.simulate(jfric.Problem(["x"], elements, time=3.0), jfric.QuasiStatic())
        return round(float(found.final.q[0]), 12), int(found.flags)

    assert run(1.0, 1.5) == (0.5, 0)
    assert run(1.5, 1.0) == (-0.1, 0)
    assert run(1.0, 1.0) == (0.0, jfric.Flag.SIMULTANEOUS)


@pytest.mark.parametrize("solver", [jfric.MoreauJean(1e-3), jfric.Smoothed(width=0.1)])
def test_jumps_whose_times_have_no_derivatives_are_flagged(solver):
    """Time stepping has none by the times of jumps; the smoothed solver shares those of equal
    times."""

    def flags(*times):
        load = {f"{k}": jfric.Load("x", jfric.Steps([t], [0.0, 1.0])) for k, t in enumerate(times)}
        elements = {"mass": jfric.Mass("x", 1.0), "load": load}
        return int(jfric.simulate(jfric.Problem(["x"], elements, time=1.0), solver).flags)

    stepping = isinstance(solver, jfric.MoreauJean)
    assert flags(1.0, 1.0) == 0
    assert flags(0.25, 0.5) == (jfric.Flag.STEP_RESOLUTION if stepping else 0)
    assert flags(0.5, 0.5) == (jfric.Flag.STEP_RESOLUTION if stepping else jfric.Flag.SIMULTANEOUS)


def test_sensitivities_of_few_and_of_many_numbers():
    """``p x0 2^n`` by a loop that has no reverse mode of its own."""

    def doubled(x, p, n):
        end = jax.lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, 2.0 * c[1]), (0, p * x))
        return {"x": end[1], "steps": end[0], "never": jnp.full(2, jnp.nan) * x[0], "name": "x"}

    def total(x, p, n):
        found = with_sensitivities(doubled, x, p, n)
        assert found["name"] == "x"
        return jnp.sum(found["x"]), found["steps"]

    few, p = jnp.arange(1.0, 4.0), jnp.asarray(3.0)
    slope, steps = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True))(few, p, 5)
    assert int(steps) == 5
    np.testing.assert_array_equal(slope[0], [96.0, 96.0, 96.0])
    np.testing.assert_array_equal(slope[1], 32.0 * 6.0)
    lanes = jax.vmap(jax.grad(total, has_aux=True), in_axes=(None, None, 0))
    np.testing.assert_array_equal(lanes(few, p, jnp.arange(3))[0][:, 0], [3.0, 6.0, 12.0])
    many = jnp.ones(MOST + 1)
    _, change, _ = jax.jvp(lambda x: total(x, p, 5), (many,), (2.0 * many,), has_aux=True)
    np.testing.assert_array_equal(change, 192.0 * many.size)
    with pytest.raises(RuntimeError, match="adjoint: 'auto' with 17 numbers has derivatives by"):
        jax.grad(total, has_aux=True)(many, p, 5)
