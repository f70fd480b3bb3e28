"""The least-squares problem of a robot's joints: inertias that exist for given laws of friction,
and the law of each joint for given inertias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from jfric.fits.robots.joint_laws import (
    BLOCKS,
    CONSTANT,
    DELAY,
    PLAIN,
    Law,
    Part,
    candidates,
    chosen,
    columns,
    left_out_errors,
    nearby,
    starting,
)
from jfric.fits.robots.joint_rows import Rows, existing, root_of
from jfric.fits.uncertainty.residual_series import bandwidth, long_run_covariance

#: Rounds in which the size of each joint's residuals is taken from the last.
ROUNDS = 3

#: Numbers of all links, and their derivatives by their own changes.
_bodies = jax.jit(jax.vmap(existing))
_slopes = jax.jit(jax.vmap(jax.jacfwd(existing, argnums=1)))


class Fitted(NamedTuple):
    """Least squares for given laws: inertial numbers (10 L,) and their derivatives by the changes
    of the inertias (10 L, 10 L); numbers of each joint's law, and their covariance; residuals
    (m, n) and their root mean squares (n,)."""

    inertia: np.ndarray
    slopes: np.ndarray
    numbers: list[np.ndarray]
    covariances: list[np.ndarray]
    residuals: np.ndarray
    sigma: np.ndarray


def law_columns(law: Law, rows: Rows, i: int) -> Float[np.ndarray, "m p"]:
    """Columns of the law of the joint ``i`` at the rows of a record."""
    found = rows.filtered(columns(law, rows.path[:, i], rows.speed[:, i]))
    for j, part in enumerate(law):
        if part == DELAY:
            found[:, j] = -rows.rates[:, i]
    return found


class Search:
    """Rows of all records, and what is found from them.

    ``links``: whose inertias are free; ``given`` (L, 10): their numbers in the problem; ``spread``:
    standard deviation of the changes of the inertias.
    """

    def __init__(self, rows: Sequence[Rows], links: Sequence[str], given, spread: float):
        self.rows, self.links, self.spread = rows, links, spread
        self.Y = np.concatenate([r.Y for r in rows])
        self.b = np.concatenate([r.tau - r.rest for r in rows])
        self.record = np.repeat(np.arange(len(rows)), [len(r.t) for r in rows])
        self.roots = np.stack([root_of(x) for x in given])
        ranges = [
            np.ptp(np.concatenate([r.path[:, i] for r in rows])) for i in range(self.b.shape[1])
        ]
        speeds = np.sqrt(np.mean(np.concatenate([r.speed for r in rows]) ** 2, axis=0))
        self.first = [starting(0.5 * x) for x in ranges]
        self.tried = [candidates(0.5 * x, v) for x, v in zip(ranges, speeds.tolist(), strict=True)]
        self._columns: dict[tuple[int, Part], np.ndarray] = {}

    def columns(self, i: int, law: Law) -> Float[np.ndarray, "m p"]:
        """Columns of the law of the joint ``i``."""
        new = [part for part in law if (i, part) not in self._columns]
        if new:
            found = np.concatenate([law_columns(tuple(new), r, i) for r in self.rows])
            self._columns |= {(i, part): found[:, j] for j, part in enumerate(new)}
        return np.stack([self._columns[i, part] for part in law], axis=1)

    def fit(self, laws: Sequence[Law]) -> Fitted:
        """Inertias that exist and numbers of the laws, by least squares."""
        C, parts = self._friction(laws)
        count = C.shape[2]
        x, sigma = np.zeros(self.Y.shape[2]), 0.1 * np.sqrt(np.mean(self.b**2, axis=0))
        for _ in range(ROUNDS):
            wide = np.concatenate([C, self.Y, self.b[..., None]], axis=2) / sigma[:, None]
            R: Any = np.linalg.qr(wide.reshape(-1, wide.shape[2]), mode="r")
            x = self._changes(R[count:, count:], x)
            inertia = self._inertia(x)
            right = R[:count, -1] - R[:count, count:-1] @ inertia
            c = np.linalg.lstsq(R[:count, :count], right, rcond=1e-12)[0]
            residuals = self.b - self.Y @ inertia - C @ c
            sigma = np.sqrt(np.mean(residuals**2, axis=0))
        slopes = self._slopes(x)
        covariance = self._covariance(C, slopes, residuals, sigma)
        own = [covariance[part, part] for part in parts]
        return Fitted(inertia, slopes, [c[part] for part in parts], own, residuals, sigma)

    def choose(
        self, i: int, laws: Sequence[Law], fitted: Fitted, factors: Sequence[float]
    ) -> tuple[Law, tuple[float, float, float]]:
        """The law of the joint ``i``, with the ``laws`` of the others: and root mean squares on
        parts left out, without friction, with Coulomb's and viscous friction, and with this law.
        Tried are all candidates, and the law so far with its lengths times ``factors``."""
        tried = list(dict.fromkeys([*self.tried[i], *nearby(laws[i], factors)]))
        known = list(dict.fromkeys(part for law in tried for part in law))
        C, _ = self._friction([() if k == i else law for k, law in enumerate(laws)])
        wide = np.concatenate([C, self.Y @ fitted.slopes], axis=2) / fitted.sigma[:, None]
        own = np.zeros((*self.b.shape, len(known)))
        own[:, i] = self.columns(i, tuple(known)) / fitted.sigma[i]
        target = (self.b - self.Y @ fitted.inertia) / fitted.sigma
        m, n = target.shape
        times = [np.flatnonzero(self.record == k) for k in range(len(self.rows))]
        blocks = [
            (block[:, None] * n + np.arange(n)).ravel()
            for t in times
            for block in np.array_split(t, BLOCKS)
        ]
        errors, numbers = left_out_errors(
            wide.reshape(m * n, -1),
            own.reshape(m * n, -1),
            target.ravel(),
            blocks,
            np.tile(np.arange(n) == i, m),
            [[known.index(part) for part in law] for law in tried],
            np.r_[np.full(C.shape[2], 1e-9), np.full(fitted.slopes.shape[0], self.spread**-2.0)],
        )
        allowed = [
            all(x >= 0.0 for part, x in zip(law, numbers_, strict=True) if part.resists)
            for law, numbers_ in zip(tried, numbers, strict=True)
        ]
        size = float(np.mean(self.b[:, i] ** 2) / fitted.sigma[i] ** 2)
        best = chosen(errors, [len(law) for law in tried], allowed, size)
        shown = (tried.index((CONSTANT,)), tried.index(PLAIN), best)
        none, plain, this = (fitted.sigma[i] * np.sqrt(errors[list(shown)].mean(axis=1))).tolist()
        return tried[best], (none, plain, this)

    def _friction(self, laws: Sequence[Law]) -> tuple[np.ndarray, list[slice]]:
        """Columns (m, n, p) of friction of all joints, and those of each."""
        ends = np.cumsum([len(law) for law in laws])
        parts = [slice(end - len(law), end) for end, law in zip(ends, laws, strict=True)]
        C = np.zeros((*self.b.shape, ends[-1]))
        for i, (law, part) in enumerate(zip(laws, parts, strict=True)):
            if law:
                C[:, i, part] = self.columns(i, law)
        return C, parts

    def _inertia(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(_bodies(self.roots, np.reshape(x, (-1, 10)))).ravel()

    def _slopes(self, x: np.ndarray) -> np.ndarray:
        from scipy.linalg import block_diag  # slow to import

        found: Any = block_diag(*np.asarray(_slopes(self.roots, np.reshape(x, (-1, 10)))))
        return found

    def _changes(self, R: np.ndarray, start: np.ndarray) -> np.ndarray:
        """Changes of the inertias that minimise ``|R [pi, -1]|^2 + |x/spread|^2``."""
        from scipy.optimize import least_squares  # slow to import

        def residuals(x):
            return np.r_[R[:, :-1] @ self._inertia(x) - R[:, -1], x / self.spread]

        def jacobian(x):
            rows = R[:, :-1] @ self._slopes(x)
            return np.concatenate([rows, np.eye(len(x)) / self.spread])

        found = least_squares(residuals, start, jacobian, max_nfev=200)  # pyright: ignore
        return found.x

    def _covariance(self, C, slopes, residuals, sigma) -> np.ndarray:
        """Covariance of the numbers of all laws, for residuals correlated in time, with the
        inertias uncertain."""
        rows = np.concatenate([C, self.Y @ slopes], axis=2) / sigma[:, None]
        scores = rows * (residuals / sigma)[..., None]
        count = C.shape[2]
        prior = np.diag(np.r_[np.zeros(count), np.full(slopes.shape[0], self.spread**-2.0)])
        flat = rows.reshape(-1, rows.shape[2])
        bread = np.linalg.pinv(flat.T @ flat + prior, rcond=1e-12, hermitian=True)
        middle = prior.copy()
        for i in range(scores.shape[1]):
            for k in range(len(self.rows)):
                own = scores[self.record == k, i]
                middle += long_run_covariance(own, bandwidth(own))
        return (bread @ middle @ bread)[:count, :count]
