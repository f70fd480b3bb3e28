"""MuJoCo and Siconos on VE0116 for many coefficients of friction; used by ``batch.py``.

- MuJoCo: joint with ``frictionloss``, all cores (``rollout``). Its friction is a soft constraint:
  once with its default softness, then as stiff as its step allows.
- Siconos (Debian's python3-siconos, if /usr/bin/python3 can import it): Moreau-Jean, one core.

Only a few trajectories are run, and the rate is theirs. The error is that of the displacement at
the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

END, FX, FZ = 4.0, 1500.0, 1000.0
#: Step [s], and whether friction is as stiff as possible.
MUJOCO_SETTINGS = ((1e-3, False), (1e-3, True), (1e-4, True))
SICONOS_STEPS = (1e-3, 1e-4)
_JOINT = """
<mujoco>
  <option timestep="{h}" gravity="0 0 0" solver="Newton" iterations="200" tolerance="1e-14"/>
  <worldbody>
    <body>
      <joint name="u" type="slide" axis="1 0 0" stiffness="5000" frictionloss="{loss}" {friction}/>
      <geom type="sphere" size="0.1" mass="100" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="u"/></actuator>
</mujoco>
"""

Exact = Callable[[np.ndarray], np.ndarray]


def run_mujoco(mu: np.ndarray, lanes: int, exact: Exact) -> list[dict]:
    """One row for each setting."""
    try:
        import mujoco
        from mujoco import rollout
    except ImportError:
        return [{"method": "MuJoCo", "note": "not installed"}]
    some = mu[:: max(mu.size // lanes, 1)][:lanes]
    rows = []
    for h, stiff in MUJOCO_SETTINGS:
        friction = f'solreffriction="{2 * h:g} 1" solimpfriction="0.9999 0.9999 0.001"'
        models = [
            mujoco.MjModel.from_xml_string(
                _JOINT.format(h=h, loss=float(m * FZ), friction=friction if stiff else "")
            )
            for m in some
        ]
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        data = [mujoco.MjData(models[0]) for _ in range(threads)]
        size = mujoco.mj_stateSize(models[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        control = np.full((some.size, round(END / h), 1), FX)
        start = time.perf_counter()
        states, _ = rollout.rollout(models, data, np.zeros((some.size, size)), control)
        seconds = time.perf_counter() - start
        rows.append(
            {
                "method": f"MuJoCo, h = {h:g}, {'stiff' if stiff else 'default'} friction",
                "per_second": some.size / seconds,
                # A state is time, position, velocity.
                "error": float(np.abs(states[:, -1, 1] - exact(some)).max()),
                "lanes": int(some.size),
            }
        )
    return rows


def run_siconos(mu: np.ndarray, lanes: int, exact: Exact) -> list[dict]:
    """One row for each step, from the system's Python."""
    some = mu[:: max(mu.size // lanes, 1)][:lanes]
    rows = []
    for h in SICONOS_STEPS:
        call = ["/usr/bin/python3", __file__, json.dumps(some.tolist()), str(h)]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as failure:
            return [*rows, {"method": "Siconos", "note": type(failure).__name__}]
        if done.returncode:
            note = (done.stderr.strip().splitlines() or ["failed"])[-1]
            return [*rows, {"method": "Siconos", "note": note}]
        # Siconos prints to the same stream; the result is the last line.
        found = json.loads(done.stdout.strip().splitlines()[-1])
        rows.append(
            {
                "method": f"Siconos Moreau-Jean, h = {h:g}, one core",
                "per_second": some.size / found["seconds"],
                "error": float(np.abs(np.array(found["u"]) - exact(some)).max()),
                "lanes": int(some.size),
            }
        )
    return rows


def siconos_worker(mu: list[float], h: float) -> dict:
    """Displacements at the end, and the time of the stepping."""
    sys.path.insert(0, str(Path(__file__).parent))
    from single_trajectory import siconos_model

    found, seconds = [], 0.0
    for value in mu:
        simulation, body, _, end, _alive = siconos_model("ve0116", h, mu=value)
        start = time.perf_counter()
        for _ in range(round(end / h)):
            simulation.computeOneStep()
            simulation.nextStep()
        seconds += time.perf_counter() - start
        found.append(float(body.q()[1]))
    return {"u": found, "seconds": seconds}


if __name__ == "__main__":
    print("\n" + json.dumps(siconos_worker(json.loads(sys.argv[1]), float(sys.argv[2]))))
