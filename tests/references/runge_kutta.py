"""Tables of explicit Runge-Kutta methods from diffrax; as a script it writes those that the package
keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

#: Names in diffrax.
NAMES = {"dopri8": "Dopri8", "dopri5": "Dopri5", "tsit5": "Tsit5"}
#: Entries of the dense output below this value are rounding errors.
NEGLIGIBLE = 1e-10


def from_diffrax(name: str) -> dict[str, Any]:
    """Fields of :class:`jfric.numerics.runge_kutta.Tables` for the method ``name``."""
    method: Any = getattr(diffrax, NAMES[name])()
    tableau, count = method.tableau, method.tableau.num_stages
    points = 0.5 * (1.0 - np.cos(np.pi * np.arange(count + 1) / count))
    # One component for each stage, with slope one at this stage.
    ends, slopes = jnp.asarray(tableau.b_sol), jnp.eye(count)
    zero, one = jnp.asarray(0.0), jnp.asarray(1.0)
    path = method.interpolation_cls(t0=zero, t1=one, y0=jnp.zeros(count), y1=ends, k=slopes)
    values = np.asarray(jax.vmap(path.evaluate)(jnp.asarray(points)))
    stages = np.zeros((count, count))
    for i, row in enumerate(tableau.a_lower, 1):
        stages[i, : len(row)] = row
    return {
        "nodes": np.concatenate([[0.0], tableau.c]),
        "stages": stages,
        "end": np.asarray(tableau.b_sol),
        "error": np.asarray(tableau.b_error),
        "dense": _coefficients(points, values)[1:],
        "order": int(method.order(None) or 1),
    }


def _coefficients(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Coefficients of the polynomials of lowest degree through ``values``, constant term first."""
    for degree in range(1, len(points)):
        series = chebyshev.chebfit(2.0 * points - 1.0, values, degree)
        missed = chebyshev.chebval(2.0 * points - 1.0, series).T - values
        if np.abs(missed).max() < NEGLIGIBLE * np.abs(values).max():
            break
    powers = [Chebyshev(c, [0.0, 1.0]).convert(kind=Polynomial).coef for c in series.T]
    found = np.array([np.pad(p, (0, degree + 1 - len(p))) for p in powers]).T
    return np.where(np.abs(found) < NEGLIGIBLE * np.abs(found).max(), 0.0, found)


def _written() -> None:
    """Write the tables of all methods, a row of numbers per line."""
    jax.config.update("jax_enable_x64", True)
    methods = []
    for name in NAMES:
        fields = []
        for key, x in from_diffrax(name).items():
            if np.ndim(x) == 2:
                rows = ",\n   ".join(json.dumps(row.tolist()) for row in np.asarray(x))
                fields.append(f'"{key}": [\n   {rows}]')
            else:
                fields.append(f'"{key}": {json.dumps(np.asarray(x).tolist())}')
        methods.append(f'"{name}": {{\n  ' + ",\n  ".join(fields) + "}")
    folder = Path(__file__).parents[2] / "jfric" / "numerics"
    text = "{" + ",\n ".join(methods) + "}\n"
    (folder / "runge_kutta.json").write_text(text, "utf-8")


if __name__ == "__main__":
    _written()
