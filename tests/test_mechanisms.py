"""Mechanisms against solutions of their own by SciPy, event by event."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cranks import crank_by_angle
from references import four_bar, rigid_body, slider_crank

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.verification.configs import shipped

SOLVER = jfric.EventDriven(rtol=1e-12)
END = 1.3


def body(own: rigid_body.Body, start, push=(0.0, 0.0), belt=0.0, lift=0.0) -> jfric.Problem:
    """A body with two points, each of which touches a line: of any numbers one program.

    ``push``: amplitude and angular frequency of a force along x; ``belt``, ``lift``: velocity of
    the first line and force along y from 0.1 s on.
    """
    first, second = own.contacts
    lines, contacts = {}, {}
    for name, x in (("first", first), ("second", second)):
        n = np.asarray(x.normal)
        on = x.offset * n
        lines |= {f"{name}_a": tuple(on), f"{name}_b": tuple(on + np.array([n[1], -n[0]]))}
        contacts[name] = jfric.Contact(
            point=f"body.{name}",
            line=(f"ground.{name}_a", f"ground.{name}_b"),
            law=jfric.Coulomb(x.mu),
            e=x.e,
            belt=jfric.Steps([0.1], [0.0, belt]) if name == "first" else None,
        )
    points = {"first": first.at, "second": second.at}
    x, y, angle, *v, omega = start
    moving = jfric.Body(own.m, own.J, (x, y), angle, tuple(v), omega, points)
    return jfric.Problem(
        [],
        {
            "body": {"body": moving},
            "ground": jfric.Ground(lines),
            "gravity": jfric.Gravity(own.g),
            "load": {
                "push": jfric.Load("body_x", jfric.Harmonic(*push)),
                "lift": jfric.Load("body_y", jfric.Steps([0.1], [0.0, lift])),
            },
            "contact": contacts,
        },
        time=END,
    )


@eqx.filter_jit
def simulated(problem, ts, end):
    return jfric.simulate(problem, SOLVER, ts=ts, end=end)


def compare(problem, found: rigid_body.Motion, end) -> None:
    """States, times and modes of all events, impacts; and by the residuals of the laws."""
    ts = jnp.linspace(0.0, end, 41)
    solution = simulated(problem, ts, jnp.asarray(end)).check()
    expected = np.array([found(t) for t in ts])
    np.testing.assert_allclose(solution.q, expected[:, :3], rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(solution.v, expected[:, 3:], rtol=0.0, atol=1e-9)
    rows = solution.event_table()
    names = ["contact.first", "contact.second"]
    for row, (t, contact, before, after, _) in zip(rows, found.events, strict=True):
        assert row["time"] == pytest.approx(t, abs=1e-10)
        assert (row["contact"], row["from"], row["to"]) == (names[contact], before, after)
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-12
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-11


def rod(mu=0.607) -> rigid_body.Body:
    """One metre, one kilogram, with a wall far away from its other end."""
    far = rigid_body.Touching((0.5, 0.0), (1.0, 0.0), -50.0)
    return rigid_body.Body(1.0, 1 / 12, (rigid_body.Touching((-0.5, 0.0), mu=mu), far))


@pytest.mark.slow
def test_a_rod_that_falls_on_a_rough_floor():
    """An impact, sliding that reverses, lift-off, and another impact."""
    phi = 0.264
    start = [0.0, 0.5 * np.sin(phi) + 0.02, phi, -2.083, 2.383, 6.322]
    found = rigid_body.solve(rod(), start, 0.7)
    modes = [(x[2], x[3]) for x in found.events]
    turns = [("open", "slip-"), ("slip-", "slip+"), ("slip+", "open"), ("open", "slip-")]
    assert modes == turns
    compare(body(rod(), start), found, 0.7)


@pytest.mark.slow
@pytest.mark.parametrize("lift", [0.0, 20.0])
def test_painleve(lift):
    """A rod that leans on a floor, which starts to move: without a lift no motion follows, with it
    two do. It ends there, with a status; with less friction it goes on."""
    start = [0.0, 0.5 * np.sin(1.1), 1.1, 0.0, 0.0, 0.0]
    far = rod(2.0).contacts[1]
    state = rigid_body.solve(rod(2.0), start, 0.1, [True, False], [True, False])(0.1)
    lifted = rigid_body.Body(
        1.0, 1 / 12, (rod(2.0).contacts[0], far), lambda t: np.array([0.0, lift, 0.0])
    )
    _, normal, _, _ = lifted.motion(("slip-", "open"), 0.1, state[:3], state[3:])
    falling, _, _, rows = lifted.motion(("open", "open"), 0.1, state[:3], state[3:])
    parts = rows[1][0] @ falling + rows[3][0, 0]
    # Neither sliding nor lifting is admissible, or both are; it cannot stick on the moving floor.
    assert (normal[0] > 0, parts > 0) == (lift > 0, lift > 0)
    problem = body(rod(2.0), start, belt=1.0, lift=lift)
    solution = simulated(problem, jnp.linspace(0.0, 0.7, 41), jnp.asarray(0.7))
    assert int(solution.status) == int(jfric.Status.INCONSISTENT)
    kind = jfric.Flag.SEVERAL_MOTIONS if lift else jfric.Flag.NO_MODE
    assert kind in jfric.Flag(int(solution.flags))
    assert float(solution.final.t) == pytest.approx(0.1, abs=1e-15)
    np.testing.assert_allclose(solution.final.q, state[:3], rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(solution.final.v, state[3:], rtol=0.0, atol=1e-11)
    with pytest.raises(jfric.SimulationError, match="no unique consistent mode"):
        solution.check()
    less = body(rod(1.3), start, belt=1.0, lift=lift)
    simulated(less, jnp.linspace(0.0, 0.7, 41), jnp.asarray(0.7)).check()


@pytest.mark.slow
def test_sliding_into_painleve():
    """A rod that slides on a rough floor turns until friction takes the contact's inertia away: the
    normal force grows beyond bounds, and no motion goes on from there. Where the free acceleration
    vanishes with the inertia any normal force fits: rounding says whether none or all do."""
    mu, phi, omega, speed = 2.5, 0.41386, 2.49185, -6.98254
    start = [0.0, 0.5 * np.sin(phi), phi, speed, 0.5 * np.cos(phi) * omega, omega]
    problem = body(rod(mu), start)
    solution = simulated(problem, jnp.linspace(0.0, 0.7, 41), jnp.asarray(0.7))
    assert int(solution.status) == int(jfric.Status.INCONSISTENT)
    either = jfric.Flag.NO_MODE | jfric.Flag.SEVERAL_MOTIONS
    assert jfric.Flag(int(solution.flags)) & either
    angle = float(solution.final.q[2])
    left = 1.0 + 3.0 * np.cos(angle) * (np.cos(angle) - mu * np.sin(angle))
    before = 1.0 + 3.0 * np.cos(phi) * (np.cos(phi) - mu * np.sin(phi))
    assert abs(left) < 1e-4 * before
    assert 0.0 < float(solution.final.t) < 0.1


@pytest.mark.slow
def test_a_ladder_with_friction_at_both_ends():
    """From rest: it slides down, leaves the wall, and its foot turns back."""
    theta = 0.6
    ends = (
        rigid_body.Touching((-1.0, 0.0), mu=0.2),
        rigid_body.Touching((1.0, 0.0), (1.0, 0.0), mu=0.15),
    )
    ladder = rigid_body.Body(3.0, 1.0, ends)
    start = [np.sin(theta), np.cos(theta), np.pi / 2 + theta, 0.0, 0.0, 0.0]
    found = rigid_body.solve(ladder, start, 1.0, [True, True], [True, True])
    assert [(x[1], x[3]) for x in found.events] == [(1, "open"), (0, "slip-")]
    compare(body(ladder, start), found, 1.0)


@pytest.mark.slow
def test_a_block_that_rocks_and_slides():
    """On one corner, over to the other at an impact, which then slides under a push."""
    b, h, theta, push = 0.163, 0.595, 0.138, (6.954, 6.891)
    corners = tuple(rigid_body.Touching((side * b, -h), mu=0.35) for side in (-1, 1))
    block = rigid_body.Body(
        2.0,
        2.0 * (b**2 + h**2) / 3,
        corners,
        lambda t: np.array([push[0] * np.sin(push[1] * t), 0.0, 0.0]),
    )
    start = [0.0, b * np.sin(theta) + h * np.cos(theta), theta, 0.0, 0.0, 0.0]
    found = rigid_body.solve(block, start, 1.2, [True, False], [True, False])
    assert [x[3] for x in found.events] == ["open", "stick", "slip+"]
    compare(body(block, start, push), found, 1.2)


def crank(own: slider_crank.Rubbing, start: tuple[float, float]) -> jfric.Problem:
    R, L, m, J = slider_crank.R, slider_crank.L, slider_crank.MASSES, slider_crank.INERTIAS
    bodies = {
        "crank": jfric.Body(
            m[0],
            J[0],
            angle=start[0],
            omega=start[1],
            points={"shaft": (-R / 2, 0), "tip": (R / 2, 0)},
        ),
        "rod": jfric.Body(m[1], J[1], points={"big": (-L / 2, 0), "small": (L / 2, 0)}),
        "piston": jfric.Body(m[2], J[2]),
    }
    points = {
        "shaft": ("crank.shaft", "ground"),
        "big": ("crank.tip", "rod.big"),
        "small": ("rod.small", "piston"),
    }
    friction = jfric.Coulomb(own.pins)
    pins = {name: jfric.Pin(x, friction, radius=own.radius) for name, x in points.items()}
    return jfric.Problem(
        [],
        {
            "body": bodies,
            "gravity": jfric.Gravity(slider_crank.G),
            "pin": pins,
            "slider": jfric.Slider("piston", "ground", turns=False, law=jfric.Coulomb(own.mu)),
            "load": jfric.Load("crank_phi", jfric.Harmonic(9.0, 2.0)),
        },
        time=2.5,
    )


@pytest.mark.slow
def test_slider_crank_with_friction_in_slider_and_pins():
    """It sticks, with reactions that four frictions share, breaks away, turns over, and back; the
    slider changes sides."""
    own = slider_crank.Rubbing(0.2, 0.3, 0.03, lambda t: 9.0 * np.sin(2.0 * t))
    pieces, events = own.motion(0.4, 3.0, 2.5)
    problem, ts = crank(own, (0.4, 3.0)), np.linspace(0.0, 2.5, 51)
    solution = jfric.simulate(problem, SOLVER, ts=ts).check()
    ends = np.array([end for _, end in pieces])
    index = np.minimum(np.searchsorted(ends, ts), len(pieces) - 1)
    expected = np.array([pieces[i][0](t) for i, t in zip(index, ts, strict=True)])
    np.testing.assert_allclose(solution.q[:, 2], expected[:, 0], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(solution.v[:, 2], expected[:, 1], rtol=1e-9, atol=1e-8)
    times = [row["time"] for row in solution.event_table()]
    apart = np.diff(times, prepend=-1.0) > 1e-9
    np.testing.assert_allclose(np.array(times)[apart], [x[0] for x in events], atol=1e-9)
    assert {x[1] for x in events} == {"stops", "starts", "small pin", "slider", "other side"}
    # Outputs are polynomials through a step; where a pin carries next to nothing ``|R|`` is none.
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-8
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-11


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the .* flow runs in float32")
def test_slider_crank_with_friction_in_single_precision():
    """Four frictions on one motion: they stuck for ever where they reversed, with status ok."""
    own = slider_crank.Rubbing(0.2, 0.3, 0.03, lambda t: 9.0 * np.sin(2.0 * t))
    pieces, _ = own.motion(0.4, 3.0, 2.5)
    ts = np.array([end for _, end in pieces])
    with jax.enable_x64(False):
        outputs = jnp.asarray(ts, jnp.float32)
        solution = jfric.simulate(crank(own, (0.4, 3.0)), jfric.EventDriven(), ts=outputs).check()
        assert solution.q.dtype == jnp.float32
    expected = np.array([solve(t) for solve, t in pieces])
    np.testing.assert_allclose(solution.q[:, 2], expected[:, 0], rtol=0.0, atol=1e-4)
    np.testing.assert_allclose(solution.v[:, 2], expected[:, 1], rtol=2e-4, atol=1e-3)


def four_bar_linkage(start: tuple[float, float], end: float) -> jfric.Problem:
    """Crank, coupler and rocker on four pins; friction resists the turning of the rocker."""
    own, at = four_bar, four_bar.places(start[0]).reshape(3, 3).tolist()
    lengths = {"crank": own.CRANK, "coupler": own.COUPLER, "rocker": own.ROCKER}
    # Places tell which of the two ways to assemble it is meant; speeds follow from the crank's.
    bodies = {
        name: jfric.Body(
            own.MASSES[i],
            own.INERTIAS[i],
            (at[i][0], at[i][1]),
            at[i][2],
            omega=start[1] if i == 0 else None,
            points={"a": (-length / 2, 0.0), "b": (length / 2, 0.0)},
        )
        for i, (name, length) in enumerate(lengths.items())
    }
    points = {
        "shaft": ("crank.a", "ground"),
        "tip": ("crank.b", "coupler.a"),
        "joint": ("coupler.b", "rocker.b"),
        "foot": ("rocker.a", "ground.foot"),
    }
    return jfric.Problem(
        [],
        {
            "body": bodies,
            "ground": jfric.Ground({"foot": (own.GROUND, 0.0)}),
            "gravity": jfric.Gravity(own.G),
            "pin": {name: jfric.Pin(x) for name, x in points.items()},
            "friction": jfric.Friction("rocker_phi", limit=own.LIMIT),
        },
        time=end,
    )


@pytest.mark.slow
def test_four_bar_linkage_with_friction():
    """The crank turns over, then swings; friction changes sides at both dead centres of the rocker
    and where all stops for an instant."""
    start, end = (0.5, 9.0), 6.0
    pieces, events = four_bar.motion(*start, end)
    problem, ts = four_bar_linkage(start, end), np.linspace(0.0, end, 61)
    solution = jfric.simulate(problem, SOLVER, ts=ts).check()
    index = np.minimum(np.searchsorted([until for until, _ in pieces], ts), len(pieces) - 1)
    expected = np.array([pieces[i][1](t) for i, t in zip(index, ts, strict=True)])
    places = np.array([four_bar.places(a) for a in expected[:, 0]])
    speeds = np.array([four_bar.rates(a) * w for a, w in expected])
    crank = solution.axes.index("crank_phi")
    np.testing.assert_allclose(solution.q[:, crank], expected[:, 0], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(solution.v, speeds, rtol=0.0, atol=1e-7)
    np.testing.assert_allclose(np.sin(solution.q), np.sin(places), rtol=0.0, atol=1e-8)
    times = [row["time"] for row in solution.event_table()]
    assert {what for _, what in events} == {"rocker", "turns"}
    np.testing.assert_allclose(times, [t for t, _ in events], rtol=0.0, atol=1e-8)
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-11
    assert float(jfric.contact_residual(problem, solution).max()) < 1e-11


#: A torque and a damper on the crank, and friction on the piston with a given normal force.
DRIVEN = """
[load]
dof = "{crank}"
F = 3.0
[damper]
dof = "{crank}"
c = 0.1
[friction.piston]
{along}
mu = 0.3
N = 20.0
"""
#: A slider-crank by the energies of its three bodies and two pins, in five coordinates.
ENERGIES = """
dofs = {a = "rotation", x = "translation", y = "translation", b = "rotation", s = "translation"}
[time]
end = 10.0
[parameters]
r = 0.2
l = 0.7
[lagrangian]
kinetic = "0.5*(0.02 + 2.0*r^2/4)*v.a^2 + 0.5*(v.x^2 + v.y^2) + 0.025*v.b^2 + 1.5*v.s^2"
potential = "9.81*(2.0*r/2*sin(a) + y)"
[joint.big]
constraint = ["x - l/2*cos(b) - r*cos(a)", "y - l/2*sin(b) - r*sin(a)"]
[joint.small]
constraint = ["x + l/2*cos(b) - s", "y + l/2*sin(b)"]
"""


@pytest.mark.slow
def test_three_descriptions_of_a_slider_crank_agree():
    """Bodies and pins, energies with equations between coordinates, and energies of one coordinate:
    driven over 10 s, with friction, to 1e-10 (angle and times; speeds, of 20 rad/s, to 1e-9)."""
    ts = np.linspace(0.0, 10.0, 101)
    bodies = load_config(shipped("slider_crank")).problem.initial
    same = {"x": "rod_x", "y": "rod_y", "b": "rod_phi", "s": "piston_x", "a": "crank_phi"}
    begins = "".join(
        f"[initial.{k}]\nq = {float(bodies[of].q)!r}\nv = {float(bodies[of].v)!r}\n"
        for k, of in same.items()
    )
    shipped_text = shipped("slider_crank").read_text(encoding="utf-8").partition("[solver]")[0]
    angle = crank_by_angle(20.0, 10.0)
    texts = {
        "crank_phi": shipped_text + DRIVEN.format(crank="crank_phi", along='dof = "piston_x"'),
        "a": ENERGIES + begins + DRIVEN.format(crank="a", along='dof = "s"'),
    }
    problems = {k: loads(text).problem for k, text in texts.items()}
    alone = jfric.Problem(
        angle.dofs,
        {**angle.elements, "load": jfric.Load("a", 3.0), "damper": jfric.Damper("a", 0.1)},
        initial=angle.initial,
        time=10.0,
        parameters=angle.parameters,
    )
    found, solver = [], jfric.EventDriven(rtol=1e-13)
    for dof, problem in (*problems.items(), ("a", alone)):
        solution = jfric.simulate(problem, solver, ts=ts).check()
        k = solution.axes.index(dof)
        times = np.array([row["time"] for row in solution.event_table()])
        found.append((solution.q[:, k], solution.v[:, k], times))
        assert float(jfric.motion_residual(problem, solution).max()) < 1e-11
    assert len(found[0][2]) > 10
    for other in found[1:]:
        for x, y, size in zip(found[0], other, (1.0, 10.0, 1.0), strict=True):
            np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-10 * size)


@pytest.mark.slow
def test_pins_reverse_together_with_a_loose_tolerance():
    text = (Path(__file__).parents[1] / "docs/howto/mechanism.md").read_text()
    problem = loads(text.split("```toml\n")[1].split("```")[0]).problem
    ends = [
        jfric.simulate(problem, jfric.EventDriven(rtol=rtol)).check().final.q
        for rtol in (1e-4, 1e-10)
    ]
    np.testing.assert_allclose(*ends, rtol=0.0, atol=1e-4)
