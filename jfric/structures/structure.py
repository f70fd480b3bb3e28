"""A linear structure with pairs of nodes in contact, as matrices."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from jfric.errors import ProblemError
from jfric.numerics.printing import printable


@printable
@dataclass(frozen=True)
class Structure:
    """Structure ``M u'' + K u = f + W_N^T lambda_N + W_T^T lambda_T`` with ``m`` contacts.

    ``u`` (n,) displacements of the free degrees of freedom [m], ``K`` [N/m] and ``M`` [kg] (n, n)
    sparse, ``loads`` (l, n) [N]: one row for each load. Rows of ``W_N`` and ``W_T`` (m, n): the gap
    is ``gap + W_N u``, the sliding displacement ``W_T u``. ``nodes`` (k, 2) and ``dofs`` (k, 2),
    where known: coordinates of the nodes and their degrees of freedom in ``u``, -1 where held;
    ``contact_dofs``: degrees of freedom that belong to contact nodes; ``body`` (k,): body of each
    node.

    One degree of freedom on a spring of 2 N/m above a rigid floor, 0.1 m away::

        >>> import numpy as np
        >>> one = np.eye(1)
        >>> beam = jfric.Structure(2.0 * one, one, 0.0 * one, np.array([[-1.0]]), np.array([0.1]))
        >>> beam.gap.tolist()
        [0.1]
    """

    K: Any
    W_N: Any
    W_T: Any
    loads: np.ndarray
    gap: np.ndarray
    M: Any = None
    nodes: np.ndarray | None = None
    dofs: np.ndarray | None = None
    body: np.ndarray | None = None

    def __post_init__(self):
        n = self.K.shape[0]
        for name in ("K", "M"):
            matrix = getattr(self, name)
            if matrix is not None and matrix.shape != (n, n):
                raise ProblemError(f"{name}: found shape {matrix.shape}, needed is ({n}, {n})")
        m = self.W_N.shape[0]
        for name in ("W_N", "W_T"):
            matrix = getattr(self, name)
            if matrix.shape != (m, n):
                raise ProblemError(f"{name}: found shape {matrix.shape}, needed is ({m}, {n})")
        if self.loads.ndim != 2 or self.loads.shape[1] != n:
            raise ProblemError(f"loads: found shape {self.loads.shape}, needed are rows of {n}")
        if self.gap.shape != (m,):
            raise ProblemError(f"gap: found shape {self.gap.shape}, needed is ({m},)")

    @property
    def n_contacts(self) -> int:
        """Number of pairs in contact."""
        return self.W_N.shape[0]

    @property
    def contact_dofs(self) -> np.ndarray:
        """Degrees of freedom that take part in a contact, in ascending order."""
        rows: Any = sp.vstack([sp.csr_matrix(self.W_N), sp.csr_matrix(self.W_T)]).tocsr()
        return np.unique(rows.indices)


def load_structure(
    stiffness: str | os.PathLike[str],
    contacts: str | os.PathLike[str],
    *,
    mass: str | os.PathLike[str] | None = None,
) -> Structure:
    """A structure from files of another finite-element program.

    ``stiffness``, ``mass``: Matrix Market (.mtx) or SciPy sparse (.npz) files. ``contacts``: an
    .npz file with the arrays ``normal`` and ``tangent`` (m, 2), pairs of degrees of freedom (i, j)
    counted from zero: the gap opens by ``u_i - u_j``, and sliding is ``u_i - u_j``; ``j = -1`` is a
    rigid foundation. Optional: ``gap`` (m,), initial gaps; ``loads`` (l, n) or (n,).
    One node above a rigid floor::

        >>> import pathlib, tempfile
        >>> import numpy as np, scipy.sparse
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> scipy.sparse.save_npz(folder / "K.npz", scipy.sparse.csr_matrix(np.diag([2e6, 1e6])))
        >>> np.savez(folder / "contacts.npz", normal=[[0, -1]], tangent=[[1, -1]], gap=[0.1])
        >>> structure = jfric.load_structure(folder / "K.npz", folder / "contacts.npz")
        >>> structure.n_contacts, structure.contact_dofs.tolist(), structure.gap.tolist()
        (1, [0, 1], [0.1])
    """
    K: Any = _matrix(stiffness)
    n = K.shape[0]
    path = Path(contacts)
    try:
        data: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ProblemError(f"contacts: cannot read {os.fspath(path)!r} ({error})") from None
    for key in ("normal", "tangent"):
        if key not in data:
            found = ", ".join(data.files) or "nothing"
            raise ProblemError(f"contacts: {os.fspath(path)!r} holds {found}, {key} is missing")
    normal, tangent = (_pairs(data[key], key, n) for key in ("normal", "tangent"))
    loads = np.atleast_2d(data["loads"]) if "loads" in data else np.zeros((0, n))
    gap = np.asarray(data["gap"], float) if "gap" in data else np.zeros(normal.shape[0])
    return Structure(
        K, normal, tangent, np.asarray(loads, float), gap, None if mass is None else _matrix(mass)
    )


def _pairs(pairs, name: str, n: int):
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ProblemError(f"contacts.{name}: found shape {pairs.shape}, needed are pairs of ints")
    if np.any(pairs[:, 0] < 0) or np.any(pairs < -1) or np.any(pairs >= n):
        raise ProblemError(
            f"contacts.{name}: found {pairs.min()} to {pairs.max()}, degrees of freedom lie "
            f"between 0 and {n - 1}, and the second of a pair may be -1"
        )
    return difference_rows(pairs, n)


def difference_rows(pairs: np.ndarray, n: int):
    """Rows (m, n) of ``u_i - u_j`` for pairs (i, j); a negative index is no degree of freedom."""
    m = pairs.shape[0]
    W: Any = sp.lil_matrix((m, n))
    for row, (i, j) in enumerate(pairs):
        if i >= 0:
            W[row, i] = 1.0
        if j >= 0:
            W[row, j] = -1.0
    return W.tocsr()


def _matrix(path: str | os.PathLike[str]):
    path = Path(path)
    try:
        if path.suffix == ".mtx":
            from scipy.io import mmread

            return sp.csc_matrix(mmread(path))
        if path.suffix == ".npz":
            return sp.csc_matrix(sp.load_npz(path))
    except (OSError, ValueError) as error:
        raise ProblemError(f"{os.fspath(path)}: cannot read the matrix ({error})") from None
    raise ProblemError(f"{os.fspath(path)}: allowed are files .mtx and .npz")
