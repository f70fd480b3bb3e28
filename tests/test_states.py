"""States with an equation that a user writes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jfric
from jfric.files.read_toml import loads

START = jfric.InitialState

#: A piston on a spring in a cylinder that leaks: pressures on both sides.
FILE = """
dofs = ["x"]
[time]
end = "2 s"
outputs = [1.0, 2.0]
[parameters]
A = "1e-4 m^2"
T = "0.5 s"
c = "2e5 Pa/m"
[mass]
dof = "x"
m = "2 kg"
[spring]
dof = "x"
k = "10 N/m"
[friction]
dof = "x"
limit = "20 N"
[state.p]
rate = "(z.s - z.p)/T - c*v.x"
z0 = "3 bar"
unit = "Pa"
force = "A*z.p"
dof = "x"
[state.s]
rate = "-z.s/(4*T)"
z0 = "1 bar"
unit = "Pa"
"""


def reference(end):
    """Sliding forwards until it stops, then rest: the time of the stop, its state, and that at the
    end, by SciPy."""

    def rate(t, y):
        x, v, p, s = y
        return [v, (1e-4 * p - 10.0 * x - 20.0) / 2.0, (s - p) / 0.5 - 2e5 * v, -s / 2.0]

    def stops(t, y):
        return y[1] if t > 0 else 1.0

    stops.terminal, stops.direction = True, -1
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}
    slides = solve_ivp(rate, (0.0, end), [0.0, 0.0, 3e5, 1e5], events=stops, **options)
    stop = slides.y[:, -1]
    rests = solve_ivp(
        lambda t, y: [(y[1] - y[0]) / 0.5, -y[1] / 2.0], (slides.t[-1], end), stop[2:], **options
    )
    # Friction holds all the time.
    pull = 1e-4 * rests.y[0] - 10.0 * stop[0]
    assert np.abs(pull).max() < 20.0
    return slides.t[-1], stop, rests.y[:, -1]


def test_a_piston_agrees_with_scipy():
    problem = loads(FILE).problem
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-11), ts=jnp.array([0.9]))
    solution.check()
    assert solution.states == ("p", "s")
    time, stop, end = reference(0.9)
    # It begins to slide at once, and stops once.
    (found,) = [e["time"] for e in solution.event_table() if e["to"] == "stick"]
    assert found == pytest.approx(time, abs=1e-10)
    assert float(solution.q[0, 0]) == pytest.approx(stop[0], abs=1e-11)
    np.testing.assert_allclose(solution.z[0], end, rtol=1e-9)


def test_python_functions_and_derivatives():
    """A linear filter of a force: the state is known, and so are its derivatives."""

    def problem(T):
        return jfric.Problem(
            ["x"],
            {
                "mass": jfric.Mass("x", 1.0),
                "state": {"f": jfric.State(lambda t, q, v, z, p: (1.0 - z["f"]) / p["T"])},
            },
            parameters={"T": T},
        )

    def end(T):
        return jfric.simulate(problem(T), jfric.EventDriven(rtol=1e-12), ts=jnp.ones(1)).z[0, 0]

    assert float(end(0.5)) == pytest.approx(1 - np.exp(-2.0), abs=1e-10)
    expected = -np.exp(-2.0) * 1.0 / 0.25
    assert float(jax.jacfwd(end)(0.5)) == pytest.approx(expected, abs=1e-8)


def test_files_hold_them():
    problem = loads(FILE).problem
    again = loads(jfric.to_toml(problem)).problem
    first, second = (jfric.parameters(p) for p in (problem, again))
    assert list(first) == list(second)
    assert all(jnp.array_equal(first[k], second[k]) for k in first)
    assert again.elements["state"]["p"].rate == problem.elements["state"]["p"].rate


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("(z.s - z.p)/T - c*v.x", "(z.s - z.q)/T", "state.p.rate: '(z.s - z.q)/T' names 'z.q'"),
        (
            "(z.s - z.p)/T - c*v.x",
            "(z.s - z.p)/T - c*x",
            "state.p.rate: '(z.s - z.p)/T - c*x' adds",
        ),
        ("A*z.p", "z.p*2 s", "state.p.force: found 'z.p*2 s'"),
        ('unit = "Pa"', 'unit = "Pascals"', "state.p.unit: found the unknown unit 'Pascals'"),
        ('force = "A*z.p"', "", "state.p: direction is given without force"),
        ("[state.s]", "[state.friction]", "state.p.rate: '(z.s - z.p)/T - c*v.x' names 'z.s'"),
    ],
)
def test_bad_states_have_a_sentence(old, new, sentence):
    with pytest.raises(jfric.ProblemError) as error:
        loads(FILE.replace(old, new))
    assert sentence in str(error.value)
