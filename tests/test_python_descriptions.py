"""Systems described in Python: texts with units, and what is said of a description that is wrong.
Files have the same in test_config.py and test_config_errors.py."""

import re
import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads
from jfric.system.naming import path_dimension

CONFIGS = Path(__file__).parent.parent / "configs"
MASS = jfric.Mass("u", 1.0)


def block(**elements) -> jfric.Problem:
    given = {
        "mass": jfric.Mass("u", 100.0),
        "spring": jfric.Spring("u", 5000.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
        "load": jfric.Load("u", 1500.0),
    }
    return jfric.Problem(["u"], given | elements, time=4.0)


def assert_same(first: jfric.Problem, second: jfric.Problem) -> None:
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-15, atol=0.0)


def test_texts_with_units_are_numbers():
    given = block(
        mass=jfric.Mass("u", "100 kg"),
        spring=jfric.Spring("u", "5 kN/m"),
        friction=jfric.Friction("u", jfric.Coulomb("10 %"), N="1 kN"),
        load=jfric.Load("u", "1.5 kN"),
    )
    assert_same(given, block())
    assert float(jfric.Mass("u", "100 kg").m) == 100.0


IN_PYTHON = dict(
    elements={
        "mass": {"a": jfric.Mass("u", "1 kg"), "b": jfric.Mass("phi", "2/12 kg*m^2")},
        "spring": jfric.Spring({"u": 1, "phi": "50 cm"}, "5 kN/m", x0="1 mm"),
        "diagram_spring": jfric.DiagramSpring("u", x=["-1 cm", "0", "2 cm"], F=["-1 kN", 0, "1 N"]),
        "polynomial_spring": jfric.PolynomialSpring("u", ["1 N/m", "0 N/m^2", "2 kN/m^3"]),
        "friction": jfric.Friction("u", jfric.Stribeck(0.3, "20 %", "1 mm/s"), N="10 N"),
        "contact": jfric.Contact("u", gap="20 mm", e="50 %"),
        "load": {
            "a": jfric.Load("u", jfric.Harmonic("5 N", "60 rpm", phase="90 deg")),
            "b": jfric.Load("phi", jfric.Steps(["1 s"], ["0 N*m", "2 N*m"])),
            "c": jfric.Load("u", jfric.Clipped(jfric.Harmonic("1 N", "60 rpm"), end="1 min")),
        },
    },
    initial={"u": jfric.InitialState("1 mm", "2 mm/s"), "phi": jfric.InitialState("90 deg")},
    time=jfric.TimeSpan("1 min", start="500 ms"),
    matrices=jfric.Matrices(K=(("1 kN/m", "0 N"), ("0 N", "$k"))),
    parameters={"k": "3 kN*m/rad"},
)
IN_A_FILE = """
dofs = {u = "translation", phi = "rotation"}
parameters = {k = "3 kN*m/rad"}
time = {end = "1 min", start = "500 ms"}
initial = {u = {q = "1 mm", v = "2 mm/s"}, phi = {q = "90 deg"}}
matrices = {K = [["1 kN/m", "0 N"], ["0 N", "$k"]]}
mass = {a = {dof = "u", m = "1 kg"}, b = {dof = "phi", m = "2/12 kg*m^2"}}
spring = {direction = {u = 1, phi = "50 cm"}, k = "5 kN/m", x0 = "1 mm"}
diagram_spring = {dof = "u", x = ["-1 cm", "0", "2 cm"], F = ["-1 kN", 0, "1 N"]}
polynomial_spring = {dof = "u", k = ["1 N/m", "0 N/m^2", "2 kN/m^3"]}
friction = {dof = "u", mu_s = 0.3, mu_d = "20 %", v_s = "1 mm/s", N = "10 N"}
contact = {normal = "u", gap = "20 mm", e = "50 %"}
[load]
a = {dof = "u", F = {harmonic = {amplitude = "5 N", omega = "60 rpm", phase = "90 deg"}}}
b = {dof = "phi", F = {steps = {times = ["1 s"], values = ["0 N*m", "2 N*m"]}}}
c = {dof = "u", F = {clipped = {function = {harmonic = {amplitude = "1 N", omega = "60 rpm"}}, end = "1 min"}}}
"""  # noqa: E501


def test_texts_mean_in_python_what_they_mean_in_files():
    problem = jfric.Problem({"u": "translation", "phi": "rotation"}, **IN_PYTHON)
    assert_same(jfric.build(problem), loads(IN_A_FILE).problem)


@pytest.mark.parametrize("name", ["m8_ring_spring", "m5_lugre", "p6_duffing", "m6_rate_state"])
def test_every_number_can_be_set_as_a_text(name):
    problem = jfric.load(CONFIGS / f"{name}.toml")
    values = {
        path: (float(value), path_dimension(problem, path))
        for path, value in jfric.parameters(problem).items()
        if not isinstance(value, jfric.Expression) and np.ndim(value) == 0
    }
    texts = {p: f"{x!r} {m.unit if m else ''}" for p, (x, m) in values.items()}
    assert any(m is not None and m.unit for _, m in values.values())
    assert_same(jfric.set_parameters(problem, texts), problem)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("5 kN", "spring.k: found 'kN' (a force), expected a stiffness such as '5 kN/m'"),
        ("soft", "spring.k: found 'soft', which is no quantity; expected a stiffness such as"),
        ("$k", "spring.k: found '$k', expected a stiffness such as '5 kN/m'"),
        (None, "spring.k: found 'None', expected a stiffness such as '5 kN/m'"),
        (
            jnp.arange(3.0),
            "spring.k: found an array of shape (3,), expected one number; for many values use "
            "jfric.sweep(problem, {'spring.k': values}), or jax.vmap of a function that sets one",
        ),
        ([1.0, 2.0], "spring.k: found an array of shape (2,), expected one number; for many"),
    ],
)
def test_what_is_no_number_is_not_set(value, sentence):
    with pytest.raises(jfric.ProblemError) as caught:
        jfric.set_parameters(block(), {"spring.k": value})
    assert str(caught.value).startswith(sentence)


def test_lists_are_set_whole():
    problem = block(load=jfric.Load("u", jfric.Steps([1.0], [1500.0, 0.0])))
    changed = jfric.set_parameters(problem, {"load.F.times": ["500 ms"]})
    assert jfric.get_parameter(changed, "load.F.times").tolist() == [0.5]
    with pytest.raises(jfric.ProblemError, match=r"^load.F.times: found an array of shape \(\)"):
        jfric.set_parameters(problem, {"load.F.times": 3.0})


def test_numbers_are_set_under_vmap():
    k = jnp.asarray([5000.0, 6000.0])
    found = jax.vmap(
        lambda k: jfric.get_parameter(jfric.set_parameters(block(), {"spring.k": k}), "spring.k")
    )(k)
    np.testing.assert_array_equal(found, k)


def test_a_number_is_coulombs_coefficient():
    for law in (0.1, jnp.asarray(0.1), "10 %"):
        assert_same(block(friction=jfric.Friction("u", law, N=1000.0)), block())
    elements = {
        "mass": jfric.Mass("y", 1.0),
        "contact": jfric.Contact("y", tangent="x", law=0.3),
        "joint": jfric.Joint("x - y", law=0.2, sliding="x"),
        "pin": jfric.Pin(("a", "b"), law=0.4, radius=0.1),
    }
    assert [float(elements[name].law.mu) for name in ("contact", "joint", "pin")] == [0.3, 0.2, 0.4]
    directions = jfric.Friction(plane=["x", "y"], law=[0.4, 0.2], N=10.0)
    assert [float(row.law.mu) for row in directions.rows()] == [0.4, 0.2]


@pytest.mark.parametrize("dofs", ["block", ["block"], ("block",), {"block": "translation"}])
def test_one_name_is_one_degree_of_freedom(dofs):
    assert jfric.Problem(dofs, {"mass": jfric.Mass("block", 1.0)}).axes == ("block",)


J_IS_ZERO = (
    "body.bob.J: found 0, must be positive: a body turns; for a point mass give two degrees of "
    "freedom with a mass along each, or, where joints or contacts refer to its points, a J that is "
    "small compared with m times their distance squared"
)


@pytest.mark.parametrize(
    ("dofs", "elements", "others", "sentence"),
    [
        (["u"], [MASS], {}, 'elements: found a list, .* {"mass": Mass(...)}'),
        (
            ["u"],
            [MASS, jfric.Spring("u", 1.0), jfric.Spring("u", 2.0)],
            {},
            'elements: found a list, expected names with what they are, {"mass": Mass(...), '
            '"spring": {"a": Spring(...), "b": Spring(...)}}',
        ),
        (
            ["u"],
            {"mass.block": MASS},
            {},
            'mass.block: no such section; write elements={"mass": {"block": Mass(...)}}',
        ),
        (["u"], MASS, {}, 'elements: found a Mass, .* {"mass": Mass(...)}'),
        ("xy", {"mass": jfric.Mass("x", 1.0)}, {}, "mass.direction: no degree .* declared are xy"),
        (["u", "u"], {"mass": MASS}, {}, "dofs: found 'u' twice, names must differ"),
        (3, {"mass": MASS}, {}, "dofs: found 3, expected names such as ['u']"),
        (["u"], {"mass": jfric.Mass(0, 1.0)}, {}, "mass.direction: found 0, expected a degree of"),
        (["u"], {"mass": jfric.Mass("u", None)}, {}, "mass.m: found None, expected a number"),
        (
            {"u": "rotation"},
            {"mass": jfric.Mass("u", "100 kg")},
            {},
            "mass.m: found 'kg' (a mass), expected a moment of inertia such as '0.5 kg*m^2'",
        ),
        (
            ["u"],
            {"mass": MASS, "load": jfric.Load("u", jfric.Harmonic("1 N", "2 Hz"))},
            {},
            "load.F.omega: found 'Hz' (a frequency), expected an angular velocity such as",
        ),
        (
            ["u"],
            {"mass": MASS, "load": jfric.Load("u", abs)},
            {},
            "load.F: found <built-in function abs>, expected a number or a function of time",
        ),
        (
            ["u"],
            {"mass": MASS, "friction": jfric.Friction("u", jfric.Coulomb, N=1.0)},
            {},
            "friction.law: found .*Coulomb.*, expected a law such as jfric.Coulomb(0.1), or a "
            "number, which is Coulomb's coefficient",
        ),
        (
            ["u", "phi"],
            {"mass": MASS, "spring": jfric.Spring({"u": "1 kg"}, 1.0)},
            {},
            "spring.direction.u: found 'kg' (a mass), expected a pure number .* or an inverse",
        ),
        (["u"], {"mass": MASS}, {"initial": {"u": abs}}, "initial.u: found .*, expected jfric.In"),
        (["u"], {"mass": MASS}, {"initial": [0.1]}, "initial: found a list, expected names with"),
        (["u"], {"mass": MASS}, {"parameters": [1.0]}, "parameters: found a list, expected names"),
        (["u"], {"mass": MASS}, {"matrices": {"K": 1}}, "matrices: found a dict, expected jfric.M"),
        (["u"], {"mass": MASS}, {"time": "4 m"}, "time.end: found 'm' (a length), expected a time"),
        ([], {"body": {"bob": jfric.Body(1.0, 0.0)}}, {}, J_IS_ZERO),
    ],
)
def test_sentences(dofs, elements, others, sentence):
    pattern = re.escape(sentence).replace(r"\.\*", ".*").replace(r"\ ", " ")
    with pytest.raises(jfric.ProblemError, match=f"^{pattern}"):
        jfric.Problem(dofs, elements, **others)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: jfric.Range("1 kg", "2 kg"), "range: found the text '1 kg', expected a number in"),
        (lambda: jfric.Free("1 kg", 2.0), "lower: found the text '1 kg', expected a number in SI"),
        (lambda: jfric.simulate(block(), end="2 s"), "end: found the text '2 s', expected a numb"),
        (lambda: jfric.simulate(block(), jfric.MoreauJean(dt="1 ms")), "dt: found the text '1 ms'"),
        (lambda: jfric.trace(block(), "friction.mu", "0", "3"), "start, stop: found the text '0'"),
    ],
)
def test_sentences_where_only_numbers_are_taken(call, sentence):
    with pytest.raises(jfric.ProblemError, match=f"^{sentence}"):
        call()


def test_a_time_that_nobody_chose_is_said():
    problem = jfric.Problem(["u"], {"mass": MASS})
    with pytest.warns(UserWarning, match="^time: none is given, the motion is computed for 1 s"):
        assert float(jfric.simulate(problem).final.t) == 1.0
    with pytest.raises(jfric.ProblemError, match=r"the end at 1 s, which holds where no time="):
        jfric.simulate(problem, ts=jnp.asarray([2.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jfric.equilibria(problem)
        jfric.simulate(jfric.set_parameters(problem, {"time.end": "1 s"}))
        jfric.simulate(problem, end=1.0)


@pytest.mark.parametrize(
    ("dofs", "section", "element"),
    [(["u"], "mass", MASS), ([], "body", jfric.Body(1.0, 1.0))],
)
def test_a_negative_mass_is_named(dofs, section, element):
    problem = jfric.Problem(dofs, {section: element})
    negative = eqx.tree_at(lambda p: p.elements[section][section].m, problem, jnp.asarray(-100.0))
    with pytest.raises(jfric.ProblemError, match=rf"^{section}.m: found -100, must "):
        jfric.simulate(negative, end=1.0)


def test_a_force_field_is_a_function():
    with pytest.raises(jfric.ProblemError, match=r"^function: found dict, must be a function f\(t"):
        jfric.ForceField({"x": "-x"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(jfric.ProblemError, match=r"^function: found tuple, must be a function f\("):
        jfric.ForceField(("x",), ("-x",))  # pyright: ignore[reportArgumentType]
    with pytest.raises(jfric.ProblemError, match=r"^parameters: found tuple, must be numbers by"):
        jfric.ForceField(lambda t, q, v, p: -q, (1.0,))  # pyright: ignore[reportArgumentType]
