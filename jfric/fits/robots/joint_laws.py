"""Laws of friction of joints that a regression can tell apart, which of them each joint wants, and
inertias that exist for given laws.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float

from jfric.fits.robots.joint_rows import Rows, existing, root_of
from jfric.fits.uncertainty.residual_series import bandwidth, long_run_covariance
from jfric.system.bristle import Dahl
from jfric.system.elements import Friction
from jfric.system.laws import Stribeck
from jfric.system.line_elements import Damper, Load

#: Lengths over which pre-sliding friction yields, in parts of half the range of the joint.
LENGTHS = (2.5e-4, 1e-3, 5e-3, 2.5e-2, 1e-1)
#: Stribeck velocities, in parts of the root mean square of the velocity.
SLOW = (0.05, 0.2)
#: Part by which mean squares may differ that count as equal.
EQUAL = 0.005
#: Part of the torque that may stay unexplained by any law.
SMALL = 1e-4
#: Parts of a record that are left out in turn.
BLOCKS = 6


class Part(NamedTuple):
    """One column of a joint's torque: its word, and the length [rad or m] or velocity of it."""

    word: str
    scale: float = 0.0

    @property
    def resists(self) -> bool:
        """Whether the number of the column may not be negative."""
        return self.word not in ("constant", "delay")


Law = tuple[Part, ...]

CONSTANT, DELAY = Part("constant"), Part("delay")
VISCOUS, COULOMB = Part("viscous"), Part("coulomb")
PLAIN = (CONSTANT, VISCOUS, COULOMB)
#: Parts that are one element with true stick.
DRY = ("coulomb", "stribeck")
#: In words, as tables show them.
WORDS = {
    "viscous": "viscous",
    "coulomb": "Coulomb",
    "stribeck": "Stribeck",
    "dahl": "pre-sliding",
    "delay": "delay",
    "constant": "constant",
}


def described(law: Law) -> str:
    """The law in words, such as ``"viscous, pre-sliding (2)"``."""
    counts: dict[str, int] = {}
    for part in law:
        if part.word != "constant":
            counts[part.word] = counts.get(part.word, 0) + 1
    return ", ".join(WORDS[w] + (f" ({n})" if n > 1 else "") for w, n in counts.items()) or "none"


def starting(half_range: float) -> Law:
    """The law with which the search begins: pre-sliding friction over a short and a long way."""
    return (
        CONSTANT,
        VISCOUS,
        Part("dahl", LENGTHS[1] * half_range),
        Part("dahl", LENGTHS[-1] * half_range),
    )


def candidates(half_range: float, speed: float) -> list[Law]:
    """Laws that are tried, for a joint with half the range [rad or m] and the mean speed."""
    lengths = [x * half_range for x in LENGTHS]
    dry: list[Law] = [(), (COULOMB,)]
    dry += [(COULOMB, Part("stribeck", x * speed)) for x in SLOW]
    dry += [tuple(Part("dahl", x) for x in pair) for pair in itertools.combinations(lengths, 2)]
    dry += [(Part("dahl", x),) for x in lengths]
    found: list[Law] = [(CONSTANT, *viscous, *x) for x in dry for viscous in ((), (VISCOUS,))]
    return found + [(*x, DELAY) for x in found]


def nearby(law: Law, factors: Sequence[float]) -> list[Law]:
    """The law with its lengths and velocities times the ``factors``, in all combinations."""
    choices = [
        [Part(word, scale * x) for x in factors] if scale else [Part(word)] for word, scale in law
    ]
    return list(itertools.product(*choices))


def columns(law: Law, path, speed) -> Float[np.ndarray, "s p"]:
    """Columns of all parts but the delay at samples of one joint."""
    side = np.sign(speed)
    found = []
    for word, scale in law:
        if word == "dahl":
            found.append(bent(path, scale))
        elif word == "stribeck":
            found.append(side * np.exp(-((speed / scale) ** 2)))
        elif word in ("constant", "delay"):
            found.append(np.ones_like(speed))
        else:
            found.append(speed if word == "viscous" else side)
    return np.stack(found, axis=1)


def bent(path: Float[np.ndarray, " s"], length: float) -> Float[np.ndarray, " s"]:
    """The state ``z' = (v - |v| z)/length`` of Dahl's bristle along a path, from rest."""
    moves = np.diff(path)
    sides, left = np.sign(moves), np.exp(-np.abs(moves) / length)
    z, last = np.zeros_like(path), 0.0
    for k, (side, kept) in enumerate(zip(sides.tolist(), left.tolist(), strict=True), start=1):
        last = side + (last - side) * kept
        z[k] = last
    return z


def chosen(
    errors: Float[np.ndarray, "c b"], sizes: Sequence[int], allowed: Sequence[bool], size: float
) -> int:
    """The candidate with fewest columns among those nearly as good as the best on parts left out.

    ``errors``: mean square of each candidate on each part. Nearly: within the part ``EQUAL``, or
    within what ``SMALL`` of a torque of the mean square ``size`` is.
    """
    mean = np.where(allowed, errors.mean(axis=1), np.inf)
    good = mean <= (1.0 + EQUAL) * mean.min() + SMALL**2 * size
    return min(np.flatnonzero(good).tolist(), key=lambda c: (sizes[c], mean[c]))


def left_out_errors(
    common: Float[np.ndarray, "m k"],
    friction: Float[np.ndarray, "m p"],
    y: Float[np.ndarray, " m"],
    blocks: Sequence[np.ndarray],
    judged: Bool[np.ndarray, " m"],
    laws: Sequence[list[int]],
    ridge: Float[np.ndarray, " k"],
) -> tuple[Float[np.ndarray, "c b"], list[np.ndarray]]:
    """Mean squares of each law on the rows ``judged`` of each of the ``blocks`` left out, and its
    numbers from all rows.

    ``common``: columns of every law, whose numbers ``ridge`` draws to zero; ``laws``: columns of
    ``friction`` of each.
    """
    errors, numbers = np.empty((len(laws), len(blocks))), []
    own = np.column_stack([friction, y])
    for k, block in enumerate([*blocks, np.arange(0)]):
        used = np.ones(len(y), bool)
        used[block] = False
        # What the common columns explain is taken out, with their numbers from the rows used.
        gram = common[used].T @ common[used] + np.diag(ridge)
        rest = own - common @ np.linalg.solve(gram, common[used].T @ own[used])
        product = own[used].T @ rest[used]
        left = rest[block[judged[block]]] if k < len(blocks) else rest[:0]
        for c, law in enumerate(laws):
            theta = _solved(product[np.ix_(law, law)], product[law, -1])
            if k < len(blocks):
                errors[c, k] = np.mean((left[:, -1] - left[:, law] @ theta) ** 2)
            else:
                numbers.append(theta)
    return errors, numbers


def _solved(G: np.ndarray, g: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.maximum(np.diag(G), 1e-300))
    return np.linalg.lstsq(G / scale / scale[:, None], g / scale, rcond=1e-10)[0] / scale


class Found(NamedTuple):
    """Elements with a law, by section and name, and the numbers of each path of a parameter: its
    weights (p,) of the numbers of the law's parts."""

    elements: dict[tuple[str, str], Any]
    weights: dict[str, np.ndarray]


def elements_of(joint: str, law: Law, numbers: np.ndarray) -> Found:
    """Elements of a problem with the law of ``joint``."""
    found = Found({}, {})
    count = itertools.count(1)
    for part, x, unit in zip(law, numbers.tolist(), np.eye(len(law)), strict=True):
        h = part.scale
        if part.word == "constant":
            place = "load", f"{joint}_offset", "F"
            element, unit = Load(joint, -x), -unit
        elif part.word == "viscous":
            place, element = ("damper", joint, "c"), Damper(joint, x)
        elif part.word == "dahl":
            place = "dahl", f"{joint}_{next(count)}", "F_c"
            element = Dahl(joint, sigma=x / h, F_c=x)
        else:
            continue
        found.elements[place[:2]] = element
        found.weights[".".join(place)] = unit
    dry = {part.word: k for k, part in enumerate(law) if part.word in DRY}
    if dry:
        _add_dry(found, joint, law, numbers, dry)
    return found


def _add_dry(found: Found, joint: str, law: Law, numbers, at: Mapping[str, int]) -> None:
    unit, path, limit = np.eye(len(law)), f"friction.{joint}", float(numbers[at["coulomb"]])
    element = Friction(joint, limit=limit)
    weights = {f"{path}.limit": unit[at["coulomb"]]}
    if "stribeck" in at:
        k = at["stribeck"]
        curve = Stribeck(mu_s=limit + float(numbers[k]), mu_d=limit, v_s=law[k].scale)
        element = Friction(joint, law=curve, limit=1.0)
        weights = {
            f"{path}.mu_d": unit[at["coulomb"]],
            f"{path}.mu_s": unit[at["coulomb"]] + unit[k],
        }
    found.elements["friction", joint] = element
    found.weights.update(weights)


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
