"""Result of harmonic balance: periodic motions as harmonics, with a status for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Complex, Float, Int

from jfric.errors import ProblemError, require_one_of
from jfric.numerics.printing import printable
from jfric.results.status import AbstractOutcome

#: Number of phases at which extrema are searched, and of Newton steps from the best one.
PHASES, POLISH = 2048, 4


class BalanceStatus(AbstractOutcome):
    """Outcome of harmonic balance at one point::

    >>> jfric.BalanceStatus(2).message
    'a contact opens: harmonic balance knows no impacts'
    """

    OK = 0, "ok"
    #: Newton's method did not solve the equations.
    UNSOLVED = 1, "the equations were not solved"
    #: A rigid contact opens. The equations do not describe its impact when it closes again.
    OPENS = 2, "a contact opens: harmonic balance knows no impacts"
    #: A given normal force or friction limit is negative at some time.
    NEGATIVE_FORCE = 3, "a given normal force or friction limit is negative"


@printable
@dataclass(frozen=True)
class HarmonicBalance:
    """Periodic motions with ``H`` harmonics, one for each of ``p`` points, in their order.

    ``q(t) = Re sum_k Q_k exp(i k omega t)``, ``k = 0 .. H``, in the time of the problem's loads.
    Example: see :func:`jfric.harmonic_balance`.
    """

    #: Degrees of freedom, and contacts in the order of ``friction`` and ``normal``.
    axes: tuple[str, ...]
    contacts: tuple[str, ...]
    #: Path of the parameter that varies, and its values (p,) [SI]; the path is None for one point.
    path: str | None
    parameter: Float[np.ndarray, " p"]
    #: Base frequency (p,) [rad/s].
    omega: Float[np.ndarray, " p"]
    #: ``Q_k`` (p, H + 1, n) [m, rad]; likewise friction forces (p, H + 1, nt) and normal forces of
    #: the unilateral contacts (p, H + 1, nu) [N].
    coefficients: Complex[np.ndarray, "p h n"]
    friction: Complex[np.ndarray, "p h nt"]
    normal: Complex[np.ndarray, "p h nu"]
    #: Largest relative residual (p,) of the equations in the harmonics, and relative part of the
    #: forces in harmonics beyond ``H``, which nothing balances.
    residual: Float[np.ndarray, " p"]
    remainder: Float[np.ndarray, " p"]
    #: Part of the period in which the friction of each contact is below its limit (p, nt).
    stick: Float[np.ndarray, "p nt"]
    #: :class:`jfric.BalanceStatus` (p,), and steps of Newton's method.
    status: Int[np.ndarray, " p"]
    iterations: Int[np.ndarray, " p"]
    #: Values of the parameter (f,) at which a followed curve turns back, and amplitudes of all
    #: degrees of freedom there (f, n).
    folds: Float[np.ndarray, " f"]
    fold_amplitudes: Float[np.ndarray, "f n"]
    #: End of a followed curve: at ``"stop"``, back at ``"start"``, after ``"max_points"``, or
    #: ``"stalled"`` if even the shortest step had no solution.
    ended: Literal["stop", "start", "max_points", "stalled", "points"]

    @property
    def ok(self) -> Bool[np.ndarray, " p"]:
        """Whether each point (p,) may be used."""
        return self.status == int(BalanceStatus.OK)

    @property
    def harmonics(self) -> int:
        """Number ``H`` of harmonics."""
        return self.coefficients.shape[1] - 1

    def _dof(self, dof: str) -> int:
        require_one_of("dof", dof, self.axes, "there are")
        return self.axes.index(dof)

    def positions(self, dof: str, phases) -> Float[np.ndarray, "p m"]:
        """``q`` of ``dof`` [m, rad] at ``phases`` (m,) ``omega t`` [rad] of each point."""
        k = np.arange(self.harmonics + 1)
        waves = np.exp(1j * np.outer(k, np.asarray(phases, float)))
        return np.real(self.coefficients[:, :, self._dof(dof)] @ waves)

    def states(self, t: float = 0.0) -> Float[np.ndarray, "p x"]:
        """States ``(q, v)`` (p, 2n) of all points at the time ``t`` [s].

        They can start :func:`jfric.periodic_orbit`. For a linear system one harmonic is its linear
        response.
        """
        turning = 1j * self.omega[:, None] * np.arange(self.harmonics + 1)
        waves = self.coefficients * np.exp(turning * t)[:, :, None]
        q, v = waves.sum(axis=1), (turning[:, :, None] * waves).sum(axis=1)
        return np.real(np.concatenate([q, v], axis=1))

    def amplitude(self, dof: str, harmonic: int | None = None) -> Float[np.ndarray, " p"]:
        """Half of the distance between the largest and the smallest ``q`` of ``dof`` (p,) [m, rad];
        for one ``harmonic`` its ``|Q_k|``."""
        Q = self.coefficients[:, :, self._dof(dof)]
        if harmonic is not None:
            return np.abs(self._part(Q, harmonic))
        return half_range(Q)

    def phase(self, dof: str, harmonic: int = 1) -> Float[np.ndarray, " p"]:
        """Angle of ``Q_k`` of ``dof`` (p,) [rad]: ``|Q_k| cos(k omega t + phase)``."""
        return np.angle(self._part(self.coefficients[:, :, self._dof(dof)], harmonic))

    def rms(self, dof: str) -> Float[np.ndarray, " p"]:
        """Root mean square of ``q`` of ``dof`` over a period (p,) [m, rad]."""
        Q = self.coefficients[:, :, self._dof(dof)]
        return np.sqrt(np.abs(Q[:, 0]) ** 2 + 0.5 * np.sum(np.abs(Q[:, 1:]) ** 2, axis=1))

    def _part(self, Q: np.ndarray, harmonic: int) -> np.ndarray:
        if not 0 <= harmonic <= self.harmonics:
            raise ProblemError(
                f"harmonic: found {harmonic}, there are those from 0 to {self.harmonics}"
            )
        return Q[:, harmonic]


def half_range(Q: Complex[np.ndarray, "p h"]) -> Float[np.ndarray, " p"]:
    """Half of the distance between the largest and the smallest value of each motion."""
    k = np.arange(Q.shape[1])
    phases = 2.0 * np.pi * np.arange(PHASES) / PHASES
    sampled = np.real(Q @ np.exp(1j * np.outer(k, phases)))

    def extreme(tau):
        for _ in range(POLISH):
            wave = Q * np.exp(1j * np.outer(tau, k))
            slope, curvature = np.real(1j * k * wave).sum(1), np.real(-(k**2) * wave).sum(1)
            bends = np.abs(curvature) > 0.0
            move = np.where(bends, slope / np.where(bends, curvature, 1.0), 0.0)
            tau = tau - np.clip(move, -np.pi / PHASES, np.pi / PHASES)
        return np.real(Q * np.exp(1j * np.outer(tau, k))).sum(1)

    largest = np.maximum(sampled.max(1), extreme(phases[sampled.argmax(1)]))
    smallest = np.minimum(sampled.min(1), extreme(phases[sampled.argmin(1)]))
    return 0.5 * (largest - smallest)
