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
    modules = [jfric, *(m for m in vars(jfric).values() if isinstance(m, types.ModuleType))]
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
LONG = ("Body", "Pin", "fit", "continue_orbit", "periodic_orbit", "harmonic_balance")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in EXAMPLES]
)
def test_an_example_prints_what_it_says(name, shared):
    test, said = EXAMPLES[name], []
    test.globs = dict(shared)
    failed, _ = doctest.DocTestRunner().run(test, out=said.append)
    assert not failed, "".join(said)


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
