"""Reduction of a structure for dynamics: contact displacements kept, interior modes truncated.

With ``r = W u`` (the relative displacements of the contacts) the motion is taken as::

    u = Phi r + Psi eta,   Phi = K^-1 W^T (W K^-1 W^T)^-1,   K Psi = M Psi Omega^2 with W Psi = 0

``Phi``: static displacements by unit relative displacements of the contacts; ``Psi``: the lowest
modes of the structure with all contacts glued. The stiffness does not couple the two. Source:
R. R. Craig, M. C. C. Bampton, Coupling of substructures for dynamic analyses, AIAA Journal 6
(1968), in coordinates of the contacts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from jfric.errors import ProblemError
from jfric.numerics.printing import printable
from jfric.structures.condensation import condense, contact_elements, relative_names
from jfric.structures.structure import Structure
from jfric.system.direction import vector
from jfric.system.elements import Load
from jfric.system.problem import InitialState, Matrices, Problem, TimeSpan


@printable
class ReducedStructure(eqx.Module):
    """A structure reduced for dynamics: ``M x'' + K x = F^T a + lambda`` with ``x = (r, eta)``.

    ``r`` (2m,) [m]: relative displacements of the contacts, gaps first, with the initial gaps
    ``gap`` (m,) [m]; ``eta`` (k,): interior modes; ``a`` (l,): load factors. ``u = T x``.
    Example: see :func:`jfric.reduce_structure`.
    """

    M: Float[Array, "x x"]
    K: Float[Array, "x x"]
    F: Float[Array, "l x"]
    gap: Float[Array, " m"]
    T: Float[Array, "n x"]

    @property
    def axes(self) -> list[str]:
        """Names of the coordinates: ``n01...``, ``t01...``, then ``m01...`` for the modes."""
        m = self.gap.shape[0]
        k = self.K.shape[0] - 2 * m
        width = max(2, len(str(k)))
        return relative_names(m) + [f"m{i:0{width}d}" for i in range(1, k + 1)]

    def problem(
        self,
        mu: float,
        loads: Sequence[Any],
        *,
        time: float,
        damping: float = 0.0,
        e: float = 0.0,
        initial: Mapping[str, float] | None = None,
    ) -> Problem:
        """The dynamic problem: ``loads`` are the factors of the structure's loads, numbers or
        functions of time; ``damping`` [s]: ``C = damping K``; ``e``: restitution; ``initial``:
        positions by name."""
        axes = self.axes
        return Problem(
            axes,
            {
                "contact": contact_elements(self.gap, e),
                "load": {
                    f"load{i + 1}": Load(vector(dict(zip(axes, row, strict=True))), factor)
                    for i, (row, factor) in enumerate(zip(np.asarray(self.F), loads, strict=True))
                },
            },
            parameters={"mu": mu},
            matrices=Matrices(M=self.M, C=damping * self.K, K=self.K),
            initial={name: InitialState(q=q) for name, q in (initial or {}).items()},
            time=TimeSpan(time),
        )


def reduce_structure(
    structure: Structure, modes: int, *, mass_redistribution: bool = False
) -> ReducedStructure:
    """Keep the contacts and the ``modes`` lowest interior modes of ``structure``.

    ``mass_redistribution``: contact nodes are made massless, their mass goes to the other nodes
    (:func:`redistribute_mass`). One interior mode and one contact::

        >>> import numpy as np
        >>> K, M = np.diag([2.0, 1.0, 4.0, 9.0]), np.eye(4)
        >>> W_N, W_T = np.eye(4)[:1], np.eye(4)[1:2]
        >>> beam = jfric.Structure(K, W_N, W_T, np.zeros((1, 4)), np.array([0.1]), M=M)
        >>> reduced = jfric.reduce_structure(beam, modes=1)
        >>> np.diag(reduced.K).round(9).tolist()
        [2.0, 1.0, 4.0]
    """
    if structure.M is None:
        raise ProblemError("M: the structure has no mass matrix, dynamics need one")
    if mass_redistribution:
        structure = redistribute_mass(structure)
    condensed = condense(structure)
    r = 2 * structure.n_contacts
    whole = np.asarray(condensed.S) + float(condensed.kappa) * np.eye(r)
    Phi = np.asarray(condensed.influence).T @ whole
    Psi, squared = _glued_modes(structure, modes)
    T = np.concatenate([Phi, Psi], axis=1)
    M = T.T @ (structure.M @ T)
    K = np.zeros((r + modes, r + modes))
    K[:r, :r] = np.asarray(condensed.S)
    K[r:, r:] = np.diag(squared)
    return ReducedStructure(
        M=jnp.asarray(0.5 * (M + M.T)),
        K=jnp.asarray(K),
        F=jnp.asarray(structure.loads @ T),
        gap=jnp.asarray(structure.gap),
        T=jnp.asarray(T),
    )


def _glued_modes(structure: Structure, modes: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest modes (n, k) with unit modal mass and no relative displacement, and ``omega^2``."""
    n = structure.K.shape[0]
    W: Any = sp.vstack([sp.csr_matrix(structure.W_N), sp.csr_matrix(structure.W_T)]).tocsr()
    W = W[np.flatnonzero(np.diff(W.indptr))]
    if not 0 <= modes < n - W.shape[0]:
        raise ProblemError(f"modes: found {modes}, must lie between 0 and {n - W.shape[0] - 1}")
    if modes == 0:
        return np.zeros((n, 0)), np.zeros(0)
    scale = float(np.mean(structure.K.diagonal()))
    solve = splu(sp.bmat([[structure.K, scale * W.T], [scale * W, None]]).tocsc())

    def constrained(b: np.ndarray) -> np.ndarray:
        return solve.solve(np.concatenate([b.ravel(), np.zeros(W.shape[0])]))[:n]

    inverse: Any = LinearOperator((n, n), matvec=constrained)  # pyright: ignore[reportCallIssue]
    start = constrained(np.ones(n))
    squared, Psi = eigsh(structure.K, modes, structure.M, sigma=0.0, OPinv=inverse, v0=start)
    order = np.argsort(squared)
    squared, Psi = squared[order], Psi[:, order]
    mass = np.sqrt(np.einsum("ij,ij->j", Psi, structure.M @ Psi))
    return Psi / mass, squared


def redistribute_mass(structure: Structure) -> Structure:
    """The ``structure`` with a diagonal mass matrix in which contact nodes have no mass.

    In each body and direction the masses of the other nodes change as little as possible such
    that mass, centre and moment of inertia stay. Source: H. B. Khenous, P. Laborde, Y. Renard, Mass
    redistribution method for finite element contact problems in elastodynamics, Eur. J. Mech.
    A/Solids 27 (2008).
    """
    if structure.nodes is None or structure.dofs is None or structure.body is None:
        raise ProblemError("nodes: mass redistribution needs the coordinates of the nodes")
    lumped = np.asarray(structure.M.sum(axis=1)).ravel()
    massless = np.zeros(lumped.size, bool)
    massless[structure.contact_dofs] = True
    result = np.where(massless, 0.0, lumped)
    for body in np.unique(structure.body):
        for axis in range(structure.dofs.shape[1]):
            chosen = (structure.body == body) & (structure.dofs[:, axis] >= 0)
            dofs, place = structure.dofs[chosen, axis], structure.nodes[chosen]
            kept = ~massless[dofs]
            shape = np.stack([np.ones(len(dofs)), *place.T, np.sum(place**2, axis=1)])
            missing = shape[:, ~kept] @ lumped[dofs[~kept]]
            weight = lumped[dofs[kept]]
            share = np.linalg.lstsq((shape[:, kept] * weight) @ shape[:, kept].T, missing)[0]
            result[dofs[kept]] += weight * (share @ shape[:, kept])
    if np.any(result < 0):
        raise ProblemError("M: too few nodes are left to carry the mass of the contact nodes")
    return replace(structure, M=sp.diags(result).tocsc())
