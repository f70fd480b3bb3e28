"""Standard deviations expected from a design, averaged over where the estimates may fall."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from jfric.fits.design.information import standard_deviations
from jfric.fits.design.search import Search

#: Change of the predicted standard deviations among the estimates above which a remark follows.
NONLINEAR = 0.2
#: A step in parts of a standard deviation, and the change over that step that only a jump causes.
TINY, JUMP = 1e-3, 0.05


def expected(
    search: Search, inputs: Float[np.ndarray, " n"], matrix: Float[np.ndarray, "P P"]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Standard deviations (P,) by the experiment ``inputs``, and remarks on them.

    ``C(p)`` is the bound of Cramer and Rao for the parameters ``p``; the estimates are taken as
    normal around the given ones with ``C = L L^T``. The result is the root of the mean of the
    diagonal of ``C`` over ``p +- sqrt(P) L_i``, exact where ``C`` is of second order in ``p`` (the
    cubature rule of I. Arasaratnam, S. Haykin, IEEE Trans. Automatic Control 54, 2009, section IV).
    If ``C`` jumps at the given values, both sides count. ``matrix``: the information at the given
    values, which gives the standard deviations if there are none around them.
    """
    layout = search.task.objective.layout
    here = standard_deviations(matrix, search.unit)
    if not np.all(np.isfinite(here)):
        return here, ()
    scale = np.outer(search.unit, search.unit)
    values, vectors = np.linalg.eigh(matrix * scale)
    root = search.unit[:, None] * vectors / np.sqrt(values)  # columns
    far, tiny = np.sqrt(root.shape[0]) * root, TINY * np.diag(here)
    lower, upper = layout.bounds
    around = np.concatenate([layout.init + s * step.T for step in (far, tiny) for s in (1.0, -1.0)])
    own, search.parameters = search.parameters, np.clip(around, lower, upper)
    found, _ = search.matrices(inputs[None])
    search.parameters = own
    other, near = np.split(standard_deviations(found[0], search.unit), 2)
    remarks = []
    up, down = np.split(near, 2)
    jump = np.nan_to_num(np.maximum(up, down) / np.minimum(up, down) - 1.0, nan=np.inf)
    if np.max(jump) > JUMP:
        name = layout.names[int(np.argmax(np.max(jump, axis=0)))]
        more = f"{100 * np.max(jump):.0f} % larger" if np.isfinite(jump).all() else "lost"
        remarks.append(
            f"an event comes or goes at the given values: on one side the standard deviation of "
            f"{name} is {more}"
        )
    # A standard deviation that is no finite number there counts as an infinite change.
    change = np.nan_to_num(np.abs(other / here - 1.0), nan=np.inf, posinf=np.inf)
    worst = float(np.max(change))
    if worst > NONLINEAR:
        name = layout.names[int(np.argmax(np.max(change, axis=0)))]
        by = "is lost" if np.isinf(worst) else f"changes by {100 * worst:.0f} %"
        remarks.append(
            f"among the estimates the predicted standard deviation of {name} {by}: the prediction "
            "is rough; take worst_of > 1"
        )
    known = np.all(np.isfinite(other))
    return np.sqrt(np.mean(other**2, axis=0)) if known else here, tuple(remarks)
