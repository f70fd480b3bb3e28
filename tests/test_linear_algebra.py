"""Small dense linear algebra beside LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jfric.numerics.linear_algebra import ROTATED, determinant_sign, singular_values
from jfric.system.mechanics import inverse_of_mass

RNG = np.random.default_rng(7)


def full(m):
    return RNG.normal(size=(m, m))


def rank_deficient(m):
    half = max(1, m // 2)
    return RNG.normal(size=(m, half)) @ RNG.normal(size=(half, m))


def badly_scaled(m):
    return np.diag(10.0 ** RNG.uniform(-8.0, 0.0, m)) @ RNG.normal(size=(m, m))


def repeated(m):
    """Equal singular values, one of them zero."""
    return np.eye(m)[RNG.permutation(m)] * np.r_[0.0, np.ones(m - 1)]


@pytest.mark.parametrize("m", [1, 2, 5, 12, ROTATED + 1])
def test_small_decompositions(m):
    a = np.stack([make(m) for make in (full, rank_deficient, badly_scaled, repeated)])
    u, values, vt = jax.jit(jax.vmap(singular_values))(a)
    size = np.linalg.norm(a, axis=(1, 2))[:, None, None]
    assert np.all(np.abs(u * values[:, None] @ vt - a) <= 1e-14 * m * size)
    assert np.all(np.abs(vt @ vt.transpose(0, 2, 1) - np.eye(m)) <= 1e-14 * m)
    expected = np.linalg.svd(a, compute_uv=False)
    np.testing.assert_allclose(
        np.sort(values)[:, ::-1], expected, rtol=0, atol=1e-14 * m * size.max()
    )
    sign = jax.jit(jax.vmap(determinant_sign))(a)
    regular = [0, 2] if m > 1 else [0, 1, 2]
    np.testing.assert_array_equal(sign[np.array(regular)], np.linalg.slogdet(a)[0][regular])


def test_a_zero_matrix_has_no_singular_value():
    u, values, vt = singular_values(jnp.zeros((3, 3)))
    assert not np.any(values)
    np.testing.assert_array_equal(np.abs(vt), np.eye(3))
    assert determinant_sign(jnp.zeros((3, 3))) == 0
    assert np.all(np.isfinite(u))


@pytest.mark.parametrize("size", [6, 9, ROTATED])
def test_inverses_of_masses_call_no_library(size):
    """On one processor, large programs with calls of LAPACK end with an error (jaxlib 0.10.1): that
    of a driven slider-crank did."""
    a = np.random.default_rng(size).normal(size=(size, size))
    mass = jnp.asarray(a @ a.T + np.eye(size))
    assert "lapack" not in jax.jit(inverse_of_mass).lower(mass).as_text()
    np.testing.assert_allclose(inverse_of_mass(mass) @ mass, np.eye(size), atol=1e-11)
