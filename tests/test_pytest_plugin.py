"""The plugin of pytest, in sessions of its own."""

import tomllib
from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

OSCILLATOR = """
dofs = ["u"]
[time]
end = "2 s"
[mass.block]
dof = "u"
m = "2 kg"
[spring.wall]
dof = "u"
k = "8 N/m"
[initial.u]
q = "1 m"
"""
RIGHT = '[[check]]\nquantity = "u(1)"\nexpected = -0.4161468365471424\ntolerance = 1e-12\n'
WRONG = '[[check]]\nquantity = "u(1)"\nexpected = 0.5\ntolerance = 1e-3\nsource = "Euler, 1748"\n'


FRICTION = "[friction.floor]\ndof = 'u'\nmu = 0.1\nN = '1 N'\n[solver]\nmax_events = 1\n"

#: A test of somebody else, beside them.
PRECISION = """
def test_precision():
    import jax.numpy as jnp
    assert jnp.zeros(1).dtype == jnp.float32
"""


@pytest.fixture
def folder(pytester):
    files = {
        "system": OSCILLATOR + RIGHT + WRONG,
        "ends_early": OSCILLATOR.replace("2 s", "4 s") + FRICTION + RIGHT,
        "refused": OSCILLATOR.replace("2 kg", "2 s") + RIGHT,
        "without": OSCILLATOR,
        "other": "[tool]\nname = 'no system'\n",
    }
    pytester.makefile(".toml", **files)
    pytester.makepyfile(test_other=PRECISION)
    return pytester


def run(folder, *arguments):
    """A process of its own: JAX does not survive that its modules are taken away and come back."""
    result = folder.runpytest_subprocess("-p", "pytest_jfric", "-v", *arguments)
    result.stdout.no_fnmatch_line("*Traceback*")
    return result


def test_each_check_is_a_test_and_what_is_wrong_has_its_sentence(folder):
    result = run(folder, "--jfric", "--continue-on-collection-errors")
    result.assert_outcomes(passed=3, failed=3, errors=1)
    result.stdout.fnmatch_lines_random(
        [
            "system.toml::u(1) PASSED*",
            "system.toml::u(1) #2 FAILED*",
            "system.toml::trajectory PASSED*",
            "u(1) = -0.416146836547, expected 0.5",
            "error 0.916, allowed 0.001*",
            "source: Euler, 1748",
            "ends_early.toml::u(1) FAILED*",
            "ends_early.toml::trajectory FAILED*",
            "status: *",
            "*refused.toml: mass.block.m: *",
            "*::test_precision PASSED*",
        ]
    )


@pytest.mark.slow
def test_a_file_without_checks_that_is_named_is_refused(folder):
    result = run(folder, "--jfric", "without.toml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*without.toml: found no *check*, nothing to verify"])


@pytest.mark.slow  # its sibling: the option itself
def test_without_the_option_files_are_left_alone(folder):
    run(folder).assert_outcomes(passed=1)


def test_it_can_be_asked_for_twice():
    """By ``-p`` and by its entry point: with two names for one module pytest would not start."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"pytest_jfric": "pytest_jfric"}
