"""Remarks on the times of a record: gaps and uneven steps."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

#: Steps may differ by this part of their median before they are named.
JITTER = 0.01
#: A step of this many medians is a gap.
GAP = 1.5


def clock_remarks(t: Float[np.ndarray, " m"], unit: str = "s") -> list[str]:
    """Gaps and uneven steps of the times ``t``, which increase, in words."""
    if t.size < 3:
        return []
    steps = np.diff(t)
    step = float(np.median(steps))
    gaps, said = steps > GAP * step, []
    if gaps.any():
        worst = int(np.argmax(steps))
        many = f"{gaps.sum()} gaps" if gaps.sum() > 1 else "a gap"
        said.append(
            f"the times have {many} among steps of {step:g} {unit}, the longest of "
            f"{steps[worst]:g} {unit} after t = {t[worst]:g} {unit}"
        )
    off = np.abs(steps[~gaps] / step - 1.0)
    # Times that are written with few digits are uneven by their rounding.
    if off.size and off.max() > JITTER:
        said.append(
            f"the steps between samples differ by up to {100 * off.max():.0f} % from "
            f"{step:g} {unit}"
        )
    return said
