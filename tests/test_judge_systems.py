"""Random systems judged by a second program, and by changes that must have no effect."""

import numpy as np
import pytest
from answer_systems import OUTPUTS
from judge_systems import judge, main, mirrored, stepped
from random_systems import system, text

import jfric

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
    assert judge(one, answer(one[1]["q"], status=1), 1e-6).startswith("WRONG status: ok -> ")
    assert judge(one, ("traceback: KeyError: 'x'", {}), 1e-6).startswith("WRONG outcome")


def test_small_steps_see_a_wrong_motion():
    pytest.importorskip("numba")
    t = 2.0 * OUTPUTS[:, None]
    # Slows down by 1 m/s2 until it rests.
    q = np.where(t < 1.5, 1.5 * t - 0.5 * t**2, 1.125)
    assert stepped(BLOCK, answer(q)[1], 2000) == ""
    assert stepped(BLOCK, answer(1.01 * q)[1], 2000).startswith("WRONG motion")


def test_a_mirrored_system_has_other_signs_alone():
    table = system(3, 0, 0, "limits")
    assert text(mirrored(table)) != text(table)
    assert text(mirrored(mirrored(table))) == text(mirrored(mirrored(mirrored(mirrored(table)))))


@pytest.mark.slow
def test_a_few_systems(tmp_path, capsys):
    words = "--systems 4 --size 4 --seed 11 --kinds limits"
    ways = "mirrored,reordered,alone"
    assert main([*words.split(), "--ways", ways, "--out", str(tmp_path)]) == 0
    assert "4 systems, 0 wrong" in capsys.readouterr().out
