"""Laws of friction of a joint that a regression can tell apart, and which of them a joint wants."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

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
