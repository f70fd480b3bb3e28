"""Public docstrings: examples run and print what they say, first lines stand on their own, and
arguments and fields are described."""

from __future__ import annotations

import doctest
import enum
import inspect
import re
import types

import jax.numpy as jnp
import pytest

import jfric


def _public() -> dict[str, object]:
    """Classes and functions of the package and of its public submodules."""
    # Modules are loaded when they are first asked for.
    named = [getattr(jfric, name) for name in jfric.__all__]
    modules = [jfric, *(m for m in named if isinstance(m, types.ModuleType))]
    listed = [(m, name) for m in modules for name in getattr(m, "__all__", ())]
    found = {name: getattr(m, name) for m, name in listed}
    return {k: x for k, x in found.items() if inspect.isclass(x) or inspect.isfunction(x)}


PUBLIC = _public()


def _examples() -> dict[str, doctest.DocTest]:
    parser, found = doctest.DocTestParser(), {}
    for name, thing in PUBLIC.items():
        text = inspect.getdoc(thing) or ""
        made = parser.get_doctest(text, {}, name, None, None)
        if made.examples:
            found[name] = made
    return found


EXAMPLES = _examples()


@pytest.fixture(scope="module")
def shared() -> dict:
    """The names that examples may use: the problem of :class:`jfric.Problem` is one of them."""
    names = {"jfric": jfric, "jnp": jnp}
    for example in EXAMPLES["Problem"].examples:
        exec(compile(example.source, "Problem", "single"), names)
    return names


#: Examples that compile for longer than most.
LONG = (
    "Body", "Jenkins", "JenkinsCoupling", "Joint", "Lagrangian", "Moment", "PeriodicOrbit", "Pin",
    "RestStates", "State", "Velocity", "animate", "basins", "bifurcation_diagram", "bristle_bias",
    "check", "compare_laws", "continue_orbit", "continue_special", "design_experiment", "fit",
    "fit_batch", "fit_curve", "fit_hierarchical", "frequency_response", "harmonic_balance",
    "inverse_regression", "joint_friction", "limit_load", "lyapunov_exponent", "lyapunov_exponents",
    "minimise_peak", "observe", "optimise", "periodic_orbit", "plot_basins", "plot_friction_curve",
    "plot_mechanism", "plot_orbits", "plot_response", "plot_returns", "poincare_section",
    "smoothing_bias", "sweep", "verify", "continue_flutter", "flutter", "plot_flutter",
)  # fmt: skip


def _run_before(test: doctest.DocTest, names: dict) -> None:
    """Run the examples that an example follows, and those that these follow."""
    for before in re.findall(r"After the example of\s+:func:`jfric\.(\w+)`", test.docstring or ""):
        _run_before(EXAMPLES[before], names)
        for example in EXAMPLES[before].examples:
            exec(compile(example.source, before, "single"), names)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in EXAMPLES]
)
def test_an_example_prints_what_it_says(name, shared):
    test, said = EXAMPLES[name], []
    test.globs = dict(shared)
    _run_before(test, test.globs)
    failed, _ = doctest.DocTestRunner().run(test, out=said.append)
    assert not failed, "".join(said)


def _annotations(thing) -> str:
    """What a function returns, or a field holds, as its source says it."""
    if isinstance(thing, property):
        thing = thing.fget
    said = getattr(thing, "__annotations__", {}).get("return", "")
    return said if isinstance(said, str) else getattr(said, "__name__", "")


def _members(thing: type, source: str) -> str:
    """Annotations of the fields, properties and methods of a class that ``source`` uses."""
    said = {
        name: str(note)
        for c in thing.__mro__
        for name, note in vars(c).get("__annotations__", {}).items()
    } | {name: _annotations(inspect.getattr_static(thing, name)) for name in dir(thing)}
    return " ".join(said.get(name, "") for name in re.findall(r"\.(\w+)", source))


def _shown_by(name: str) -> set[str]:
    """Public classes that the example of ``name`` names, makes, or takes from what it makes."""
    source = "".join(re.sub(r'".*?"', "", e.source) for e in EXAMPLES[name].examples)
    own = PUBLIC[name]
    bases = " ".join(c.__name__ for c in own.__mro__) if inspect.isclass(own) else ""
    words, known = f"{source} {bases} {_annotations(own)}", set()
    while new := {w for w in re.findall(r"\w+", words) if w in PUBLIC} - known:
        known |= new
        things = [PUBLIC[n] for n in new]
        words = " ".join(
            _members(x, source) if inspect.isclass(x) else _annotations(x) for x in things
        )
    return known


@pytest.mark.parametrize("name", [n for n in PUBLIC if n not in EXAMPLES])
def test_what_has_no_example_names_one_that_shows_it(name):
    assert inspect.isclass(PUBLIC[name]), f"{name}: a function needs an executed example"
    text = " ".join((vars(PUBLIC[name]).get("__doc__") or "").split())
    found = re.search(r"Example: see :(?:func|class):`jfric\.(?:\w+\.)*(\w+)`", text)
    assert found, f"{name}: neither an executed example nor 'Example: see :func:`jfric.NAME`'"
    assert found[1] in EXAMPLES, f"{name}: {found[1]} has no executed example"
    assert name in _shown_by(found[1]), f"{name}: the example of {found[1]} does not show it"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_first_line_stands_on_its_own(name):
    thing = PUBLIC[name]
    first, *rest = (inspect.getdoc(thing) or "").split("\n")
    assert first.endswith((".", ":")), first
    assert not rest or not rest[0].strip(), f"{first} {rest[0]}"


def _commented(thing) -> set[str]:
    """Fields of a class with a comment for documentation above them, alone or as a group."""
    found, covered = set(), False
    for line in inspect.getsource(thing).splitlines():
        text = line.strip()
        field = re.match(r"(\w+):", text)
        covered = text.startswith("#:") or (covered and field is not None)
        if covered and field:
            found.add(field[1])
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_arguments_and_fields_are_described(name):
    thing = PUBLIC[name]
    if inspect.isclass(thing) and issubclass(thing, (enum.Enum, Exception)):
        return
    owners = thing.__mro__ if inspect.isclass(thing) else [thing]
    said = " ".join(inspect.getdoc(x) or "" for x in owners if x.__module__.startswith("jfric"))
    words = " ".join(re.findall(r"``([^`]+)``", said))
    known = _commented(thing) if inspect.isclass(thing) else set()
    missing = [
        p
        for p in inspect.signature(thing).parameters
        if p != "self" and p not in known and not re.search(rf"\b{p}\b", words)
    ]
    assert not missing
