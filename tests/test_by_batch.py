"""One form of a computation for a single trajectory, another for a batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jfric.numerics.by_batch import Sizes, by_batch, with_rates

SIZES = Sizes(values=2, derivatives=3, sweep=0)


def _function(form: str, x, k, n):
    chosen = {"single": 1, "batched": 2}[form]
    return {"y": jnp.sin(x) * k, "n": n + 1, "chosen": jnp.asarray(chosen), "fixed": 3.0 + 0.0 * k}


def _either(x, k=2.0):
    given = (x, jnp.asarray(k), jnp.asarray(3))
    return by_batch(_function, ("single", *given), ("batched", *given), SIZES)


def _slope(x):
    found, slope = jax.jvp(_either, (x,), (jnp.ones_like(x),))
    return found["chosen"], slope["y"]


def test_a_batch_takes_the_other_form():
    assert int(_either(jnp.asarray(1.0))["chosen"]) == 1
    for size, chosen in ((1, 1), (2, 2)):
        x = jnp.linspace(0.1, 0.2, size)
        found = jax.jit(jax.vmap(_either))(x)
        np.testing.assert_array_equal(found["chosen"], chosen)
        np.testing.assert_allclose(found["y"], 2.0 * np.sin(x))
        np.testing.assert_array_equal(found["n"], 4)
    nested = jax.vmap(jax.vmap(_either))(jnp.ones((1, 3)))
    np.testing.assert_array_equal(nested["chosen"], 2)


@pytest.mark.parametrize(("size", "chosen"), [(2, 1), (3, 2)])
def test_derivatives_have_sizes_of_their_own(size, chosen):
    x = jnp.linspace(0.1, 0.3, size)
    for function in (jax.vmap(_slope), jax.jit(jax.vmap(_slope))):
        form, slope = function(x)
        np.testing.assert_array_equal(form, chosen)
        np.testing.assert_allclose(slope, 2.0 * np.cos(x))


def test_several_directions_are_no_batch():
    """``jacfwd`` of one trajectory takes the form for one; its values are no batch."""

    def both(p):
        found = _either(p[0], p[1])
        return found["y"], found["chosen"]

    first = jax.jacfwd(both, has_aux=True)
    y, form = first(jnp.array([1.0, 2.0]))
    assert int(form) == 1
    np.testing.assert_allclose(y, [2.0 * np.cos(1.0), np.sin(1.0)])
    second, form = jax.jacfwd(first, has_aux=True)(jnp.array([1.0, 2.0]))
    assert int(form) == 1
    expected = [[-2.0 * np.sin(1.0), np.cos(1.0)], [np.cos(1.0), 0.0]]
    np.testing.assert_allclose(second, expected, atol=1e-15)
    points = jnp.array([[1.0, 2.0], [0.5, 2.0], [0.2, 1.0]])
    second, form = jax.vmap(jax.jacfwd(first, has_aux=True))(points)
    np.testing.assert_array_equal(form, 2)
    np.testing.assert_allclose(second[0], expected, atol=1e-15)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_more_directions_than_one_program_takes(shape):
    """Seven in groups of three, of inputs of any shape."""
    x = jnp.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)

    def values(primals):
        return [jnp.sin(primals[0])]

    def both(count):
        def of(primals, rates):
            assert rates[0].shape == (count, *shape)
            assert count <= 3
            return values(primals), [jnp.cos(primals[0]) * rates[0]]

        return of

    rates = jnp.arange(7.0).reshape(7, *(1,) * len(shape)) + jnp.zeros(shape)

    def along(rate):
        return with_rates(values, both, [x], [rate], 3)

    found, moved = jax.vmap(along)(rates)
    np.testing.assert_allclose(found[0][0], np.sin(x))
    np.testing.assert_allclose(moved[0], np.cos(x) * rates)
