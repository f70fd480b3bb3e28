"""Numbers, units, sizes and values that once ran for ever, gave a traceback or passed in silence:
each gives its sentence before anything is computed."""

import math
import re
import signal
from contextlib import contextmanager

import jax
import pytest
from test_config_errors import GOOD

import jfric
from jfric.files.read_toml import loads
from jfric.system.units import DIMENSIONS, UnitError, to_si


@contextmanager
def within(seconds: int):
    """Fails what takes longer."""

    def stop(*_):
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.85e-3*sqrt(0.5)", 0.85e-3 * math.sqrt(0.5)),
        ("1/sqrt(2)", 1 / math.sqrt(2)),
        ("2*pi/3", 2 * math.pi / 3),
        ("2**3 - -1", 9.0),
        ("5 pi", 5 * math.pi),
        ("cos(0)", 1.0),
        ("1e-3", 1e-3),
    ],
)
def test_arithmetic_is_a_number(text, value):
    assert to_si(text, DIMENSIONS["length"] if "pi" not in text else None) == value
    with jax.enable_x64(False):
        assert to_si(text) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("5 m^999999999", "found the unknown unit 'm^999999999'"),
        ("5 m^9^9^9^9", "found the unknown unit"),
        ("5 m^(9^9^9)", "found the unknown unit"),
        ("5 m⁹⁹⁹⁹⁹⁹⁹", "found the unknown unit"),
        ("5 " + "m" * 10_000, "found the unknown unit"),
        ("1e999999999 t", "which is no finite number"),
        ("1e400", "which is no finite number"),
        ("9" * 5000, "which is no finite number"),
        ("9**9**9**9", "which is no quantity"),
        ("1/0", "which is no quantity"),
        ("sqrt(-1)", "which is no quantity"),
        ("(-8)**(1/3)", "which is no quantity"),
        ("$a**9**9**9", "'$a**9**9**9' has no finite value: '9 ** 9 ** 9'"),
        ("$a/0", "'$a/0' has no finite value: '$a / 0'"),
        ("$a + 1/(1 - 1)", "has no finite value: '1 / (1 - 1)'"),
        ("$a*" + "9" * 400, "has no finite value"),
        ("$a*" + "9" * 5000, "has 5003 characters, at most 1000 are allowed"),
        ("(" * 400 + "$a" + ")" * 400, "cannot read the expression"),
        ("-" * 400 + "$a", "has more than 100 operations"),
        ("$a" + "+1" * 400, "has more than 100 operations"),
        ("$a" + "+1" * 10_000, "has 20002 characters"),
        ("$a + _p_a", "but it holds '_p_a'"),
        ("_p_p + $p", "but it holds '_p_p'"),
        ("$a$b", "but it holds '$a$b'"),
        ("$a + True", "but it holds 'True'"),
    ],
)
def test_numbers_are_bounded_before_they_are_computed(text, sentence):
    with within(5), pytest.raises(UnitError) as caught:
        to_si(text, DIMENSIONS["mass"])
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


def test_whole_numbers_beyond_64_bits():
    value = jfric.Expression("$a*123456789012345678901234567890").value({"a": 2.0})
    assert value == 2.0 * 123456789012345678901234567890
    assert jfric.Expression("($a - 3)**2").value({"a": jax.numpy.array(1.0)}) == 4.0


def test_names_like_those_used_inside():
    text = GOOD.replace('"100 kg"', '"$p_ + $_p_p"') + "[parameters]\np_ = 1\n_p_p = 2\n"
    assert float(loads(text).problem.resolved().elements["mass"]["mass"].m) == 3.0


def refused(text: str) -> str:
    """The sentence for a file."""
    with within(10), pytest.raises(jfric.ProblemError) as caught:
        loads(text, "x.toml")
    assert "\n" not in str(caught.value)
    return re.sub(r"^x\.toml: ", "", str(caught.value))


@pytest.mark.parametrize(
    "nested",
    [
        "x = " + "[" * 600 + "]" * 600,
        "x = " + "{a = " * 600 + "1" + "}" * 600,
        "[" + ".".join("a" * 600) + "]\nb = 1",
        "\n".join(f"[{'.'.join('a' * i)}]" for i in range(1, 601)),
        '[load]\ndof = "u"\nF = ' + "{sum = [" * 600 + "1" + "]}" * 600,
    ],
)
def test_nested_tables(nested):
    assert "nested" in refused(f"{GOOD}\n{nested}\n")


def test_whole_numbers_of_a_file():
    assert refused(GOOD.replace('"100 kg"', "9" * 5000)).startswith("not valid TOML: ")
    assert "a number of 20000 bits" in refused(GOOD.replace('"100 kg"', "0x" + "f" * 5000))
