"""Friction in pins: rules, reactions, and what is said of mistakes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.contact import rules
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.results.columns import column_units, contacts_shown

M, J, L, MU, R, G = 2.0, 0.2, 0.7, 0.4, 0.05, 9.81


def free_and_response(seed: int, pins: int, size: float):
    rng = np.random.default_rng(seed)
    shape = (pins, 2, pins)
    return jnp.asarray(rng.normal(size=(pins, 2))), jnp.asarray(size * rng.normal(size=shape))


@pytest.mark.parametrize("pins", [1, 3])
def test_limits_obey_their_equation(pins):
    sliding_limits = jax.jit(rules.sliding_limits)
    for seed in range(5):
        free, response = free_and_response(seed, pins, 0.3)
        ratio, radius = -jnp.full((pins,), 0.4), jnp.linspace(0.5, 0.9, pins)
        assert bool(rules.limits_are_unique(response, ratio, radius))
        L = sliding_limits(free, response, ratio, radius)
        assert np.all(L > 0.0)  # NaN would be equal to NaN below
        reaction = free + response @ (ratio * L)
        np.testing.assert_allclose(L, radius * jnp.hypot(*reaction.T), rtol=1e-14)


def test_limits_have_derivatives():
    """Also of the second order, of which the start of a step is made."""
    free, response = free_and_response(7, 2, 0.4)
    ratio, radius = jnp.array([-0.4, 0.3]), jnp.array([0.5, 0.9])

    @jax.jit
    def limits(s):
        return rules.sliding_limits(free + s * s * response[:, :, 0], response, ratio, radius)

    h = 1e-3
    near = limits(0.3 + h) - 2.0 * limits(0.3) + limits(0.3 - h)
    second = jax.jit(jax.jacfwd(jax.jacfwd(limits)))(0.3)
    np.testing.assert_allclose(second, near / h**2, rtol=1e-5)


def test_one_pin_is_unique_until_its_torque_carries_its_own_reaction():
    """``r |by_torque ratio|`` below one; a pin without load has a limit of zero."""
    response = jnp.array([[[3.0], [4.0]]])
    for ratio, unique in ((0.39, True), (0.41, False)):
        pair = jnp.array([ratio]), jnp.array([0.5])
        assert bool(rules.limits_are_unique(response, *pair)) == unique
    assert float(rules.sliding_limits(jnp.zeros((1, 2)), response, *pair)[0]) == 0.0


def pendulum(mu=MU, radius=R, omega=0.0, wall=None) -> jfric.Problem:
    """``wall``: angle from the vertical at which the lower end hits a wall."""
    points = {"top": (-L, 0.0), "end": (L, 0.0)}
    pin = jfric.Pin(("rod.top", "ground"), jfric.Coulomb(mu), radius=radius, impact="none")
    parts = {
        "body": {"rod": jfric.Body(M, J, angle=1.2 - np.pi / 2, omega=omega, points=points)},
        "gravity": jfric.Gravity(G),
        "pin": pin,
    }
    if wall is not None:
        x = 2.0 * L * np.sin(wall)
        parts["ground"] = jfric.Ground({"a": (x, 0.0), "b": (x, -1.0)})
        parts["contact"] = jfric.Contact(point="rod.end", line=("ground.a", "ground.b"), e=0.5)
    return jfric.Problem([], parts, time=4.0)


def motion_of_pendulum(times, wall=-10.0):
    """Angle from the vertical: the reaction's square is quadratic in the torque."""
    integrate = pytest.importorskip("scipy.integrate")
    inertia, found, t, side = J + M * L**2, [], 0.0, -1.0
    angle, speed = 1.2, 0.0

    def acceleration(a, w):
        along = np.array([np.sin(a), -np.cos(a)])
        across = np.array([np.cos(a), np.sin(a)])
        free = M * (-L * w**2 * along - L * M * G * L * np.sin(a) / inertia * across + [0.0, G])
        change = -side * MU * M * L / inertia * across
        p, q = R**2 * (free @ change), R**2 * (change @ change) - 1.0
        limit = (-p - np.sqrt(p**2 - q * R**2 * (free @ free))) / q
        return (-M * G * L * np.sin(a) - side * MU * limit) / inertia

    while t < times[-1]:
        turn, hit = (lambda s, y: y[1]), (lambda s, y: y[0] - wall)
        turn.terminal, turn.direction = True, -side
        hit.terminal, hit.direction = True, -1.0
        piece = integrate.solve_ivp(
            lambda s, y: [y[1], acceleration(*y)],
            (t, 20.0),
            [angle, speed],
            "DOP853",
            rtol=1e-13,
            atol=1e-14,
            events=[turn, hit],
            dense_output=True,
        )
        found += [piece.sol(s) for s in times if t <= s < piece.t[-1]]
        t, angle, side = piece.t[-1], piece.y[0, -1], -side
        speed = -0.5 * piece.y[1, -1] if piece.t_events[1].size else 0.0
    return np.array(found[: len(times)])


@pytest.mark.slow
def test_pendulum_on_a_pin_with_friction():
    """Against a motion by one coordinate; and a pin as large as the pendulum has a status."""
    times = np.linspace(0.0, 3.9, 40)
    solver = jfric.EventDriven(rtol=1e-12)
    solution = jfric.simulate(pendulum(), solver, ts=times).check()
    expected = motion_of_pendulum(times)
    np.testing.assert_allclose(solution.q[:, 2] + np.pi / 2, expected[:, 0], atol=1e-10)
    np.testing.assert_allclose(solution.v[:, 2], expected[:, 1], atol=1e-9)
    assert float(jfric.contact_residual(pendulum(), solution).max()) < 1e-11
    units = column_units(pendulum(), solution)
    assert [row[4] for row in contacts_shown(pendulum(), solution).rows] == ["reaction"]
    assert units["lambda_t.pin"] == "N m"
    assert solution.names == ("pin",)
    # It could stick, but does not rest.
    huge = jfric.simulate(pendulum(5.0, 0.2, 1.0), solver, ts=times)
    assert int(huge.status) == int(jfric.Status.INCONSISTENT)
    assert float(huge.final.t) == 0.0


def hanging(radius=R, **changes) -> jfric.Problem:
    """The pendulum as a link, which turns about an axis of any direction in space."""
    turned = {"rpy": (0.0, 0.0, 0.7), "axis": (0.0, -1.0, 0.0)}
    rod = {"m": M, "com": (0.0, 0.0, -L), "J": (J, J, 1e-3, 0, 0, 0), "law": jfric.Coulomb(MU)}
    links = {"rod": jfric.Link(**turned, **rod, radius=radius, dof="turn")}
    start = {"turn": jfric.InitialState(1.2)}
    elements = {"link": links, "gravity": jfric.Gravity(G)} | changes
    return jfric.Problem([], elements, initial=start, time=4.0)


@pytest.mark.slow
def test_pendulum_of_a_link_on_a_bearing_with_friction():
    """Against a motion by one coordinate, and stick at the end of it."""
    times = np.linspace(0.0, 3.9, 40)
    solver = jfric.EventDriven(rtol=1e-12)
    solution = jfric.simulate(hanging(), solver, ts=times).check()
    assert list(hanging().dofs) == ["turn_r1", "turn_r2", "turn"]
    expected = motion_of_pendulum(times)
    np.testing.assert_allclose(solution.q[:, 2], expected[:, 0], atol=1e-10)
    np.testing.assert_allclose(solution.v[:, 2], expected[:, 1], atol=1e-9)
    np.testing.assert_allclose(solution.q[:, :2], 0.0, atol=1e-50)
    assert float(jfric.contact_residual(hanging(), solution).max()) < 1e-11
    assert solution.names == ("link.rod",)
    assert column_units(hanging(), solution)["lambda_t.link.rod"] == "N m"
    again = loads(jfric.to_toml(hanging())).problem
    assert jfric.to_toml(again) == jfric.to_toml(hanging())
    with pytest.raises(jfric.ProblemError, match="friction of a bearing cannot be"):
        jfric.export_mjcf(hanging())


@pytest.mark.slow
def test_two_bearings_of_an_arm_are_two_pins_of_bodies():
    """Both reactions depend on both torques; joints stop and start one after the other."""
    rod, law, end = {"m": M, "J": (J, J, 1e-3, 0, 0, 0)}, jfric.Coulomb(0.3), 3.0
    lower = {"com": (0.0, 0.0, -L), "axis": (0.0, -1.0, 0.0), "law": law, "radius": 2.0 * R}
    links = {
        "upper": jfric.Link(**rod, **lower),
        "lower": jfric.Link(parent="upper", at=(0.0, 0.0, -2.0 * L), **rod, **lower),
    }
    load = jfric.Harmonic(1.2 * M * G * L, omega=4.0)
    arm = jfric.Problem(
        [],
        {"link": links, "gravity": jfric.Gravity(G), "load": jfric.Load("upper", load)},
        initial={"upper": jfric.InitialState(0.9), "lower": jfric.InitialState(-0.5)},
        time=end,
    )
    points = {"top": (0.0, L), "end": (0.0, -L)}
    place = (np.sin(0.9), -np.cos(0.9)), (np.sin(0.4), -np.cos(0.4))
    middle = np.array([L * np.array(place[0]), 2 * L * np.array(place[0]) + L * np.array(place[1])])
    bodies = {
        name: jfric.Body(M, J, at=tuple(at), angle=angle, points=points)
        for name, at, angle in zip(links, middle, (0.9, 0.4), strict=True)
    }
    pins = {
        "upper": jfric.Pin(("upper.top", "ground"), law, radius=2.0 * R),
        "lower": jfric.Pin(("lower.top", "upper.end"), law, radius=2.0 * R),
    }
    plane = jfric.Problem(
        [],
        {"body": bodies, "pin": pins, "gravity": jfric.Gravity(G),
         "load": jfric.Load("upper_phi", load)},
        time=end,
    )  # fmt: skip
    solver, ts = jfric.EventDriven(rtol=1e-12), np.linspace(0.0, end, 31)
    found, known = (jfric.simulate(p, solver, ts=ts).check() for p in (arm, plane))
    axes = [list(arm.dofs).index(name) for name in links]
    turned = known.q[:, [2, 5]] @ np.array([[1.0, -1.0], [0.0, 1.0]])
    np.testing.assert_allclose(found.q[:, axes], turned, atol=1e-9)
    count = int(np.isfinite(known.events.time).sum())
    assert count > 4
    np.testing.assert_allclose(found.events.time[:count], known.events.time[:count], atol=1e-9)
    np.testing.assert_allclose(found.lambda_t, known.lambda_t, atol=1e-7)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"law": None}, "link.rod: radius is given without mu; give both, or neither for a"),
        ({"radius": None}, "link.rod: mu is given without radius; give both, or neither for a"),
        ({"joint": "prismatic"}, "link.rod.radius: found the joint 'prismatic', only revolute"),
        ({"radius": -1.0}, "link.rod.radius: found -1, must be positive"),
    ],
)
def test_mistakes_of_bearings_have_a_sentence(changes, sentence):
    link = dataclasses.replace(hanging().elements["link"]["rod"], **changes)
    with pytest.raises(jfric.ProblemError, match=sentence):
        hanging(link={"rod": link}).resolved()


@pytest.mark.slow
def test_pendulum_on_a_pin_with_friction_hits_a_wall():
    """Impacts reverse and halve the speed; between them friction follows the reaction."""
    times = np.linspace(0.0, 1.2, 25)
    solver = jfric.EventDriven(rtol=1e-12)
    problem = pendulum(wall=0.3)
    solution = jfric.simulate(problem, solver, ts=times, end=1.2).check()
    assert int(solution.events.impact.sum()) >= 2
    expected = motion_of_pendulum(times, wall=0.3)
    np.testing.assert_allclose(solution.q[:, 2] + np.pi / 2, expected[:, 0], atol=1e-10)
    np.testing.assert_allclose(solution.v[:, 2], expected[:, 1], atol=1e-9)


TEXT = """
[time]
end = 1
[gravity]
[body.rod]
m = 2
J = 0.2
[body.rod.points]
top = [0, 0.7]
[pin]
points = ["rod.top", "ground"]
radius = "5 cm"
mu = 0.4
"""
MISTAKES = [
    ("mu = 0.4", "", "pin: radius is given without mu; give both, or neither"),
    ('radius = "5 cm"', "", "pin: mu is given without radius; give both, or neither"),
    ('"5 cm"', "0", "pin.radius: found 0, must be positive"),
    ('"5 cm"', '"5 kg"', "pin.radius: found 'kg' (a mass), expected a length such as '10 mm'"),
    (
        "mu = 0.4",
        "mu = [0.1, 0.2]",
        "pin.mu: found two coefficients, which friction in a plane",
    ),
    (
        "mu = 0.4",
        'mu = 0.4\n[contact.floor]\npoint = "rod"\nline = "ground"',
        "pin.impact: found friction in a pin together with contact.floor, whose impacts",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_sentence(old, new, sentence):
    assert old in TEXT
    with pytest.raises(jfric.ProblemError) as caught:
        loads(TEXT.replace(old, new, 1))
    assert str(caught.value).startswith(f"<text>: {sentence}")


def test_files_and_paths():
    problem = loads(TEXT).problem
    assert dump(loads(dump(problem))) == dump(problem)
    assert {"pin.mu", "pin.radius"} <= set(jfric.parameters(problem))
    with pytest.raises(jfric.ProblemError, match=r"pin\.mu: .*a pin, which .* cannot represent"):
        jfric.simulate(problem, jfric.MoreauJean(1e-3))


def crank(mu):
    """A slider-crank that friction in three pins stops beside a dead centre of its small pin."""
    radius = 0.01
    points = {"shaft": (-0.05, 0.0), "tip": (0.05, 0.0)}
    rod = jfric.Body(1.5, 0.01, points={"big": (-0.15, 0.0), "small": (0.15, 0.0)})
    law = jfric.Coulomb(mu)
    parts = {
        "gravity": jfric.Gravity(G),
        "body": {
            "crank": jfric.Body(1.0, 1e-3, angle=4.7134, omega=1e-3, points=points),
            "rod": rod,
            "piston": jfric.Body(0.8, 1e-3),
        },
        "pin": {
            "shaft": jfric.Pin(("crank.shaft", "ground"), law, radius=radius),
            "big": jfric.Pin(("crank.tip", "rod.big"), law, radius=radius),
            "small": jfric.Pin(("rod.small", "piston"), law, radius=radius),
        },
        "slider": jfric.Slider("piston", "ground", turns=False),
    }
    return jfric.Problem([], parts, time=2.0)


@pytest.mark.slow
def test_pins_at_rest_beside_a_dead_centre_carry_no_more_than_their_limits():
    """Three frictions hold one degree of freedom, and the small pin hardly turns there: its torque
    was what rounding errors made of it, 20 times its limit."""
    vary = {f"pin.{k}.mu": np.linspace(0.11, 0.17, 13) for k in ("shaft", "big", "small")}
    signals = ["lambda_t.pin.{}", "reaction.pin.{}.x", "reaction.pin.{}.y"]
    names = [s.format(k) for k in ("shaft", "big", "small") for s in signals]
    observe = [f"{name}({t})" for name in names for t in (1.0, 1.5, 2.0)]
    table = jfric.sweep(crank(0.1), vary, observe, method="zip", progress=False)
    assert not table["status"].values.any()
    for k in ("shaft", "big", "small"):
        for t in (1.0, 1.5, 2.0):
            torque, x, y = (table[f"{s.format(k)}({t})"].values for s in signals)
            limit = vary[f"pin.{k}.mu"] * 0.01 * np.hypot(x, y)
            assert np.all(np.abs(torque) <= limit * (1.0 + 1e-9))
            # Nothing moves it any more: the forces stay as they are.
            first = table[f"lambda_t.pin.{k}(1.0)"].values
            np.testing.assert_allclose(torque, first, atol=1e-9)
