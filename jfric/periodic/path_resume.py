"""State from which a path of orbits goes on, as arrays that can be kept."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from jfric.errors import ProblemError
from jfric.periodic.guess import no_phase
from jfric.periodic.linearised import Scales
from jfric.periodic.lockstep import Computation
from jfric.periodic.path_kernel import Kernel, PathPoint, corrected, kernel_of
from jfric.periodic.shooting import Phase, Shooting, Unknowns
from jfric.system.problem import Problem


def state_of(kernel: Kernel, last: PathPoint, step: float) -> dict[str, np.ndarray]:
    """The ``last`` point of a path, the equations as far as they are numbers, and the next step."""
    kept = {
        "last_tangent": last.tangent * last.sizes / kernel.sizes,
        "last_step": np.asarray(step),
        "begins_last": np.asarray(last.orbit.problem.time.start),
    }
    parts = (("last", last.z), ("scales", kernel.scales), ("phase", last.phase))
    return kept | {
        f"{name}_{key}": np.asarray(value)
        for name, part in parts
        for key, value in part._asdict().items()
    }


def resumed(
    shooting: Shooting, problem: Problem, kept: dict[str, np.ndarray]
) -> Computation[tuple[Kernel, PathPoint, float]]:
    """The equations and the point with which a path goes on, and the next step; ``problem``: where
    the path began."""
    scales = Scales(*(jnp.asarray(kept[f"scales_{k}"], float) for k in Scales._fields))
    begins = jnp.asarray(kept["begins_last"], float)
    problem = eqx.tree_at(lambda p: p.time.start, problem, begins)
    kernel = kernel_of(shooting, problem, scales)
    z = Unknowns(*(jnp.asarray(kept[f"last_{k}"], float) for k in Unknowns._fields))
    phase = no_phase(z.states.shape[1])
    if "phase_event" in kept:  # what earlier versions kept was periodic under loads
        phase = Phase(*(jnp.asarray(kept[f"phase_{k}"]) for k in Phase._fields))
    tangent = kept["last_tangent"]
    origin = np.asarray(kernel.shooting.pack(z)) / kernel.sizes
    point = yield from corrected(kernel, z, phase, tangent, origin, 0.0)
    if point is None:
        raise ProblemError("store: the last orbit that was kept is none of this problem")
    return kernel, point.along(tangent), float(kept["last_step"])
