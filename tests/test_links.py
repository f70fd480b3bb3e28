"""Bodies in space on joints: equations, friction in joints, quaternions, files, robots."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references.gear_arm import GearArm

import jfric
from jfric.files.read_toml import load_config, loads
from jfric.system.assembly import energies
from jfric.system.joint_equations import joint_equations
from jfric.system.tree import SPINS
from jfric.verification.configs import shipped

#: All kinds of joints: a branch, two joints of one body, joints away from the origins of bodies.
MACHINE = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="base" pos="0.1 -0.2 0.3" quat="0.9 0.1 -0.2 0.3">
      <freejoint name="base"/>
      <inertial pos="0.02 0.01 -0.03" quat="1 0.2 0.1 -0.3" mass="3" diaginertia="0.05 0.04 0.03"/>
      <body name="arm" pos="0.2 0 0.1" euler="0.3 -0.4 0.5">
        <joint name="swing" type="hinge" axis="0 1 0.2" pos="0 0.05 0" armature="0.01"/>
        <joint name="reach" type="slide" axis="1 0 0" pos="0.1 0 0"/>
        <inertial pos="0.1 0 0" mass="1.5" fullinertia="0.02 0.03 0.025 0.001 -0.002 0.003"/>
        <body name="hand" pos="0.3 0 0.02" quat="1 0.3 0 0">
          <joint name="wrist" type="ball" pos="0.01 0.02 -0.01"/>
          <inertial pos="0 0.05 0.1" mass="0.7" diaginertia="0.004 0.003 0.002"/>
          <body name="tool" pos="0 0 0.2" quat="0.7 0 0.7 0">
            <inertial pos="0 0 0.02" mass="0.2" diaginertia="0.001 0.001 0.0005"/>
          </body>
        </body>
      </body>
      <body name="leg" pos="-0.1 0.1 -0.2">
        <joint name="hip" type="hinge" axis="0 1 0" ref="0.3"/>
        <inertial pos="0 0 -0.2" mass="0.9" diaginertia="0.01 0.01 0.001"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
ARM = """<robot name="arm">
  <link name="foot"/>
  <link name="upper">
    <inertial><origin xyz="0 0 -0.25"/><mass value="2"/>
      <inertia ixx="0.05" iyy="0.05" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="package://nowhere/upper.stl"/></geometry></visual>
  </link>
  <link name="lower-arm">
    <inertial><origin xyz="0 0 -0.2"/><mass value="1"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="shoulder" type="revolute"><parent link="foot"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="9"/>
    <dynamics damping="0.1" friction="0.7"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower-arm"/>
    <origin xyz="0 0 -0.5"/><axis xyz="0 1 0"/><limit lower="0" upper="1" effort="9" velocity="9"/>
    <dynamics friction="0.4"/></joint>
</robot>
"""


def spins(quaternion) -> np.ndarray:
    """Angular velocity of a body along its own axes for rates of its quaternion."""
    return np.einsum("rcw,c->wr", SPINS, quaternion)


def robot(tmp_path, text: str, suffix: str = ".urdf", **options):
    pytest.importorskip("mujoco")
    path = tmp_path / f"robot{suffix}"
    path.write_text(text)
    return jfric.read_robot(path, **options)


def pendulum(**changes) -> jfric.Problem:
    """Two arms in a plane, with friction in both joints."""
    arm = {"m": 1.5, "com": (0, 0, -0.3), "J": (0.02, 0.03, 0.01, 0, 0, 0), "axis": (0, 1, 0)}
    elements = {
        "link": {
            "upper": jfric.Link(**arm),
            "lower": jfric.Link(parent="upper", at=(0, 0, -0.5), **arm),
        },
        "gravity": jfric.Gravity(9.81),
        "friction": {
            "upper": jfric.Friction("upper", limit=0.9),
            "lower": jfric.Friction("lower", jfric.Coulomb(0.1), N=4.0),
        },
    }
    start = {"upper": jfric.InitialState(1.2), "lower": jfric.InitialState(-0.4, 2.0)}
    return jfric.Problem([], elements | changes, initial=start, time=2.0)


def test_mass_and_forces_are_those_of_mujoco(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    read = robot(tmp_path, MACHINE, ".xml")
    model = mujoco.MjModel.from_xml_string(MACHINE)
    problem = jfric.Problem([], read.elements, initial=read.initial)
    axes, n = list(problem.dofs), len(problem.dofs)
    tree = energies(problem.resolved())["links"]
    both = jax.jit(lambda q, v: (tree.mass(0.0, q), tree.force((), 0.0, q, v)))
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    for _ in range(20):
        # Coordinates and their rates: S turns MuJoCo's velocities into rates.
        v, q, S, dS = random.normal(size=model.nv), np.zeros(n), np.zeros((n, model.nv)), None
        for joint in range(model.njnt):
            name = model.joint(joint).name
            own = [i for i, x in enumerate(axes) if x == name or x.startswith(f"{name}_")]
            x = random.normal(size=len(own))
            if len(own) > 1:
                x[-4:] /= np.linalg.norm(x[-4:])
            q[own], at, dof = x, model.jnt_qposadr[joint], model.jnt_dofadr[joint]
            data.qpos[at : at + len(own)] = x
            plain = own if len(own) == 1 else own[:-4]
            S[plain, range(dof, dof + len(plain))] = 1.0
            if len(own) > 1:
                turn = slice(dof + len(plain), dof + len(plain) + 3)
                S[own[-4:], turn] = spins(x[-4:]).T / 4.0
        dS = np.zeros_like(S)
        for rows, columns in (
            (slice(3, 7), slice(3, 6)),
            *[(slice(i, i + 4), slice(j, j + 3)) for i, j in [(9, 8)]],
        ):
            dS[rows, columns] = spins((S @ v)[rows]).T / 4.0
        data.qvel[:] = v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        mass, force = map(np.asarray, both(jnp.asarray(q), jnp.asarray(S @ v)))
        bias = S.T @ (mass @ dS @ v - force)
        assert np.abs(S.T @ mass @ S - M).max() < 1e-13 * np.abs(M).max()
        assert np.abs(bias - data.qfrc_bias).max() < 1e-12 * np.abs(data.qfrc_bias).max()


def test_a_joint_holds_below_its_friction_and_slides_above():
    J, limit = 0.25, 1.0
    bar = jfric.Link(J=(J, J, 0.1, 0, 0, 0), axis=(1, 0, 0))
    problem = jfric.Problem(
        [],
        {
            "link": {"bar": bar},
            "friction": jfric.Friction("bar", limit=limit),
            "load": jfric.Load("bar", 0.3),
        },
        time=2.0,
    )

    def final(load, start):
        changed = {"load.F": load, "initial.bar.v": start}
        found = jfric.observe(jfric.set_parameters(problem, changed), "final.v.bar, final.bar")
        return jnp.stack([found.values["final.v.bar"], found.values["final.bar"]])

    loads, starts = jnp.array([0.3, 1.3, 0.0]), jnp.array([0.0, 0.0, 3.0])
    held, driven, braked = np.asarray(jax.jit(jax.vmap(final))(loads, starts))
    assert held.tolist() == [0.0, 0.0]
    assert driven[0] == pytest.approx(2.0 * (1.3 - limit) / J, rel=1e-13)
    # It comes to rest after J v/limit, on the way J v^2/2 limit.
    assert braked[0] == 0.0
    assert braked[1] == pytest.approx(J * 3.0**2 / (2.0 * limit), rel=1e-12)


@pytest.mark.slow
def test_links_and_energies_move_alike():
    text = {"m": 1.5, "l": 0.5, "c": 0.3, "J": 0.03}
    plain = jfric.Lagrangian(
        kinetic="0.5*(m*c^2 + J)*v.upper^2 + 0.5*J*(v.upper + v.lower)^2 + 0.5*m*(l^2*v.upper^2"
        " + c^2*(v.upper + v.lower)^2 + 2*l*c*v.upper*(v.upper + v.lower)*cos(lower))",
        potential="-9.81*m*(c*cos(upper) + l*cos(upper) + c*cos(upper + lower))",
    )
    linked = pendulum()
    told = jfric.Problem(
        {"upper": "rotation", "lower": "rotation"},
        {"lagrangian": plain, "friction": linked.elements["friction"]},
        initial=linked.initial,
        parameters=text,
        time=2.0,
    )
    found, expected = (jfric.simulate(p, ts=jnp.linspace(0.0, 2.0, 9)) for p in (linked, told))
    np.testing.assert_allclose(found.q, expected.q, atol=1e-9)
    np.testing.assert_allclose(found.a, expected.a, atol=1e-8)
    np.testing.assert_allclose(found.events.time, expected.events.time, atol=1e-9)
    assert int(found.status) == 0
    assert int(np.isfinite(found.events.time).sum()) > 2


@pytest.mark.slow
def test_derivatives_are_those_of_differences():
    """Of an arm under a sampled controller, forward and in reverse."""
    controller = jfric.Controller(
        "upper", "load.motor", kp=12.0, kd=1.5, period=0.05, reference=0.3, limit=40.0
    )
    problem = pendulum(load={"motor": jfric.Load("upper", 0.0)}, controller=controller)
    paths = ["friction.upper.limit", "link.lower.m", "link.lower.com.2", "gravity.g"]
    paths += ["controller.kp", "controller.kd"]
    start = jnp.stack([jnp.asarray(jfric.get_parameter(problem, p)) for p in paths])

    def final(x, adjoint):
        changed = jfric.set_parameters(problem, dict(zip(paths, x, strict=True)))
        solver = jfric.EventDriven(adjoint=adjoint, max_steps=1024)
        found = jfric.simulate(changed, solver, ts=jnp.array([2.0]))
        return jnp.concatenate([found.q[-1], found.v[-1]]), (found.events.time, found.status)

    plain = jax.jit(lambda x: final(x, "none"))
    _, (times, status) = plain(start)
    assert int(status) == 0
    assert int(np.isfinite(times).sum()) > 2
    forward = np.asarray(jax.jit(jax.jacfwd(lambda x: final(x, "forward")[0]))(start))
    reverse = jax.jit(jax.jacrev(lambda x: final(x, "reverse")[0]))(start)
    assert np.all(np.abs(forward).max(axis=0) > 1e-3)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-9)
    for i in range(len(paths)):
        step = 1e-5 * jnp.eye(len(paths))[i]
        change = np.asarray(plain(start + step)[0] - plain(start - step)[0]) / 2e-5
        np.testing.assert_allclose(forward[:, i], change, rtol=1e-5, atol=1e-6)


def test_a_body_without_forces_keeps_its_momenta_and_its_quaternion():
    J = np.array([0.2, 0.35, 0.5])
    body = jfric.Link("free", m=2.0, com=(0.1, 0.0, 0.05), J=(*J, 0, 0, 0))
    quaternion = np.array([0.8, 0.0, 0.6, 0.0])
    rates = spins(quaternion).T @ np.array([3.0, 0.1, -0.2]) / 4.0
    start = {
        f"body_q{x}": jfric.InitialState(quaternion[i], rates[i]) for i, x in enumerate("wxyz")
    } | {"body_x": jfric.InitialState(1000.0, 1.0)}
    problem = jfric.Problem([], {"link": {"body": body}}, initial=start, time=4.0)
    solution = jfric.simulate(problem, ts=jnp.linspace(0.0, 4.0, 9))
    q, v = np.asarray(solution.q), np.asarray(solution.v)
    assert np.abs(np.linalg.norm(q[:, 3:], axis=1) - 1.0).max() < 1e-14
    momenta = []
    for x, dx in zip(q, v, strict=True):
        spin = spins(x[3:]) @ dx[3:]
        K = np.cross(x[4:], np.eye(3)).T
        R = np.eye(3) + 2.0 * (x[3] * K + K @ K)
        arm = R @ np.asarray(body.com, float)
        velocity = dx[:3] + np.cross(R @ spin, arm)
        about = R @ (J * spin) + np.cross(x[:3] + arm, 2.0 * velocity)
        momenta.append([*velocity, *(about - np.cross([1000.0, 0, 0], 2.0 * velocity))])
    np.testing.assert_allclose(momenta, np.broadcast_to(momenta[0], (9, 6)), atol=1e-9)


def test_files_hold_links(tmp_path):
    problem = pendulum()
    again = loads(jfric.to_toml(problem)).problem
    assert again.dofs == problem.dofs
    for path, value in jfric.parameters(problem).items():
        assert np.array_equal(jfric.get_parameter(again, path), value), path
    # A link on a ball and a parameter in a place.
    text = """
        [time]
        end = "1 s"
        [parameters]
        l = "30 cm"
        [link.top]
        joint = "ball"
        m = "100 g"
        com = [0, 0, "$l"]
        J = ["1 g*m^2", "1 g*m^2", "1 g*m^2", 0, 0, 0]
    """
    top = loads(text).problem
    assert list(top.dofs) == ["top_qw", "top_qx", "top_qy", "top_qz"]
    assert float(top.initial["top_qw"].q) == 1.0
    assert float(top.resolved().elements["link"]["top"].com[2]) == 0.3


def test_a_robot_is_read_with_what_acts_in_its_joints(tmp_path):
    found = robot(tmp_path, ARM, limits=True)
    assert list(found.dofs) == ["shoulder", "elbow"]
    links = found.elements["link"]
    assert {n: x.parent for n, x in links.items()} == {
        "foot": "ground",
        "upper": "foot",
        "lower_arm": "upper",
    }
    assert {n: float(x.limit(0.0)) for n, x in found.elements["friction"].items()} == {
        "shoulder": 0.7,
        "elbow": 0.4,
    }
    assert float(found.elements["damper"]["shoulder"].c) == 0.1
    gaps = {n: float(x.gap) for n, x in found.elements["contact"].items()}
    assert gaps == {
        "shoulder_low": 2.0, "shoulder_high": 2.0, "elbow_low": 0.0, "elbow_high": 1.0
    }  # fmt: skip
    assert "shoulder" in str(found)
    # In a file, with a law of its own for one joint, and the other one locked.
    text = """
        [time]
        end = "1 s"
        [robot]
        file = "robot.urdf"
        locked = {elbow = 0.5}
        [friction.shoulder]
        dof = "shoulder"
        limit = "3 N*m"
    """
    problem = loads(text, tmp_path / "robot.toml").problem
    assert list(problem.dofs) == ["shoulder"]
    assert float(jfric.get_parameter(problem, "friction.shoulder.limit")) == 3.0
    # The locked arm is turned: its mass about the shoulder follows from the cosine rule.
    tree = energies(problem.resolved())["links"]
    way = 0.5**2 + 0.2**2 + 2 * 0.5 * 0.2 * np.cos(0.5)
    expected = 0.05 + 2 * 0.25**2 + 0.02 + 1 * way
    assert float(tree.mass(0.0, jnp.zeros(1))[0, 0]) == pytest.approx(expected, rel=1e-14)


def test_a_joint_follows_another_one(tmp_path):
    text = ARM.replace('<dynamics friction="0.4"/>', '<mimic joint="shoulder" multiplier="-0.5"/>')
    found = robot(tmp_path, text)
    assert list(found.elements["joint"]) == ["elbow"]
    problem = jfric.Problem([], found.elements, time=1.0)
    (equation,) = joint_equations(problem)
    assert float(equation.function(0.0, jnp.array([0.4, -0.2]))) == pytest.approx(0.0, abs=1e-15)
    assert float(equation.function(0.0, jnp.array([0.4, 0.3]))) == pytest.approx(0.5)
    locked = robot(tmp_path, text, locked={"shoulder": 0.4})
    (equation,) = joint_equations(jfric.Problem([], locked.elements, time=1.0))
    assert float(equation.function(0.0, jnp.array([-0.2]))) == pytest.approx(0.0, abs=1e-15)
    assert "joint" not in robot(tmp_path, text, locked={"shoulder": 0.4, "elbow": -0.2}).elements


def test_a_free_base_keeps_its_mass(tmp_path):
    text = ARM.replace(
        '<link name="foot"/>',
        '<link name="foot"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link>',
    )
    found = robot(tmp_path, text, base="free")
    assert list(found.dofs)[:3] == ["foot_x", "foot_y", "foot_z"]
    problem = jfric.Problem([], found.elements, initial=found.initial)
    mass = energies(problem.resolved())["links"].mass(0.0, problem.start()[1])
    assert float(mass[0, 0]) == pytest.approx(8.0, rel=1e-14)


def test_inertias_count_that_the_links_have_together(tmp_path):
    """Base links of walking robots often have no inertia of their own, or one that no body has."""
    dummy = """<link name="foot"><inertial><mass value="1e-6"/><inertia ixx="1e-6" ixy="1e-6"
        ixz="1e-6" iyy="1e-6" iyz="1e-6" izz="1e-6"/></inertial></link>
        <link name="frame"/><link name="trunk"><inertial><origin xyz="0 0 0.1" rpy="0 0 1.5708"/>
        <mass value="5"/><inertia ixx="1" iyy="2" izz="1.5" ixy="0" ixz="0" iyz="0"/></inertial>
        </link><joint name="a" type="fixed"><parent link="foot"/><child link="trunk"/></joint>
        <joint name="b" type="fixed"><parent link="foot"/><child link="frame"/></joint>"""
    found = robot(tmp_path, ARM.replace('<link name="foot"/>', dummy), base="free")
    problem = jfric.Problem([], found.elements, initial=found.initial)
    tree = energies(problem.resolved())["links"]
    assert float(tree.moment[3, 3]) == pytest.approx(5.000001, rel=1e-14)
    np.testing.assert_allclose(found.elements["link"]["trunk"].J[:3], (2.0, 1.0, 1.5), atol=1e-9)
    alone = ARM.replace('ixx="0.02" iyy="0.02" izz="0.001"', 'ixx="0.02" iyy="0.02" izz="0.05"')
    with pytest.raises(jfric.ProblemError, match=r"link.lower_arm.J: found principal inertias"):
        jfric.Problem([], robot(tmp_path, alone).elements, time=1.0).resolved()
    with pytest.raises(jfric.ProblemError, match='urdf: base: "free" needs a link, found none'):
        robot(tmp_path, '<robot name="none"/>', base="free")


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"parent": "uper"}, r"link.lower.parent: no link 'uper' \(did you mean 'upper'\?\)"),
        ({"parent": "lower"}, "link.lower.parent: found 'lower', which this link carries itself"),
        ({"dof": "upper"}, "link.upper.dof: the joint of link.lower has the degree of freedom"),
        ({"com": (0, 1)}, r"link.lower.com: needed are 3 numbers such as \(0, 0, 0.3\)"),
        ({"axis": (0, 0, 0)}, "link.lower.axis: all three numbers are zero"),
        ({"J": (1, 1, 3, 0, 0, 0)}, "link.lower.J: found principal inertias 1, 1, 3; none is"),
        ({"m": -1.0}, "link.lower.m: found -1, must not be negative"),
        (
            {"joint": "hinge"},
            "link.lower.joint: found 'hinge' .*, allowed are 'revolute', 'prismatic'",
        ),
    ],
)
def test_mistakes_have_a_sentence(link, sentence):
    links = {"upper": jfric.Link(m=1.0, com=(1, 0, 0)), "lower": jfric.Link(**link)}
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.Problem([], {"link": links})


def test_links_that_are_all_fixed_take_no_part():
    wall = {"link": jfric.Link("fixed", at=(1, 0, 0)), "mass": jfric.Mass("u", 2.0)}
    problem = jfric.Problem(["u"], wall | {"load": jfric.Load("u", 1.0)}, time=1.0)
    assert energies(problem.resolved()) == {}
    assert float(jfric.observe(problem, "final.v.u").values["final.v.u"]) == pytest.approx(0.5)


def test_a_joint_that_moves_no_mass_has_a_sentence():
    links = {"rod": jfric.Link(m=1.0, com=(1, 0, 0)), "bar": jfric.Link(parent="rod", m=1.0)}
    problem = jfric.Problem([], {"link": links}, time=1.0)
    with pytest.raises(jfric.ProblemError, match=r"link.bar.m: the joint 'bar' moves no mass"):
        jfric.simulate(problem)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("<robot", {}, r"robot.urdf: unclosed token"),
        (ARM, {"locked": {"elbo": 0.0}}, r"locked: no joint 'elbo' \(did you mean 'elbow'\?\)"),
        (ARM, {"base": "fre"}, "base: found 'fre', allowed are 'fixed' and 'free'"),
        (ARM.replace('mass value="2"', 'mass value="two"'), {}, "urdf: link 'upper': mass has val"),
    ],
)
def test_a_robot_that_cannot_be_read_has_a_sentence(tmp_path, text, options, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        robot(tmp_path, text, **options)


@pytest.mark.slow
def test_an_arm_falls_with_a_loose_tolerance_too():
    problem = load_config(shipped("r6_arm")).problem
    end = jfric.simulate(problem, jfric.EventDriven(rtol=1e-4)).check().final.q
    expected = [0.0, 3.19549083835, 0.0, -0.410452697771, 0.0, 2.88575652198, 0.4]
    np.testing.assert_allclose(end, expected, rtol=0.0, atol=1e-5)


@pytest.mark.slow
def test_gears_of_an_arm_lose_a_part_of_the_torque_that_they_transmit():
    """A rotor in front of each gear, whose reaction limits the friction that changes it."""
    own, names, start, end = GearArm(), ("upper", "lower"), (0.5, -0.8), 4.0
    links, drives = {}, (jfric.Harmonic(10.0, omega=2.0), jfric.Harmonic(4.0, omega=3.0))
    parts: dict[str, dict] = {k: {} for k in ("mass", "load", "friction", "joint")}
    initial = {}
    for i, name in enumerate(names):
        rotor, J = f"rotor_{name}", own.J[i]
        links[name] = jfric.Link(
            parent="upper" if i else "ground", at=(0, 0, -i), axis=(0, -1, 0), m=own.m[i],
            com=(0, 0, -0.5), J=(J, J, J, 0, 0, 0),
        )  # fmt: skip
        parts["mass"][rotor] = jfric.Mass(rotor, own.drive[i])
        parts["load"][rotor] = jfric.Load(rotor, drives[i])
        parts["friction"][rotor] = jfric.Friction(rotor, limit=own.limit[i])
        parts["joint"][name] = jfric.Joint(
            f"{rotor} - {name}", law=jfric.Coulomb(own.kappa[i]), sliding=rotor
        )
        initial |= dict.fromkeys((name, rotor), jfric.InitialState(start[i]))
    rotors = dict.fromkeys(parts["mass"], "rotation")
    elements = {"link": links, "gravity": jfric.Gravity(own.g)} | parts
    problem = jfric.Problem(rotors, elements, initial=initial, time=end)
    solution = jfric.simulate(problem, jfric.EventDriven(rtol=1e-12), ts=jnp.array([end])).check()
    changes, state = own.run(start, end)
    axes = [list(problem.dofs).index(name) for name in names]
    np.testing.assert_allclose(solution.q[-1, axes], state[:2], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(solution.v[-1, axes], state[2:], rtol=0.0, atol=1e-7)
    times = np.array([row["time"] for row in solution.event_table()])
    for time, _ in changes[1:]:
        assert np.min(np.abs(times - time)) < 1e-8
