"""Trustworthy and wrong derivatives: du(1)/d(mu, k, m) of VE0116 by every method.

The turning points depend on k and m: a method without the derivatives of its switching times gets
the derivatives with respect to k and m wrong, however small its steps. (Those with respect to mu
alone prove nothing: the turning times do not depend on mu.)

- event-driven, forward and reverse mode: exact;
- smoothed, adaptive steps: off by the order of the width;
- smoothed, fixed steps: right while the step is well below the width; when it is not, the steps
  jump over the flank of tanh, and the derivatives are those of a system with a plain sign;
- Moreau-Jean, and explicit Euler with sign(v): their derivatives miss the switching times at any
  step.

    python experiments/gradients.py [--out results/figures]
"""

from __future__ import annotations

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from common import BLUE, GREEN, GREY, RED, figure, folder, print_table, save
from common import problem as shipped_problem

import jfric

POINT = (0.1, 5000.0, 100.0)
EXACT = np.array([0.5053479063084423, 7.246204152820476e-5, -5.012406263793353e-3])
NAMES = ("mu", "k", "m")
WIDTHS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
#: Fixed steps that divide 1 s.
STEPS = (2.0**-6, 2.0**-9, 2.0**-12)


def displacement(mu, k, m, solver):
    """Displacement u(1) of VE0116 with any solver."""
    values = {"friction.mu": mu, "spring.k": k, "mass.m": m}
    changed = jfric.set_parameters(PROBLEM, values)
    return jfric.simulate(changed, solver, end=1.0).final.q[0]


def explicit_sign(mu, k, m, h):
    """Displacement u(1) by explicit Euler steps of ``m u" = 1500 N - k u - mu 1000 N sign(u')``."""

    def step(state, _):
        u, v = state
        a = (1500.0 - k * u - mu * 1000.0 * jnp.sign(v)) / m
        return (u + h * v, v + h * a), None

    start = (jnp.zeros(()), jnp.zeros(()))
    return jax.lax.scan(step, start, length=round(1.0 / h))[0][0]


PROBLEM = shipped_problem("ve0116")
forward = jax.jit(jax.jacfwd(displacement, argnums=(0, 1, 2)))
reverse = jax.jit(jax.grad(displacement, argnums=(0, 1, 2)))


def fixed(width, h) -> jfric.Smoothed:
    """Solver with explicit steps of the length ``h``."""
    return jfric.Smoothed(
        width=width, method="dopri5", controller=diffrax.ConstantStepSize(), dt0=h
    )


def main() -> None:
    out = folder(__doc__)
    rows = [
        _row("event-driven, forward", forward(*POINT, jfric.EventDriven())),
        _row(
            "event-driven, reverse",
            reverse(*POINT, jfric.EventDriven(adjoint="reverse", max_steps=1000)),
        ),
    ]
    adaptive = []
    for width in WIDTHS:
        adaptive.append(np.array(forward(*POINT, jfric.Smoothed(width=width))))
        rows.append(_row(f"smoothed {width:g} m/s, adaptive steps", adaptive[-1]))
    with_steps = {h: [np.array(forward(*POINT, fixed(w, h))) for w in WIDTHS] for h in STEPS}
    for h, found in with_steps.items():
        rows += [
            _row(f"smoothed {width:g} m/s, steps of {h:.2e} s", values)
            for width, values in zip(WIDTHS, found, strict=True)
            if width in (1e-1, 1e-2, 1e-3, 1e-4)
        ]
    for h in (1e-2, 1e-3, 1e-4):
        rows.append(_row(f"Moreau-Jean, steps of {h:g} s", forward(*POINT, jfric.MoreauJean(dt=h))))
    explicit = jax.jacfwd(explicit_sign, argnums=(0, 1, 2))
    for h in (1e-2, 1e-3, 1e-4, 1e-5):
        rows.append(_row(f"explicit Euler, sign(v), steps of {h:g} s", explicit(*POINT, h)))
    header = ["", *(f"du/d{n}" for n in NAMES), *(f"error {n}" for n in NAMES)]
    exact = ["closed form", *(f"{x:.6e}" for x in EXACT), "", "", ""]
    print_table("VE0116: derivatives of u(1), and their relative errors", header, [exact, *rows])
    draw(adaptive, with_steps, out / "gradients.png")


def _row(name: str, values) -> list[str]:
    values = np.array(values)
    errors = values / EXACT - 1.0
    return [name, *(f"{x:.6e}" for x in values), *(f"{e:+.1e}" for e in errors)]


def draw(adaptive, with_steps, path) -> None:
    """Draw relative errors over the width, one panel for each parameter."""
    made, axes = figure(12.0, 4.4, 1, 3, sharey=True)
    for i, (axis, name) in enumerate(zip(axes, NAMES, strict=True)):
        error = np.abs(np.array(adaptive)[:, i] / EXACT[i] - 1.0)
        axis.loglog(WIDTHS, error, "o-", color=BLUE, ms=4, label="adaptive steps")
        for (h, found), colour in zip(with_steps.items(), (GREY, RED, GREEN), strict=True):
            values = np.array(found)[:, i]
            error = np.abs(values / EXACT[i] - 1.0)
            axis.loglog(WIDTHS, error, "s--", color=colour, ms=4, label=f"steps of {h:.1e} s")
        axis.set(xlabel="smoothing width [m/s]", title=f"du(1)/d{name}")
    axes[0].set_ylabel("relative error")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    save(made, path, "Derivatives of a smoothed law: right where the steps resolve the width")


if __name__ == "__main__":
    main()
