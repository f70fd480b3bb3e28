"""Elastic bodies under plane strain, meshed and assembled with scikit-fem.

``pip install jfric[fem]``. Bilinear quadrilaterals; contact node to node where the two bodies meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from jfric.errors import ProblemError
from jfric.structures.structure import Structure, difference_rows

Where = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Block:
    """A rectangular body: grid lines ``x``, ``y`` [m], Young's modulus [Pa], Poisson's ratio,
    density [kg/m^3].

    ``held``: functions of the coordinates (2, k) that mark held nodes, for each direction (x, y).
    ``tractions``: pairs (where, traction): the boundary marked by a function of the coordinates
    (2, k) carries the traction (2, k) [Pa] that the second function gives; each is one load.
    """

    x: np.ndarray
    y: np.ndarray
    E: float
    nu: float
    density: float = 1.0
    held: tuple[Where | None, Where | None] = (None, None)
    tractions: Sequence[tuple[Where, Callable[[np.ndarray], np.ndarray]]] = ()


def two_blocks(upper: Block, lower: Block) -> Structure:
    """Structure of two blocks: the lower side of ``upper`` meets the upper side of ``lower``.

    The thickness is 1 m. Both grids must have the same nodes where they meet.
    Loads of the upper block come first. Sliding is positive where the upper block moves to larger
    x.
    """
    parts = [_assemble(block) for block in (upper, lower)]
    offset = (0, parts[0].n)
    pairs = _meeting(upper, lower, parts)
    K: Any = sp.block_diag([part.K for part in parts]).tocsr()
    M: Any = sp.block_diag([part.M for part in parts]).tocsr()
    loads = sp.block_diag([part.loads for part in parts]).toarray()
    dofs = np.concatenate([part.dofs + start for part, start in zip(parts, offset, strict=True)])
    held = np.concatenate([part.held for part in parts])
    free = np.flatnonzero(~held)
    position = np.full(held.size, -1)
    position[free] = np.arange(free.size)
    rows = [difference_rows(position[pairs[:, :, axis]], free.size) for axis in (1, 0)]
    return Structure(
        K=K[free][:, free].tocsc(),
        W_N=rows[0],
        W_T=rows[1],
        loads=loads[:, free],
        gap=np.zeros(pairs.shape[0]),
        M=M[free][:, free].tocsc(),
        nodes=np.concatenate([part.nodes for part in parts]),
        dofs=position[dofs],
        body=np.repeat([0, 1], [len(part.nodes) for part in parts]),
    )


@dataclass(frozen=True)
class _Part:
    K: Any
    M: Any
    loads: np.ndarray
    nodes: np.ndarray
    dofs: np.ndarray
    held: np.ndarray

    @property
    def n(self) -> int:
        return self.K.shape[0]


def _assemble(block: Block) -> _Part:
    try:
        import skfem as fem
        from skfem.helpers import dot
        from skfem.models.elasticity import lame_parameters, linear_elasticity
    except ImportError:
        raise ProblemError(
            "structures are meshed with scikit-fem, which is not installed (pip install jfric[fem])"
        ) from None

    mesh: Any = fem.MeshQuad.init_tensor(np.asarray(block.x, float), np.asarray(block.y, float))
    element = fem.ElementVector(fem.ElementQuad1())
    basis: Any = fem.Basis(mesh, element)
    K: Any = linear_elasticity(*lame_parameters(block.E, block.nu)).assemble(basis)
    M: Any = fem.BilinearForm(lambda u, v, w: block.density * dot(u, v)).assemble(basis)
    loads = []
    for where, traction in block.tractions:
        facets = mesh.facets_satisfying(where, boundaries_only=True)
        if facets.size == 0:
            raise ProblemError("tractions: found no boundary where a traction is given")
        side = fem.FacetBasis(mesh, element, facets=facets)

        def form(v, w, traction=traction):
            return dot(traction(w.x), v)

        loads.append(fem.LinearForm(form).assemble(side))
    held = np.zeros(K.shape[0], bool)
    for axis, where in enumerate(block.held):
        if where is not None:
            held[basis.nodal_dofs[axis, where(mesh.p)]] = True
    return _Part(
        K.tocsr(),
        M.tocsr(),
        np.reshape(np.asarray(loads, float), (len(loads), K.shape[0])),
        mesh.p.T,
        basis.nodal_dofs.T,
        held,
    )


def _meeting(upper: Block, lower: Block, parts: list[_Part]) -> np.ndarray:
    """Degrees of freedom (m, 2, 2) of meeting nodes (pair, body, direction), in the order of x."""
    level = np.min(upper.y)
    if not np.isclose(level, np.max(lower.y)):
        raise ProblemError(
            f"y: the upper block begins at {level:g} m and the lower one ends at "
            f"{np.max(lower.y):g} m, they must meet"
        )
    sides = []
    for part in parts:
        nodes = np.flatnonzero(np.isclose(part.nodes[:, 1], level))
        sides.append(nodes[np.argsort(part.nodes[nodes, 0])])
    common = [
        (i, j)
        for i in sides[0]
        for j in sides[1]
        if np.isclose(parts[0].nodes[i, 0], parts[1].nodes[j, 0])
    ]
    if not common:
        raise ProblemError("x: the two blocks have no nodes in common where they meet")
    start = parts[0].n
    return np.asarray([[parts[0].dofs[i], parts[1].dofs[j] + start] for i, j in common])
