"""Controllers as elements: sampled loops against an exact reference, and what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.sampled_loops import TwoMasses, moved, pid_motion
from scipy.signal import bilinear, lfilter

import jfric
from jfric.files.read_toml import loads


def servo(*, time=10.0, loop=None, **changes):
    """D3: a wheel with dry friction in a PID loop that hunts."""
    words = {"kp": 5.0, "ki": 20.0, "kd": 0.5, "period": 1e-3, "reference": 0.5} | changes
    return jfric.Problem(
        {"x": "rotation"},
        {
            "mass": jfric.Mass("x", 0.05),
            "friction": jfric.Friction("x", jfric.StaticDynamic(0.6, 0.4), limit=1.0),
            "load": {"motor": jfric.Load("x", 0.0)},
            "controller": jfric.Controller("x", "load.motor", **words),
        },
        time=time,
    )


def test_hunting_agrees_with_an_exact_reference_at_every_sample():
    """Ten seconds of hunting at 1 kHz, sample by sample, to rounding errors."""
    solution = jfric.simulate(servo(), ts=jnp.arange(10_001.0) * 1e-3).check()
    rows = np.array(
        pid_motion(m=0.05, F_s=0.6, F_d=0.4, kp=5.0, ki=20.0, kd=0.5, T=1e-3, end=10.0,
                   r=lambda t: 0.5)
    )  # fmt: skip
    assert np.abs(np.asarray(solution.q[:, 0]) - rows[:, 0]).max() < 1e-12
    assert np.abs(np.asarray(solution.v[:, 0]) - rows[:, 1]).max() < 1e-10


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]
)
def test_random_loops_agree_with_an_exact_reference(seed):
    """Random gains, periods, delays, limits and encoder steps of one mass with friction."""
    draw = np.random.default_rng(2911801 + seed)
    m, F_d = draw.uniform(0.02, 2.0), draw.uniform(0.05, 0.5)
    F_s, T = F_d * draw.uniform(1.0, 1.6), draw.choice([1e-3, 2e-3, 5e-3])
    bandwidth = draw.uniform(3.0, 0.1 / T)
    kp, kd = m * bandwidth**2, 1.4 * m * bandwidth
    ki = draw.choice([0.0, 1.0]) * kp * draw.uniform(0.2, 2.0)
    delay = draw.choice([0.0, 1.0, 0.35, 1.6])
    limit = draw.choice([np.inf, 2.5 * F_s])
    step = draw.choice([0.0, 1e-3])
    r, load, end = draw.uniform(-1.0, 1.0), draw.uniform(-0.5, 0.5) * F_d, 2.0
    words = dict(kp=kp, ki=ki, kd=kd, delay=delay)
    if np.isfinite(limit):
        words["limit"] = limit
    if step:
        words["resolution"] = step
    problem = jfric.Problem(
        "x",
        {
            "mass": jfric.Mass("x", m),
            "friction": jfric.Friction("x", jfric.StaticDynamic(F_s, F_d), limit=1.0),
            "load": {"motor": jfric.Load("x", 0.0), "weight": jfric.Load("x", load)},
            "controller": jfric.Controller("x", "load.motor", period=T, reference=r, **words),
        },
        time=end,
    )
    count = round(end / T)
    solver = jfric.EventDriven(max_events=4096)
    solution = jfric.simulate(problem, solver, ts=jnp.arange(count + 1.0) * T).check()
    rows = np.array(
        pid_motion(m=m, F_s=F_s, F_d=F_d, kp=kp, ki=ki, kd=kd, T=T, end=end, r=lambda t: r,
                   delay=delay, limit=limit, step=step, load=load)
    )  # fmt: skip
    assert np.abs(np.asarray(solution.q[:, 0]) - rows[:, 0]).max() < 1e-9


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
)
def test_random_loops_of_two_masses_with_play_agree_with_an_exact_reference(seed):
    """A driven mass, a spring with play, a second mass; friction on both."""
    draw = np.random.default_rng(2911851 + seed)
    m, F_d = draw.uniform(0.02, 0.2, 2), draw.uniform(0.05, 0.3, 2)
    F_s, T = F_d * draw.uniform(1.0, 1.5, 2), draw.choice([2e-3, 5e-3])
    k, gap = draw.uniform(20.0, 200.0), draw.choice([0.0, 0.02])
    bandwidth = draw.uniform(4.0, 10.0)
    words = dict(kp=m.sum() * bandwidth**2, kd=1.4 * m.sum() * bandwidth, ki=draw.uniform(0.0, 2.0),
                 delay=draw.choice([0.0, 1.0, 0.5]))  # fmt: skip
    end, step = 1.0, draw.choice([0.0, 1e-3])
    encoder = {"resolution": step} if step else {}
    problem = jfric.Problem(
        {"motor": "rotation", "arm": "rotation"},
        {
            "mass": {"motor": jfric.Mass("motor", m[0]), "arm": jfric.Mass("arm", m[1])},
            "friction": {
                name: jfric.Friction(name, jfric.StaticDynamic(F_s[i], F_d[i]), limit=1.0)
                for i, name in enumerate(("motor", "arm"))
            },
            "gap_spring": jfric.elements.GapSpring({"motor": 1.0, "arm": -1.0}, k, k, gap, gap),
            "load": {"drive": jfric.Load("motor", 0.0)},
            "controller": jfric.Controller(
                "motor", "load.drive", period=T, reference=0.8, **words, **encoder
            ),
        },
        time=end,
    )
    count = round(end / T)
    solver = jfric.EventDriven(max_events=4096)
    solution = jfric.simulate(problem, solver, ts=jnp.arange(count + 1.0) * T).check()
    plant = TwoMasses(m, F_s, F_d, k, gap)
    rows = np.array(pid_motion(T=T, end=end, r=lambda t: 0.8, step=step, plant=plant, **words))
    assert np.abs(np.asarray(solution.q) - rows[:, :2]).max() < 1e-9


def test_derivatives_by_gains_periods_and_delays_are_those_of_differences():
    """Forward and reverse, through samples, stops and an output that acts between two samples."""
    names = ("controller.kp", "controller.ki", "controller.period", "controller.delay",
             "controller.reference", "friction.mu_d")  # fmt: skip
    problem = servo(time=1.3, period=0.05, kp=2.0, ki=3.0, kd=0.1, delay=0.4)
    start = jnp.array([float(jfric.get_parameter(problem, name)) for name in names])

    def position(x):
        changed = jfric.set_parameters(problem, dict(zip(names, x, strict=True)))
        return jfric.simulate(changed).final.q[0]

    found = jax.jacfwd(position)(start)
    assert np.allclose(jax.grad(position)(start), found, rtol=1e-12)
    h = 1e-6
    for i in range(len(names)):
        e = jnp.zeros(len(names)).at[i].set(h)
        difference = (position(start + e) - position(start - e)) / (2 * h)
        assert abs(difference - found[i]) < 1e-6 * (1 + abs(found[i])), names[i]


def test_a_run_goes_on_where_another_ended_between_two_samples():
    """Memory, outputs on their way and the time of the next sample are part of the state."""
    problem = servo(time=1.0, delay=1.6)
    whole = jfric.simulate(problem, end=1.0).final
    half = jfric.simulate(problem, end=0.4321)
    rest = jfric.simulate(problem, start=half.final, end=1.0).final
    assert abs(whole.q[0] - rest.q[0]) < 1e-13
    assert rest.loops.taken[0] == whole.loops.taken[0]


@pytest.mark.slow  # its sibling: runs one by one, and sweeps
def test_a_batch_of_loops_is_that_of_single_runs():
    problem, kp = servo(time=2.0), jnp.linspace(2.0, 8.0, 5)

    def final(kp):
        return jfric.simulate(jfric.set_parameters(problem, {"controller.kp": kp})).final.q[0]

    alone = jnp.stack([final(x) for x in kp])
    assert np.abs(jax.vmap(final)(kp) - alone).max() < 1e-13
    table = jfric.sweep(problem, {"controller.kp": kp}, "final.x")
    assert np.abs(np.asarray(table["final.x"]) - np.asarray(alone)).max() < 1e-13


def braked(**changes):
    """A body at 2 m/s whose brake closes where it passes a mark, and opens once it rests."""
    words = {"friction.brake.limit": "$grip"} | changes
    return jfric.Problem(
        "x",
        {
            "mass": jfric.Mass("x", 2.0),
            "friction": {"brake": jfric.Friction("x", limit=0.0)},
            "event": {"close": jfric.Event("x - $mark", "up", change=words)},
        },
        initial={"x": jfric.InitialState(v=2.0)},
        parameters={"grip": 8.0, "mark": 0.5},
        time=3.0,
    )


def test_an_event_closes_a_brake():
    """The way after the mark is m v^2/(2 F), with exact derivatives by force and mark."""

    def stop(grip, mark):
        changed = {"parameters.grip": grip, "parameters.mark": mark}
        return jfric.simulate(jfric.set_parameters(braked(), changed)).check().final.q[0]

    assert abs(stop(8.0, 0.5) - (0.5 + 2.0 * 4.0 / (2 * 8.0))) < 1e-14
    slopes = jax.grad(stop, (0, 1))(8.0, 0.5)
    assert np.allclose(slopes, (-2.0 * 4.0 / (2 * 64.0), 1.0), rtol=1e-12)


def test_an_event_changes_states_and_gains():
    """A reset of a state; a controller whose gain is reduced near the target."""
    tank = jfric.Problem(
        "x",
        {
            "mass": jfric.Mass("x", 1.0),
            "state": {"p": jfric.State("1.0", z0=0.0)},
            "event": {"vent": jfric.Event("z.p - 1.0", "up", change={"z.p": 0.25})},
        },
        time=2.0,
    )
    found = jfric.observe(tank, "final.z.p, event_count").values
    assert abs(found["final.z.p"] - 0.5) < 1e-12  # after 1 s and 1.75 s: 0.25 + 0.25
    assert int(found["event_count"]) == 2
    near = {"near": jfric.Event("x - 0.4", "up", change={"controller.kp": 1.0})}
    problem = servo(time=1.0)
    changed = jfric.Problem(dict(problem.dofs), problem.elements | {"event": near}, time=1.0)
    loops = jfric.simulate(changed).check().final
    assert float(loops.watch.numbers["controller.kp"]) == 1.0
    assert abs(loops.q[0] - jfric.simulate(problem).final.q[0]) > 1e-3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"friction.brake.limits": 1.0}, "did you mean 'friction.brake.limit'"),
        ({"initial.x.q": 1.0}, "no position, velocity, state or number of an element"),
        ({"friction.brake.limit": "x"}, "found 'x'"),
    ],
)
def test_what_an_event_cannot_change_is_refused(change, words):
    with pytest.raises(jfric.ProblemError, match=words):
        jfric.simulate(braked(**change))


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"friction.brake.limit": "8 N - x*(20 N/m)"}, jfric.Status.NEGATIVE_FORCE),
        ({"mass.m": "2 kg - x*(20 kg/m)"}, jfric.Status.OUT_OF_BOUNDS),
    ],
)
def test_a_number_out_of_its_bounds_ends_the_run(change, status):
    final = jfric.simulate(braked(**change)).final
    assert jfric.Status(int(final.status)) is status
    assert abs(final.t - 0.25) < 1e-14


@pytest.mark.slow  # its siblings: the example of sampled_orbit, and hunting as a motion
@pytest.mark.parametrize("period", [1e-2, 1e-3])
def test_hunting_is_an_orbit_of_the_map_of_samples(period):
    """The orbit closes in the exact reference, and a small deviation along the first eigenvector
    grows in it by the first multiplier."""
    orbit = jfric.periodic.sampled_orbit(servo(time=60.0, period=period)).check()
    memory = orbit.start.loops.memory[0]
    words = dict(m=0.05, F_s=0.6, F_d=0.4, kp=5.0, ki=20.0, kd=0.5, T=period, r=lambda t: 0.5)

    def after(q, v, y, integral):
        rows = pid_motion(end=orbit.period, q=q, v=v, old=y, integral=integral, **words)
        return np.array(rows[-1][:2])

    start = [float(x) for x in (orbit.start.q[0], orbit.start.v[0], memory.y[0], memory.integral)]
    assert np.abs(after(*start) - start[:2]).max() < 1e-11
    # In the order of the state: q, v, then the memory (y, e, integral).
    direction = np.asarray(orbit.eigenvectors[:, 0]).real
    change = 1e-9 * direction[[0, 1, 2, 4]] / np.abs(direction).max()
    grown = after(*(np.array(start) + change)) - after(*(np.array(start) - change))
    i = int(np.argmax(np.abs(change[:2])))
    factor = grown[i] / (2 * change[i])
    assert abs(factor - float(orbit.multipliers[0].real)) < 1e-3 * abs(factor)


def test_a_dead_band_of_the_integral_ends_hunting():
    """The error at which the wheel sticks is below half of the amplitude of hunting."""
    problem = servo(time=30.0, period=1e-2, deadband=0.0)
    limit = jfric.periodic.hunting_limit(problem, "controller.deadband", 0.0, 0.1, rounds=6)
    assert 0.02 < limit < 0.05
    with pytest.raises(jfric.ProblemError, match="both hunt"):
        jfric.periodic.hunting_limit(problem, "controller.deadband", 0.0, 1e-4)


def test_orbits_of_systems_with_controllers_are_those_of_samples():
    with pytest.raises(jfric.ProblemError, match="controller: found a controller"):
        jfric.periodic_orbit(servo())
    with pytest.raises(jfric.ProblemError, match="controller: found none"):
        jfric.periodic.sampled_orbit(braked())


def test_filters_of_the_output_are_those_of_signal_processing():
    """Derivative filter, notch and lag against SciPy, for a body that its friction holds."""
    T, kp, kd, tau, notch, width, smooth = 1e-3, 3.0, 0.2, 5e-3, 2 * np.pi * 40.0, 0.3, 2e-3
    wave = jfric.Harmonic(0.1, 2 * np.pi * 15.0)
    problem = servo(time=0.2, period=T, kp=kp, ki=0.0, kd=kd, tau=tau, notch=notch, on="error",
                    notch_width=width, smooth=smooth, reference=wave)  # fmt: skip
    held = jfric.set_parameters(problem, {"friction.mu_s": 1e3, "friction.mu_d": 1e3})
    commands = np.asarray(jfric.simulate(held, ts=T * (np.arange(200) + 0.5)).commands[:, 0])
    r = np.array([float(wave(k * T)) for k in range(200)])
    rate = lfilter([T / (tau + T)], [1.0, -tau / (tau + T)], np.diff(r, prepend=r[0]) / T)
    b, a = bilinear(
        [1.0, 0.0, (2 / T * np.tan(notch * T / 2)) ** 2],
        [1.0, width * 2 / T * np.tan(notch * T / 2), (2 / T * np.tan(notch * T / 2)) ** 2],
        1 / T,
    )
    u = lfilter(b, a, kp * r + kd * rate)
    u = lfilter([T / (smooth + T)], [1.0, -smooth / (smooth + T)], u)
    assert np.abs(commands - u).max() < 1e-12 * np.abs(u).max() + 1e-13


CASCADE = """
dofs = {x = "rotation"}
[time]
end = "2 s"
[mass]
dof = "x"
m = "0.05 kg*m^2"
[friction]
dof = "x"
limit = "0.1 N*m"
[load.motor]
dof = "x"
F = 0
[controller.position]
reads = "x"
drives = "controller.speed"
kp = "20/s"
limit = "4 rad/s"
reference = "1.5 rad"
period = "4 ms"
[controller.speed]
reads = "v.x"
drives = "load.motor"
kp = 2
ki = 10
period = "1 ms"
"""


def cascade(end, kp, limit, target, slow, fast, m, F):
    """A position loop that sets the reference of a speed loop, sample by sample."""
    q = v = integral = r = 0.0
    ratio = round(slow / fast)
    for k in range(round(end / fast)):
        if k % ratio == 0:
            r = min(max(kp * (target - q), -limit), limit)
        integral += fast * (r - v)
        q, v = moved(q, v, 2.0 * (r - v) + 10.0 * integral, fast, m, F, F)
    return q, v


def test_a_cascade_in_a_file_agrees_with_an_exact_reference(tmp_path):
    """The outer of two controllers comes first, at samples of both; the file can be written."""
    path = tmp_path / "axis.toml"
    path.write_text(CASCADE)
    problem = jfric.load(path)
    final = jfric.simulate(problem).check().final
    expected = cascade(2.0, 20.0, 4.0, 1.5, 4e-3, 1e-3, 0.05, 0.1)
    assert abs(float(final.q[0]) - expected[0]) < 1e-12
    again = tmp_path / "again.toml"
    again.write_text(jfric.to_toml(problem))
    assert abs(jfric.simulate(jfric.load(again)).final.q[0] - final.q[0]) < 1e-15
    command = jfric.observe(problem, "max.command.position").values
    assert float(command["max.command.position"]) == 4.0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('drives = "load.motor"', 'drives = "load.motors"', "controller.speed.drives: no function"),
        ('reads = "v.x"', 'reads = "v.y"', "controller.speed.reads: no signal 'v.y'"),
        ('period = "1 ms"', "", "controller.speed.period: missing"),
        ("F = 0", "F = {harmonic = {amplitude = 1, omega = 1}}", "which is a Harmonic"),
        ('drives = "load.motor"', 'drives = "controller.position"', "must form a chain"),
        ('drives = "controller.speed"', 'drives = "load.motor"', "which controller.position sets"),
        ("kp = 2", "kp = 2\nlag = 0.1", "controller.speed.lag: found 0.1 s"),
    ],
)
def test_controllers_that_do_not_fit_are_refused(tmp_path, old, new, words):
    path = tmp_path / "axis.toml"
    path.write_text(CASCADE.replace(old, new))
    with pytest.raises(jfric.ProblemError, match=words):
        jfric.simulate(jfric.load(path))


def test_a_delay_beyond_what_a_controller_keeps_is_a_status():
    """A sweep sets a delay of five samples in a problem that was made with none."""
    problem, ok = servo(time=0.05), int(jfric.Status.OK)
    late = jfric.simulate(jfric.set_parameters(problem, {"controller.delay": 5.0}))
    assert jfric.Status(int(late.status)) is jfric.Status.OUT_OF_BOUNDS
    assert int(jfric.simulate(servo(time=0.05, delay=5.0)).status) == ok
    assert int(jfric.simulate(servo(time=0.05, longest=5)).status) == ok


@pytest.mark.slow
def test_a_loop_of_short_samples_is_the_continuous_one():
    """PID as a state with a force, through stick and break-away; the difference is of first order
    in the period."""
    text = """
    dofs = {x = "rotation"}
    parameters = {target = 0.5}
    [time]
    end = 4.0
    [mass]
    dof = "x"
    m = 0.05
    [friction]
    dof = "x"
    mu_s = 0.6
    mu_d = 0.4
    limit = 1.0
    """
    state = """
    [state.integral]
    rate = "target - x"
    force = "5.0*(target - x) + 20.0*z.integral - 0.5*v.x"
    dof = "x"
    """
    loop = """
    [load.motor]
    dof = "x"
    F = 0.0
    [controller]
    reads = "x"
    drives = "load.motor"
    kp = 5.0
    ki = 20.0
    kd = 0.5
    period = 1e-3
    reference = "$target"
    """
    ts = np.linspace(0.0, 4.0, 41)
    exact = jfric.simulate(loads(text + state).problem, ts=ts).check()
    assert {"STICK", "SLIP_POS", "SLIP_NEG"} <= {jfric.Mode(int(m)).name for m in exact.mode[:, 0]}
    sampled = loads(text + loop).problem
    off = []
    for period in (1e-3, 5e-4):
        found = jfric.simulate(
            jfric.set_parameters(sampled, {"controller.period": period}), ts=ts
        ).check()
        off.append(float(np.abs(found.q - exact.q).max()))
    assert off[0] < 1e-2
    assert 0.4 < off[1] / off[0] < 0.6


@pytest.mark.parametrize(
    "solver",
    [jfric.EventDriven(), jfric.MoreauJean(dt=1e-2), jfric.Smoothed()],
    ids=lambda s: s.label,
)
def test_a_controller_without_a_period_is_told_by_every_solver(solver):
    problem = jfric.Problem(
        ["x"],
        {
            "mass": jfric.Mass("x", 1.0),
            "load": {"push": jfric.Load("x", 0.0)},
            "controller": jfric.Controller("x", "load.push", kp=1.0),
        },
        time=0.1,
    )
    with pytest.raises(jfric.ProblemError, match=r"^controller\.period: missing; give the time"):
        jfric.simulate(problem, solver)
