"""Experiments that make parameters most certain: against the present one, and by simulation."""

from types import SimpleNamespace

import numpy as np
import pytest

import jfric
from jfric.fits.design.search import Search, expected, merit

TIMES = np.linspace(0.02, 2.0, 75)
FREE = {"friction.mu": jfric.Free(0.05, 0.5), "damper.c": jfric.Free(0.3, 3.0)}
INPUTS = {"load.F.omega": (2.0, 30.0)}
#: Steps compile sooner than events; the design does not ask how a motion was computed.
STEPS = jfric.MoreauJean(0.01)


def problem(load=None):
    load = jfric.Harmonic(6.0, 5.0) if load is None else load
    elements = {
        "mass": jfric.Mass("x", 1.0),
        "spring": jfric.Spring("x", 100.0),
        "damper": jfric.Damper("x", 1.0),
        "friction": jfric.Friction("x", jfric.Coulomb(0.2), N=10.0),
        "load": jfric.Load("x", load),
    }
    return jfric.Problem(["x"], elements, time=2.0)


def designed(**changes):
    given = {"times": TIMES, "sigma": {"x": 1e-3}, "candidates": 8, "solver": STEPS}
    return jfric.design_experiment(
        **{"problem": problem(), "free": FREE, "inputs": INPUTS, **given, **changes}
    )


@pytest.fixture(scope="module")
def design():
    return designed(limits={"x": (-0.3, 0.3)})


@pytest.mark.slow
def test_the_same_amplitude_tells_more_and_limits_are_kept(design):
    assert max(design.information_ratio.values()) > 2.0
    assert design.merit[1] > design.merit[0]
    assert float(design.problem.elements["load"]["load"].F.amplitude) == 6.0
    x = jfric.simulate(design.problem, STEPS, ts=TIMES).q[:, 0]
    assert np.abs(x).max() <= 0.3 + 1e-5
    assert [row["parameter"] for row in design.table()] == ["friction.mu", "damper.c"]


@pytest.mark.slow
def test_what_matters_decides():
    # The limits are never met: they change no program.
    found = designed(limits={"x": (-9.0, 9.0)}, of="damper.c", criterion="A", candidates=4)
    assert found.after["damper.c"] < found.before["damper.c"]
    # One parameter: its variance, by its value, and nothing of the other.
    for value, table in zip(found.merit, (found.before, found.after), strict=True):
        # At the given values; the table is a mean over where the estimates will fall.
        assert value == pytest.approx(-2.0 * np.log(table["damper.c"]), rel=0.01)


@pytest.mark.slow
def test_a_list_of_forces_for_the_worst_of_several_parameters():
    knots = np.linspace(0.0, 2.0, 5)
    start = 4.0 * np.sin(2.0 * knots)
    found = designed(
        problem=problem(jfric.PiecewiseLinear(knots, start)),
        inputs={"load.F.values": (-4.0, [4.0, 4.0, 4.0, 4.0, 5.0])},
        worst_of=3,
    )
    force = np.asarray(found.inputs["load.F.values"])
    assert force.shape == (5,)
    assert np.all(np.abs(force[:4]) <= 4.0 + 1e-9)
    assert np.all(force[4] <= 5.0 + 1e-9)
    np.testing.assert_allclose(found.problem.elements["load"]["load"].F.values, force)
    # The least merit of the three, which is no more than that of the first.
    assert found.merit[1] > found.merit[0]
    first = designed(
        problem=found.problem, inputs={"load.F.values": (-4.0, [4.0, 4.0, 4.0, 4.0, 5.0])}
    )
    assert found.merit[1] <= first.merit[0] + 1e-9


@pytest.mark.slow
def test_predicted_standard_deviations_are_those_of_fits():
    found = designed(limits={"x": (-0.3, 0.3)}, solver=None)
    clean = np.asarray(jfric.simulate(found.problem, ts=TIMES).q[:, 0])
    rng = np.random.default_rng(0)
    plan = jfric.Experiment(TIMES, y={"x": clean}, sigma=1e-3)
    samples = {"x": clean + 1e-3 * rng.normal(size=(500, TIMES.size))}
    fits = jfric.fit_batch(found.problem, plan, FREE, samples, starts=1)
    spread = np.std(fits.estimates, axis=0, ddof=1)
    np.testing.assert_allclose(spread, list(found.after.values()), rtol=0.1)


@pytest.mark.slow
def test_an_input_that_tells_a_law_from_its_rival():
    """Friction and a damper that lose as much at the present amplitude. What the rejected rival
    leaves after a fit of the law is the distance that the design promises."""
    elements = {**problem().elements, "friction": jfric.Friction("x", jfric.Coulomb(0.0), N=10.0)}
    rival = jfric.Problem(["x"], {**elements, "damper": jfric.Damper("x", 3.0)}, time=2.0)
    free = {"friction.mu": jfric.Free(0.05, 0.5)}
    found = designed(free=free, rival=rival, inputs={"load.F.amplitude": (1.0, 6.0)}, candidates=2)
    amplitude = found.inputs["load.F.amplitude"]
    assert found.after["rival.share"] < 0.9 * found.before["rival.share"]
    assert found.remarks[0].startswith("the rival is ")
    # Near a share of zero the difference of both laws, without what another coefficient takes up.
    given = {"load.F.amplitude": amplitude}
    x, other = (
        np.asarray(jfric.simulate(jfric.set_parameters(p, given), STEPS, ts=TIMES).q[:, 0])
        for p in (problem(), rival)
    )
    h = 1e-6
    more = jfric.set_parameters(problem(), {**given, "friction.mu": 0.2 + h})
    slope = (np.asarray(jfric.simulate(more, STEPS, ts=TIMES).q[:, 0]) - x) / h
    off = other - x
    rest = off - slope * (slope @ off) / (slope @ slope)
    here = float(np.exp(found.merit[1] / 2.0)) / 2.0  # by the width of the range of the share
    assert here == pytest.approx(np.linalg.norm(rest) / 1e-3, rel=0.01)


class OfOne:
    """Of one parameter near 2, the standard deviation by any experiment is ``sd``."""

    def __init__(self, sd):
        bounds = (np.array([0.0]), np.array([9.0]))
        layout = SimpleNamespace(init=np.array([2.0]), bounds=bounds, names=("mu",))
        self.task = SimpleNamespace(objective=SimpleNamespace(layout=layout))
        self.unit, self.sd, self.parameters = np.ones(1), sd, np.zeros((1, 1))

    def matrices(self, inputs):
        return self.sd(self.parameters)[None, :, :, None] ** -2.0, None

    def expected(self):
        return expected(self, np.zeros(1), self.sd(np.array([[2.0]])) ** -2.0)


def test_where_information_jumps_both_sides_count():
    sd, remarks = OfOne(lambda p: np.where(p > 2.0, 0.12, 0.1)).expected()
    assert sd == pytest.approx(np.sqrt(0.5 * (0.12**2 + 0.1**2)))
    (said,) = remarks
    assert said == (
        "an event comes or goes at the given values: on one side the standard deviation of mu is "
        "20 % larger"
    )
    # Of second order: variances 0.01 (1 + 9 (p - 2)^2), and estimates 0.1 around 2.
    sd, remarks = OfOne(lambda p: 0.1 * np.sqrt(1.0 + 9.0 * (p - 2.0) ** 2)).expected()
    assert sd == pytest.approx(0.1 * np.sqrt(1.09))
    assert not remarks
    sd, remarks = OfOne(lambda p: np.where(p > 2.05, np.inf, 0.1)).expected()
    assert sd == pytest.approx(0.1)
    assert "of mu is lost" in remarks[0]


class Ridge(Search):
    """Of two inputs the merit is Rosenbrock's: high on a bent ridge, zero at (1, 1) of (2, 2)."""

    def _with_slopes(self, part):
        x, y = 2.0 * np.asarray(part)
        value = -((1.0 - x) ** 2) - 100.0 * (y - x * x) ** 2
        self._keep(part, value, 0.0)
        slope = [4.0 * (1.0 - x) + 800.0 * x * (y - x * x), -400.0 * (y - x * x)]
        return np.array([value]), np.array([slope]), np.zeros(0), np.zeros((0, 2))


@pytest.mark.parametrize("start", [(0.1, 0.9), (0.9, 0.1), (0.2, 0.4)])
def test_a_climb_ends_at_the_top(start):
    one, none = np.ones((1, 1)), np.zeros((0, 2))
    search = Ridge(None, None, np.zeros(2), np.ones(2), one, one[0], one, [0], "D", none)
    search.climb(np.array(start))
    np.testing.assert_allclose(search.best, 0.5, atol=1e-4)


def test_slopes_of_the_value_are_differences():
    rng = np.random.default_rng(1)
    a, b = (m @ m.T + np.eye(3) for m in rng.normal(size=(2, 3, 3)))
    unit = np.array([1.0, 0.1, 10.0])
    for criterion in "DA":
        slope = merit(a, b[..., None], unit, [0, 2], criterion)[1]
        up, down = (merit(a + h * b, None, unit, [0, 2], criterion)[0] for h in (1e-6, -1e-6))
        np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": {}}, "inputs: found none"),
        ({"inputs": {"load.F.omga": (1.0, 2.0)}}, "load.F.omega"),
        ({"inputs": {"load.F.omega": (2.0, 1.0)}}, "lower below upper"),
        ({"of": ["spring.k"]}, "of: found 'spring.k'"),
        ({"sigma": {}}, "sigma: found"),
        ({"limits": {"x": (1.0, 0.0)}}, "limits.x"),
        ({"criterion": "E"}, "criterion"),
    ],
)
def test_bad_input_has_a_sentence(change, message):
    with pytest.raises(jfric.ProblemError, match=message):
        designed(**change)
