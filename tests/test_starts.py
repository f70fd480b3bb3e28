"""Starts of bodies that nothing gives follow from the joints, also where numbers change."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.system.start import started

TEXT = (Path(__file__).parent.parent / "configs" / "slider_crank.toml").read_text()


@pytest.fixture(scope="module")
def crank():
    return loads(TEXT).problem


def rebuilt(length=0.7, angle=0.4):
    text = TEXT.replace('l = "0.7 m"', f'l = "{length!r} m"')
    return loads(text.replace('angle = "0.4 rad"', f'angle = "{angle!r} rad"')).problem


def start(problem):
    _, q, v = started(problem).start()
    return jnp.concatenate([q, v])


def changed(problem, length, angle=0.4):
    return jfric.set_parameters(problem, {"parameters.l": length, "initial.crank_phi.q": angle})


# The second of these was refused: joints whose accelerations cancel to zero seemed to contradict
# each other.
@pytest.mark.parametrize(("length", "angle"), [(0.7, 0.4), (0.9, 0.4), (0.5, 1.4), (0.7, 2.9)])
def test_changed_lengths_and_angles_start_as_a_new_file_would(crank, length, angle):
    own = start(rebuilt(length, angle))
    np.testing.assert_allclose(start(changed(crank, length, angle)), own, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_derivatives_are_those_of_new_files(crank):
    h = 1e-5
    difference = (start(rebuilt(0.7 + h)) - start(rebuilt(0.7 - h))) / (2 * h)
    for jacobian in (jax.jacfwd, jax.jacrev):
        found = jacobian(lambda length: start(changed(crank, length)))(0.7)
        np.testing.assert_allclose(found, difference, rtol=0, atol=1e-8)
    # The crank keeps the start that it was given.
    i = list(crank.dofs).index("crank_phi")
    assert found[i] == 0.0
    assert found[i + len(crank.dofs)] == 0.0


def test_what_is_set_no_longer_follows(crank):
    assert ("rod_phi", "q") in crank.follows
    given = jfric.set_parameters(crank, {"initial.rod_phi.q": -0.3})
    assert set(crank.follows) - set(given.follows) == {("rod_phi", "q")}
    i = list(crank.dofs).index("rod_phi")
    assert start(given)[i] == -0.3


def test_files_keep_what_follows(crank):
    again = loads(dump(crank)).problem
    assert again.follows == crank.follows
    np.testing.assert_array_equal(start(again), start(crank))


@pytest.mark.slow
def test_a_sweep_over_a_length_is_that_of_new_files(crank):
    lengths = jnp.array([0.6, 0.75, 0.9])

    def end(problem):
        found = jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), end=0.4)
        return found.final.q, found.status

    q, status = jax.vmap(lambda length: end(changed(crank, length)))(lengths)
    assert not status.any()
    for i, length in enumerate(lengths):
        np.testing.assert_allclose(q[i], end(rebuilt(float(length)))[0], rtol=0, atol=1e-9)


# A start that followed from joints was refused by the interpreter of arrays where an element had a
# state: a motor with an inductance, a bristle, a state of one's own.
WITH_STATES = {
    "motor": {"motor": jfric.Motor("rod_phi", kt=0.5, V=2.0, R=1.0, L=0.05, i0=0.3)},
    "lugre": {
        "lugre": jfric.elements.LuGre("rod_phi", F_c=0.3, F_s=0.4, v_s=0.1, sigma0=50.0, sigma1=1.0)
    },
    "state": {"lag": jfric.State("rod_phi - z.lag", z0=0.2)},
}


def hanging(section, **given):
    """A rod on a pin, with an element that has a state."""
    elements = {
        "body": {"rod": jfric.Body(2.0, 0.2, points={"top": (0, 1)}, angle=0.3, **given)},
        "gravity": jfric.Gravity(10.0),
        "pin": jfric.Pin(("rod.top", "ground")),
        section: WITH_STATES[section],
    }
    return jfric.Problem([], elements, time=0.2)


@pytest.mark.parametrize(
    "section", ["motor", *(pytest.param(x, marks=pytest.mark.slow) for x in ("lugre", "state"))]
)
def test_starts_follow_beside_states(section):
    follows = hanging(section)
    assert ("rod_x", "q") in follows.follows
    at = (float(jnp.sin(0.3)), -float(jnp.cos(0.3)))
    given = hanging(section, at=at, v=(0.0, 0.0), omega=0.0)
    observed = f"final.rod_phi, final.v.rod_x, final.z.{next(iter(WITH_STATES[section]))}"
    found, expected = (jfric.observe(p, observed) for p in (follows, given))
    assert int(found.status) == 0
    for name, value in found.values.items():
        np.testing.assert_allclose(value, expected.values[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"at": (0.1, 0.5)}, "the nearest position that meets all joints is rod_x = "),
        (
            {"at": (np.sin(0.3), -np.cos(0.3)), "v": (1.0, 2.0), "omega": 3.0},
            "the nearest velocity that meets all joints is v.rod_x = ",
        ),
    ],
)
def test_wrong_starts_beside_states_are_told(given, said):
    with pytest.raises(jfric.ProblemError, match=f"^initial: pin.x starts .*{said}"):
        jfric.simulate(hanging("motor", **given))
