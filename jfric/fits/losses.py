"""Loss functions of residuals: how much outliers count."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp

#: Each gives ``rho(s)`` and ``rho'(s)`` of the squared residual ``s``; the cost is half their sum.
LOSSES: dict[str, Callable] = {
    "linear": lambda s: (s, jnp.ones_like(s)),
    "huber": lambda s: (
        jnp.where(s <= 1.0, s, 2.0 * jnp.sqrt(jnp.maximum(s, 1.0)) - 1.0),
        jnp.where(s <= 1.0, 1.0, 1.0 / jnp.sqrt(jnp.maximum(s, 1.0))),
    ),
    "soft_l1": lambda s: (2.0 * (jnp.sqrt(1.0 + s) - 1.0), 1.0 / jnp.sqrt(1.0 + s)),
    "cauchy": lambda s: (jnp.log1p(s), 1.0 / (1.0 + s)),
}
