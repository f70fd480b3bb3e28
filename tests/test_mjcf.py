"""Models for MuJoCo: what is written, what is named as lost, and the measured difference."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.exports.export import has_bristles, installed

jax.config.update("jax_enable_x64", True)


def machine(friction: jfric.Friction | None = None, **more) -> jfric.Problem:
    """Two inertias, one against the ground, joined by a spring and a damper."""
    elements = {
        "mass": {"a": jfric.Mass("a", 2.0), "b": jfric.Mass("b", 0.5)},
        "spring": {
            "wall": jfric.Spring("a", 40.0, x0=0.1),
            "shaft": jfric.Spring(("a", "b"), 90.0),
        },
        "damper": {"wall": jfric.Damper("a", 0.5), "shaft": jfric.Damper(("a", "b"), 0.2)},
        "load": {"motor": jfric.Load("b", jfric.Harmonic(3.0, 4.0))},
        **more,
    }
    if friction is not None:
        elements["friction"] = friction
    initial = {"a": jfric.InitialState(q=0.3), "b": jfric.InitialState(v=1.0)}
    return jfric.Problem({"a": "translation", "b": "rotation"}, elements, initial=initial, time=2.0)


def written(problem: jfric.Problem, **options) -> tuple[ET.Element, tuple[str, ...]]:
    found = jfric.export_mjcf(problem, compare=False, **options)
    return ET.fromstring(found.xml), found.lost


def test_numbers_are_those_of_joints_and_tendons():
    root, lost = written(machine(jfric.Friction("a", jfric.Coulomb(0.2), N=5.0)))
    a, b = (root.find(f".//joint[@name='{dof}']").attrib for dof in "ab")
    assert (a["type"], b["type"]) == ("slide", "hinge")
    assert [float(a[k]) for k in ("stiffness", "springref", "damping")] == [40.0, 0.1, 0.5]
    assert float(a["frictionloss"]) == 1.0
    assert float(b["armature"]) == 0.5
    assert float(root.find(".//body[@name='a']/inertial").attrib["mass"]) == 2.0
    tendon = root.find(".//tendon/fixed")
    assert float(tendon.attrib["stiffness"]) == 90.0
    assert {j.attrib["joint"]: float(j.attrib["coef"]) for j in tendon} == {"a": -1.0, "b": 1.0}
    key = root.find(".//key").attrib
    assert [key["qpos"], key["qvel"]] == ["0.3 0.0", "0.0 1.0"]
    assert lost == ("friction: stick: a load below the limit creeps",)


def test_what_differs_between_the_directions_is_its_mean():
    sides = {"v_s": jfric.Directional(0.1, 0.3), "mu_v": jfric.Directional(0.02, 0.06)}
    law = jfric.Stribeck(0.3, jfric.Directional(0.1, 0.3), **sides)
    root, _ = written(machine(jfric.Friction("a", law, N=5.0)), friction="frictionloss")
    joint = root.find(".//joint[@name='a']").attrib
    assert float(joint["frictionloss"]) == pytest.approx(0.2 * 5.0, rel=1e-12)
    # The damper at the wall, and the viscous part.
    assert float(joint["damping"]) == pytest.approx(0.5 + 0.04 * 5.0, rel=1e-12)


@pytest.mark.parametrize(
    ("friction", "named"),
    [
        (jfric.Friction("a", limit=1.0, load="load.motor"), "grows with load.motor"),
        (jfric.Friction("a", limit=jfric.Steps([1.0], [1.0, 2.0])), "varies in time"),
        (jfric.Friction("a", limit=1.0, belt=0.1), "surface moves"),
        (jfric.Friction("a", jfric.Coulomb(jfric.Directional(0.1, 0.2)), N=1.0), "two directions"),
        (jfric.Friction("a", jfric.StaticDynamic(0.3, 0.2), N=1.0), "static limit 0.3 above"),
        (jfric.Friction("a", jfric.FrictionCurve([0.0, 2.0], [0.3, 0.3]), N=1.0), "speed 2"),
    ],
)
def test_what_is_lost_is_named(friction, named):
    """That, and nothing else, beside what is lost in all cases."""
    _, lost = written(machine(friction), friction="frictionloss")
    (sentence,) = set(lost) - {"friction: stick: a load below the limit creeps"}
    assert named in sentence


def test_stops_and_contacts_are_left_out_by_name():
    _, lost = written(machine(stop=jfric.Stop("a", 1e3, 1.0), contact=jfric.Contact("a", gap=2.0)))
    assert lost == ("stop: a stop is left out", "contact: a contact is left out")


@pytest.mark.parametrize(
    ("problem", "options", "sentence"),
    [
        (machine(base=jfric.Base(0.0)), {}, "base: a base cannot be written as MJCF"),
        (machine(), {"friction": "lugr"}, r"friction: found 'lugr' \(did you mean 'lugre'\?\)"),
        (machine(), {"timestep": 0.0}, "timestep: found 0, must be positive"),
        (
            machine(mass={"m": jfric.Mass({"a": 1.0, "b": 1.0}, 1.0), "a": jfric.Mass("a", 1.0)}),
            {},
            r"mass\.m: acts along several",
        ),
    ],
)
def test_bad_calls_are_one_sentence(problem, options, sentence):
    with pytest.raises(jfric.ProblemError, match=sentence):
        jfric.export_mjcf(problem, compare=False, **options)


def test_a_missing_package_has_its_sentence(monkeypatch):
    monkeypatch.setattr("jfric.exports.export.installed", lambda: None)
    with pytest.raises(jfric.ProblemError, match="needs mujoco, which is not installed"):
        jfric.export_mjcf(machine())
    with pytest.raises(jfric.ProblemError, match="no MuJoCo is installed"):
        jfric.export_mjcf(machine(), compare=False, friction="lugre")


# With the package.


def test_without_friction_the_motions_agree_to_the_step():
    pytest.importorskip("mujoco")
    coarse, fine = (jfric.export_mjcf(machine(), timestep=h).differences for h in (2e-3, 5e-4))
    for dof in "ab":
        assert fine[dof].largest < 0.3 * coarse[dof].largest
        assert fine[dof].largest < 2e-3 * fine[dof].travel


def test_a_rest_length_of_minus_one_is_a_length():
    """MuJoCo takes it for the length at the start."""
    pytest.importorskip("mujoco")
    spring = {"wall": jfric.Spring("a", 40.0), "shaft": jfric.Spring(("a", "b"), 90.0, x0=-1.0)}
    found = jfric.export_mjcf(machine(spring=spring), timestep=5e-4).differences
    assert found["b"].largest < 2e-3 * found["b"].travel


def test_a_pendulum_hangs_in_gravity():
    pytest.importorskip("mujoco")
    problem = jfric.Problem(
        {"q": "rotation"},
        {
            "mass": jfric.Mass("q", 0.5),
            "pendulum": jfric.Pendulum("q", m=1.0, L=0.6, g=9.81),
            "friction": jfric.Friction("q", limit=0.2),
        },
        initial={"q": jfric.InitialState(q=1.2)},
        time=3.0,
    )
    found = jfric.export_mjcf(problem, timestep=5e-4)
    assert found.differences["q"].largest < 5e-3
    assert found.differences["q"].travel > 1.5


def test_frictionloss_creeps_and_a_bristle_does_not_under_a_steady_load():
    mujoco = pytest.importorskip("mujoco")
    law = jfric.Friction("a", jfric.StaticDynamic(1.5, 1.0), N=1.0)
    problem = jfric.Problem(
        ["a"],
        {"mass": jfric.Mass("a", 1.0), "friction": law, "load": jfric.Load("a", 1.2)},
        time=3.0,
    )
    soft = jfric.export_mjcf(problem, friction="frictionloss")
    assert 1e-5 < soft.creep["friction"].steady < 1e-2
    # 1.2 is between the limits: Coulomb's law with the kinetic one slides, the exact law holds.
    assert soft.differences["a"].travel == 0.0
    assert soft.differences["a"].at_end == pytest.approx(0.5 * 0.2 * 9.0, rel=0.02)
    if not has_bristles(mujoco):
        pytest.skip("this MuJoCo has no LuGre friction")
    bristle = jfric.export_mjcf(problem)
    assert bristle.mujoco == mujoco.__version__
    assert "lugre=" in bristle.xml
    assert abs(bristle.creep["friction"].steady) < 1e-12
    assert bristle.creep["friction"].shaken > 0.0
    assert bristle.differences["a"].largest < 2e-4


@pytest.mark.slow
def test_the_command_prints_what_was_measured(tmp_path):
    config = tmp_path / "brake.toml"
    config.write_text(jfric.to_toml(machine(jfric.Friction("a", limit=1.0))))
    call = ["export", str(config), "--to", "mjcf", "--out", str(tmp_path / "brake.xml")]
    alone = CliRunner().invoke(app, [*call, "--no-compare"])
    assert alone.exit_code == 0, alone.output
    assert "a load below the limit creeps" in alone.output
    assert ET.parse(tmp_path / "brake.xml").getroot().tag == "mujoco"
    other = CliRunner().invoke(app, [*call[:3], "mjfc"])
    assert other.exit_code == 2
    assert "did you mean 'mjcf'?" in other.output
    if installed() is None:
        pytest.skip("mujoco is not installed")
    both = CliRunner().invoke(app, call)
    assert both.exit_code == 0, both.output
    numbers = [float(x) for x in re.findall(r"\d\.\d{3}e[+-]\d\d", both.output)]
    assert len(numbers) == 10
    assert np.isfinite(numbers).all()


def tree(**elements) -> jfric.Problem:
    """Two arms, one of which carries a slider; links in another order than branch by branch."""
    body = {"m": 2.0, "com": (0.1, 0.02, -0.4), "J": (0.2, 0.21, 0.05, 0.01, -0.02, 0.005)}
    links = {
        "a": jfric.Link(axis=(0, 1, 0), at=(0.1, 0.2, 0.3), rpy=(0.3, -0.4, 0.5), **body),
        "b": jfric.Link(axis=(1, 1, 0), armature=0.1, rpy=(0.0, 0.2, 0.0), **body),
        "mount": jfric.Link("fixed", parent="a", at=(0.0, 0.1, -0.5), rpy=(1.0, 0.0, 2.0)),
        "c": jfric.Link("prismatic", parent="mount", dof="slide", axis=(0, 0, 1), **body),
    }
    elements = {
        "link": links,
        "gravity": jfric.Gravity(9.81),
        "spring": jfric.Spring("slide", 300.0),
        "load": jfric.Load("b", jfric.Harmonic(5.0, 4.0)),
        **elements,
    }
    initial = {"a": jfric.InitialState(q=0.4), "slide": jfric.InitialState(v=-0.3)}
    return jfric.Problem([], elements, initial=initial, time=0.5)


def test_links_are_read_again_as_they_were_written(tmp_path):
    pytest.importorskip("mujoco")
    stops = {
        "low": jfric.Contact("b", gap=1.0),
        "high": jfric.Contact({"b": -2.0}, gap=3.0),
        "up": jfric.Contact("slide", gap=0.25),
    }
    problem = tree(
        friction=jfric.Friction("b", limit=0.7), damper=jfric.Damper("a", 0.2), contact=stops
    )
    found = jfric.export_mjcf(problem, friction="frictionloss", compare=False)
    assert [x.split(":")[0] for x in found.lost] == ["friction", *(f"contact.{x}" for x in stops)]
    found.write(tmp_path / "tree.xml")
    read = jfric.read_robot(tmp_path / "tree.xml", limits=True).elements
    for name, link in problem.section("link").items():
        again = read["link"][name]
        assert (again.joint, again.parent) == (link.joint, link.parent)
        for field in ("axis", "at", "rpy", "com", "J", "m", "armature"):
            # MuJoCo's axes have length one, and its bodies a mass.
            given = np.asarray(getattr(link, field), float)
            given = given / np.linalg.norm(given) if field == "axis" else given
            np.testing.assert_allclose(getattr(again, field), given, atol=2e-9)
    assert (float(read["friction"]["b"].limit(0.0)), float(read["damper"]["a"].c)) == (0.7, 0.2)
    ends = {name: float(contact.gap) for name, contact in read["contact"].items()}
    assert ends == {"b_low": 1.0, "b_high": 1.5, "slide_low": 0.25, "slide_high": 1e6}


@pytest.mark.slow
def test_a_tree_moves_as_in_mujoco():
    """By the same coordinates, whose order differs; without friction the step alone counts."""
    pytest.importorskip("mujoco")
    for timestep, allowed in ((1e-3, 2e-3), (1e-4, 2e-4)):
        found = jfric.export_mjcf(tree(), timestep=timestep)
        assert max(d.largest for d in found.differences.values()) < allowed
        assert min(d.travel for d in found.differences.values()) > 0.01


def test_dahls_friction_is_a_bristle_or_coulombs():
    problem = tree(dahl={"b": jfric.Dahl("b", sigma=800.0, F_c=1.5)})
    root, lost = written(problem, friction="frictionloss")
    assert root.find(".//joint[@name='b']").attrib["frictionloss"] == "1.5"
    assert lost[0] == "dahl.b: the elastic way before it slides"
    if installed() is not None and has_bristles(installed()):
        root, _ = written(problem)
        assert root.find(".//dcmotor").attrib["lugre"] == "800.0 0.0 1.5 1.5 1.0"


def test_a_joint_that_mjcf_cannot_have_is_refused():
    ball = jfric.Problem([], {"link": {"a": jfric.Link("ball", m=1.0, J=(1, 1, 1, 0, 0, 0))}})
    with pytest.raises(jfric.ProblemError, match=r"link.a.joint: found 'ball', which cannot be"):
        jfric.export_mjcf(ball, compare=False)


def test_a_robot_as_urdf_is_read_back(tmp_path):
    """Masses, places, ranges, damping and friction; what URDF does not have is named."""
    pytest.importorskip("mujoco")
    links = {
        "upper": jfric.Link(
            dof="shoulder", at=(0, 0, 0.3), rpy=(0.1, -0.2, 0.3), axis=(0, 1, 0), m=2.0,
            com=(0, 0.01, 0.2), J=(0.05, 0.04, 0.02, 1e-3, 2e-3, -3e-3), armature=0.02,
        ),
        "slide": jfric.Link("prismatic", "upper", axis=(0, 0, 1), m=0.5, J=(0.01,) * 3 + (0,) * 3),
        "tool": jfric.Link("fixed", "slide", at=(0.1, 0, 0), m=0.3, J=(0.01,) * 3 + (0,) * 3),
    }  # fmt: skip
    elements = {
        "link": links,
        "damper": {"shoulder": jfric.Damper("shoulder", 0.7)},
        "friction": {
            "shoulder": jfric.Friction("shoulder", limit=1.5),
            "slide": jfric.Friction("slide", limit=4.0),
        },
        "contact": {"low": jfric.Contact("slide", gap=0.2)},
    }
    found = jfric.export_urdf(jfric.Problem([], elements, time=1.0))
    assert "shoulder: armature 0.02, which URDF does not have" in found.lost
    assert not any("creeps" in text for text in found.lost)
    found.write(tmp_path / "arm.urdf")
    robot = jfric.read_robot(tmp_path / "arm.urdf", limits=True)
    again = robot.elements
    assert {k: float(x.limit(0.0)) for k, x in again["friction"].items()} == {
        "shoulder": 1.5, "slide": 4.0,
    }  # fmt: skip
    assert float(again["damper"]["shoulder"].c) == 0.7
    assert float(again["contact"]["slide_low"].gap) == 0.2
    for name, link in links.items():
        for field in ("at", "rpy", "m", "com", "J"):
            value = getattr(again["link"][name], field)
            np.testing.assert_allclose(value, getattr(link, field), atol=1e-12, err_msg=name)
    with pytest.raises(jfric.ProblemError, match="link: found none; URDF holds links"):
        jfric.export_urdf(machine())
