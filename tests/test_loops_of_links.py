"""Loops of links that pins close: equations, starts, motions, files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import four_bar
from scipy.integrate import DOP853

import jfric
from jfric.system.joint_equations import joint_equations
from jfric.system.position_functions import OfGroup

#: A crank, a rod on a ball, and an arm whose end the rod holds.
LINKAGE = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 0 1"/>
      <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <body name="rod" pos="0.2 0 0">
        <joint name="ball" type="ball" pos="0.01 0 0.02"/>
        <inertial pos="0.2 0.2 0.1" mass="0.5" diaginertia="0.02 0.03 0.04"/>
      </body>
    </body>
    <body name="arm" pos="0.6 0.4 0">
      <joint name="arm" axis="0 1 0.3"/>
      <inertial pos="0 0 0.1" mass="2" diaginertia="0.02 0.02 0.01"/>
      <site name="end" pos="0 0 0.2"/>
    </body>
  </worldbody>
  <equality><connect name="knee" body1="rod" body2="arm" anchor="0.4 0.4 0.2"/></equality>
</mujoco>
"""


@pytest.fixture
def linkage(tmp_path):
    pytest.importorskip("mujoco")

    def read(text=LINKAGE, **options):
        (tmp_path / "linkage.xml").write_text(text)
        return jfric.read_robot(tmp_path / "linkage.xml", **options)

    return read


def test_equations_and_their_derivatives(linkage):
    robot = linkage()
    problem = jfric.Problem([], robot.elements, initial=robot.initial, time=1.0).resolved()
    group = next(
        e.function.group for e in joint_equations(problem) if isinstance(e.function, OfGroup)
    )
    draw = np.random.default_rng(3011903)
    q, v = (jnp.asarray(draw.normal(size=len(problem.dofs))) for _ in "qv")
    q = q.at[1:5].divide(jnp.linalg.norm(q[1:5]))
    v = v.at[1:5].add(-(v[1:5] @ q[1:5]) * q[1:5])
    seen = group.at(0.0, q, v)

    def value(s):
        # The motion q + v s keeps the norm of the quaternion.
        x = q + v * s
        return group(0.0, x.at[1:5].divide(jnp.linalg.norm(x[1:5])))

    def rate(s):
        return jax.jvp(value, (s,), (1.0,))[1]

    a = jnp.zeros_like(v).at[1:5].set(-(v[1:5] @ v[1:5]) * q[1:5])
    np.testing.assert_allclose(seen.value, value(0.0), rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(seen.W @ v, rate(0.0), rtol=0.0, atol=1e-14)
    bend = jax.jvp(rate, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(seen.bias + seen.W @ a, bend, rtol=0.0, atol=1e-12)


def test_what_is_not_given_follows_from_the_loop(linkage):
    robot = linkage()
    initial = robot.initial | {"crank": jfric.InitialState(0.0, 2.0)}
    problem = jfric.Problem([], robot.elements, initial=initial, time=1.0)
    start = jfric.observe(problem, ["v.crank(0)", "v.arm(0)", "arm(0)"]).values
    # The rod keeps its length: the arm's end moves along it as fast as the crank's.
    rod, end = np.array([0.39, 0.4, 0.18]), np.array([0.2, 0.0, 0.0]) / np.hypot(1.0, 0.3)
    ball = np.cross([0.0, 0.0, 2.0], [0.21, 0.0, 0.02])
    assert float(start["v.crank(0)"]) == pytest.approx(2.0, rel=1e-14)
    assert float(start["arm(0)"]) == pytest.approx(0.0, abs=1e-12)
    assert float(start["v.arm(0)"]) == pytest.approx((ball @ rod) / (end @ rod), rel=1e-12)


def test_sites_and_the_ground_can_be_held(linkage):
    text = LINKAGE.replace(
        'body1="rod" body2="arm" anchor="0.4 0.4 0.2"', 'body1="rod" anchor="0.4 0.4 0.2"'
    )
    robot = linkage(text)
    assert robot.elements["pin"]["knee"].points == ("rod.knee", "knee_ground")
    held = robot.elements["link"]["knee_ground"]
    np.testing.assert_allclose(held.at, (0.6, 0.4, 0.2), rtol=0.0, atol=1e-15)
    sites = LINKAGE.replace(
        '<inertial pos="0.2 0.2', '<site name="tip" pos="0.4 0.4 0.2"/><inertial pos="0.2 0.2'
    ).replace('body1="rod" body2="arm" anchor="0.4 0.4 0.2"', 'site1="tip" site2="end"')
    points = {k: x.points for k, x in linkage(sites).elements["link"].items()}
    np.testing.assert_allclose(points["arm"]["knee"], (0.0, 0.0, 0.2), rtol=0.0, atol=1e-15)
    # The link begins in its joint.
    np.testing.assert_allclose(points["rod"]["knee"], (0.39, 0.4, 0.18), rtol=0.0, atol=1e-15)


def test_a_constraint_that_is_not_active_is_not_read(linkage):
    robot = linkage(LINKAGE.replace("<connect name", '<connect active="false" name'))
    assert "pin" not in robot.elements
    assert any("1 constraints that are no joints, or not active" in x for x in robot.remarks)


def test_a_loop_whose_joints_are_all_locked_is_none(linkage):
    robot = linkage(locked={"crank": 0.0, "ball": 0.0, "arm": 0.0})
    assert "pin" not in robot.elements
    assert "not read: knee, no joint moves its two bodies" in robot.remarks


@pytest.mark.parametrize(
    ("pin", "sentence"),
    [
        (jfric.Pin(("rod.knee", "arm.kne")), r"pin.points: link.arm has no point 'kne' \(did you"),
        (jfric.Pin(("rod.knee", "armm")), r"pin.points: no link 'armm' \(did you mean 'arm'\?\)"),
        (jfric.Pin(("rod.knee", "rod")), "pin: both sides belong to 'rod'"),
        (jfric.Pin(("rod", "arm"), 0.1, 0.01), "pin.law: friction acts in joints of links"),
    ],
)
def test_mistakes_have_a_sentence(linkage, pin, sentence):
    elements = linkage().elements | {"pin": pin}
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.Problem([], elements, time=1.0)


def test_a_pin_that_no_joint_moves_has_a_sentence():
    links = {"arm": jfric.Link(m=1.0), "tool": jfric.Link("fixed", "arm", at=(1, 0, 0))}
    with pytest.raises(jfric.ProblemError, match=r"pin.points: no joint moves one of both"):
        jfric.Problem([], {"link": links, "pin": jfric.Pin(("arm", "tool"))}, time=1.0)


@pytest.mark.slow
def test_four_bar_linkage_of_links():
    """In a plane, with friction on the rocker, against one equation of the crank's angle."""
    start, end, own = (0.5, 9.0), 6.0, four_bar
    lengths = {"crank": own.CRANK, "coupler": own.COUPLER, "rocker": own.ROCKER}
    places = {
        "crank": {}, "coupler": {"parent": "crank", "at": (own.CRANK, 0, 0)},
        "rocker": {"at": (own.GROUND, 0, 0)},
    }  # fmt: skip
    links = {
        name: jfric.Link(
            axis=(0, -1, 0),
            m=own.MASSES[i],
            com=(length / 2, 0, 0),
            J=(own.INERTIAS[i],) * 3 + (0, 0, 0),
            points={"end": (length, 0, 0)},
            **places[name],
        )
        for i, (name, length) in enumerate(lengths.items())
    }
    angle = own.places(start[0])[2::3]
    rate = own.rates(start[0])[2::3] * start[1]
    relative = np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]])
    states = zip(lengths, relative @ angle, relative @ rate, strict=True)
    problem = jfric.Problem(
        [],
        {
            "link": links,
            "pin": {"joint": jfric.Pin(("coupler.end", "rocker.end"))},
            "gravity": jfric.Gravity(own.G),
            "friction": jfric.Friction("rocker", limit=own.LIMIT),
        },
        initial={name: jfric.InitialState(q, v) for name, q, v in states},
        time=end,
    )
    pieces, events = own.motion(*start, end)
    ts = np.linspace(0.0, end, 61)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=ts).check()
    # Nothing tells the reaction across the plane.
    assert jfric.Flag.REDUNDANT in jfric.Flag(int(solution.flags))
    index = np.minimum(np.searchsorted([until for until, _ in pieces], ts), len(pieces) - 1)
    expected = np.array([pieces[i][1](t) for i, t in zip(index, ts, strict=True)])
    np.testing.assert_allclose(solution.q[:, 0], expected[:, 0], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(solution.v[:, 0], expected[:, 1], rtol=0.0, atol=1e-7)
    times = [row["time"] for row in solution.event_table()]
    np.testing.assert_allclose(times, [t for t, _ in events], rtol=0.0, atol=1e-8)
    assert float(jfric.motion_residual(problem, solution).max()) < 1e-11
    stepped = jfric.simulate(problem, jfric.MoreauJean(dt=1e-4), ts=ts[:21]).check()
    np.testing.assert_allclose(stepped.q[:, 0], expected[:21, 0], rtol=0.0, atol=5e-3)


@pytest.mark.slow
def test_a_loop_in_space_against_mujoco(linkage, tmp_path):
    """MuJoCo's mass matrix, bias and Jacobians, with the exact constraint, by DOP853."""
    mujoco = pytest.importorskip("mujoco")
    robot, end = linkage(), 1.5
    initial = robot.initial | {"crank": jfric.InitialState(0.0, 2.0)}
    problem = jfric.Problem([], robot.elements, initial=initial, time=end)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=jnp.array([0.0, end]))
    assert int(solution.status) == 0
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "linkage.xml"))
    data, points = mujoco.MjData(model), (model.eq_data[0][:3], model.eq_data[0][3:6])

    def jacobian(q):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        found = np.zeros((3, model.nv))
        for sign, body, at in ((1, 2, points[0]), (-1, 3, points[1])):
            J = np.zeros((3, model.nv))
            where = data.xpos[body] + data.xmat[body].reshape(3, 3) @ at
            mujoco.mj_jac(model, data, J, None, where, body)
            found += sign * J
        return found

    def rates(t, x):
        q, v, far = x[: model.nq], x[model.nq :], 1e-6
        bend = 0.0
        for sign in (1, -1):
            there = q.copy()
            mujoco.mj_integratePos(model, there, v, sign * far)
            bend = bend + sign * (jacobian(there) @ v) / (2 * far)
        data.qvel[:] = v
        J, M = jacobian(q), np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        whole = np.block([[M, -J.T], [J, np.zeros((3, 3))]])
        a = np.linalg.solve(whole, np.concatenate([-data.qfrc_bias, -bend]))[: model.nv]
        w, turn = v[1:4], q[1:5]
        spin = 0.5 * np.append(-turn[1:] @ w, turn[0] * w + np.cross(turn[1:], w))
        return np.concatenate([v[:1], spin, v[4:], a])

    q, v = np.asarray(solution.q[0]), np.asarray(solution.v[0])
    w = 2 * (q[1] * v[2:5] - v[1] * q[2:5] - np.cross(v[2:5], q[2:5]))
    stepper = DOP853(rates, 0.0, np.concatenate([q, v[:1], w, v[5:]]), end,
                     rtol=1e-11, atol=1e-11)  # fmt: skip
    while stepper.status == "running":
        stepper.step()
    np.testing.assert_allclose(stepper.y[: model.nq], solution.q[-1], rtol=0.0, atol=1e-7)
