"""Random systems judged by a second program, and by changes that must have no effect."""

import re
import sys

import numpy as np
import pytest
from answer_systems import OUTPUTS
from judge_derivatives import FAR, NEAR, TINY, Found, compared
from judge_systems import KINDS, judge, main, mirrored, stepped, way
from random_systems import system, text

import jfric
from jfric.files.read_toml import loads

BLOCK = """
dofs = ["x"]
time = {end = 2.0}
[mass.m]
dof = "x"
m = 2.0
[friction.f]
dof = "x"
mu = 0.5
N = 4.0
[initial.x]
v = 1.5
"""


def answer(q, status=0, flags=0):
    return "answered", {"q": np.asarray(q), "status": np.array(status), "flags": np.array(flags)}


def test_differences_have_names():
    one, other = answer(np.ones((24, 1))), answer(np.full((24, 1), 1.01))
    assert judge(one, one, 1e-6) == ""
    assert judge(one, other, 1e-6) == "WRONG motion"
    assert judge(one, other, 0.1) == ""
    on_edge = answer(other[1]["q"], flags=int(jfric.Flag.TIE))
    assert judge(one, on_edge, 1e-6) == "edge motion"
    stopped = answer(one[1]["q"], status=int(jfric.Status.MAX_STEPS))
    assert judge(one, stopped, 1e-6).startswith("WRONG status: ok -> ")
    logged = answer(one[1]["q"], status=int(jfric.Status.MAX_EVENTS))
    assert judge(one, logged, 1e-6) == ""
    assert judge(other, logged, 1e-6) == "WRONG motion"
    assert judge(one, ("traceback: KeyError: 'x'", {}), 1e-6).startswith("WRONG outcome")


@pytest.fixture
def interpreted(monkeypatch):
    """Small steps without machine code: compiling it takes longer than some thousand steps."""
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    monkeypatch.delitem(sys.modules, "stepped_systems", raising=False)
    yield
    sys.modules.pop("stepped_systems", None)


@pytest.mark.usefixtures("interpreted")
def test_small_steps_see_a_wrong_motion():
    t = 2.0 * OUTPUTS[:, None]
    # Slows down by 1 m/s2 until it rests.
    q = np.where(t < 1.5, 1.5 * t - 0.5 * t**2, 1.125)
    assert stepped(BLOCK, answer(q)[1], 50) == ""
    assert stepped(BLOCK, answer(1.01 * q)[1], 50).startswith("WRONG motion")


PEAK = """
dofs = ["x"]
time = {end = 2.0}
[mass.m]
dof = "x"
m = 1.0
[friction.f]
dof = "x"
mu_s = 0.5
mu_d = 0.25
N = 2.0
[load.l]
dof = "x"
F = {linear = {times = [0.0, 1.0, 2.0], values = [0.0, 1.000001, 0.0]}}
"""


@pytest.mark.slow  # its sibling: small steps without machine code
def test_small_steps_see_a_peak_that_passes_a_limit_for_less_than_a_step():
    pytest.importorskip("numba")
    s = np.maximum(2.0 * OUTPUTS[:, None] - 1.0, 0.0)
    # Slides against 0.5 N until it rests at t = 2.
    q = s**2 / 4.0 - s**3 / 6.0
    assert stepped(PEAK, answer(q)[1], 4000) == ""
    assert stepped(PEAK, answer(0.0 * q)[1], 4000).startswith("WRONG motion")


NEAR_STOP = """
dofs = ["a", "b"]
time = {end = 1.0}
[mass.a]
dof = "a"
m = 1.0
[mass.b]
dof = "b"
m = 1.0
[friction.f]
plane = ["a", "b"]
mu_s = 0.7
mu_d = 0.5
N = 1.0
[load.l]
dof = "a"
F = 0.6
[initial.a]
v = -0.5
[initial.b]
v = 1e-6
"""


@pytest.mark.slow  # its sibling: small steps without machine code
def test_small_steps_see_that_sliding_in_a_plane_turns_around_and_does_not_stop():
    pytest.importorskip("numba")
    t, turn = OUTPUTS, 0.5 / 1.1
    a = np.where(t < turn, -0.5 * t + 0.55 * t**2, -0.25 * turn + 0.05 * (t - turn) ** 2)
    q = np.stack([a, np.zeros_like(a)], axis=1)
    assert stepped(NEAR_STOP, answer(q)[1], 4000) == ""
    q[:, 0] = np.where(t < turn, a, -0.25 * turn)
    assert stepped(NEAR_STOP, answer(q)[1], 4000).startswith("WRONG motion")


TWO_FLOORS = """
dofs = ["a", "b"]
time = {end = 2.0}
[mass.a]
dof = "a"
m = 1.0
[mass.b]
dof = "b"
m = 1.0
[load.press]
dof = "b"
F = -1.0
[load.side]
dof = "a"
F = {linear = {times = [0.0, 2.0], values = [0.0, %s]}}
[contact.c0]
normal = "b"
tangent = "a"
e = 0.0
mu = 0.25
[contact.c1]
normal = "b"
tangent = "a"
e = 0.0
mu = 0.75
"""


@pytest.mark.usefixtures("interpreted")
def test_small_steps_rest_as_long_as_any_shares_of_a_load_hold():
    rest = np.zeros((24, 2))
    assert stepped(TWO_FLOORS % 0.74, answer(rest)[1], 20) == ""
    assert stepped(TWO_FLOORS % 1.0, answer(rest)[1], 20).startswith("WRONG motion")


OBLIQUE = """
dofs = ["x"]
time = {end = 1.0}
[mass.m]
dof = "x"
m = 1.0
[initial.x]
v = 1.0
[contact.c]
normal = {x = -1.0}
tangent = {x = -1.5}
mu_s = 0.75
mu_d = 0.5
e = 0.5
gap = 0.2
"""


@pytest.mark.usefixtures("interpreted")
def test_small_steps_reverse_sliding_by_the_impact_that_causes_it():
    q = np.where(OUTPUTS < 0.2, OUTPUTS, 0.2 - 0.5 * (OUTPUTS - 0.2))[:, None]
    assert stepped(OBLIQUE, answer(q)[1], 50) == ""
    rest = np.minimum(OUTPUTS, 0.2)[:, None]
    assert stepped(OBLIQUE, answer(rest)[1], 50).startswith("WRONG motion")


def test_a_mirrored_system_has_other_signs_alone():
    table = system(3, 0, 0, "limits")
    assert text(mirrored(table)) != text(table)
    assert text(mirrored(mirrored(table))) == text(mirrored(mirrored(mirrored(mirrored(table)))))


def test_massless_nodes_are_not_reported():
    table = system(3, 1400, 0, "massless")
    reported = [x for x in table["dofs"] if x not in table["massless"]]
    assert 0 < len(reported) < len(table["dofs"])
    for name in ("mirrored", "reordered", "units"):
        order, signs, *_ = way(name, [table]).scale
        assert len(order) == len(signs) == len(reported)


def _sides(plus, minus, curvature):
    """Differences to both sides of a motion of one number."""
    return {
        (h, sign): np.array([[[(plus if sign > 0 else minus) + sign * h * curvature]]])
        for h in (TINY, NEAR, FAR)
        for sign in (1.0, -1.0)
    }


@pytest.mark.parametrize(
    ("slope", "sides", "differentiable", "said"),
    [
        (2.0, _sides(2.0, 2.0, 30.0), True, "right"),
        (2.01, _sides(2.0, 2.0, 30.0), True, "WRONG: system 0"),
        (2.01, _sides(2.0, 2.0, 30.0), False, "flagged"),
        (2.0, _sides(2.0, 1.0, 30.0), True, "WRONG on an edge"),
        (2.0, _sides(2.0, 1.0, 30.0), False, "edge"),
        (2.0, _sides(2.0, np.nan, 0.0), True, "with another status"),
        (2.0, _sides(2.0, 1.0, 0.0) | {(TINY, -1.0): np.full((1, 1, 1), 2.0)}, True, "edge nearby"),
    ],
)
def test_derivatives_are_told_from_edges(slope, sides, differentiable, said):
    base = Found(np.zeros((1, 1)), np.zeros(1, int), np.array([differentiable]))
    (found,) = compared(np.array([[[slope]]]), base, sides, np.ones((1, 1)))
    assert found.startswith(said)


@pytest.mark.slow
# Of contacts that share a load the second program takes one distribution, not any that holds.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "shared"])
def test_systems_move_as_the_second_program_moves_them(kind, tmp_path, capsys):
    pytest.importorskip("numba")
    words = f"--systems 24 --size 12 --seed 2811431 --ways stepped --kinds {kind}"
    assert main([*words.split(), "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "24 systems, 0 wrong" in out
    equal = re.search(r"stepped .*?equal (\d+)", out)
    assert equal
    assert int(equal[1]) >= 8


@pytest.mark.slow
def test_a_few_systems(tmp_path, capsys):
    words = "--systems 4 --size 4 --seed 11 --kinds limits"
    ways = "mirrored,reordered,batched"
    assert main([*words.split(), "--ways", ways, "--out", str(tmp_path)]) == 0
    assert "4 systems, 0 wrong" in capsys.readouterr().out


@pytest.mark.slow
def test_a_shared_load_that_no_step_moves_has_a_status_of_its_own():
    """Friction in a plane reaches its limit on a body that a contact could hold."""
    problem = loads(text(system(2911701, 0, 78, "statics"))).problem
    solution = jfric.simulate(problem, jfric.EventDriven(adjoint="none", max_steps=4000))
    assert int(solution.status) in (jfric.Status.STALLED, jfric.Status.OK)
    assert np.isfinite(solution.final.q).all()
