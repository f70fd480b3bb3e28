"""Friction of all joints of a robot and its inertias, from positions and torques of its joints."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.fits.robots.joint_laws import bent
from jfric.fits.robots.joint_rows import (
    body_of,
    existing,
    inertial_links,
    numbers_of,
    pseudo_inertia,
    root_of,
)

PANDA = Path(__file__).parents[2] / "shared/data/panda/excitation_1kHz.npz"
LINKS = {
    "shoulder": jfric.Link(
        axis=(0, 1, 0), m=2.0, com=(0.02, 0, -0.2), J=(0.05, 0.05, 0.004, 0, 0, 0)
    ),
    "elbow": jfric.Link(
        parent="shoulder", at=(0, 0, -0.5), axis=(0, 1, 0), m=1.0, com=(0, 0.01, -0.15),
        J=(0.02, 0.02, 0.002, 0, 0, 0),
    ),
}  # fmt: skip
OMEGAS = {"shoulder": (1.3, 3.1, 0.45), "elbow": (2.2, 0.9, 4.3)}


def arm(**elements):
    loads = {x: jfric.Load(x, 0.0) for x in LINKS}
    base = {"link": LINKS, "gravity": jfric.Gravity(9.81), "load": loads}
    return jfric.Problem([], base | elements, time=40.0)


def path(t):
    """Angles, velocities and accelerations (2, m) of several frequencies."""

    def wave(k):
        return np.stack(
            [
                sum(0.5 * w**k * np.sin(w * t + 0.7 * j + k * np.pi / 2) for j, w in enumerate(ws))
                for ws in OMEGAS.values()
            ]
        )  # fmt: skip

    return wave(0), wave(1), wave(2)


def double_pendulum(q, v, a):
    """Torques (2, m) of the arm ``LINKS`` without friction, by Lagrange's equations in the plane.

    ``x`` forwards and ``z`` up; both links turn about y, whose angle takes z towards x."""
    m1, m2, l1, g = 2.0, 1.0, 0.5, 9.81
    c1, c2 = np.hypot(0.02, 0.2), 0.15
    # Angles of the lines to the centres of mass, from below.
    tilt = np.arctan2(-0.02, 0.2)
    I1, I2 = 0.05, 0.02
    p, s = q[0], q[0] + q[1]
    cross, turn = m2 * l1 * c2 * np.cos(s - p), m2 * l1 * c2 * np.sin(s - p)
    ws, as_ = v[0] + v[1], a[0] + a[1]
    own = (I1 + m1 * c1**2 + m2 * l1**2) * a[0] + cross * as_ - turn * ws**2
    own = own + m1 * g * c1 * np.sin(p + tilt) + m2 * g * l1 * np.sin(p)
    low = (I2 + m2 * c2**2) * as_ + cross * a[0] + turn * v[0] ** 2 + m2 * g * c2 * np.sin(s)
    return np.stack([own + low, low])


def record(friction, seed=0, noise=0.02, step=2e-3, lag=0.0):
    t = np.arange(0.0, 40.0, step)
    q, v, a = path(t - lag)
    torque = double_pendulum(q, v, a) + friction(q, v)
    torque += noise * np.random.default_rng(seed).standard_normal(torque.shape)
    y = dict(zip(LINKS, path(t)[0], strict=True))
    u = {f"load.{x}.F": torque[i] for i, x in enumerate(LINKS)}
    return jfric.Experiment(t, u, y)


def plain(q, v):
    del q
    return np.stack([0.8 * np.sign(v[0]) + 0.3 * v[0], 0.25 * np.sign(v[1]) + 0.05 * v[1]])


def wrong_masses():
    changed = {
        k: jfric.Link(x.joint, x.parent, axis=x.axis, at=x.at, m=1.4 * x.m, com=x.com, J=x.J)
        for k, x in LINKS.items()
    }
    return arm(link=changed)


def test_inertias_are_those_of_links_that_their_own_joint_moves():
    """Not of the foot, nor of what is mounted on a link, nor of a link without mass."""
    own = {"m": 1.0, "com": (0, 0, 0.1), "J": (0.02, 0.02, 0.002, 0, 0, 0)}
    links = LINKS | {
        "foot": jfric.Link("fixed", **own),
        "gripper": jfric.Link("fixed", "elbow", **own),
        "wrist": jfric.Link(parent="elbow", axis=(0, 1, 0)),
        "finger": jfric.Link(parent="wrist", axis=(0, 1, 0), **own),
    }
    assert inertial_links(arm(link=links)) == ["shoulder", "elbow", "finger"]


def test_inertia_in_ten_numbers():
    """Numbers and bodies are each other's inverse; every change is a body that exists."""
    given = numbers_of(
        *map(jnp.asarray, (1.3, (0.1, -0.2, 0.3), (0.3, 0.25, 0.2, 0.01, 0.0, 0.02)))
    )
    again = numbers_of(*body_of(given))
    np.testing.assert_allclose(again, given, rtol=1e-14)
    root = root_of(np.asarray(given))
    np.testing.assert_allclose(existing(root, jnp.zeros(10)), given, rtol=1e-12, atol=1e-14)
    for seed in range(5):
        change = np.random.default_rng(seed).normal(size=10)
        found = pseudo_inertia(np.asarray(existing(root, jnp.asarray(change))))
        assert np.linalg.eigvalsh(found)[0] > 0.0


def test_bent_bristles():
    """Dahl's state along a path that turns: ``z = 1 - 2 exp(-x/h)`` behind a reversal."""
    x = np.concatenate([np.linspace(0.0, 1.0, 200), np.linspace(1.0, 0.7, 100)[1:]])
    z = bent(x, 0.02)
    assert z[199] == pytest.approx(1.0, abs=1e-12)
    behind = 1.0 - x[199:]
    np.testing.assert_allclose(z[199:], -1.0 + 2.0 * np.exp(-behind / 0.02), atol=1e-12)


def test_friction_of_two_joints_with_wrong_masses():
    """The law, its numbers within their intervals, and what the masses should have been."""
    found = jfric.joint_friction(wrong_masses(), record(plain), cutoff=10.0)
    truth = {
        "friction.shoulder.limit": 0.8, "damper.shoulder.c": 0.3,
        "friction.elbow.limit": 0.25, "damper.elbow.c": 0.05,
    }  # fmt: skip
    for name, value in truth.items():
        if name.startswith("friction") and name not in found.values:
            # A bristle that yields within the noise stands for Coulomb's friction.
            dof = name.split(".")[1]
            names = [n for n in found.values if n.startswith(f"dahl.{dof}")]
            assert sum(found.values[n] for n in names) == pytest.approx(value, abs=0.03)
        else:
            assert found.values[name] == pytest.approx(value, abs=0.02)
    for joint in LINKS:
        (row,) = (x for x in str(found).splitlines() if x.strip().startswith(joint))
        assert "viscous" in row
        assert "constant" not in row
    # 0.02 N m of white noise behind the filter.
    other = found.unexplained(record(plain, seed=1))
    assert all(x < 0.01 for x in other.values())
    # What a plane motion tells of the lower link: its first moment and its inertia.
    lower = found.problem.elements["link"]["elbow"]
    assert float(lower.m) * float(lower.com[2]) == pytest.approx(-0.15, abs=2e-3)


@pytest.mark.slow
def test_presliding_friction_and_a_delay():
    def friction(q, v):
        del v
        return np.stack([0.8 * bent(q[0], 0.05), 0.25 * bent(q[1], 0.02)])

    found = jfric.joint_friction(arm(), record(friction, lag=4e-3), cutoff=10.0)
    assert all(any(p.word == "dahl" for p in law) for law in found.laws.values())
    for joint, limit in (("shoulder", 0.8), ("elbow", 0.25)):
        names = [n for n in found.values if n.startswith(f"dahl.{joint}")]
        assert sum(found.values[n] for n in names) == pytest.approx(limit, abs=0.03)
        assert found.delays[joint] == pytest.approx(4e-3, abs=1e-3)
        assert found.left_out[joint][2] < 0.6 * found.left_out[joint][1]


@pytest.mark.slow
def test_the_command_writes_the_robot(tmp_path, monkeypatch):
    """From a file and a log to the robot with its friction, which moves."""
    monkeypatch.chdir(tmp_path)
    data = record(plain)
    columns = [data.t, *data.y.values(), *data.u.values()]
    table = np.stack(columns, axis=1)
    heads = "t,q1,q2,tau1,tau2"
    np.savetxt("log.csv", table, delimiter=",", header=heads, comments="", fmt="%.9g")
    Path("arm.toml").write_text(
        jfric.to_toml(wrong_masses())
        + """
[data]
time = {column = "t", unit = "s"}
[data.y]
shoulder = {column = "q1", unit = "rad"}
elbow = {column = "q2", unit = "rad"}
[data.u]
"load.shoulder.F" = {column = "tau1", unit = "N*m"}
"load.elbow.F" = {column = "tau2", unit = "N*m"}
"""
    )
    said = CliRunner().invoke(app, ["fit", "arm.toml", "--data", "log.csv", "--residual", "joints"])
    assert said.exit_code == 0, said.output
    assert "shoulder" in said.output
    assert "wrote results/arm/joints-001.json" in said.output
    found = jfric.load("results/arm/joints-001.toml")
    assert float(found.elements["damper"]["shoulder"].c) == pytest.approx(0.3, abs=0.01)
    solution = jfric.simulate(found, ts=jnp.linspace(0.0, 1.0, 11))
    assert int(solution.status) == int(jfric.Status.OK)


def test_what_is_missing_is_said():
    data = record(plain)
    one = jfric.Experiment(data.t, {"load.elbow.F": data.u["load.elbow.F"]}, data.y)
    with pytest.raises(jfric.ProblemError, match=r"u\.load\.shoulder\.F: missing"):
        jfric.joint_friction(arm(), one)
    with pytest.raises(jfric.ProblemError, match="load: missing for elbow"):
        jfric.joint_friction(arm(load=jfric.Load("shoulder", 0.0)), one)
    with pytest.raises(jfric.ProblemError, match="link: found none"):
        jfric.joint_friction(
            jfric.Problem("x", {"mass": jfric.Mass("x", 1.0), "load": jfric.Load("x", 0.0)}),
            jfric.Experiment(data.t, {"load.F": data.t}, {"x": data.t}),
        )


@pytest.mark.slow
@pytest.mark.skipif(not PANDA.exists(), reason="measured data are not here")
def test_friction_of_a_measured_arm():
    """Torques in the second half of a record by what its first half tells, beside a regression
    with Coulomb's and viscous friction: 0.142, 0.196, 0.140, 0.134, 0.075, 0.055, 0.063 N m."""
    file = np.load(PANDA)
    t, q, tau = file["t"], file["q"], file["tau"]
    base = jfric.load(Path(__file__).parents[1] / "configs/r6_arm.toml")
    joints = [f"joint{i}" for i in range(1, 8)]
    elements = {k: dict(base.elements[k]) for k in ("link", "gravity")}
    elements["load"] = {j: jfric.Load(j, 0.0) for j in joints}
    data = jfric.Experiment(
        t,
        {f"load.{j}.F": tau[:, i] for i, j in enumerate(joints)},
        {j: q[:, i] for i, j in enumerate(joints)},
    )
    middle = 0.5 * (t[0] + t[-1])
    first, second = data.between(t[0], middle), data.between(middle, t[-1] + 1.0)
    found = jfric.joint_friction(jfric.Problem([], elements, time=21.0), first, cutoff=8.0)
    left = np.array([*found.unexplained(second).values()])
    assert np.all(left < [0.142, 0.196, 0.140, 0.134, 0.075, 0.055, 0.063])
    assert all(any(p.word == "dahl" for p in law) for law in found.laws.values())
    assert any("repeat the positions" in said for said in found.remarks)
