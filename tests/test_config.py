"""Files and units: what a description becomes, and that writing and reading are inverse."""

import dataclasses
import functools
import json
import math
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.files.assignments import apply_overrides
from jfric.files.config import Check
from jfric.files.read_toml import json_schema, load_config, loads
from jfric.files.solver_choice import OBJECTS, SOLVERS, choose_solver, settings_of
from jfric.files.write_toml import dump
from jfric.results.quantity import Quantity, parse_quantity
from jfric.system.expression import Expression
from jfric.system.formula import read_formula
from jfric.system.units import DIMENSIONS, UnitError, to_si

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.toml"))
loaded = functools.cache(load_config)


def assert_equal(first: jfric.Problem, second: jfric.Problem) -> None:
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def problem_of(text: str, *, dofs: str = 'dofs = ["u"]', path="x.toml") -> jfric.Problem:
    mass = "" if "[mass" in text else '[mass]\ndof = "u"\nm = 1\n'
    return loads(f"{dofs}\n[time]\nend = 1\n{mass}{text}", path).problem


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_shipped_configurations_survive_a_round_trip(path):
    config = loaded(path)
    # A machine in a loop is data for fits: it does not run by itself.
    assert config.checks or config.data is not None
    assert config.title
    assert config.source
    again = loads(dump(config), path)
    assert_equal(config.problem, again.problem)
    assert dataclasses.replace(again, problem=config.problem) == config
    assert_equal(config.problem, loads(jfric.to_toml(config.problem)).problem)


def test_load_gives_the_problem_of_a_file():
    path = next(p for p in CONFIGS if p.stem == "ve0116")
    problem = jfric.load(str(path))
    assert {k: float(v) for k, v in jfric.parameters(problem).items()} == {
        "mass.m": 100.0,
        "spring.k": 5000.0,
        "spring.x0": 0.0,
        "friction.mu": 0.1,
        "friction.N": 1000.0,
        "load.F": 1500.0,
        "initial.u.q": 0.0,
        "initial.u.v": 0.0,
        "time.end": 4.0,
        "time.start": 0.0,
    }


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("5 kN/m", "stiffness", 5000.0),
        ("5kN/m", "stiffness", 5000.0),
        ("10 mm", "length", 0.01),
        ("1.1 mm", "length", 0.0011),
        ("-.5e1 cm", "length", -0.05),
        ("30 deg", "angle", math.radians(30.0)),
        ("30°", "angle", math.radians(30.0)),
        ("60 rpm", "angular velocity", 2 * math.pi),
        ("3 N mm/rad", "rotational stiffness", 0.003),
        ("2 N*m*s/rad", "rotational damping", 2.0),
        ("9.81 m/s^2", "acceleration", 9.81),
        ("9.81 m/s**2", "acceleration", 9.81),
        ("2 min", "time", 120.0),
        ("100 lbf", "force", 444.82216152605),
        ("30 %", "pure number", 0.3),
        ("0.3", "pure number", 0.3),
        ("2 /s", "angular velocity", 2.0),
        ("1/6", "angular velocity", 1 / 6),
        ("120*pi", "time", 120 * math.pi),
        (7, "mass", 7.0),
        ("1/3 kg*m^2", "moment of inertia", 1 / 3),
        ("1/3 kg*m**2", "moment of inertia", 1 / 3),
        ("5 kg*(0.2 m)^2/12", "moment of inertia", 5 * 0.2**2 / 12),
        ("0.2**2/12*kg*m^2", "moment of inertia", 0.2**2 / 12),
        ("0.2^2/12 kg m^2", "moment of inertia", 0.2**2 / 12),
        ("1/(4*pi^2)", "pure number", 1 / (4 * math.pi**2)),
        ("1/(0.5 s)", "frequency", 2.0),
        ("pi/2 rad", "angle", math.pi / 2),
        ("2 pi rad/s", "angular velocity", 2 * math.pi),
        ("sqrt(2) m", "length", math.sqrt(2.0)),
        ("-(1 kN + 200 N)", "force", -1200.0),
    ],
)
def test_units(text, dimension, value):
    assert to_si(text, DIMENSIONS[dimension]) == value


@pytest.mark.parametrize(
    ("text", "dimension", "sentence"),
    [
        ("5 Kg", "mass", "found the unknown unit 'Kg' (did you mean 'kg'?)"),
        ("5 N/mm2", "stiffness", "found the unknown unit 'N/mm2' (did you mean 'N/mm^2'?)"),
        ("5 Ns/m", "damping", "found the unknown unit 'Ns/m' (did you mean 'N*s/m'?)"),
        ("5 kNmm", "torque", "found the unknown unit 'kNmm' (did you mean 'kN*mm'?)"),
        ("5 N.m", "torque", "found the unknown unit 'N.m' (did you mean 'N*m'?)"),
        (
            "0.2^2/12*kg*m",
            "moment of inertia",
            "found '0.2^2/12*kg*m' (a mass times length), expected a moment of inertia such as "
            "'0.5 kg*m^2'",
        ),
        ("2 m + 3 kg", "length", "found '2 m + 3 kg', which adds (a length) and (a mass)"),
        ("2 m + 3", "length", "found '2 m + 3', which adds (a length) and (a pure number)"),
        (
            "5 N/2 mm",
            "stiffness",
            "found '5 N/2 mm', which can be read in two ways; put brackets round what 'mm' belongs "
            "to",
        ),
        (
            "1,5 kg",
            "mass",
            "found '1,5 kg', which is no quantity (a number has a point, not a comma); expected a "
            "mass such as '5 kg'",
        ),
        (
            "1/0.5 s",
            "frequency",
            "found '1/0.5 s' (a time), expected a frequency such as '2 Hz'",
        ),
        (
            "5*2 Hz",
            "angular velocity",
            "found '5*2 Hz' (a frequency), expected an angular velocity",
        ),
    ],
)
def test_sentences_about_numbers_and_units(text, dimension, sentence):
    with pytest.raises(UnitError) as caught:
        to_si(text, DIMENSIONS[dimension])
    assert str(caught.value).startswith(sentence)


def test_one_power_sign_is_as_good_as_the_other():
    for power in ("^", "**"):
        assert jfric.Expression(f"$m*(2*$l){power}2/12").value({"m": 3.0, "l": 0.5}) == 0.25
        problem = loads(
            f"""
            dofs = {{phi = "rotation"}}
            parameters = {{m = "3 kg", l = "50 cm"}}
            time = {{end = "1 s"}}
            [mass]
            dof = "phi"
            m = "$m*(2*$l){power}2/12"
            [spring]
            dof = "phi"
            k = "1/(4*pi{power}2) N*m"
            [event]
            when = "phi - (1/3)*(2 rad){power}1"
            """
        ).problem
        assert float(problem.resolved().elements["mass"]["mass"].m) == 0.25
        changed = apply_overrides(problem, [f"spring.k=0.2{power}2/12*N*m"])
        assert float(changed.elements["spring"]["spring"].k) == pytest.approx(0.04 / 12, rel=1e-15)


def test_a_fraction_with_a_unit_in_a_formula_needs_brackets():
    assert read_formula("x - (1/3) m").value(lambda _: 1.0, {}) == 1.0 - 1 / 3
    assert read_formula("x - 1/(3 m)").value(lambda _: 1.0, {}) == 1.0 - 1 / 3
    with pytest.raises(ValueError, match=r"two ways; write \(1/3\) m or 1/\(3 m\)$"):
        read_formula("x - 1/3 m")


@pytest.mark.parametrize("text", ["", "x", "kg", "5 5", "1 kN + 2 m", "1/0", "nan", "5 degC", "--"])
def test_no_quantities(text):
    with pytest.raises(UnitError, match=r"^found "):
        to_si(text, DIMENSIONS["force"])


@given(st.text(max_size=12))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_quantity_or_a_unit_error(text):
    try:
        value = to_si(text)
    except UnitError:
        return
    assert isinstance(value, (float, Expression))


@given(
    st.floats(-1e12, 1e12, allow_subnormal=False),
    st.sampled_from([("mm", "m", 1000), ("kN", "N", -1000), ("ms", "s", 1000), ("um", "m", 10**6)]),
)
def test_decimal_prefixes_are_exact(value, units):
    prefixed, _, factor = units
    exact = value / factor if factor > 0 else float(value) * -factor
    assert to_si(f"{value!r} {prefixed}") == pytest.approx(exact, rel=3e-16, abs=0.0)


def test_flat_and_named_elements():
    flat = problem_of('[spring]\ndof = "u"\nk = 2')
    named = problem_of('[spring.left]\ndof = "u"\nk = 2')
    two = problem_of('[spring.left]\ndof = "u"\nk = 2\n[spring.right]\ndof = "u"\nk = 3')
    assert float(jfric.get_parameter(flat, "spring.k")) == 2.0
    assert float(jfric.get_parameter(named, "spring.k")) == 2.0
    assert float(jfric.get_parameter(two, "spring.right.k")) == 3.0
    assert list(flat.section("spring")) == ["spring"]
    assert list(named.section("spring")) == ["left"]


def test_elements_keep_the_order_of_the_file():
    text = '[spring.b]\ndof="u"\nk=1\n[mass]\ndof="u"\nm=1\n[spring.a]\ndof="u"\nk=1\n'
    problem = problem_of(text)
    assert list(problem.elements) == ["spring", "mass"]
    assert list(problem.section("spring")) == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        ('dof = "u"', jfric.along("u")),
        ('direction = "u"', jfric.along("u")),
        ('direction = {dof = "u"}', jfric.along("u")),
        ('between = ["u", "w"]', jfric.between("u", "w")),
        ('direction = {between = ["u", "w"]}', jfric.between("u", "w")),
        ('between = ["u", "ground"]', jfric.between("u", "ground")),
        ('between = ["ground", "u"]', jfric.along("u")),
        ('between = ["u", "z"]', jfric.between("u", "z")),
    ],
)
def test_directions(text, direction):
    problem = problem_of(
        f'[mass.a]\ndof="u"\nm=1\n[mass.b]\ndof="w"\nm=1\n[base.z]\ndisplacement=0\n'
        f"[spring]\nk = 1\n{text}\n",
        dofs='dofs = ["u", "w"]',
    )
    found = problem.section("spring")["spring"].direction
    assert (found.names, found.signs) == (direction.names, direction.signs)


def test_direction_with_coefficients_and_expression():
    problem = problem_of(
        '[mass.a]\ndof="u"\nm=1\n[mass.b]\ndof="w"\nm=1\n'
        '[parameters]\nc = 0.8\n[spring]\nk = 1\ndirection = {u = 0.6, w = "$c"}\n',
        dofs='dofs = ["u", "w"]',
    )
    w = problem.resolved().section("spring")["spring"].direction.vector(problem.axes)
    np.testing.assert_array_equal(w, [0.6, 0.8])


def test_contact():
    problem = problem_of(
        '[mass.a]\ndof="y"\nm=1\n[mass.b]\ndof="th"\nm=1\n'
        '[contact]\nnormal = {y = 1, th = -0.5}\ntangent = {dof = "th"}\ngap = "10 mm"\n'
        'e = 0.5\nmu_s = 0.3\nmu_d = {positive = 0.2, negative = 0.1}\nimpact = "none"\n'
        'belt = "2 rad/s"\n',
        dofs='[dofs]\ny = "translation"\nth = "rotation"',
    )
    contact = problem.section("contact")["contact"]
    assert isinstance(contact.law, jfric.StaticDynamic)
    assert contact.impact == "none"
    assert float(contact.law.mu_d.negative) == 0.1
    assert float(contact.gap) == 0.01
    assert float(contact.belt(0.0)) == 2.0


def test_belt_and_gap_of_a_contact_measure_what_tangent_and_normal_do():
    def contact(belt: str, gap: str = "1 mm"):
        found = problem_of(
            '[mass.a]\ndof = "y"\nm = 1\n[mass.b]\ndof = "th"\nm = 1\n[contact]\n'
            f'normal = "y"\ntangent = "th"\nmu = 0.3\ngap = "{gap}"\nbelt = "{belt}"\n',
            dofs='[dofs]\ny = "translation"\nth = "rotation"',
        )
        return found

    turning = contact("60 rpm")
    assert float(turning.section("contact")["contact"].belt(0.0)) == 2.0 * math.pi
    # A file that is written names their units.
    written = jfric.to_toml(turning)
    assert re.search(r"^belt = .* # rad/s$", written, re.MULTILINE)
    assert re.search(r"^gap = .* # m$", written, re.MULTILINE)
    with pytest.raises(jfric.ProblemError, match=r"contact\.belt: found 'm/s'.* angular velocity"):
        contact("2 m/s")
    with pytest.raises(jfric.ProblemError, match=r"contact\.gap: found 'rad'.* a length"):
        contact("2 rad/s", "1 rad")


def force_of(text: str, path="x.toml"):
    return problem_of(f'[load]\ndof = "u"\nF = {text}\n', path=path).section("load")["load"].F


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('"1.5 kN"', {0: 1500, 9: 1500}),
        (
            '{steps = {times = ["1 s", 2], values = [0, "1 kN", 2]}}',
            {0: 0, 1: 1000, 1.5: 1000, 2: 2},
        ),
        ('{steps = {times = [1], values = [0, 1], unit = "kN"}}', {0: 0, 1: 1000}),
        (
            '{linear = {times = [0, 500], values = [0, 1], unit = "kN", time_unit = "ms"}}',
            {0: 0, 0.25: 500, 0.5: 1000, 3: 1000},
        ),
        ('{harmonic = {amplitude = "2 N", omega = 1, phase = "90 deg"}}', {0: 2, math.pi: -2}),
        ('{harmonic = {amplitude = 2, frequency = "2 Hz"}}', {0.125: 2, 0.25: 0}),
        ("{sum = [1, {harmonic = {amplitude = 1, frequency = 1}}, {sum = [2]}]}", {0: 3, 0.25: 4}),
    ],
)
def test_functions_of_time(text, values):
    force = force_of(text)
    for t, value in values.items():
        assert float(force(float(t))) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "content", ["t,F\n0,1\n1,3\n2,2\n", "# comment\n0 1\n1 3\n2 2\n", "0;1\n1;3\n2;2"]
)
def test_sampled_functions(tmp_path, content):
    (tmp_path / "force.csv").write_text(content)
    linear = force_of('{table = {file = "force.csv", unit = "kN"}}', tmp_path / "x.toml")
    held = force_of('{table = {file = "force.csv", hold = "zero-order"}}', tmp_path / "x.toml")
    times = np.array([-1.0, 0.0, 0.5, 1.0, 1.75, 2.0, 5.0])
    found = [float(linear(t)) for t in times]
    np.testing.assert_allclose(found, 1e3 * np.interp(times, [0, 1, 2], [1, 3, 2]))
    assert [float(held(t)) for t in times] == [1, 1, 1, 3, 3, 2, 2]


def test_expressions_share_parameters():
    problem = problem_of(
        '[parameters]\nm = "2 kg"\nangle = "60 deg"\nf = 3\n[mass]\ndof = "u"\nm = "$m"\n'
        '[friction]\ndof = "u"\nmu = 0.1\nN = "$m*9.81*cos($angle)"\n'
        '[load]\ndof = "u"\nF = {harmonic = {amplitude = 1, frequency = "$f"}}\n'
    )
    resolved = jfric.set_parameters(problem, {"parameters.m": 4.0}).resolved()
    assert float(resolved.section("mass")["mass"].m) == 4.0
    assert float(resolved.section("friction")["friction"].N.value) == pytest.approx(4 * 9.81 / 2)
    assert float(resolved.section("load")["load"].F.omega) == pytest.approx(6 * math.pi)


def test_matrices(tmp_path):
    import scipy.io
    import scipy.sparse

    K = np.array([[2.0, -1.0], [-1.0, 2.0]])
    np.save(tmp_path / "K.npy", K)
    scipy.io.mmwrite(tmp_path / "K.mtx", scipy.sparse.csr_array(K))
    rows = '[["$k", -1], ["-1 N/m", "2 N/m"]]'
    mass = '[mass.a]\ndof="u"\nm=1\n[mass.b]\ndof="w"\nm=1\n[parameters]\nk = 2\n'
    for value in ('"K.npy"', '"K.mtx"', rows):
        text = f"{mass}[matrices]\nK = {value}\n"
        problem = problem_of(text, dofs='dofs = ["u", "w"]', path=tmp_path / "x.toml")
        found = jax.tree.map(float, problem.resolved().matrices.K) if value == rows else None
        np.testing.assert_array_equal(found or problem.matrices.K, K)


def test_outputs_solver_and_checks():
    config = loads(
        'title = "t"\nsource = "s"\ndofs = ["u"]\n[time]\nstart = 1\nend = "3 s"\n'
        'outputs = ["1 s", 2, 2.5]\n[mass]\ndof = "u"\nm = 1\n[solver]\nmax_events = 10\n'
        '[[check]]\nquantity = "u(2 s)"\nexpected = "5 mm"\nrelative = 1e-3\nsource = "hand"\n'
    )
    assert config.outputs == (1.0, 2.0, 2.5)
    np.testing.assert_array_equal(config.times(), [1.0, 2.0, 2.5])
    assert config.solver == {"max_events": 10}
    assert config.checks == (Check(Quantity("at", "u", 2.0), 0.005, None, 1e-3, "hand"),)
    assert config.checks[0].allowed == pytest.approx(5e-6)
    again = loads(dump(config), config.path)
    assert dataclasses.replace(again, problem=config.problem) == config
    evenly = dataclasses.replace(config, outputs=5)
    np.testing.assert_array_equal(evenly.times(), [1.0, 1.5, 2.0, 2.5, 3.0])


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("u(1)", Quantity("at", "u", 1.0)),
        ("u(10 ms)", Quantity("at", "u", 0.01)),
        ("u(12*pi)", Quantity("at", "u", 12 * math.pi)),
        ("u(t)", Quantity("at", "u", "t")),
        ("v(1)", Quantity("at", "v", 1.0)),
        ("final(1)", Quantity("at", "final", 1.0)),
        ("v.u(1)", Quantity("at", "v.u", 1.0)),
        ("a.u(1e-3)", Quantity("at", "a.u", 1e-3)),
        ("lambda_n(1)", Quantity("at", "lambda_n", 1.0)),
        ("lambda_t.pad(1)", Quantity("at", "lambda_t.pad", 1.0)),
        ("lambda_t.friction.pad(1)", Quantity("at", "lambda_t.friction.pad", 1.0)),
        ("force.stop.left(1)", Quantity("at", "force.stop.left", 1.0)),
        ("event_time(3)", Quantity("event_time", "", 3)),
        ("event.x3(3)", Quantity("event", "x3", 3)),
        ("event_v.x3(3)", Quantity("event", "v.x3", 3)),
        ("event.v.x3(3)", Quantity("event", "v.x3", 3)),
        ("event_v_before.x3(3)", Quantity("before_event", "v.x3", 3)),
        ("before_event.v.x3(3)", Quantity("before_event", "v.x3", 3)),
        ("event_count", Quantity("event_count")),
        ("impact_count", Quantity("impact_count")),
        ("final.u", Quantity("final", "u")),
        ("final_v.u", Quantity("final", "v.u")),
        ("last_event_time", Quantity("last_event_time")),
        ("end_time", Quantity("last_event_time")),
        ("stop_time", Quantity("stop_time")),
        ("min.u", Quantity("min", "u")),
        ("max.u", Quantity("max", "u")),
        ("max.v.u", Quantity("max", "v.u")),
        ("rms.slip", Quantity("rms", "slip")),
        ("impulse.stop", Quantity("impulse", "stop")),
        ("impulse", Quantity("impulse")),
        ("dissipated", Quantity("dissipated")),
        ("stick_fraction.pad", Quantity("stick_fraction", "pad")),
    ],
)
def test_quantities(text, quantity):
    assert parse_quantity(text) == quantity
    assert parse_quantity(str(quantity)) == quantity


def test_checks_name_contacts_as_solutions_do():
    config = loads(
        'dofs = ["u"]\n[time]\nend = 1\n[mass]\ndof = "u"\nm = 1\n[contact.wall]\nnormal = "u"\n'
        '[friction.pad]\ndof = "u"\nlimit = 1\n[friction.shoe]\ndof = "u"\nlimit = 1\n'
        + "".join(
            f'[[check]]\nquantity = "{q}"\nexpected = 0\ntolerance = 1\n'
            for q in (
                "lambda_n(1)",
                "lambda_n.wall(1)",
                "lambda_t.pad(1)",
                "lambda_t.friction.pad(1)",
            )
        )
    )
    names = [c.quantity.name for c in config.checks]
    assert names == ["lambda_n.contact.wall"] * 2 + ["lambda_t.friction.pad"] * 2


numbers = st.floats(1e-6, 1e6)
coefficients = st.one_of(numbers, st.builds(jfric.Directional, numbers, numbers))
expressions = st.sampled_from(["$p", "2*$p + 1", "sqrt($p)"])
scalars = st.one_of(numbers, expressions)


@st.composite
def functions(draw):
    times = sorted(draw(st.sets(st.floats(0, 10), min_size=1, max_size=4)))
    values = draw(st.lists(numbers, min_size=len(times) + 1, max_size=len(times) + 1))
    choice = draw(st.integers(0, 5))
    if choice == 0:
        return jfric.Constant(draw(scalars))
    if choice == 1:
        return jfric.Steps(times, values)
    if choice == 2:
        return jfric.PiecewiseLinear(times, values[1:])
    if choice == 3:
        return jfric.Harmonic(draw(scalars), draw(scalars), draw(numbers))
    if choice == 4:
        return jfric.Ramp(draw(scalars), draw(numbers))
    return jfric.Sum([jfric.Constant(draw(numbers)), jfric.Steps(times, values)])


directions = st.sampled_from(
    ["x", "th", ("x", "th"), ("th", "ground"), ("x", "z"), {"x": 0.6, "th": 2}]
)


@st.composite
def problems(draw):
    elements = {
        "mass": {"a": jfric.Mass("x", draw(scalars)), "b": jfric.Mass("th", draw(scalars))},
        "base": {"z": jfric.Base(draw(functions()))},
        "spring": {
            name: jfric.Spring(draw(directions), draw(scalars), draw(numbers))
            for name in draw(st.sets(st.sampled_from(["s", "left", "2"]), max_size=2))
        },
        "friction": jfric.Friction(draw(directions), N=1.0, law=jfric.Coulomb(draw(coefficients))),
        "load": jfric.Load("x", draw(functions())),
        "stop": jfric.Stop(
            "x", draw(scalars), release=draw(st.sampled_from(["physical", "adhesive"]))
        ),
        "diagram_spring": jfric.DiagramSpring("th", [0.0, 1.0, 2.0], [0.0, draw(numbers), 5.0]),
    }
    kept = draw(st.sets(st.sampled_from(["friction", "load", "stop", "diagram_spring"])))
    kept |= {"mass", "base"} | ({"spring"} if elements["spring"] else set())
    return jfric.Problem(
        {"x": "translation", "th": "rotation"},
        {k: v for k, v in elements.items() if k in kept},
        parameters={"p": draw(numbers)},
        initial={"th": jfric.InitialState(draw(scalars), draw(numbers))},
        time=jfric.TimeSpan(draw(st.floats(5, 10)), draw(st.floats(0, 4))),
    )


@given(problems())
@settings(max_examples=40, deadline=None)
def test_any_problem_survives_a_round_trip(problem):
    assert_equal(jfric.build(problem), loads(jfric.to_toml(problem)).problem)


def test_python_functions_cannot_be_written():
    problem = jfric.Problem(
        ("u",),
        {
            "mass": jfric.Mass("u", 1.0),
            "force_field": {"swing": jfric.ForceField(lambda t, q, v, p: -q)},
        },
    )
    with pytest.raises(
        jfric.ProblemError, match=r"^force_field\.swing: a ForceField holds a Python"
    ):
        jfric.to_toml(problem)


def test_json_schema_names_all_keys():
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert {"dofs", "time", "friction", "contact", "check"} <= set(schema["properties"])
    friction = schema["$defs"]["Friction"]["properties"]
    assert {"dof", "between", "direction", "mu", "mu_s", "mu_d", "N", "limit", "belt"} <= set(
        friction
    )
    assert friction["N"]["description"] == "[N or N*m]"
    assert "null" not in str(schema)


#: Keys that a table cannot do without.
NEEDED = """
Along: dof
Base: displacement
BasinsTable: plane
BesideTable: file, join, time
Between: between
Body: m, J
BoucWen: k, beta, gamma
CheckTable: quantity, expected
ClippedTable: function
ColumnTable: column
Controller: reads, drives, kp
Dahl: sigma, F_c
Damper: c
DiagramSpring: x, F
DirectionalKnots: positive, negative
DirectionalLoss: load, average, h
DirectionalTable: positive, negative
Drag: c
Event: when
FreeTable: between
Force: F
GapSpring: k_positive, k_negative, gap_positive, gap_negative
Gear: bodies, radii
Harmonic: amplitude
Iwan: K_T, F_S, chi, beta
Jenkins: k, R
JenkinsCoupling: elements, k
Joint: constraint
Linear: times, values
LinkSpring: points
Load: F
LuGre: sigma0, F_c, F_s, v_s
MasingSpring: x, F
Mass: m
MaxwellSlip: k, R
Motor: kt
Pendulum: m, L
Pin: points
PolynomialSpring: k
RampTable: rate
RateState: N, mu0, a, b, D_c, V0
ResponseTable: load, start, stop
RobotTable: file
Rolling: point, radius
Samples: file
Slider: point, line
Spring: k
State: rate
StateFeedback: reads, drives, period, K
StaticsTable: vary, start, stop
Steps: times, values
Stop: k
Time: end
UntilTable: function, end
Velocity: moves
Weld: points
"""


def test_keys_that_are_needed():
    schema = json_schema()
    assert schema["required"] == ["time"]
    found = {name: part.get("required") for name, part in schema["$defs"].items()}
    known = (line.split(": ") for line in NEEDED.strip().split("\n"))
    assert {name: x for name, x in found.items() if x} == {n: x.split(", ") for n, x in known}


VE0116 = Path(__file__).parent.parent / "configs" / "ve0116.toml"


def test_a_file_is_read_inside_a_function_that_jax_traces():
    @jax.jit
    def heavier(m):
        problem = jfric.load(VE0116)
        return jfric.parameters(jfric.set_parameters(problem, {"mass.m": m}))

    found = heavier(2.0)
    plain = jfric.parameters(jfric.load(VE0116))
    assert set(found) == set(plain)
    assert found["mass.m"] == 2.0
    assert found["spring.k"] == plain["spring.k"]


@pytest.mark.parametrize(
    "path",
    [p if i % 4 == 0 else pytest.param(p, marks=pytest.mark.slow) for i, p in enumerate(CONFIGS)],
    ids=lambda path: path.stem,
)
def test_times_of_a_file_lie_in_its_span_in_single_precision(path):
    """A check at the end of a span whose end rounding has put before it was refused."""
    expected = [str(check.quantity) for check in loaded(path).checks]
    with jax.enable_x64(False):
        assert [str(check.quantity) for check in load_config(path).checks] == expected


@pytest.mark.parametrize("name", SOLVERS)
def test_files_and_verify_take_every_setting_of_every_solver(name, tmp_path):
    """The fields of the class, as its documentation describes them, in the table and as options: a
    name of no case shows that all of them were taken, before anything is computed."""
    system = 'dofs = ["x"]\n[time]\nend = "1 s"\n[mass]\ndof = "x"\nm = "1 kg"\n'
    system += '[[check]]\nquantity = "x(1)"\nexpected = 0\ntolerance = 0\n'
    given = {"name": name, "dt": 1e-3} if "dt" in settings_of(name) else {"name": name}
    known, path = dataclasses.asdict(choose_solver(given)[0]), tmp_path / "mass.toml"
    assert set(known) - set(settings_of(name)) <= set(OBJECTS)
    values: dict[str, str | float] = {key: 1e-3 for key in settings_of(name)}
    values |= {k: x for k, x in known.items() if k in values and isinstance(x, str | int | float)}
    values |= {"method": "kvaerno5"} if name == "smoothed" else {}
    for key, value in values.items():
        lines = given | {key: value}
        text = "".join(f"{k} = {json.dumps(v)}\n" for k, v in lines.items())
        assert key in choose_solver(loads(f"{system}[solver]\n{text}").solver)[1]
    path.write_text(f'{system}[solver]\nname = "{name}"\n')

    def answer(*options):
        words = [x for option in options for x in ("--option", option)]
        found = CliRunner().invoke(app, ["verify", str(path), *words, "--case", "other"])
        return found.exit_code, " ".join(found.stderr.split())

    every = [f"{key}={value}" for key, value in values.items()]
    code, sentence = answer(*every)
    assert code == 2
    assert "--case: no case 'other'" in sentence
    assert "has no such setting" in answer(*every, "stepps=3")[1]
    # They reach the solver that is run.
    wrong = {"energy_gain": "alow", "flow": "axact"}
    for key in wrong.keys() & values.keys():
        assert f"{key}: found {wrong[key]!r}" in answer(f"{key}={wrong[key]}")[1]


@pytest.mark.slow
def test_a_file_takes_the_settings_of_impacts():
    system = 'dofs = ["x"]\n[time]\nend = "1 s"\n[mass]\ndof = "x"\nm = "1 kg"\n[solver]\n'
    config = loads(system + 'energy_gain = "allow"\naccumulation = 1e-5')
    solver = choose_solver(config.solver)[0]
    assert (solver.energy_gain, solver.accumulation) == ("allow", 1e-5)
