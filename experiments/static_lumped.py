"""Janovsky (2015), section 2: the static contact problem with one contact point.

The script compares 20,000 random loads with the closed-form number of solutions, and counts
solutions over 10^6 points of (f_nu, f_tau, mu). It draws this number over (f_tau/f_nu, mu), with
the wedge of three solutions above the critical coefficient 1.2, and the paths over the load and
over mu.

    python experiments/static_lumped.py --out results/figures
"""

import time

import common
import jax
import jax.numpy as jnp
import numpy as np

import jfric

CRITICAL = 1.2
PATHS = ("load.normal.F", "load.tangential.F", "contact.mu")


def lumped() -> jfric.Problem:
    """The problem with K = [[1.2, -1], [-1, 1.2]]; the gap is -un."""
    return jfric.Problem(
        ["un", "ut"],
        {
            "contact": jfric.Contact({"un": -1.0}, "ut", jfric.Coulomb(0.4)),
            "load": {"normal": jfric.Load("un", 1.0), "tangential": jfric.Load("ut", 0.0)},
        },
        matrices=jfric.Matrices(K=[[1.2, -1.0], [-1.0, 1.2]]),
    )


PROBLEM = lumped()


def count(f_nu, f_tau, mu):
    """Number of solutions for one load and one coefficient of friction."""
    values = dict(zip(PATHS, (f_nu, f_tau, mu), strict=True))
    return jfric.equilibria(jfric.set_parameters(PROBLEM, values)).count


@jax.jit
def counts(f_nu, f_tau, mu):
    """Numbers of solutions of a batch, in chunks that fit the cache."""
    return jax.lax.map(lambda x: count(*x), (f_nu, f_tau, mu), batch_size=4096)


def predicted(f_nu, f_tau, mu):
    """Closed-form number of solutions: three inside the wedge, one outside."""
    inside = (mu > CRITICAL) & (f_nu > 0) & (-mu * f_nu < f_tau) & (f_tau < -CRITICAL * f_nu)
    return 1 + 2 * inside


def timed(*arrays):
    begun = time.perf_counter()
    result = np.asarray(counts(*(jnp.asarray(a) for a in arrays)))
    return result, time.perf_counter() - begun


def random_loads() -> None:
    draw = np.random.default_rng(2015)
    rows = []
    for low, high in ((0.0, CRITICAL), (CRITICAL, 3.0)):
        f_nu, f_tau = draw.uniform(-2.0, 2.0, 20_000), draw.uniform(-4.0, 4.0, 20_000)
        mu = draw.uniform(low, high, 20_000)
        timed(f_nu, f_tau, mu)
        found, seconds = timed(f_nu, f_tau, mu)
        wrong = int(np.sum(found != predicted(f_nu, f_tau, mu)))
        rows.append(
            (
                f"mu in ({low:g}, {high:g})",
                str(np.sum(found == 1)),
                str(np.sum(found == 3)),
                str(wrong),
                f"{seconds:.3f}",
            )
        )
    common.print_table(
        "20,000 random loads", ("", "one", "three", "not as predicted", "time [s]"), rows
    )


def million() -> None:
    # Shifted off the edges of the wedge, where two of the three solutions coincide.
    axes = (
        np.linspace(-2, 2, 100),
        np.linspace(-4, 4, 100) + 1e-3 * np.pi,
        np.linspace(0.0, 3.0, 100) + 1e-4,
    )
    grid = [g.ravel() for g in np.meshgrid(*axes, indexing="ij")]
    timed(*grid)
    found, seconds = timed(*grid)
    wrong = np.sum(found != predicted(*grid))
    print(
        f"\n{found.size} points of (f_nu, f_tau, mu) in one call: {seconds:.2f} s, {wrong} not as "
        f"predicted, {np.sum(found == 3)} with three solutions"
    )


def picture(folder) -> None:
    ratio, mu = np.linspace(-3.0, 1.0, 1001), np.linspace(0.0, 3.0, 1000)
    grid = np.meshgrid(ratio, mu)
    found, _ = timed(np.ones(ratio.size * mu.size), grid[0].ravel(), grid[1].ravel())
    made, axes = common.figure(6.4, 4.6, 1, 1)
    levels = found.reshape(mu.size, ratio.size)
    shown = axes[0].pcolormesh(
        ratio, mu, levels, cmap="YlGnBu", vmin=0.5, vmax=3.5, rasterized=True
    )
    bar = made.colorbar(shown, ax=axes[0], ticks=[1, 2, 3])
    bar.set_label("number of solutions")
    axes[0].plot([-CRITICAL, -CRITICAL], [CRITICAL, 3.0], color=common.RED, lw=1.2)
    axes[0].plot([-CRITICAL, -3.0], [CRITICAL, 3.0], color=common.RED, lw=1.2)
    axes[0].axhline(CRITICAL, color=common.GREY, lw=0.8, ls="--")
    axes[0].set_xlabel("f_tau / f_nu")
    axes[0].set_ylabel("mu")
    common.save(made, folder / "static_solutions.png", "Solutions of the static problem, f_nu > 0")


def paths(folder) -> None:
    problem = jfric.set_parameters(PROBLEM, {"contact.mu": 1.5})
    over_load = jfric.trace(problem, "load.tangential.F", 2.5, -2.5)
    figure = jfric.plot_path(over_load, title="f_nu = 1, mu = 3/2")
    common.save(figure, folder / "static_fold.png", "f_nu = 1, mu = 3/2")
    problem = jfric.set_parameters(PROBLEM, {"load.tangential.F": -1.35})
    over_mu = jfric.trace(problem, "contact.mu", 0.0, 3.0)
    figure = jfric.plot_path(over_mu, title="f = (1, -1.35)")
    common.save(figure, folder / "static_mu.png", "f = (1, -1.35)")


def main() -> None:
    folder = common.folder(__doc__)
    random_loads()
    million()
    picture(folder)
    paths(folder)


if __name__ == "__main__":
    main()
