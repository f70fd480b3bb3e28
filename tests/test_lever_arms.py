"""The unit of a gap, a force and a law is that of what the direction measures: a lever arm with
its unit on an angle gives a length."""

import pytest
from test_bounded_input import refused

from jfric.files.assignments import apply_overrides
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.results.columns import force_unit
from jfric.results.signals import find_signal
from jfric.system.naming import path_dimension

ARM = """
dofs = {theta = "rotation", x = "translation"}
[time]
end = "1 s"
[mass.arm]
dof = "theta"
m = "0.5 kg*m^2"
[mass.slide]
dof = "x"
m = "1 kg"
[contact]
normal = {theta = "0.5 m"}
tangent = {theta = "200 mm", x = 1}
mu = 0.3
gap = "2 mm"
belt = "0.1 m/s"
[spring]
direction = {theta = "0.5 m"}
k = "2 kN/m"
x0 = "1 mm"
[[check]]
quantity = "lambda_n(0)"
expected = "0 N"
tolerance = 1e-9
"""


def test_a_gap_on_a_lever_is_a_length():
    config = loads(ARM)
    problem = config.problem
    contact = problem.elements["contact"]["contact"]
    assert float(contact.gap) == 0.002
    assert float(contact.normal.coefficients["theta"]) == 0.5
    assert force_unit(problem, "contact", "normal") == "N"
    assert force_unit(problem, "contact") == "N"
    assert find_signal(problem, "lambda_n").unit == "N"
    assert find_signal(problem, "slip").unit == "m/s"
    assert path_dimension(problem, "contact.gap").unit == "m"
    changed = apply_overrides(problem, ["contact.gap=3 mm"])
    assert float(changed.elements["contact"]["contact"].gap) == 0.003
    again = loads(dump(config))
    assert again.problem.elements["contact"]["contact"].normal.measures == "translation"
    assert dump(again) == dump(config)


def test_a_bare_number_on_an_angle_is_an_angle():
    text = ARM.replace('normal = {theta = "0.5 m"}', "normal = {theta = 0.5}")
    assert refused(text).startswith("contact.gap: found 'mm' (a length), expected an angle")
    problem = loads(
        text.replace('gap = "2 mm"', 'gap = "1 deg"').replace('"0 N"', '"0 N*m"')
    ).problem
    assert force_unit(problem, "contact", "normal") == "N m"
    assert force_unit(problem, "contact") == "N"


def test_a_lever_arm_that_is_a_shared_parameter():
    text = ARM.replace('normal = {theta = "0.5 m"}', 'normal = {theta = "$a"}')
    problem = loads(text + '[parameters]\na = "0.5 m"\n').problem
    assert force_unit(problem, "contact", "normal") == "N"
    assert refused(text + "[parameters]\na = 0.5\n").startswith("contact.gap: found 'mm'")


@pytest.mark.parametrize(
    ("coefficient", "sentence"),
    [
        ('"0.5 s"', "contact.normal.theta: found 's' (a time), expected a pure number such as 0.3"),
        ('"0.5 kN"', "contact.normal.theta: found 'kN' (a force), expected a pure number"),
    ],
)
def test_other_units(coefficient, sentence):
    assert refused(ARM.replace('"0.5 m"', coefficient, 1)).startswith(sentence)


MIXED = """
dofs = {x = "translation", phi = "rotation"}
[time]
end = "1 s"
[mass.a]
dof = "x"
m = "1 kg"
[mass.b]
dof = "phi"
m = "1 kg*m^2"
[contact]
normal = NORMAL
gap = "2 mm"
"""


def test_mixed_directions():
    for normal in ('{x = 1, phi = "0.5 m"}', '{x = "50 %", phi = "0.5 m"}', "{x = 1, phi = 0.5}"):
        problem = loads(MIXED.replace("NORMAL", normal)).problem
        assert force_unit(problem, "contact", "normal") == "N"
    for normal in ('{x = 1, phi = "0.5 m"}', '{x = "2 /m", phi = 1}'):
        text = MIXED.replace("NORMAL", normal).replace('"2 mm"', '"1 s"')
        assert "expected a" in refused(text)
    turned = loads(MIXED.replace("NORMAL", '{x = "2 /m", phi = 1}').replace("2 mm", "2 deg"))
    assert force_unit(turned.problem, "contact", "normal") == "N m"
    assert loads(dump(turned)).problem.elements["contact"]["contact"].normal.measures == "rotation"
    both = '{x = "2 /m", phi = "0.5 m"}'
    assert "give a length and an angle" in refused(MIXED.replace("NORMAL", both))
