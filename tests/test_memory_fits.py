"""Laws with memory fitted to measured inputs: by inverse dynamics, in windows, in closed loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.fits.data.stacking import stack
from jfric.fits.inverse_model import InverseModel, inverse_experiments
from jfric.fits.memory import along_motion, with_starts
from jfric.fits.sampled_model import SampledModel
from jfric.solvers.sampled.run import run_sampled
from jfric.system.model import build
from jfric.system.naming import function_paths

LAWS = {
    "dahl": jfric.Dahl("u", sigma=4000.0, F_c=1.0),
    "bouc_wen": jfric.BoucWen("u", k=4000.0, beta=2400.0, gamma=1600.0),
    "lugre": jfric.LuGre("u", sigma0=4e3, sigma1=3.0, sigma2=0.5, F_c=1.0, F_s=1.5, v_s=0.02),
    "jenkins": jfric.Jenkins("u", k=4000.0, R=1.0),
    "maxwell_slip": jfric.MaxwellSlip("u", k=[4000.0, 2000.0], R=[0.5, 0.5]),
}
#: Numbers that are fitted, with their bounds.
FREE = {
    "dahl": {"dahl.sigma": (1e3, 1.6e4), "dahl.F_c": (0.3, 3.0)},
    "jenkins": {"jenkins.k": (1e3, 1.6e4), "jenkins.R": (0.3, 3.0)},
    "lugre": {
        "lugre.sigma0": (1e3, 1.6e4), "lugre.sigma2": (0.1, 2.0), "lugre.F_c": (0.3, 1.24),
        "lugre.F_s": (1.25, 3.0),
    },
    "bouc_wen": {
        "bouc_wen.k": (1e3, 1.6e4), "bouc_wen.beta": (500.0, 8e3), "bouc_wen.gamma": (300.0, 6e3),
    },
}  # fmt: skip
NOISE, STEP = 1e-6, 2e-3


def system(law, load=0.0, mass=1.0):
    elements = {
        "mass": jfric.Mass("u", mass),
        "spring": jfric.Spring("u", 5.0),
        "load": jfric.Load("u", load),
        law: LAWS[law],
    }
    return jfric.Problem(["u"], elements, time=4.0)


def simulated(law, end=3.0):
    """Times, held force, and the motion of the event-driven solver."""
    t = np.arange(0.0, end, STEP)
    force = 2.2 * np.sin(3.0 * t) + np.sin(14.0 * t + 0.3)
    given = system(law, jfric.functions.Steps(t[1:], force))
    found = jfric.simulate(given, jfric.EventDriven(max_events=0), ts=jnp.asarray(t))
    assert found.status == jfric.Status.OK
    return t, force, found


def record(law, noise=NOISE, end=3.0):
    t, force, found = simulated(law, end)
    y = np.asarray(found.q[:, 0]) + noise * np.random.default_rng(1).normal(size=t.size)
    return jfric.Experiment(t, u={"load.F": force}, y={"u": y})


def rows_of(law, e):
    """The model, and the data of its rows."""
    problem = build(system(law))
    rows = inverse_experiments(problem, [e])
    data, used, _ = stack(rows, ("force.u",), [0.0], [{}])
    return InverseModel(problem), jax.tree.map(lambda x: x[0], data), used[0, :, 0]


@pytest.mark.parametrize("law", ["lugre", "jenkins", pytest.param("dahl", marks=pytest.mark.slow)])
def test_states_along_a_motion_are_those_of_the_simulation(law):
    t, _, found = simulated(law, 1.5)
    problem = build(system(law))
    along = along_motion(problem, jnp.asarray(t), found.q[:, :1], found.v[:, :1], {})
    assert along.converged
    largest = float(jnp.abs(found.z).max())
    np.testing.assert_allclose(along.z, found.z, atol=2e-2 * largest)
    rms = float(jnp.sqrt(jnp.mean((along.z - found.z) ** 2)))
    assert rms < 3e-3 * largest


@pytest.mark.parametrize(
    ("law", "error"),
    [("lugre", 1e-8), ("maxwell_slip", 1e-5), pytest.param("dahl", 1e-8, marks=pytest.mark.slow)],
)
def test_motion_from_sample_to_sample_is_that_of_the_event_driven_solver(law, error):
    t, force, found = simulated(law, 1.5)
    problem = build(system(law))
    slots = {"load.F": function_paths(problem)["load.F"]}
    motion = run_sampled(problem, jnp.asarray(t), {"load.F": jnp.asarray(force)}, slots)
    assert motion.status == jfric.Status.OK
    np.testing.assert_allclose(motion.q, found.q[:, 0], atol=error)
    np.testing.assert_allclose(motion.v, found.v[:, 0], atol=10.0 * error)


def test_bristles_that_are_stiff_beside_the_samples_stay_bounded():
    """In gross sliding the bristle forgets within a hundredth of a sample."""
    t = jnp.arange(0.0, 1.0, 1e-2)
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "load": jfric.Load("u", 0.0),
        "lugre": jfric.LuGre("u", sigma0=1e6, F_c=1.0, F_s=1.0, v_s=0.1),
    }
    problem = build(jfric.Problem(["u"], elements, initial={"u": jfric.InitialState(v=20.0)}))
    slots = {"load.F": function_paths(problem)["load.F"]}
    motion = run_sampled(problem, t, {"load.F": jnp.zeros(t.size)}, slots)
    assert motion.status == jfric.Status.OK
    np.testing.assert_allclose(motion.v, 20.0 - t, atol=1e-5)


@pytest.mark.parametrize("model", ["inverse", pytest.param("sampled", marks=pytest.mark.slow)])
def test_derivatives_are_those_of_differences(model):
    e = record("lugre", 0.0, 1.0)
    if model == "inverse":
        predicts, data, used = rows_of("lugre", e)
    else:
        predicts = SampledModel(system("lugre"))
        data = stack([e], ("u",), [0.0], [{}])[0]
        data, used = jax.tree.map(lambda x: x[0], data), np.ones(e.t.size, bool)
    values = {"lugre.sigma0": 4e3, "lugre.F_s": 1.5, "lugre.v_s": 0.02, "start.lugre": 0.3}
    x = jnp.asarray([*values.values()])

    @jax.jit
    def predicted(x):
        return predicts.simulate_outputs(dict(zip(values, x, strict=True)), data).y[:, 0]

    tangent = jax.jit(lambda dx: jax.jvp(predicted, (x,), (dx,))[1])
    for i in range(x.size):
        dx = jnp.zeros_like(x).at[i].set(x[i])
        exact = tangent(dx)[used]
        h = 1e-5
        differences = (predicted(x + h * dx) - predicted(x - h * dx))[used] / (2.0 * h)
        size = float(jnp.abs(exact).max())
        assert size > 0.0
        np.testing.assert_allclose(exact, differences, atol=2e-3 * size)


def fitted(law, residual, noise=NOISE):
    free = {path: jfric.Free(*bounds) for path, bounds in FREE[law].items()}
    free["mass.m"] = jfric.Free(0.3, 3.0)
    result = jfric.fit(system(law, mass=0.7), record(law, noise), free, residual=residual, starts=2)
    truth = {path: float(getattr(LAWS[law], path.partition(".")[2])) for path in FREE[law]}
    return result, truth | {"mass.m": 1.0}


SLOW = pytest.mark.slow
CASES = [
    pytest.param("jenkins", jfric.InverseDynamics(), marks=SLOW, id="jenkins-inverse"),
    pytest.param("dahl", jfric.InverseDynamics("steady"), marks=SLOW, id="dahl-inverse-steady"),
    pytest.param("lugre", jfric.InverseDynamics(), marks=SLOW, id="lugre-inverse"),
    pytest.param("bouc_wen", jfric.InverseDynamics(), marks=SLOW, id="bouc_wen-inverse"),
    pytest.param("jenkins", jfric.Windows(0.5), marks=SLOW, id="jenkins-windows"),
    pytest.param("lugre", jfric.Windows(0.5), marks=SLOW, id="lugre-windows"),
]


@pytest.mark.parametrize(("law", "residual"), CASES)
def test_the_truth_is_found(law, residual):
    """Within four half intervals of 95 %, and two parts in a thousand: noise of accelerations lets
    inverse dynamics find too small a mass by as much. Intervals are wide where their smoothing
    looks like a delay."""
    result, truth = fitted(law, residual)
    found = result.intervals()
    for path, value in truth.items():
        low, high = found[path]
        assert abs(result.values[path] - value) < 2.0 * (high - low) + 2e-3 * value, path
        assert high - low < 0.9 * value


def test_shares_and_steady_states_at_the_start():
    problem = build(system("lugre"))
    start = with_starts(problem, {"start.lugre": -0.5}).elements["lugre"]["lugre"].z0
    assert float(start) == pytest.approx(-0.5 * 1.5 / 4e3)
    law, v = LAWS["lugre"], jnp.asarray([-0.03])
    steady = with_starts(problem, {}, v).elements["lugre"]["lugre"].z0
    assert float(law.rate(v[0], steady, -1.0)) == pytest.approx(0.0, abs=1e-9)
    at_rest = with_starts(problem, {}, jnp.zeros(1)).elements["lugre"]["lugre"].z0
    assert float(at_rest) == 0.0
    own = with_starts(problem, {"lugre.z0": 1e-4}, v).elements["lugre"]["lugre"].z0
    assert float(own) == 1e-4


@pytest.mark.slow
def test_a_bristle_is_found_in_closed_loop():
    """The controller's force, not the position, is compared: its numbers and the law are free."""
    law = jfric.Dahl("u", sigma=4000.0, F_c=1.0)
    elements = {"mass": jfric.Mass("u", 1.0), "load": jfric.Load("u", 0.0), "dahl": law}
    plant = jfric.Problem(["u"], elements, time=2.0)
    controller = jfric.Controller("u", "load.F", kp=400.0, kd=20.0)
    t = np.arange(0.0, 2.0, STEP)
    data = jfric.Experiment(
        t,
        u={"controller.reference": 0.1 * np.sin(4.0 * t), "load.F": 0.0 * t},
        y={"u": 0.0 * t},
        x0={"u": (0.0, 0.4)},
    )
    loop = jfric.closed_loop(data, controller)
    model = SampledModel(plant, controller)
    stacked = stack([loop], ("load.F",), [0.0], [model.initial(loop)[1]])[0]
    y = model.simulate_outputs({}, jax.tree.map(lambda x: x[0], stacked)).y[:, 0]
    y = np.asarray(y) + 0.01 * np.random.default_rng(0).normal(size=t.size)
    measured = jfric.Experiment(t, u={**data.u, "load.F": y}, y=data.y, x0=data.x0)
    result = jfric.fit(
        plant,
        measured,
        {"dahl.sigma": jfric.Free(1e3, 1.6e4), "dahl.F_c": jfric.Free(0.3, 3.0)},
        residual=jfric.ClosedLoop(controller),
        starts=2,
    )
    for path, truth in {"dahl.sigma": 4e3, "dahl.F_c": 1.0}.items():
        low, high = result.intervals()[path]
        assert abs(result.values[path] - truth) < high - low < 0.2 * truth


@pytest.mark.slow
def test_laws_that_remember_are_compared():
    e = record("jenkins", 1e-5, 4.0)
    elements = dict(system("jenkins").elements)
    del elements["jenkins"]
    elements["friction"] = {"friction": jfric.Friction("u", limit=0.8)}
    found = jfric.compare_laws(
        jfric.Problem(["u"], elements, time=4.0), e, laws=["Coulomb", "Jenkins"],
        criteria=["windows", "inverse dynamics"], fitted_to="windows", folds=2, window=0.4,
    )  # fmt: skip
    assert found.recommended == "Jenkins"
    (value,) = {round(float(v["parameters.sigma"]), -2) for v in found.laws[1].values}
    assert value == pytest.approx(4000.0, rel=0.05)


def test_candidates_that_remember_or_repeat_along_the_way():
    rubbed = jfric.Problem(
        ["u"], {"mass": jfric.Mass("u", 1.0), "friction": jfric.Friction("u", limit=2.0)}
    )
    laws = {c.name: c for c in jfric.candidate_laws(rubbed, 0.5, travel=0.1, period=0.02)}
    assert list(laws)[-5:] == ["position", "Jenkins", "Dahl", "Bouc-Wen", "LuGre"]
    for law in laws.values():
        for end in ("lower", "upper"):
            changed = {path: getattr(free, end) for path, free in law.free.items()}
            if law.name == "position":
                jfric.set_parameters(law.problem, changed | {"parameters.sine": 0.0})
            elif law.name not in ("Stribeck", "load-dependent"):
                jfric.set_parameters(law.problem, changed)
    # With all of its rate turned and the exponent one, the law of Bouc and Wen is Dahl's.
    turned = {"parameters.share": 1.0, "parameters.n": 1.0}
    bouc_wen = jfric.set_parameters(laws["Bouc-Wen"].problem, turned).resolved()
    (one,), (other,) = (
        p.elements[s].values()
        for p, s in ((bouc_wen, "bouc_wen"), (laws["Dahl"].problem.resolved(), "dahl"))
    )
    for z in (-1e-5, 0.0, 2e-5):
        assert float(one.rate(0.3, z, 1.0)) == pytest.approx(float(other.rate(0.3, z, 1.0)))


def test_refusals():
    t = np.linspace(0.0, 1.0, 101)
    e = jfric.Experiment(t, u={"load.F": 0.0 * t}, y={"u": np.sin(t)})
    free = {"mass.m": jfric.Free(0.5, 2.0)}
    with pytest.raises(jfric.ProblemError, match=r"states: found 'fre' \(did you mean 'free'"):
        jfric.fit(system("jenkins"), e, free, residual=jfric.InverseDynamics("fre"))
    with pytest.raises(jfric.ProblemError, match=r"states: .* allowed are followed, free, steady"):
        jfric.fit(system("jenkins"), e, free, residual=jfric.Windows(0.2, "slow"))
    with pytest.raises(jfric.ProblemError, match=r"residual: 'input' compares"):
        jfric.fit(system("jenkins"), e, free, residual=jfric.ClosedLoop())
