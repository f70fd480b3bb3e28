"""Paths of parameters: full in every output, whatever stands beside; short ones as input only."""

import dataclasses
import functools

import numpy as np
import pytest
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.read_toml import loads
from jfric.fits.recipe import prepare
from jfric.results.signals import look_up
from jfric.system.naming import find_path, path_dimension

TOML = """
dofs = ["u"]
time = {end = 1.0, outputs = 5}
[mass]
dof = "u"
m = 100.0
[spring.wall]
dof = "u"
k = 5000.0
[friction.floor]
dof = "u"
mu = 0.1
N = 1000.0
[load.push]
dof = "u"
F = 1500.0
"""
BESIDE = """
[friction.wall]
dof = "u"
mu = 0.0
N = 0.0
[load.pull]
dof = "u"
F = 0.0
"""


@functools.cache
def alone() -> jfric.Problem:
    return loads(TOML).problem


def test_paths_do_not_change_with_a_second_element():
    one, two = jfric.parameters(alone()), jfric.parameters(loads(TOML + BESIDE).problem)
    assert [*one] == [
        "mass.m", "spring.wall.k", "spring.wall.x0", "friction.floor.mu", "friction.floor.N",
        "load.push.F", "initial.u.q", "initial.u.v", "time.end", "time.start",
    ]  # fmt: skip
    assert set(one) <= set(two)


def test_paths_do_not_change_with_a_second_degree_of_freedom():
    mass = jfric.Mass("u", 1.0)
    one = jfric.Problem(["u"], {"mass": {"a": mass}})
    two = jfric.Problem(["u", "w"], {"mass": {"a": mass, "b": jfric.Mass("w", 1.0)}})
    assert set(jfric.parameters(one)) <= set(jfric.parameters(two))


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("friction.mu", "friction.floor.mu"),
        ("load.F", "load.push.F"),
        ("initial.q", "initial.u.q"),
        ("mass.mass.m", "mass.m"),
        ("friction.floor.mu", "friction.floor.mu"),
    ],
)
def test_a_short_path_is_input_for_the_only_element(short, full):
    assert find_path(alone(), short) == full
    changed = jfric.set_parameters(alone(), {short: 0.25})
    assert float(jfric.get_parameter(changed, full)) == 0.25
    assert path_dimension(alone(), full) is not None


@pytest.mark.parametrize("short", ["friction.mu", "load.F"])
def test_a_short_path_is_refused_where_there_are_two(short):
    with pytest.raises(KeyError, match=f"no parameter '{short}' \\(did you mean"):
        find_path(loads(TOML + BESIDE).problem, short)


def test_a_shared_parameter_has_the_dimension_of_its_fields():
    text = 'dofs = ["u"]\n[time]\nend = 1\n[parameters]\nV = "0.1 m/s"\nr = 2.0\n'
    text += '[mass]\ndof = "u"\nm = "$r"\n'
    text += '[friction]\ndof = "u"\nmu = 0.3\nN = "$r"\nbelt = "- $V"\n'
    problem = loads(text).problem
    found = path_dimension(problem, "parameters.V")
    assert found is not None
    assert found.unit == "m/s"
    # A mass and a force: none that both have.
    assert path_dimension(problem, "parameters.r") is None
    changed = jfric.set_parameters(problem, {"parameters.V": "20 cm/s"})
    assert float(jfric.get_parameter(changed, "parameters.V")) == 0.2
    with pytest.raises(jfric.ProblemError, match=r"parameters.V: found 'N' \(a force\), expected"):
        jfric.set_parameters(problem, {"parameters.V": "3 N"})
    with pytest.raises(KeyError, match=r"no parameter 'V' \(did you mean 'parameters.V'\?"):
        find_path(problem, "V")


def test_an_element_without_a_name_keeps_its_path_beside_others():
    friction = jfric.Friction("u", jfric.Coulomb(0.1), N=10.0)
    both = {"mass": jfric.Mass("u", 1.0), "friction": {"friction": friction, "mu": friction}}
    problem = jfric.Problem(["u"], both)
    paths = [p for p in jfric.parameters(problem) if p.startswith("friction")]
    assert paths == ["friction.mu", "friction.N", "friction.mu.mu", "friction.mu.N"]
    assert find_path(problem, "friction.friction.mu") == "friction.mu"
    assert [path_dimension(problem, p) for p in paths[:2]] == [
        path_dimension(problem, p) for p in paths[2:]
    ]


def test_results_call_contacts_and_events_by_their_full_names():
    solution = jfric.simulate(alone())
    assert solution.names == ("friction.floor",)
    assert {row["contact"] for row in solution.event_table()} == {"friction.floor"}
    for name in ("lambda_t", "lambda_t.friction", "lambda_t.floor"):
        assert look_up(alone(), name)[0] == "lambda_t.friction.floor"
    assert look_up(alone(), "force.spring")[0] == "force.spring.wall"


def test_sweeps_have_full_names_on_their_axes():
    table = jfric.sweep(alone(), {"friction.mu": [0.1, 0.2]}, "final.u")
    assert table["final.u"].dims == ("friction.floor.mu",)
    twice = {"friction.mu": [0.1], "friction.floor.mu": [0.2]}
    with pytest.raises(jfric.ProblemError, match=r"vary: found 'friction\.floor\.mu' twice"):
        jfric.sweep(alone(), twice, "final.u")


def test_fits_have_full_names():
    t = np.linspace(0.0, 1.0, 20)
    data = jfric.Experiment(t, u={"load.F": np.ones(20)}, y={"u": t}, sigma=1.0)
    free = {"friction.mu": jfric.Free(0.01, 1.0), "initial.q": jfric.Free(-1, 1, scale="linear")}
    task = prepare(alone(), data, free)
    assert task.objective.layout.names == ("friction.floor.mu", "initial.u.q")
    assert [*task.objective.data.u] == ["load.push.F"]
    with pytest.raises(jfric.ProblemError, match=r"free: found 'friction\.floor\.mu' twice"):
        prepare(alone(), data, {**free, "friction.floor.mu": jfric.Free(0.01, 1.0)})


def test_a_controller_drives_a_load_by_either_path():
    t = np.arange(20) * 0.01
    controller = jfric.Controller("u", "load.F", kp=1.0)
    reference = {"controller.reference": np.ones(20), "load.push.F": 1.0 + t}
    data = jfric.Experiment(t, u=reference, y={"u": t})
    free = {"friction.mu": jfric.Free(0.01, 1.0)}
    task = prepare(alone(), data, free, residual=jfric.ClosedLoop(controller))
    assert task.objective.data.signals == ("load.push.F",)
    # The noise of the positions is not that of the force.
    for sigma, known in (
        (1e-3, False),
        ({"u": 1e-3}, False),
        ({"u": 1e-3, "load.push.F": 0.5}, True),
    ):
        given = dataclasses.replace(data, sigma=sigma)
        task = prepare(alone(), given, free, residual=jfric.ClosedLoop(controller))
        assert task.noise_is_known is known
    assert task.noise()["load.push.F"] == 0.5
    loop = jfric.ClosedLoop(controller)
    assert (
        prepare(alone(), data, free, residual=loop, hold="linear").objective.model.hold == "linear"
    )
    with pytest.raises(jfric.ProblemError, match="solver: a closed loop is simulated from sample"):
        prepare(alone(), data, free, residual=loop, solver=jfric.EventDriven())


def test_paths_of_equilibria_have_full_names():
    path = jfric.trace(alone(), "load.F", 0.0, 10.0)
    assert path.name == "load.push.F"


def test_the_command_line_shows_full_paths(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(TOML)
    run = CliRunner().invoke
    shown = run(app, ["show", str(file)]).output
    assert "friction.floor.mu" in shown
    assert "friction.mu" not in shown
    refused = run(app, ["sweep", str(file), "--vary", "friction.mu=1:a:3", "--observe", "final.u"])
    assert "--vary friction.floor.mu" in refused.output


def test_the_rate_of_a_ramp_measures_what_it_changes_per_second():
    given = TOML + '[base.hand]\ndisplacement = {ramp = {rate = "2 mm/s", value = "1 mm"}}\n'
    problem = loads(given).problem
    units = {"base.hand.displacement.rate": "m/s", "base.hand.displacement.value": "m"}
    for path, unit in units.items():
        measures = path_dimension(problem, path)
        assert measures is not None
        assert measures.unit == unit


@pytest.mark.parametrize("kind", ["translation", "rotation"])
def test_matrices_are_one_parameter_or_many(kind):
    """An array is one parameter, rows have one for each number; both know their unit."""
    unit, wrong = {"translation": ("N/m", "N*m/rad"), "rotation": ("N*m/rad", "N/m")}[kind]

    def problem(K):
        return jfric.Problem({"a": kind}, {"mass": jfric.Mass("a", 2.0)},
                             matrices=jfric.Matrices(K=K), time=1.0)  # fmt: skip

    rows, array = problem([[8]]), problem(np.array([[8.0]]))
    changed = jfric.set_parameters(rows, {"matrices.K.0.0": f"5 k{unit}"})
    assert float(jfric.get_parameter(changed, "matrices.K.0.0")) == 5000.0
    with pytest.raises(jfric.ProblemError, match=r"^matrices\.K\.0\.0: found .* stiffness such"):
        jfric.set_parameters(rows, {"matrices.K.0.0": f"5 {wrong}"})
    names = [path_dimension(rows, "matrices.K.0.0"), path_dimension(array, "matrices.K")]
    assert [x.unit for x in names] == [unit, unit]
