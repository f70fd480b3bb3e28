"""Gears with losses: published thresholds of a servo, random gears against SciPy, files, messages,
derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.piecewise_motion import slid
from scipy.integrate import solve_ivp

import jfric
from jfric.elements import Motor, Transmission
from jfric.files.read_toml import loads

jax.config.update("jax_enable_x64", True)

#: The servo MX-106 of https://github.com/Rhoban/bam.
M5 = {
    "limit": 1.88e-10,
    "stribeck": 0.12242747179820507,
    "km": 0.20763710226562626,
    "ke": 0.022684350817709906,
    "kms": 0.19519320110890795,
    "kes": 0.08490162305974122,
    "v_s": 1.7457130513692263,
    "exponent": 1.138313248724122,
    "c": 0.05066487276724427,
}
M6 = {
    "limit": 1.0232526438525893e-05,
    "stribeck": 0.12195409579603411,
    "km": 0.19800553725822115,
    "ke": 0.022215529897348624,
    "kms": 0.19859970173941574,
    "kes": 0.08710328264676681,
    "kqm": 0.009999930103371748,
    "kqe": 7.326919843140997e-05,
    "v_s": 1.7463251741328727,
    "exponent": 1.142827788004191,
    "c": 0.05071566473605552,
}
#: Torques of the motor above which the servo lifts -2 N m, and below which it lowers them.
THRESHOLDS = {"M5": (M5, 3.9144642351, 1.1850332690), "M6": (M6, 3.8795415232, 1.1782255594)}
KT, R, ARMATURE = 2.209828, 2.033662, 0.026016


def friction(x, te, tm, w):
    """The limit of the friction torque, in plain Python."""
    s = np.exp(-((abs(w) / x["v_s"]) ** x["exponent"]))
    square = 0.0
    if te * tm < 0.0:
        square = x["kqe"] * te**2 if abs(te) < abs(tm) else x["kqm"] * tm**2
    fading = x["stribeck"] + abs(x["kes"] * te - x["kms"] * tm) + square
    return x["limit"] + abs(x["ke"] * te - x["km"] * tm) + s * fading


def servo(x, voltage, weight, **more):
    gear = Transmission("q", "motor", "load", **x)
    motor = Motor("q", KT, voltage, R, J=ARMATURE)
    elements = {"motor": motor, "load": jfric.Load("q", weight), "transmission": gear}
    return jfric.Problem({"q": "rotation"}, elements | more, time=2.0)


@pytest.mark.slow  # its sibling: random servos of each model
@pytest.mark.parametrize("model", ["M5", "M6"])
def test_a_servo_lifts_and_lowers_at_the_published_torques(model):
    """A ramp that lifts and one that lowers break away at these torques, to their digits."""
    x, up, down = THRESHOLDS[model]
    one = lambda ramp: jfric.simulate(  # noqa: E731
        servo(x, jfric.PiecewiseLinear([0.0, 1.0], ramp * R / KT), -2.0)
    )
    ramps = jnp.array([[up - 0.2, up + 0.1], [down + 0.2, down - 0.1]])
    found = jax.jit(jax.vmap(one))(ramps)
    assert list(np.asarray(found.status)) == [0, 0]
    name = found.names.index("transmission.loss")
    for ramp, log, v, threshold in zip(
        ramps, np.asarray(found.events.time), found.final.v[:, 0], (up, down), strict=True
    ):
        moved = np.asarray(found.events.contact)[list(ramps[:, 0]).index(ramp[0])] == name
        torque = ramp[0] + log[moved][0] * (ramp[1] - ramp[0])
        assert float(torque) == pytest.approx(threshold, abs=2e-10)
        assert np.sign(float(v)) == np.sign(float(ramp[1] - ramp[0]))


SEED, LANES = 4902, 18
#: What each model has of the sixth.
LACKS = {
    "M1": ("stribeck", "km", "ke", "kms", "kes", "kqm", "kqe"),
    "M2": ("km", "ke", "kms", "kes", "kqm", "kqe"),
    "M3": ("stribeck", "kms", "kes", "kqm", "kqe"),
    "M4": ("kqm", "kqe"),
    "M5": ("kqm", "kqe"),
    "M6": (),
}


def random_servos():
    """Three servos of each model, with voltages and weights of lines and steps."""
    rng, found = np.random.default_rng(SEED), []
    for model in LACKS:
        for _ in range(LANES // len(LACKS)):
            x = {k: float(v * rng.uniform(0.5, 1.5)) for k, v in M6.items()}
            x["limit"], x["kqe"], x["kqm"] = rng.uniform(0.02, 0.1), *rng.uniform(0.01, 0.1, 2)
            if model in ("M3", "M4"):
                x["ke"], x["kes"] = x["km"], x["kms"]
            x |= dict.fromkeys(LACKS[model], 0.0)
            V = rng.uniform(-8.0, 8.0, 6)
            load = rng.uniform(-3.0, 3.0, 4)
            found.append((x, V, load, rng.uniform(0.2, 1.8), rng.uniform(-2.0, 2.0)))
    return found


def functions(V, load, at, step):
    """Voltage and weight: lines through points, and a step of the weight."""
    volts = jfric.PiecewiseLinear(jnp.linspace(0.0, 2.0, 6), V)
    own = jfric.PiecewiseLinear(jnp.array([0.0, 0.5, 1.2, 2.0]), load)
    jump = jfric.functions.Steps(at[None], jnp.stack([0.0 * step, step]))
    return volts, jfric.functions.Sum([own, jump])


@functools.cache
def simulated():
    def one(x, V, load, at, step):
        problem = servo(x, *functions(V, load, at, step))
        solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=jnp.linspace(0, 2, 41))
        return solution, jfric.contact_residual(problem, solution)

    columns = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *random_servos())
    return jax.jit(jax.vmap(one))(*columns)


#: One servo of each model in each run of the tests.
SERVOS = [
    lane if lane % 3 == 0 else pytest.param(lane, marks=pytest.mark.slow) for lane in range(LANES)
]


@pytest.mark.parametrize("lane", SERVOS)
def test_random_servos_agree_with_scipy(lane):
    solution, residual = simulated()
    x, V, load, at, step = random_servos()[lane]
    knots = np.linspace(0.0, 2.0, 6), np.array([0.0, 0.5, 1.2, 2.0])

    def weight(t):
        return np.interp(t, knots[1], load) + (step if t >= at else 0.0)

    def torque(t, y):
        return KT * (np.interp(t, knots[0], V) - KT * y[1]) / R

    def limit(t, y, s):
        return friction(x, weight(t), torque(t, y), y[1] if s else 0.0)

    pairs = [("ke", "km"), ("kes", "kms")]
    kinks = [
        lambda t, y, a=x[a], b=x[b]: a * weight(t) - b * torque(t, y) for a, b in pairs if x[b]
    ]
    if x["kqm"]:
        kinks += [lambda t, y: weight(t), torque, lambda t, y: weight(t) + torque(t, y)]
    q, v, times = slid(
        push=lambda t, y: torque(t, y) + weight(t) - x["c"] * y[1],
        limit=limit,
        mass=ARMATURE,
        start=[0.0, 0.0],
        end=2.0,
        kinks=kinks,
        jumps=sorted([*knots[0], *knots[1], at]),
    )
    assert int(solution.status[lane]) == 0
    count = int(solution.events.count[lane])
    name = solution.names.index("transmission.loss")
    own = np.asarray(solution.events.contact)[lane, :count] == name
    found = np.asarray(solution.events.time)[lane, :count][own]
    np.testing.assert_allclose(found, times, rtol=0, atol=1e-8)
    assert float(solution.final.q[lane, 0]) == pytest.approx(q, abs=1e-8)
    assert float(solution.final.v[lane, 0]) == pytest.approx(v, abs=1e-8)
    assert float(residual[lane].max()) < 1e-9


def test_a_share_of_one_locks_against_the_load():
    """The load alone never drives a gear with ``ke`` of at least one; below it slides."""

    def speed(ke):
        gear = Transmission("q", external="load", ke=ke)
        elements = {"mass": jfric.Mass("q", 2.0), "load": jfric.Load("q", 3.0)}
        problem = jfric.Problem({"q": "rotation"}, elements | {"transmission": gear}, time=1.0)
        return jfric.simulate(problem).final.v[0]

    found = jax.vmap(speed)(jnp.array([0.0, 0.5, 0.999999, 1.0, 1.5]))
    np.testing.assert_allclose(found, [1.5, 0.75, 1.5e-6, 0.0, 0.0], rtol=0, atol=1e-12)


def test_torques_count_along_the_gear():
    """A motor in front of a rigid gear of ratio 20 and a force at the end of an arm of 0.5 m."""
    motor = Motor({"q": 20.0}, kt=0.1, i=1.2)
    force = jfric.Load({"q": -0.5}, 2.5)
    elements = {"mass": jfric.Mass("q", 1.0), "motor": motor, "load": {"tip": force}}
    gear = Transmission("q", "motor", "load.tip", limit=0.1, km=0.2, ke=0.1)
    problem = jfric.Problem({"q": "rotation"}, elements | {"transmission": gear}, time=1.0)
    tm, te = 20.0 * 0.1 * 1.2, -0.5 * 2.5
    expected = tm + te - 0.1 - abs(0.1 * te - 0.2 * tm)
    assert float(jfric.simulate(problem).final.v[0]) == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
def test_derivatives_of_a_lift_are_those_of_differences():
    """Through break-away and Stribeck's fall, by every coefficient; forward and reverse."""
    names = [name for name in M6 if name != "limit"]

    def final(values, adjoint="forward"):
        x = M6 | dict(zip(names, values, strict=True))
        problem = servo(x, jfric.PiecewiseLinear([0.0, 1.0], [0.0, 5.0]), -2.0)
        return jfric.simulate(problem, jfric.EventDriven(rtol=1e-11, adjoint=adjoint)).final.q[0]

    x = jnp.array([M6[name] for name in names])
    steps = 1e-5 * jnp.diag(x)
    # One program for both: each row along one direction.
    along = jax.jit(jax.vmap(lambda x, direction: jax.jvp(final, (x,), (direction,))))
    rows = jnp.concatenate([jnp.tile(x, (len(x), 1)), x + steps, x - steps])
    values, slopes = along(rows, jnp.tile(jnp.eye(len(x)), (3, 1)))
    _, ahead, behind = values.reshape(3, -1)
    differences = (ahead - behind) / (2e-5 * x)
    np.testing.assert_allclose(slopes[: len(x)], differences, rtol=2e-6, atol=1e-7)


@pytest.mark.slow  # its sibling: the exact solver, and what solvers take
def test_the_smoothed_solver_agrees():
    problem = servo(M6, jfric.PiecewiseLinear([0.0, 1.0], [2.0, 6.0]), -2.0)
    exact = jfric.simulate(problem).final.q[0]
    smooth = jfric.simulate(problem, jfric.Smoothed(width=1e-3)).final.q[0]
    assert float(smooth) == pytest.approx(float(exact), rel=2e-3)
    with pytest.raises(jfric.ProblemError, match=r"transmission.loss: found .* moreau-jean cannot"):
        jfric.simulate(servo({"stribeck": 1.0, "v_s": 1.0}, 0.0, 0.0), jfric.MoreauJean(dt=1e-3))


@pytest.mark.slow  # its sibling: random servos of each model
@pytest.mark.parametrize("backlash", [None, 0.05])
def test_an_elastic_shaft_with_backlash_agrees_with_scipy(backlash):
    """A motor before a gear of ratio 10, and an arm behind a shaft whose torque the gear loses a
    part of, also in play."""
    J, arm, k, c, ratio = 2e-3, 0.3, 60.0, 0.4, 10.0
    x = {"limit": 0.2, "km": 0.1, "ke": 0.15, "c": 0.02}
    gear = Transmission(
        "m", "motor", output="arm", ratio=ratio, k=k, c_shaft=c, backlash=backlash, **x
    )
    motor = Motor("m", kt=0.2, i=jfric.Harmonic(4.0, 6.0), J=J)
    elements = {
        "motor": motor,
        "mass": jfric.Mass("arm", arm),
        "load": jfric.Load("arm", jfric.Harmonic(1.0, 2.5, 0.3)),
        "transmission": gear,
    }
    problem = jfric.Problem({"m": "rotation", "arm": "rotation"}, elements, time=2.0)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 2.0, 41))
    solution.check()
    play = 0.0 if backlash is None else backlash / 2.0

    def shaft(y):
        """Torque on the gear: that of the shaft in touch, which never pulls a flank."""
        twist, rate = y[2] - y[0], y[3] - y[1]
        if backlash is None:
            return k * twist + c * rate
        over = max(k * (twist - play) + c * rate, 0.0) if twist > play else 0.0
        return over + (min(k * (twist + play) + c * rate, 0.0) if twist < -play else 0.0)

    def driven(t):
        return ratio * 0.2 * 4.0 * np.sin(6.0 * t)

    kinks = [lambda t, y: 0.15 * shaft(y) - 0.1 * driven(t)]
    if backlash is not None:
        for sign in (1.0, -1.0):
            kinks += [
                lambda t, y, s=sign: y[2] - y[0] - s * play,
                lambda t, y, s=sign: k * (y[2] - y[0] - s * play) + c * (y[3] - y[1]),
            ]
    *y, times = slid(
        push=lambda t, y: driven(t) + shaft(y) - 0.02 * y[1],
        limit=lambda t, y, s: 0.2 + abs(0.15 * shaft(y) - 0.1 * driven(t)),
        states=lambda t, y: [y[3], (np.sin(2.5 * t + 0.3) - shaft(y)) / arm],
        mass=J * ratio**2,
        start=[0.0, 0.0, 0.0, 0.0],
        end=2.0,
        kinks=kinks,
    )
    found = [e["time"] for e in solution.event_table() if e["contact"] == "transmission.loss"]
    np.testing.assert_allclose(found, times, rtol=0, atol=1e-8)
    final = solution.final
    own = [final.q[0] / ratio, final.v[0] / ratio, final.q[1], final.v[1]]
    np.testing.assert_allclose(own, y, rtol=0, atol=1e-7)
    assert float(jnp.max(jfric.contact_residual(problem, solution))) < 1e-10


FILE = """
dofs = {q = "rotation"}
time = {end = "1 s"}
[motor]
dof = "q"
kt = "2.2 N*m/A"
R = "2 ohm"
V = {ramp = {rate = "5 V/s"}}
J = "0.026 kg*m^2"
[load.weight]
dof = "q"
F = "-2 N*m"
[transmission]
dof = "q"
motor = "motor"
external = "load.weight"
limit = "0.01 N*m"
stribeck = "0.12 N*m"
v_s = "100 deg/s"
km = 0.2
ke = 0.02
kms = "$k"
kqm = "0.01 /(N*m)"
c = "0.05 N*m*s/rad"
[parameters]
k = 0.1
"""


def test_files_paths_and_shared_parameters():
    problem = loads(FILE).problem
    again = loads(jfric.to_toml(problem)).problem
    assert float(jfric.get_parameter(problem, "transmission.v_s")) == pytest.approx(
        1.7453, rel=1e-4
    )
    ends = [float(jfric.observe(p, "final.q").values["final.q"]) for p in (problem, again)]
    assert ends[0] == ends[1] > 0.0
    more = jfric.set_parameters(problem, {"parameters.k": 0.3})
    assert float(jfric.observe(more, "final.q").values["final.q"]) < ends[0]


@pytest.mark.slow  # its sibling: two values one by one
def test_a_sweep_of_a_shared_parameter():
    problem = loads(FILE).problem
    table = jfric.sweep(problem, {"parameters.k": jnp.array([0.1, 0.3])}, observe="final.q")
    found = table["final.q"].values
    end = float(jfric.observe(problem, "final.q").values["final.q"])
    assert found[0] == pytest.approx(end, rel=1e-9)
    assert found[1] < found[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"km": 0.1}, "transmission.km: is given without motor"),
        ({"ke": 0.1, "motor": "load.a"}, "transmission.ke: is given without external"),
        ({"kqe": 0.1, "external": "load.a"}, "transmission.kqe: is given without motor and exter"),
        ({"motor": "load.a", "external": ["load.b", "load.a"]}, "external: found 'load.a', which"),
        ({"stribeck": 0.1}, "transmission.v_s: is missing"),
        ({"v_s": 0.1}, "transmission.v_s: is given without a part"),
        ({"motor": "load.c"}, "transmission.motor: no element 'load.c' .*did you mean"),
        ({"k": 1.0}, "transmission.k: is given without output"),
        ({"output": "arm", "ratio": 5.0}, "transmission.k: is missing"),
        ({"output": "q", "k": 5.0}, "transmission.output: is a degree of freedom in front"),
        ({"output": "b", "k": 5.0}, "transmission.output: no degree of freedom 'b'"),
        ({"limit": -1.0}, "transmission.limit: found -1, must not be negative"),
    ],
)
def test_contradictions_name_the_field(fields, message):
    loads = {name: jfric.Load("q", 1.0) for name in "ab"}
    elements = {
        "mass": jfric.Mass("q", 1.0),
        "load": loads,
        "transmission": Transmission("q", **fields),
    }
    with pytest.raises(jfric.ProblemError, match=message):
        jfric.Problem({"q": "rotation", "arm": "rotation"}, elements)


def test_harmonic_balance_refuses_friction_by_a_load():
    """It knows normal forces that are functions of time only."""
    friction = jfric.Friction("q", limit=0.1, kappa=0.3, load="spring")
    elements = {
        "mass": jfric.Mass("q", 1.0),
        "spring": jfric.Spring("q", 4.0),
        "load": jfric.Load("q", jfric.Harmonic(1.0, 1.5)),
    }
    problem = jfric.Problem({"q": "rotation"}, elements | {"friction": friction}, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"friction.load: found a load that is not made"):
        jfric.harmonic_balance(problem)


def with_memory(torque, h=0.2, start=0.0, time=3.0, **more):
    loss = jfric.elements.DirectionalLoss("q", "load", average=0.3, difference=0.1, h=h, **more)
    elements = {"mass": jfric.Mass("q", 0.5), "load": jfric.Load("q", torque)}
    return jfric.Problem(
        {"q": "rotation"},
        elements | {"directional_loss": loss, "damper": jfric.Damper("q", 0.2)},
        initial={"q": jfric.InitialState(v=start)},
        time=time,
    )


def test_a_loss_with_memory_in_steady_motion():
    """``(average + difference) |tau|`` is lost in driving, ``(average - difference) |tau|`` when
    driven; after a reversal ``z = 1 - 2 exp(-theta/h)``."""
    problem = with_memory(2.0, start=9.0, time=200.0)
    # One program for all three.
    solver = jfric.EventDriven(rtol=1e-11)
    long = jfric.simulate(problem, solver, ts=jnp.array([100.0, 150.0, 200.0]))
    assert float(long.v[-1, 0]) == pytest.approx((2.0 - 0.4 * 2.0) / 0.2, rel=1e-9)
    assert float(long.z[-1, 0]) == pytest.approx(1.0, abs=1e-12)
    driven = jfric.simulate(
        with_memory(-2.0, start=9.0, z0=1.0), solver, ts=jnp.array([0.0, 0.1, 0.2])
    )
    assert float(driven.a[0, 0]) == pytest.approx((-2.0 - (0.3 - 0.1) * 2.0 - 0.2 * 9.0) / 0.5)
    turned = jfric.simulate(with_memory(2.0, z0=-1.0), solver, ts=jnp.array([0.1, 0.3, 1.0]))
    expected = 1.0 - 2.0 * np.exp(-np.asarray(turned.q[:, 0]) / 0.2)
    np.testing.assert_allclose(turned.z[:, 0], expected, rtol=0, atol=1e-8)


@pytest.mark.slow  # its sibling: the same in steady motion
def test_a_loss_with_memory_agrees_with_scipy():
    """A sine of torque, through reversals and changes of sign."""
    problem = with_memory(jfric.Harmonic(2.0, 4.0, 0.2), start=-1.0)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=jnp.linspace(0, 3, 31))
    solution.check()

    def rate(t, y):
        _, v, z = y
        tau = 2.0 * np.sin(4.0 * t + 0.2)
        F = 0.3 * abs(tau) * z + 0.1 * tau * z * z
        return [v, (tau - F - 0.2 * v) / 0.5, (v - abs(v) * z) / 0.2]

    fine = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12, "max_step": 1e-3}
    end = solve_ivp(rate, (0.0, 3.0), [0.0, -1.0, 0.0], **fine).y[:, -1]
    own = [solution.final.q[0], solution.final.v[0], solution.z[-1, 0]]
    np.testing.assert_allclose(own, end, rtol=0, atol=1e-8)
    assert float(jnp.max(jfric.motion_residual(problem, solution))) < 1e-12
    force = jfric.observe(problem, "max.force.directional_loss").values
    assert 0.3 < float(*force.values()) < 0.8
