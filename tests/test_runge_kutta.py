"""The tables of Runge-Kutta methods that the package keeps."""

from __future__ import annotations

import numpy as np
import pytest
from references.runge_kutta import NAMES, from_diffrax

from jfric.numerics.runge_kutta import METHODS, tables


@pytest.mark.parametrize("name", METHODS)
def test_kept_tables_are_those_of_diffrax(name: str) -> None:
    """Tableaus to the last bit, dense outputs to the rounding of their interpolation."""
    kept, found = tables(name)._asdict(), from_diffrax(name)
    assert kept.keys() == found.keys()
    dense = kept.pop("dense")
    np.testing.assert_allclose(dense, found["dense"], rtol=0, atol=1e-12 * np.abs(dense).max())
    for key, x in kept.items():
        np.testing.assert_array_equal(x, found[key])


def test_all_methods_of_diffrax_are_kept() -> None:
    assert set(METHODS) == set(NAMES)
