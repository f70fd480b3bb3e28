"""Janovsky (2015), figures 3 to 5, on a structure of the same size: deformation under a traction,
and the path of its equilibria over the coefficient of friction.

The geometry of the paper is not published, so its curves cannot be matched number by number; see
``two_blocks.py`` for this one. Every change of mode on the path is checked by an independent
solution from many starts on both sides of it, derivatives by finite differences. A patch test and a
block pulled over a foundation come first.

    python experiments/static_structure.py --out results/figures
"""

import time

START = time.perf_counter()

import common  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from plane_strain import Block, two_blocks  # noqa: E402
from structure_figure import plot_structure  # noqa: E402
from two_blocks import structure  # noqa: E402

import jfric  # noqa: E402
from jfric.numerics.compilation import compile_quickly  # noqa: E402

compile_quickly()

#: Coefficient at which there are no contact, stick and slip at once.
MU = 0.2


def patch_test() -> None:
    """Uniform stress across the interface: sides held in x, ends in y, the interface loaded."""
    x, pressure, heights = np.linspace(0.0, 1.0, 9), 1e6, (0.2, 0.5)
    moduli = (1e9, 3e9)

    def sides(p):
        return np.isclose(p[0] * (1.0 - p[0]), 0.0)

    upper = Block(
        x,
        np.linspace(0.0, heights[0], 4),
        moduli[0],
        0.3,
        held=(sides, lambda p: np.isclose(p[1], heights[0])),
        tractions=[
            (lambda p: np.isclose(p[1], 0.0), lambda p: np.stack([0 * p[0], 0 * p[0] - pressure]))
        ],
    )
    lower = Block(
        x,
        np.linspace(-heights[1], 0.0, 5),
        moduli[1],
        0.3,
        held=(sides, lambda p: np.isclose(p[1], -heights[1])),
    )
    row = jfric.equilibria(jfric.condense(two_blocks(upper, lower)).problem(0.4)).table()[0]
    springs = [E / h for E, h in zip(moduli, heights, strict=True)]
    share = pressure * springs[1] / sum(springs)
    length = np.full(9, x[1])
    length[[0, -1]] /= 2
    error = np.max(np.abs(row["lambda_n"] / (share * length) - 1.0))
    print(f"patch test: contact pressures off by {error:.1e}, residual {row['residual']:.1e}")


def pulled_block(mu: float = 0.35) -> None:
    """Pull a block that only friction holds down to the limit of its equilibria."""
    x, weight = np.linspace(0.0, 0.5, 8), 2e4
    upper = Block(
        x,
        np.linspace(0.0, 0.2, 4),
        1e9,
        0.3,
        tractions=[
            (
                lambda p: np.isclose(p[1], 0.2),
                lambda p: np.stack([0 * p[0], 0 * p[0] - weight / 0.5]),
            ),
            (
                lambda p: np.isclose(p[0], 0.5) & (p[1] >= 0.0),
                lambda p: np.stack([0 * p[0] + 1.0 / 0.2, 0 * p[0]]),
            ),
        ],
    )

    def ground(p):
        return np.isclose(p[1], -0.3)

    lower = Block(
        np.linspace(-0.5, 1.0, 22), np.linspace(-0.3, 0.0, 5), 1e9, 0.3, held=(ground, ground)
    )
    problem = jfric.condense(two_blocks(upper, lower)).problem(mu, factors=[1.0, 0.0])
    path = jfric.trace(problem, "load.load2.F", 0.0, 2.0 * mu * weight, seeds=1)
    last = path.special[-1]
    print(
        f"pulled block: equilibria end at a pull of {last.parameter:.10g} N ({last.kind}), "
        f"mu times the normal load is {mu * weight:.10g} N; {len(path.special) - 2} changes of "
        "mode before"
    )


def independent(problem, mu: float, state: np.ndarray) -> float:
    """Distance from ``state`` to the nearest solution found from many starts at ``mu``."""
    found = jfric.equilibria(
        jfric.set_parameters(problem, {"parameters.mu": mu}), starts=16, seed=7
    )
    q = np.asarray(found.q)[np.asarray(found.exists)]
    return float(np.min(np.max(np.abs(q - state), axis=1)) / np.max(np.abs(state)))


def main() -> None:
    folder = common.folder(__doc__)
    started = time.perf_counter()
    blocks = structure()
    condensed = jfric.condense(blocks)
    problem = condensed.problem(MU)
    assembled = time.perf_counter()
    found = jfric.equilibria(problem, starts=8)
    row = found.table()[0]
    solved = time.perf_counter()
    modes = {m: row["mode"].count(m) for m in dict.fromkeys(row["mode"])}
    print(
        f"{blocks.nodes.size} degrees of freedom, {blocks.n_contacts} contacts: assembled and "
        f"condensed in {assembled - started:.2f} s, solved in {solved - assembled:.2f} s with "
        f"compilation, residual {row['residual']:.1e}; modes at mu = {MU}: {modes}"
    )
    u = condensed.displacements(row["q"], row["lambda_t"], row["lambda_n"])
    common.save(
        plot_structure(blocks, u), folder / "structure_deformed.png", f"Two blocks at mu = {MU}"
    )

    started = time.perf_counter()
    path = jfric.trace(problem, "parameters.mu", 0.0, 1.2, seeds=[0.0, 0.6, 1.2], starts=8)
    print(
        f"path over mu from 0 to 1.2 in {time.perf_counter() - started:.2f} s with compilation: "
        f"{len(path.branches)} branches, {sum(p.kind == 'mode change' for p in path.special)} "
        f"changes of mode, {sum(p.kind == 'fold' for p in path.special)} folds, "
        f"{sum(len(b.steps) for b in path.branches)} steps, "
        f"{sum(not s.accepted for b in path.branches for s in b.steps)} of them refined"
    )
    print(f"{time.perf_counter() - START:.1f} s since the start of Python")
    if path.branches[0].special:
        branch = path.branches[0]
        check_changes(problem, branch)
        check_derivatives(problem, branch)
        draw(path, folder)
    patch_test()
    pulled_block()


def check_changes(problem, branch) -> None:
    """Independent solutions on both sides of every change of mode."""
    worst, rows = 0.0, []
    for point in branch.special:
        if point.kind == "end":
            continue
        rows.append(
            (
                f"{point.parameter:.9f}",
                point.kind,
                ", ".join(c.rpartition(".")[2] for c in point.contacts),
                ", ".join(
                    f"{a} > {b}"
                    for a, b in zip(point.modes("before"), point.modes("after"), strict=True)
                    if a != b
                ),
            )
        )
        for side, slope in ((-1, point.dq_before), (1, point.dq_after)):
            h = 1e-6 * side
            worst = max(worst, independent(problem, point.parameter + h, point.q + h * slope))
    common.print_table("Changes of mode", ("mu", "kind", "contact", "mode"), rows)
    print(f"both sides solved from 16 starts each: largest difference {worst:.1e}")


def check_derivatives(problem, branch) -> None:
    """Derivatives along the path against central differences of independent solutions."""
    worst = 0.0
    interior = [part for part in branch.segments() if part.stop - part.start >= 3]
    for part in interior:
        middle = (part.start + part.stop) // 2
        mu, h = branch.parameter[middle], 1e-5
        near = []
        for p in (mu - h, mu + h):
            found = jfric.equilibria(
                jfric.set_parameters(problem, {"parameters.mu": p}), starts=16, seed=3
            )
            q = np.asarray(found.q)[np.asarray(found.exists)]
            near.append(q[np.argmin(np.max(np.abs(q - branch.q[middle]), axis=1))])
        difference = (near[1] - near[0]) / (2 * h)
        size = np.max(np.abs(branch.dq[middle]))
        worst = max(worst, float(np.max(np.abs(difference - branch.dq[middle])) / size))
    print(f"derivatives with respect to mu at {len(interior)} points: off by {worst:.1e}")


def draw(path, folder) -> None:
    chosen = [("n27", "c27"), ("t03", "c03"), ("t04", "c04"), ("t15", "c15"), ("t26", "c26")]
    chosen.append(("t30", "c30"))
    figure = jfric.plot_path(
        path, [name for name, _ in chosen], contact=[contact for _, contact in chosen]
    )
    common.save(figure, folder / "structure_path.png", "Relative displacements of contact nodes")
    made, axes = common.figure(7.0, 3.6, 1, 1)
    for branch in path.branches:
        steps = branch.steps
        for accepted, colour, label in (
            (True, common.BLUE, "accepted"),
            (False, common.RED, "refined"),
        ):
            kept = [s for s in steps if s.accepted == accepted]
            axes[0].semilogy(
                [s.parameter for s in kept],
                [abs(s.size) for s in kept],
                "o",
                ms=3.5,
                color=colour,
                label=label,
            )
    axes[0].set_xlabel("mu")
    axes[0].set_ylabel("step")
    axes[0].legend(frameon=False, fontsize=8)
    common.save(made, folder / "structure_steps.png", "Steps of the continuation")


if __name__ == "__main__":
    main()
    jax.clear_caches()
