"""Friction of all joints of a robot, and inertias that exist, from one log of its joints.

The torque of every joint is linear in the inertial numbers of the links and in the numbers of its
friction (:mod:`jfric.fits.robots.joint_rows`). Every joint gets the law with fewest numbers that
foretells parts of the log that were left out as well as the best of all tried. Inertias are those
of bodies that exist, drawn to those of the problem.

Source: C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification of
the Franka Emika Panda robot with retrieval of feasible parameters using penalty-based
optimization", IEEE Robotics and Automation Letters 4 (2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jfric.fits.curve_prior import with_elements
from jfric.fits.data.experiment import Experiment
from jfric.fits.free import full_experiment
from jfric.fits.robots.joint_laws import (
    DELAY,
    Fitted,
    Law,
    Part,
    Search,
    described,
    elements_of,
    law_columns,
)
from jfric.fits.robots.joint_rows import (
    drives,
    given_numbers,
    inertial_links,
    rows_of,
    with_numbers,
)
from jfric.numerics.printing import Shown, printable
from jfric.system.bristle import BRISTLES
from jfric.system.line_elements import Load
from jfric.system.model import build
from jfric.system.problem import Problem

#: Factors on the lengths of the law so far that are tried, in each round of laws chosen for given
#: inertias, and inertias for given laws.
ROUNDS = (1.0,), (0.5, 0.7, 1.0, 1.4, 2.0), (0.85, 1.0, 1.18)
#: Normal quantile of 95 %.
QUANTILE = 1.959964


@printable
@dataclass(frozen=True)
class JointFriction:
    """Friction of the joints of a robot, and inertias of its links.

    ``problem``: the robot with both. ``laws``: parts of the friction of each joint. ``values``,
    ``half_widths``: numbers of ``problem`` by their paths, and half of their 95 % intervals, with
    the inertias uncertain and residuals that are correlated in time; ``delays`` [s] of the torques
    behind the positions. ``left_out``: root mean square of the torque [N m or N] that is not
    explained on parts that were left out, by joint: without friction, with Coulomb's and viscous
    friction, and with the chosen law. ``residuals``: the same on all rows. ``remarks``: what was
    done to the records. Example: see :func:`jfric.joint_friction`.
    """

    problem: Problem
    laws: Mapping[str, tuple[Part, ...]]
    values: Mapping[str, float]
    half_widths: Mapping[str, float]
    delays: Mapping[str, float]
    left_out: Mapping[str, tuple[float, float, float]]
    residuals: Mapping[str, float]
    remarks: tuple[str, ...]
    #: The robot without friction, and what was found from its rows: for other records.
    _bare: Problem
    #: See ``_bare``.
    _search: Search
    #: See ``_bare``.
    _fitted: Fitted

    def _shown(self) -> Shown:
        heads = ("joint", "law", ">delay", ">no friction", ">Coulomb, viscous", ">this law")
        rows = [
            (
                joint,
                described(law),
                f"{1e3 * self.delays[joint]:.2g} ms" if DELAY in law else "",
                *(f"{x:.3g}" for x in self.left_out[joint]),
            )
            for joint, law in self.laws.items()
        ]
        title = "Friction of joints, and torques [N m or N] that stay unexplained on parts left out"
        return Shown(title, heads, rows, "\n".join(self.remarks))

    def numbers(self) -> Shown:
        """The table of all numbers with their intervals, by paths."""
        rows = [
            (path, f"{x:.4g}", f"{self.half_widths[path]:.2g}") for path, x in self.values.items()
        ]
        return Shown("Numbers [SI]", ("parameter", ">estimate", ">+- (95 %)"), rows)

    def unexplained(self, experiments: Experiment | Sequence[Experiment]) -> dict[str, float]:
        """Root mean square of the torque of each joint that the found numbers do not explain in
        other records [N m or N], behind the same filter."""
        given = [experiments] if isinstance(experiments, Experiment) else experiments
        cutoff, fitted = self._search.rows[0].filtered.cutoff, self._fitted
        parts = []
        for e in given:
            rows = rows_of(self._bare, full_experiment(self.problem, e), self._search.links, cutoff)
            friction = [
                law_columns(law, rows, i) @ fitted.numbers[i]
                for i, law in enumerate(self.laws.values())
            ]
            explained = rows.rest + rows.Y @ fitted.inertia + np.stack(friction, axis=1)
            parts.append(rows.tau - explained)
        size = np.sqrt(np.mean(np.concatenate(parts) ** 2, axis=0))
        return dict(zip(self.laws, size.tolist(), strict=True))


def joint_friction(
    problem: Problem,
    experiments: Experiment | Sequence[Experiment],
    *,
    cutoff: float | None = None,
    spread: float = 1.0,
) -> JointFriction:
    """Friction of all joints of a robot of links, from positions and torques of its joints.

    The ``experiments`` give the position of every joint in ``y`` and its torque in ``u``, as the
    force of a load on it (``u={"load.NAME.F": ...}``). Frictions, dampers and controllers of the
    ``problem`` are left out; links, weights, springs and other loads stay. ``cutoff`` [Hz]: of the
    low pass of positions and torques, by default as high as their noise allows. ``spread``: how
    far inertias may be from those of ``problem``, as the standard deviation of the logarithm of
    their lengths; small numbers keep them.

    Tried for each joint: Coulomb's, viscous and Stribeck's friction, pre-sliding friction that
    turns round over an angle (one or two of :class:`jfric.Dahl`), a constant torque and a delay of
    the torque. Raises :class:`jfric.ProblemError` where
    torques or positions are missing. A joint that loses 0.5 N m and 0.2 N m s/rad::

        >>> wheel = jfric.Link(m=2.0, J=(0.1, 0.1, 0.1, 0, 0, 0))
        >>> robot = jfric.Problem([], {"link": {"q": wheel}, "load": {"q": jfric.Load("q", 0.0)}})
        >>> t = jnp.arange(0.0, 20.0, 1e-2)
        >>> v = 2.0 * jnp.cos(2.0 * t) + 3.0 * jnp.cos(0.7 * t)
        >>> a = -4.0 * jnp.sin(2.0 * t) - 2.1 * jnp.sin(0.7 * t)
        >>> q = jnp.sin(2.0 * t) + 3.0 / 0.7 * jnp.sin(0.7 * t)
        >>> torque = 0.1 * a + 0.5 * jnp.sign(v) + 0.2 * v
        >>> data = jfric.Experiment(t, y={"q": q}, u={"load.q.F": torque})
        >>> found = jfric.joint_friction(robot, data, cutoff=4.0)
        >>> [round(found.values[x], 2) for x in ("friction.q.limit", "damper.q.c")]
        [0.5, 0.2]
    """
    problem = build(problem)
    given = [experiments] if isinstance(experiments, Experiment) else experiments
    links = inertial_links(problem)
    bare = _bare(problem)
    rows = [rows_of(bare, full_experiment(problem, e), links, cutoff) for e in given]
    search = Search(rows, links, given_numbers(bare, links), spread)
    laws: list[Law] = list(search.first)
    fitted = search.fit(laws)
    left_out = [(0.0, 0.0, 0.0)] * len(laws)
    for factors in ROUNDS:
        for i in range(len(laws)):
            laws[i], left_out[i] = search.choose(i, laws, fitted, factors)
        fitted = search.fit(laws)
    while True:
        before, rows = laws, zip(laws, fitted.numbers, strict=True)
        # Parts of friction that would drive are left out.
        laws = [
            tuple(p for p, x in zip(law, numbers, strict=True) if not (p.resists and x < 0.0))
            for law, numbers in rows
        ]
        if laws == before:
            break
        fitted = search.fit(laws)
    return _result(problem, bare, search, laws, fitted, left_out)


def _result(problem, bare, search: Search, laws, fitted: Fitted, left_out) -> JointFriction:
    names = bare.axes
    found, values, widths, delays = [], {}, {}, {}
    for joint, law, x, covariance in zip(
        names, laws, fitted.numbers, fitted.covariances, strict=True
    ):
        found.append(elements_of(joint, law, x))
        for path, weights in found[-1].weights.items():
            values[path] = float(weights @ x)
            widths[path] = QUANTILE * float(np.sqrt(weights @ covariance @ weights))
        delays[joint] = float(x[law.index(DELAY)]) if DELAY in law else 0.0
    remarks = [f"low pass at {search.rows[0].filtered.cutoff:.3g} Hz"]
    remarks += dict.fromkeys(said for rows in search.rows for said in rows.remarks)
    # The robot with the friction and inertias that were found.
    links, numbers = problem.section("link"), fitted.inertia.reshape(-1, 10)
    rows = zip(search.links, numbers, strict=True)
    changed = {"link": {name: with_numbers(links[name], own) for name, own in rows}}
    for part in found:
        for (section, name), element in part.elements.items():
            changed.setdefault(section, {})[name] = element
    return JointFriction(
        with_elements(problem, changed, without=("friction", "damper", *BRISTLES)),
        dict(zip(names, laws, strict=True)),
        values,
        widths,
        delays,
        dict(zip(names, left_out, strict=True)),
        dict(zip(names, fitted.sigma.tolist(), strict=True)),
        tuple(remarks),
        bare,
        search,
        fitted,
    )


def _bare(problem: Problem) -> Problem:
    """The robot without friction, dampers and controllers, and without measured torques."""
    kept = ("link", "gravity", "spring", "load")
    elements = {k: dict(problem.section(k)) for k in kept if problem.section(k)}
    for name in drives(problem).values():
        elements["load"][name] = Load(elements["load"][name].direction, 0.0)
    return build(Problem([], elements, time=problem.time))
