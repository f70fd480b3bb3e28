"""Smoothed laws: the published bias, curves, contacts, derivatives, outcomes and refusals."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import load_config
from jfric.files.solver_choice import choose_solver, parse_options
from jfric.solvers.smoothed.friction import BREAKAWAY, CURVES, curve, damping_ratio, friction_force
from jfric.verification.configs import shipped

TIGHT = {"rtol": 1e-12, "atol": 1e-14}
CONFIG = str(shipped("ve0116"))


@functools.cache
def shipped_problem(name: str) -> jfric.Problem:
    return load_config(shipped(name)).problem


#: tanh(v/width) in VE0116: u(1) minus the exact value, u(2), u(4).
TABLE = {
    0.1: ("4.882e-04", "0.2818372857", "0.29967"),
    0.01: ("5.757e-05", "0.2807203284", "0.31105"),
    1e-3: ("5.844e-06", "0.2806086467", "0.318272"),
    1e-4: ("5.853e-07", "0.2805974802", "0.319740"),
}


@pytest.mark.parametrize("width", TABLE)
def test_tanh_table_to_the_printed_digits(width):
    solver = jfric.Smoothed(width=width, **TIGHT)
    solution = jfric.simulate(shipped_problem("ve0116"), solver, ts=jnp.array([1.0, 2.0, 4.0]))
    first, second, last = (float(u) for u in solution.q[:, 0])
    bias, at_two, at_four = TABLE[width]
    assert f"{first - 0.1389304187383115:.3e}" == bias
    assert f"{second:.10f}" == at_two
    assert f"{last:.{len(at_four) - 2}f}" == at_four
    assert solution.outcome() == "ok"
    assert int(solution.events.count) == 0


@pytest.mark.parametrize("name", CURVES)
def test_curves_rise_with_slope_one_to_one(name):
    x = jnp.linspace(-50.0, 50.0, 1001)
    s = curve(name, x)
    assert float(jax.grad(lambda x: curve(name, x))(0.0)) == pytest.approx(1.0, rel=1e-14)
    assert (np.diff(s) >= -1e-14).all()
    assert 0.98 < float(s[-1]) <= 1.0
    np.testing.assert_allclose(s, -s[::-1], atol=1e-14)
    # Static friction is reached at the breakaway velocity, dynamic friction far beyond it.
    law, width = jfric.StaticDynamic(0.5, 0.3), 1e-2
    force = lambda v: friction_force(law, v, 10.0, width, name)  # noqa: E731
    assert float(force(BREAKAWAY * width)) == pytest.approx(-5.0, rel=1e-14)
    assert float(force(-BREAKAWAY * width)) == pytest.approx(5.0, rel=1e-14)
    assert float(force(1e3 * width)) == pytest.approx(-3.0, rel=1e-3)
    # Two sides, and a curve of its own.
    sided = jfric.Coulomb(jfric.Directional(0.2, 0.4))
    assert float(friction_force(sided, 1.0, 1.0, 1e-6, name)) == pytest.approx(-0.2, rel=1e-5)
    assert float(friction_force(sided, -1.0, 1.0, 1e-6, name)) == pytest.approx(0.4, rel=1e-5)
    leine = jfric.VelocityWeakening(1.0, 1 / 3)
    assert float(friction_force(leine, 2.0, 1.0, 1e-6, name)) == pytest.approx(-1 / 7, rel=1e-5)


def test_smooth_stribeck_curve_has_smooth_slopes():
    """Second derivatives stay bounded by one over the width squared, at zero and around it."""
    width = 1e-2
    law = jfric.Stribeck(0.5, 0.3, 0.1)
    v = jnp.linspace(-0.05, 0.05, 201)
    second = jax.vmap(jax.grad(jax.grad(lambda v: friction_force(law, v, 1.0, width, "tanh"))))(v)
    assert np.isfinite(second).all()
    assert np.abs(second).max() < 0.5 / width**2


@pytest.mark.slow
def test_sdnd106_tends_to_the_exact_motion():
    """Static and dynamic friction and a load that is switched off."""
    problem = shipped_problem("sdnd106")
    bias = jfric.smoothing_bias(problem, [1e-2, 1e-3, 1e-4], jfric.Smoothed(), points=101)
    assert bias.axes == ("x1", "x2")
    assert (np.diff(bias.distance, axis=0) < 0).all()
    assert bias.relative[-1].max() < 2e-3
    assert (bias.steps > bias.exact_steps).all()
    assert (bias.status == jfric.Status.OK).all()


@pytest.mark.slow
def test_smoothing_bias_of_a_block_that_should_stick():
    """It creeps with the velocity at which the curve carries its weight, for 2 s."""
    problem = shipped_problem("c8_incline_stick")
    widths = np.array([1e-2, 1e-3])
    bias = jfric.smoothing_bias(problem, widths, points=401)
    exact = jfric.simulate(problem)
    rest = float(problem.time.end) - float(exact.events.time[0])
    speed = widths * np.arctanh(np.tan(np.pi / 6) / 0.6)
    np.testing.assert_allclose(bias.creep[:, 0], speed * rest, rtol=0.01)
    with pytest.raises(jfric.ProblemError, match="widths: found"):
        jfric.smoothing_bias(problem, [1e-3, 0.0])


def test_contacts_bounce_with_their_restitution():
    """A ball on a stiff contact leaves with e times the velocity of the impact; gaps that were
    never closed carry no force."""
    e = 0.6
    for coefficient in (0.01, 0.3, 0.9):
        zeta = float(damping_ratio(coefficient))
        root = np.sqrt(abs(1 - zeta**2))
        angle = np.arccos(zeta) if zeta < 1 else np.arccosh(zeta)
        assert np.exp(-2 * zeta / root * angle) == pytest.approx(coefficient, rel=1e-3)
    assert float(damping_ratio(1.0)) == 0.0
    problem = jfric.Problem(
        ("z",),
        {
            "mass": jfric.Mass("z", 2.0),
            "contact": jfric.Contact("z", e=e),
            "load": jfric.Load("z", -2.0 * 9.81),
        },
        initial={"z": jfric.InitialState(q=1.0)},
        time=0.7,
    )
    solver = jfric.Smoothed(contact_stiffness=2e9)
    solution = jfric.simulate(problem, solver, ts=jnp.array([0.4, 0.7]))
    touch = np.sqrt(2 / 9.81)
    assert float(solution.lambda_n[0, 0]) == 0.0
    assert int(solution.mode[0, 0]) == jfric.Mode.OPEN
    flight = 0.7 - touch
    speed = e * 9.81 * touch
    assert float(solution.v[1, 0]) == pytest.approx(speed - 9.81 * flight, abs=0.01)
    height = speed * flight - 9.81 * flight**2 / 2
    assert float(solution.q[1, 0]) == pytest.approx(height, abs=0.003)


def test_gap_springs_need_no_smoothing():
    problem = shipped_problem("ve0119")
    ts = jnp.array([0.01, 0.25, 1.0])
    smoothed = jfric.simulate(problem, jfric.Smoothed(**TIGHT), ts=ts)
    np.testing.assert_allclose(
        smoothed.q[:, 0], [0.007701511529340699, -0.02051402009003516, 0.0005685540523976489],
        atol=1e-9,
    )  # fmt: skip
    assert [smoothed.segment_labels[0][int(s)] for s in smoothed.segment[:, 0]] == [
        "touch_positive", "touch_negative", "free"
    ]  # fmt: skip
    assert jfric.motion_residual(problem, smoothed).max() < 1e-14


#: du(1)/d(mu, k, m) of VE0116 with the exact law.
EXACT_GRADIENT = (0.5053479063084423, 7.246204152820476e-5, -5.012406263793353e-3)


def displacement(mu, k, m, solver):
    """u(1) of VE0116."""
    values = {"friction.mu": mu, "spring.k": k, "mass.m": m}
    changed = jfric.set_parameters(shipped_problem("ve0116"), values)
    return jfric.simulate(changed, solver, end=1.0).final.q[0]


forward_slopes = jax.jit(jax.jacfwd(displacement, argnums=(0, 1, 2)))


@pytest.mark.slow
def test_derivatives_tend_to_the_exact_ones():
    """Adaptive steps resolve the width: the error falls with it."""
    shipped_problem("ve0116")
    errors = []
    for width in (1e-1, 1e-2, 1e-3):
        found = np.array(forward_slopes(0.1, 5000.0, 100.0, jfric.Smoothed(width=width)))
        errors.append(np.abs(found / EXACT_GRADIENT - 1.0))
    assert (errors[1] < errors[0] / 5).all()
    assert (errors[2] < errors[1] / 5).all()
    assert (errors[2] < 2e-4).all()


@pytest.mark.parametrize(
    ("settings", "rtol"),
    # Backsolve integrates backwards with steps of its own.
    [
        pytest.param({}, 1e-9, id="reverse", marks=pytest.mark.slow),
        pytest.param(
            {"diffrax_adjoint": diffrax.BacksolveAdjoint()},
            1e-3,
            id="backsolve",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_adjoints_agree(settings, rtol):
    shipped_problem("ve0116")
    slopes = jax.jit(jax.grad(displacement, argnums=(0, 1, 2)))
    solver = jfric.Smoothed(width=0.05, adjoint="reverse", max_steps=4096, **settings)
    found = slopes(0.1, 5000.0, 100.0, solver)
    forward = forward_slopes(0.1, 5000.0, 100.0, jfric.Smoothed(width=0.05))
    np.testing.assert_allclose(found, forward, rtol=rtol)


@pytest.mark.slow
def test_any_method_and_controller():
    problem = shipped_problem("ve0116")
    reference = jfric.simulate(problem, jfric.Smoothed(width=0.01, **TIGHT), end=1.0).final.q[0]
    fixed = {"controller": diffrax.ConstantStepSize(), "dt0": 2.0**-12}
    for settings in (
        {"method": "kvaerno5"},
        {"method": diffrax.Dopri5(), **fixed},
    ):
        found = jfric.simulate(problem, jfric.Smoothed(width=0.01, **settings), end=1.0)
        assert found.outcome() == "ok"
        assert float(found.final.q[0]) == pytest.approx(float(reference), abs=1e-6)


@pytest.mark.slow
def test_batches_restarts_and_own_loops():
    problem = shipped_problem("ve0116")
    solver = jfric.Smoothed(width=0.01)
    widths = jnp.array([0.1, 0.01])
    batch = jax.vmap(lambda w: jfric.simulate(problem, jfric.Smoothed(width=w), end=1.0).final.q)(
        widths
    )
    np.testing.assert_allclose(batch[:, 0], [0.13941861, 0.13898799], atol=1e-8)
    # What is left out of a run restarts where it ended; a loop of one's own does the same.
    step = jax.jit(solver.step)
    state, nothing = solver.init(problem), jnp.zeros(1)
    for until in (0.25, 0.5):
        state, info = step(problem, state, until=until, force=nothing)
    again = jfric.simulate(problem, solver, start=state, end=1.0)
    np.testing.assert_allclose(again.final.q, batch[1], rtol=1e-6)
    assert int(info.steps) > 0
    assert float(state.t) == 0.5
    pushed, _ = step(problem, state, until=0.6, force=jnp.array([-1500.0]))
    left, _ = step(problem, state, until=0.6, force=nothing)
    assert float(pushed.q[0]) < float(left.q[0]) - 0.01


@pytest.mark.slow
def test_outcomes_are_statuses():
    problem = shipped_problem("ve0116")
    short = jfric.simulate(problem, jfric.Smoothed(max_steps=20), ts=jnp.array([0.0, 4.0]))
    assert int(short.status) == jfric.Status.MAX_STEPS
    assert np.isnan(short.q[1]).all()
    blows_up = jfric.Problem(
        ("x",),
        {
            "mass": jfric.Mass("x", 1.0),
            "force_field": jfric.ForceField(lambda t, q, v, p: v**3),
        },
        initial={"x": jfric.InitialState(v=1.0)},
        time=10.0,
    )
    controller = diffrax.PIDController(1e-6, 1e-6, dtmin=1e-3, force_dtmin=False)
    stalled = jfric.simulate(blows_up, jfric.Smoothed(controller=controller))
    assert int(stalled.status) == jfric.Status.STALLED
    assert "the integrator could not go on" in stalled.outcome()
    fixed = {"controller": diffrax.ConstantStepSize(), "dt0": 0.1}
    lost = jfric.simulate(blows_up, jfric.Smoothed(**fixed))
    assert int(lost.status) == jfric.Status.NON_FINITE


def test_mistakes_are_one_sentence():
    for settings, sentence in (
        ({"law": "tanhh"}, r"law: found 'tanhh' \(did you mean 'tanh'\?\), allowed are tanh, arc"),
        ({"method": "tsit"}, r"method: found 'tsit' \(did you mean 'tsit5'\?\)"),
        ({"adjoint": "backward"}, r"adjoint: found 'backward' \(did you mean 'forward'\?\), all"),
        ({"width": 0.0}, "width: found 0, must be positive"),
    ):
        with pytest.raises(jfric.ProblemError, match=sentence):
            jfric.Smoothed(**settings)
    contact = shipped_problem("janovsky_4_2_none")
    with pytest.raises(jfric.ProblemError, match=r"contact_stiffness: missing; .* makes contact"):
        jfric.simulate(contact, jfric.Smoothed())
    with pytest.raises(jfric.ProblemError, match=r"contact.impact: found 'none'"):
        jfric.simulate(contact, jfric.Smoothed(contact_stiffness=1e6))
    with pytest.raises(jfric.ProblemError, match="width: found 'thin', expected a number"):
        choose_solver({"name": "smoothed", "width": "thin"})
    with pytest.raises(jfric.ProblemError, match=r"has no mass"):
        jfric.simulate(shipped_problem("ve0061"), jfric.Smoothed())


def test_command_line(tmp_path):
    figure = tmp_path / "bias.png"
    result = CliRunner().invoke(
        app,
        ["bias", CONFIG, "--widths", "0.1,0.01", "--plot", "--out", str(figure)],
    )
    assert result.exit_code == 0, result.output
    assert "creep friction" in result.output
    assert figure.read_bytes()[:4] == b"\x89PNG"
    wrong = CliRunner().invoke(app, ["bias", CONFIG, "--widths", "thin"])
    assert wrong.exit_code == 2
    assert "--widths: found 'thin'" in wrong.output
    bad = CliRunner().invoke(app, ["run", CONFIG, "--option", "width"])
    assert bad.exit_code == 2
    assert "expected name=value" in bad.output
    options = parse_options(["width=1e-3", "law=sqrt", "max-steps=50"])
    solver, settings = choose_solver({"flow": "exact"}, name="smoothed", **options)
    assert (solver.width, solver.law, solver.max_steps) == (1e-3, "sqrt", 50)
    assert settings == {"name": "smoothed", "law": "sqrt", "width": 1e-3, "max_steps": 50}


@pytest.mark.parametrize("method", ["dopri8", pytest.param("kvaerno5", marks=pytest.mark.slow)])
def test_derivatives_of_a_motion_that_rests(method):
    """Steps at rest have no errors: they grew until derivatives were 1e7 times too large."""
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "damper": jfric.Damper("u", 1.0),
        "polynomial_spring": jfric.PolynomialSpring("u", [2000.0, 0.0, 5.0]),
    }
    problem = jfric.Problem(["u"], elements, time=1.0)

    def end(x):
        values = {"initial.u.q": x[0], "initial.u.v": x[1]}
        solver = jfric.Smoothed(method=method)
        final = jfric.simulate(jfric.set_parameters(problem, values), solver).final
        return jnp.stack([final.q[0], final.v[0]])

    exact = scipy.linalg.expm(np.array([[0.0, 1.0], [-2000.0, -1.0]]))
    np.testing.assert_allclose(jax.jacfwd(end)(jnp.zeros(2)), exact, atol=1e-5)
