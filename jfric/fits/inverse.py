"""Inverse-dynamics regression: parameters that enter the equation of motion linearly.

Where positions and forces are measured, no simulation is needed. With filtered positions,
velocities and accelerations every sample is one linear equation for the parameters ``theta``::

    M dv/dt - f(t, q, v) - R_T^T lambda_T  =  0,      A(q, v, dv/dt) theta = b(q, v, dv/dt, u)

The columns of ``A`` are derivatives of the left side by the parameters, found by automatic
differentiation; so any parameter that enters linearly can be estimated. Positions pass
a zero-phase low-pass filter and central differences; both sides pass the same zero-phase filter
before every ``decimate``-th row is kept, which removes noise without favouring a parameter.

Source: M. Gautier, "Dynamic identification of robots with power model", IEEE ICRA 1997;
A. Janot, P.-O. Vandanjon, M. Gautier, "A generic instrumental variable approach for industrial
robot identification", IEEE Trans. Control Systems Technology 22 (2014).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError, within
from jfric.fits.data.experiment import Experiment
from jfric.fits.force_balance import (
    SPOILT,
    at_even_steps,
    complete_positions,
    low_pass,
    slowest_sliding,
    smooth,
    unbalanced,
)
from jfric.fits.free import full_experiment
from jfric.fits.sampled_model import REFERENCE, in_loop
from jfric.fits.uncertainty.residual_series import long_run_covariance
from jfric.numerics.printing import Shown, printable
from jfric.system.expression import Expression
from jfric.system.features import CONSTANT, require_features
from jfric.system.model import build
from jfric.system.naming import find_path, parameters, set_parameters
from jfric.system.problem import Problem


@printable
@dataclass(frozen=True)
class Regression:
    """Estimates of a linear regression, and its equations.

    ``vector`` (P,): estimates of the parameters ``names`` [SI]. ``A`` (m, P), ``b`` (m,): rows
    kept; ``t`` (m,) [s] their times, one after the other for each degree of freedom and experiment
    (``groups`` (m,) numbers these). ``remarks``: what was done to the records. Example: see
    :func:`jfric.inverse_regression`.
    """

    names: tuple[str, ...]
    vector: np.ndarray
    A: np.ndarray
    b: np.ndarray
    t: np.ndarray
    groups: np.ndarray
    remarks: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """Estimates by name."""
        return dict(zip(self.names, self.vector.tolist(), strict=True))

    def _shown(self) -> Shown:
        title = f"Regression: {len(self.b)} rows, relative error {self.relative_error:.3g}"
        return Shown(
            f"{title}, condition {self.condition:.3g}",
            ("parameter", "estimate [SI]"),
            [(name, f"{value:.6g}") for name, value in self.values.items()],
            "\n".join(self.remarks),
        )

    @property
    def residuals(self) -> np.ndarray:
        """Residuals ``b - A theta`` (m,) [N or N m]."""
        return self.b - self.A @ self.vector

    @property
    def relative_error(self) -> float:
        """Norm of the residuals over that of the forces."""
        return float(np.linalg.norm(self.residuals) / np.linalg.norm(self.b))

    @property
    def condition(self) -> float:
        """Condition number of the columns, each scaled to length one."""
        return float(np.linalg.cond(self.A / np.linalg.norm(self.A, axis=0)))

    def covariance(self) -> np.ndarray:
        """Covariance (P, P) if the residuals were independent from row to row.

        Where the model lacks an effect they are not independent: see :meth:`hac`.
        """
        r = self.residuals
        return np.linalg.inv(self.A.T @ self.A) * (r @ r) / (r.size - len(self.names))

    def hac(self, lags: int) -> np.ndarray:
        """Covariance (P, P) for residuals that are correlated up to ``lags`` rows apart (Newey and
        West 1987). Groups are independent of each other."""
        scores = self.A * self.residuals[:, None]
        parts = [scores[self.groups == group] for group in np.unique(self.groups)]
        middle = sum(long_run_covariance(s, min(lags, len(s) - 1)) for s in parts)
        bread = np.linalg.inv(self.A.T @ self.A)
        return bread @ middle @ bread


def inverse_regression(
    problem: Problem,
    experiments: Experiment | Sequence[Experiment],
    names: Sequence[str],
    *,
    cutoff: float | None = None,
    decimate: int = 10,
    slowest: float = 0.0,
) -> Regression:
    """Least-squares estimates of the parameters ``names``, linear in the equation of motion.

    The ``experiments`` give the position of every degree of freedom in ``y`` and forces in ``u``;
    uneven steps are made even, which a remark says. A controller of the problem is left out, the
    measured force acts in its place. ``cutoff`` [Hz]: of the filter of the
    positions; by default a tenth of the sampling rate. ``decimate``: one of so many rows is kept.
    ``slowest`` [m/s or rad/s]: rows in which a contact slides more slowly are left out, because the
    contact may stick there.

    Other parameters keep the values of ``problem``. Raises :class:`jfric.ProblemError` for one that
    does not enter linearly, and where columns depend on each other. 3 kg and 0.5 N s/m::

        >>> block = jfric.Problem(
        ...     ["x"],
        ...     {
        ...         "mass": jfric.Mass("x", 1.0),
        ...         "damper": jfric.Damper("x", 1.0),
        ...         "load": jfric.Load("x", 0.0),
        ...     },
        ... )
        >>> t = jnp.arange(0.0, 6.0, 1e-3)
        >>> x, v, a = jnp.sin(2.0 * t), 2.0 * jnp.cos(2.0 * t), -4.0 * jnp.sin(2.0 * t)
        >>> data = jfric.Experiment(t, u={"load.F": 3.0 * a + 0.5 * v}, y={"x": x})
        >>> found = jfric.inverse_regression(block, data, ["mass.m", "damper.c"])
        >>> [round(float(value), 3) for value in found.vector]
        [3.0, 0.5]
    """
    problem = build(problem)
    given = [experiments] if isinstance(experiments, Experiment) else experiments
    chosen = [full_experiment(problem, e) for e in given]
    paths = tuple(_path(problem, name) for name in names)
    if not paths:
        raise ProblemError("names: found none, give parameters such as 'mass.m'")
    problem, chosen = in_loop(problem, chosen, closed=False)
    takes = CONSTANT | {"varying"}
    require_features(problem, "the regression of the equation of motion", takes)
    if problem.section("contact"):
        raise ProblemError(
            "contact: normal forces of unilateral contacts are not measured, the regression needs "
            "friction with a given normal force"
        )
    given, chosen = chosen, [at_even_steps(problem.dofs, e, "linear") for e in chosen]
    parts = [_equations(problem, e, paths, cutoff, decimate, slowest) for e in chosen]
    rows = [(A[:, i], b[:, i], t) for A, b, t in parts for i in range(len(problem.dofs))]
    A, b, t = (np.concatenate(column) for column in zip(*rows, strict=True))
    groups = np.repeat(np.arange(len(rows)), [len(row[2]) for row in rows])
    made = [e for e, before in zip(chosen, given, strict=True) if e is not before]
    remarks = tuple(dict.fromkeys(e.remarks[-1] for e in made))
    return Regression(paths, _least_squares(A, b, paths), A, b, t, groups, remarks)


def _path(problem: Problem, name: str) -> str:
    with within("names: ", KeyError):
        path = find_path(problem, name)
    value = parameters(problem)[path]
    if isinstance(value, Expression):
        shared = ", ".join(f"parameters.{r}" for r in value.references)
        raise ProblemError(f"names: {path} is computed as {value.text!r}; ask for {shared}")
    if np.ndim(value) != 0:
        raise ProblemError(f"names: {path} is a list of numbers, needed are single numbers")
    return path


def _least_squares(A: np.ndarray, b: np.ndarray, paths: Sequence[str]) -> np.ndarray:
    """Estimates of all parameters; raises if the motion does not determine them separately."""
    norms = np.linalg.norm(A, axis=0)
    unused = [path for path, norm in zip(paths, norms, strict=True) if norm == 0.0]
    if unused:
        raise ProblemError(f"{unused[0]}: the measured motion does not depend on it")
    scaled, _, rank, _ = np.linalg.lstsq(A / norms, b, rcond=1e-10)
    if rank < len(paths):
        direction = np.abs(np.linalg.svd(A / norms, full_matrices=False)[2][-1])
        raise ProblemError(
            f"names: only {rank} of {len(paths)} can be told apart from this motion: "
            + ", ".join(p for p, part in zip(paths, direction, strict=True) if part > 0.05)
            + " depend on each other"
        )
    return scaled / norms


def _equations(problem, experiment, paths, cutoff, decimate, slowest):
    """Rows (m, n, P), right sides (m, n) and times (m,) of one experiment."""
    measured = complete_positions(problem.dofs, experiment)
    dt = float(np.mean(np.diff(experiment.t)))
    rate = 1.0 / dt
    _, cutoff = low_pass(rate, cutoff)
    spoilt = round(SPOILT / cutoff * rate)
    if measured.shape[0] < 2 * spoilt + 20 * decimate:
        raise ProblemError(
            f"t: found {measured.shape[0]} samples, at least {2 * spoilt + 20 * decimate} are "
            f"needed for a cut-off of {cutoff:g} Hz and every {decimate}-th row"
        )
    q = smooth(measured, rate, cutoff)
    v = np.gradient(q, dt, axis=0)
    acceleration = np.gradient(v, dt, axis=0)
    forces = {k: x for k, x in (experiment.u or {}).items() if k != REFERENCE}
    arrays = (experiment.t, q, v, acceleration, forces)
    A, right, speed = _linear(problem, paths, *jax.tree.map(jnp.asarray, arrays))
    inside = slice(spoilt, measured.shape[0] - spoilt)
    A, right = (_thinned(np.asarray(x)[inside], decimate) for x in (A, right))
    times = experiment.t[inside][::decimate]
    fast = np.asarray(speed)[inside][::decimate] >= slowest
    return A[fast], right[fast], times[fast]


def _thinned(x: np.ndarray, factor: int) -> np.ndarray:
    from scipy import signal

    return x if factor == 1 else signal.decimate(x, factor, axis=0, zero_phase=True)


def _linear(problem, paths, t, q, v, acceleration, u: Mapping):
    """``A`` (m, n, P), ``b`` (m, n) and the lowest sliding speed (m,) of all samples."""

    def of(theta, *row):
        changed = set_parameters(problem, dict(zip(paths, theta, strict=True)))
        return unbalanced(changed, *row), slowest_sliding(problem, *row[:3])

    known = parameters(problem)
    theta = jnp.asarray([known[path] for path in paths])
    # A second point shows whether the derivative is constant.
    other = 1.3 * theta + 0.1

    def at(theta):
        derivative = jax.jacfwd(of, has_aux=True)
        A, speed = jax.vmap(lambda *x: derivative(theta, *x))(t, q, v, acceleration, u)
        left, _ = jax.vmap(lambda *x: of(theta, *x))(t, q, v, acceleration, u)
        return A, left, speed

    (A, left, speed), (A_other, _, _) = jax.jit(at)(theta), jax.jit(at)(other)
    change = jnp.max(jnp.abs(A - A_other), axis=(0, 1))
    size = jnp.max(jnp.abs(A), axis=(0, 1))
    bent = [p for p, c, s in zip(paths, change, size, strict=True) if not c <= 1e-9 * s + 1e-300]
    if bent:
        raise ProblemError(
            f"{bent[0]}: enters the equation of motion nonlinearly; fit it by simulation"
        )
    return A, A @ theta - left, speed
