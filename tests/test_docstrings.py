"""Examples in public docstrings run and print what they say; the first lines stand on their own."""

from __future__ import annotations

import doctest
import inspect

import jax.numpy as jnp
import pytest

import jfric


def _examples() -> dict[str, doctest.DocTest]:
    parser, found = doctest.DocTestParser(), {}
    for name in jfric.__all__:
        text = inspect.getdoc(getattr(jfric, name)) or ""
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


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_says(name, shared):
    test, said = EXAMPLES[name], []
    test.globs = dict(shared)
    failed, _ = doctest.DocTestRunner().run(test, out=said.append)
    assert not failed, "".join(said)


DESCRIBED = {
    name: thing
    for name in jfric.__all__
    if inspect.isclass(thing := getattr(jfric, name)) or inspect.isfunction(thing)
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_first_line_stands_on_its_own(name):
    thing = DESCRIBED[name]
    first, *rest = (inspect.getdoc(thing) or "").split("\n")
    assert first.endswith((".", ":")), first
    assert not rest or not rest[0].strip(), f"{first} {rest[0]}"
