"""Functions of positions evaluated together: values, order and derivatives of each alone."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jfric.system.joint_equations import Apart, Turned
from jfric.system.places import Line, Place
from jfric.system.polygons import CircleGap, LineGap
from jfric.system.position_functions import together
from jfric.system.state_function import state_function

X, Y = jnp.eye(2)


def _places(count):
    rows = [None, *(tuple(range(3 * i, 3 * i + 3)) for i in range(count))]
    # The second body's degrees of freedom are out of order.
    rows[2] = (5, 3, 4)
    return [Place(jnp.array([0.3 + 0.1 * i, -0.2 * i]), row) for i, row in enumerate(rows)]


def _functions(places):
    ground, first, second, third = places[:4]
    line = Line(ground, None)
    return [
        Apart(first, second, X),
        LineGap(third, line, jnp.array(0.1), jnp.array(0.0)),
        Apart(ground, first, X),
        Apart(second, third, Y),
        lambda t, q: q[0] * q[4] - 0.5 * t * t,
        Apart(first, third, Y),
        Turned(first, second, (jnp.array(1.0), jnp.array(-2.0))),
        LineGap(first, line, jnp.array(0.2), jnp.array(0.1)),
        LineGap(third, Line(second, None), jnp.array(0.2), jnp.array(0.1)),
        LineGap(first, Line(third, None), jnp.array(0.1), jnp.array(0.3)),
        CircleGap(first, second, jnp.array(0.1), jnp.array(0.2), jnp.array(0.0), False),
        *(state_function(text, tuple("abcdefghi"), {"k": jnp.array(1.7)}) for text in TEXTS),
    ]


#: Two of one form, with other quantities and numbers.
TEXTS = ("sin(a - k)*c^2 + 0.3*t", "sin(e - 2*k)*a^2 + k*t", "b^3 - k", "d*exp(-0.1*g)")


@pytest.mark.slow
def test_values_and_derivatives_are_those_of_each_alone():
    functions = _functions(_places(3))
    several = together(functions, 9)
    rng = np.random.default_rng(1)
    t, (q, v) = jnp.array(0.7), jnp.asarray(rng.normal(size=(2, 9)))
    along = (jnp.ones(()), v)
    found = jax.jit(lambda *x: several.at(*x))(t, q, v)
    for i, g in enumerate(functions):
        assert abs(found.value[i] - g(t, q)) < 1e-15
        np.testing.assert_allclose(found.W[i], jax.grad(g, argnums=1)(t, q), atol=1e-15)
        at_rest = jax.grad(g, argnums=0)(t, q)
        np.testing.assert_allclose(found.rate[i], at_rest, atol=1e-15)
        rates = lambda t, q, g=g: jax.jvp(g, (t, q), along)[1]  # noqa: E731
        np.testing.assert_allclose(
            found.bias[i], jax.jvp(rates, (t, q), along)[1], atol=1e-14, err_msg=f"{i}"
        )


def test_the_program_does_not_grow_with_the_number_of_pins():
    def length(count):
        places = _places(count)
        pins = [Apart(a, b, e) for a, b in itertools.pairwise(places[1:]) for e in (X, Y)]
        several = together(pins, 3 * count)
        jaxpr = jax.make_jaxpr(several.at)(0.0, *jnp.zeros((2, 3 * count)))
        return sum(e.primitive.name not in _PICKING for e in jaxpr.jaxpr.eqns)

    assert length(8) == length(3)


#: What brings the positions of each body to its row.
_PICKING = {"slice", "squeeze", "broadcast_in_dim", "concatenate", "gather", "stack", "jit", "pjit"}


@pytest.mark.parametrize("inside", [False, True])
def test_circles_touch_where_their_distance_less_the_radii_is_minus_the_gap(inside):
    small, large, gap = 0.1, 0.4, 0.05
    point, circle = Place(jnp.zeros(2), (0, 1, 2)), Place(jnp.zeros(2), None)
    found = CircleGap(point, circle, *map(jnp.array, (small, large, gap)), inside)
    touching = large - small + gap if inside else large + small - gap
    for distance in (touching, touching + 0.02):
        at = jnp.array([0.6 * distance, 0.8 * distance, 0.3])
        way = (touching - distance) * (1.0 if inside else -1.0)
        assert jnp.abs(found(0.0, at) - way) < (1e-3 if distance != touching else 1e-15)
