"""Exact static condensation of a structure to the relative displacements of its contacts.

With ``r = W u`` (normals, then tangents) and the flexibility ``D = W K^-1 W^T``::

    K u = f + W^T lambda   =>   D^-1 r = D^-1 W K^-1 f + lambda

``D^-1`` is the Schur complement of ``K`` in coordinates of which ``r`` is a part. Where a body is
held by its contacts only, ``K`` is singular; with ``K + kappa W^T W`` in its place the reactions
become ``lambda + kappa r``, and ``D^-1 - kappa`` is the same Schur complement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float
from scipy.sparse.linalg import splu

from jfric.errors import ProblemError
from jfric.numerics.printing import printable
from jfric.structures.structure import Structure
from jfric.system.direction import vector
from jfric.system.elements import Contact, Load
from jfric.system.laws import Coulomb
from jfric.system.problem import Matrices, Problem, TimeSpan

#: Smallest pivot of a regular stiffness matrix, as a fraction of the largest.
SINGULAR = 1e-11


@printable
class CondensedStructure(eqx.Module):
    """A structure condensed to its contacts: ``S r = F^T a + lambda``.

    ``r`` (2m,) [m]: relative displacements of ``m`` contacts, gaps first; ``gap`` (m,) [m]: initial
    gaps; ``a`` (l,): load factors. Arrays are leaves of a PyTree.

    ``u = a @ free + (lambda + kappa r) @ influence`` are the displacements of the whole structure.
    Example: see :func:`jfric.condense`.
    """

    #: Schur complement [N/m].
    S: Float[Array, "r r"]
    #: Loads on the relative displacements, one row each.
    F: Float[Array, "l r"]
    gap: Float[Array, " m"]
    free: Float[Array, "l n"]
    influence: Float[Array, "r n"]
    #: Stiffness added in the contacts; zero where the bodies are held without them [N/m].
    kappa: Float[Array, ""]

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return self.gap.shape[0]

    def displacements(self, q, lambda_t, lambda_n, factors=None) -> Float[Array, " n"]:
        """Displacements (n,) of the whole structure in an equilibrium of :meth:`problem`."""
        factors = jnp.ones((self.F.shape[0],)) if factors is None else jnp.asarray(factors)
        pushed = jnp.concatenate([lambda_n, lambda_t]) + self.kappa * jnp.asarray(q)
        return factors @ self.free + pushed @ self.influence

    def problem(self, mu: float = 0.3, factors=None) -> Problem:
        """The static contact problem: degrees of freedom ``n01...`` (opening of a gap) and
        ``t01...`` (sliding), contacts ``c01...``, shared coefficient ``parameters.mu``, load
        factors ``load.<name>.F``."""
        factors = np.ones(self.F.shape[0]) if factors is None else np.asarray(factors, float)
        axes = relative_names(self.n_contacts)
        return Problem(
            axes,
            {
                "contact": contact_elements(self.gap),
                "load": {
                    f"load{i + 1}": Load(vector(dict(zip(axes, row, strict=True))), factor)
                    for i, (row, factor) in enumerate(zip(np.asarray(self.F), factors, strict=True))
                },
            },
            parameters={"mu": mu},
            matrices=Matrices(K=self.S),
            time=TimeSpan(1.0),
        )


def relative_names(contacts: int) -> list[str]:
    """Names of the relative displacements: ``n01`` ..., then ``t01`` ...."""
    width = max(2, len(str(contacts)))
    return [f"{kind}{i:0{width}d}" for kind in "nt" for i in range(1, contacts + 1)]


def contact_elements(gap, e: float = 0.0) -> dict[str, Contact]:
    """Contacts between the relative displacements, with the coefficient ``$mu``."""
    names = relative_names(len(gap))
    m = len(gap)
    return {
        f"c{n[1:]}": Contact(n, t, Coulomb("$mu"), gap=float(g), e=e)  # pyright: ignore[reportArgumentType]
        for n, t, g in zip(names[:m], names[m:], np.asarray(gap), strict=True)
    }


def condense(structure: Structure) -> CondensedStructure:
    """Condense ``structure`` to its contacts.

    Returns the condensed structure, whose :meth:`~CondensedStructure.problem` is an ordinary
    problem with two degrees of freedom for each contact. Raises :class:`jfric.ProblemError` where a
    body floats even if all contacts hold. One node pressed on a rigid floor::

        >>> import numpy as np
        >>> K, W_N, W_T = np.diag([2e6, 1e6]), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
        >>> pressed = jfric.Structure(K, W_N, W_T, np.array([[-100.0, 20.0]]), np.array([0.0]))
        >>> condensed = jfric.condense(pressed)
        >>> condensed.problem(mu=0.3).dofs
        {'n01': 'translation', 't01': 'translation'}
    """
    K: Any = sp.csc_matrix(structure.K)
    W: Any = sp.vstack([sp.csr_matrix(structure.W_N), sp.csr_matrix(structure.W_T)]).tocsr()
    kappa, solve = 0.0, _factorised(K)
    if solve is None:
        kappa = float(np.mean(K.diagonal()))
        solve = _factorised((K + kappa * (W.T @ W)).tocsc())
    if solve is None:
        raise ProblemError(
            "K: is singular even with all contacts closed and sticking; hold every body by "
            "supports, springs or contacts"
        )
    influence, free = solve(W.T.toarray()).T, solve(structure.loads.T).T
    D = W @ influence.T
    # In a direction in which both sides are held, the contact cannot move, whatever its stiffness.
    held = np.diagonal(D) <= 1e-14 * np.max(np.diagonal(D))
    D[held, held] = np.mean(np.diagonal(D))
    S = np.linalg.inv(0.5 * (D + D.T))
    S = 0.5 * (S + S.T)
    return CondensedStructure(
        S=jnp.asarray(S - kappa * np.eye(len(S))),
        F=jnp.asarray(free @ W.T @ S),
        gap=jnp.asarray(structure.gap),
        free=jnp.asarray(free),
        influence=jnp.asarray(influence),
        kappa=jnp.asarray(kappa),
    )


def _factorised(K: Any) -> Callable[[np.ndarray], np.ndarray] | None:
    """A function that applies ``K^-1`` to columns; None where ``K`` is singular."""
    try:
        factors = splu(K)
    except RuntimeError:
        return None
    pivots = np.abs(factors.U.diagonal())
    if pivots.min() <= SINGULAR * pivots.max():
        return None

    def solve(columns: np.ndarray) -> np.ndarray:
        if columns.shape[1] == 0:
            return np.zeros(columns.shape)
        x = factors.solve(np.ascontiguousarray(columns))
        return x + factors.solve(columns - K @ x)

    return solve
