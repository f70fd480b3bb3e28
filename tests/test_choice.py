"""Selections in one operation: equal to those of ``jnp.where``."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jfric.numerics.choice import select

VALUES = [
    *(0, 1.5, True, np.float64(2.0), np.arange(3.0), jnp.float32(1.0), jnp.int32(3)),
    *(jnp.arange(3.0), jnp.arange(3), jnp.ones((2, 3)), jnp.ones((2, 1)), jnp.asarray(2.0)),
    jnp.asarray([True, False, True]),
]
CONDITIONS = [
    *(True, np.bool_(True), np.array([True, False, True])),
    *(jnp.asarray([True, False, True]), jnp.asarray(False), jnp.ones((2, 1), bool)),
]


def test_choices_are_those_of_jax():
    for condition, x, y in itertools.product(CONDITIONS, VALUES, VALUES):
        found, expected = select(condition, x, y), jnp.where(condition, x, y)
        assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
        np.testing.assert_array_equal(found, expected)


def test_a_choice_is_a_single_selection_and_has_its_derivatives():
    x = jnp.array([-1.0, 2.0, 3.0])
    jaxpr = jax.make_jaxpr(lambda on, x, y: select(on, x, y))(x > 0, x, 2.0 * x)
    assert [e.primitive.name for e in jaxpr.jaxpr.eqns] == ["select_n"]
    slope = jax.jacfwd(lambda x: select(x > 0, x * x, 0.0))(x)
    np.testing.assert_array_equal(slope, np.diag([0.0, 4.0, 6.0]))
    mapped = jax.vmap(lambda on, x: select(on, x, -1.0), in_axes=(0, None))(x > 0, x)
    np.testing.assert_array_equal(mapped, np.where((x > 0)[:, None], x, -1.0))
