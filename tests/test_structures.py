import functools

import numpy as np
import pytest
import scipy.sparse as sp
from plane_strain import Block, two_blocks
from scipy.linalg import eigh

import jfric
from jfric.structures.reduction import redistribute_mass

HEIGHTS, MODULI, PRESSURE = (0.2, 0.5), (1e9, 3e9), 1e6


def sides(points):
    return np.isclose(points[0] * (1.0 - points[0]), 0.0)


def level(y):
    return lambda points: np.isclose(points[1], y)


@functools.cache
def pressed():
    """Two blocks held at their ends and sides, the upper one loaded where they meet."""
    x = np.linspace(0.0, 1.0, 6)

    def down(points):
        return np.stack([0 * points[0], 0 * points[0] - PRESSURE])

    upper = Block(
        x,
        np.linspace(0.0, HEIGHTS[0], 3),
        MODULI[0],
        0.3,
        held=(sides, level(HEIGHTS[0])),
        tractions=[(level(0.0), down)],
    )
    lower = Block(
        x, np.linspace(-HEIGHTS[1], 0.0, 4), MODULI[1], 0.3, held=(sides, level(-HEIGHTS[1]))
    )
    return two_blocks(upper, lower)


@functools.cache
def solved():
    condensed = jfric.condense(pressed())
    return condensed, jfric.equilibria(condensed.problem(0.4), starts=4).table()


def test_patch():
    _, (row,) = solved()
    springs = [E / h for E, h in zip(MODULI, HEIGHTS, strict=True)]
    share = PRESSURE * springs[1] / sum(springs)
    length = np.full(6, 0.2)
    length[[0, -1]] /= 2
    np.testing.assert_allclose(row["lambda_n"], share * length, rtol=1e-10)
    assert row["residual"] < 1e-10


def test_displacements_satisfy_the_equations_of_the_whole_structure():
    structure, (condensed, (row,)) = pressed(), solved()
    u = np.asarray(condensed.displacements(row["q"], row["lambda_t"], row["lambda_n"]))
    push = structure.W_N.T @ row["lambda_n"] + structure.W_T.T @ row["lambda_t"]
    force = structure.K @ u - structure.loads.sum(axis=0) - push
    assert np.max(np.abs(force)) < 1e-10 * PRESSURE
    moved = np.concatenate([structure.W_N @ u, structure.W_T @ u])
    np.testing.assert_allclose(moved, row["q"], atol=1e-18)


def test_a_block_held_by_friction_alone_slides_at_mu_times_the_normal_load():
    x, mu, weight = np.linspace(0.0, 0.5, 6), 0.35, 2e4

    def pull(points):
        return np.stack([0 * points[0] + 5.0, 0 * points[0]])

    def press(points):
        return np.stack([0 * points[0], 0 * points[0] - 2 * weight])

    right = lambda points: np.isclose(points[0], 0.5)  # noqa: E731
    upper = Block(
        x, np.linspace(0, 0.2, 3), 1e9, 0.3, tractions=[(level(0.2), press), (right, pull)]
    )
    lower = Block(x, np.linspace(-0.3, 0, 4), 1e9, 0.3, held=(level(-0.3), level(-0.3)))
    condensed = jfric.condense(two_blocks(upper, lower))
    assert float(condensed.kappa) > 0.0
    problem = condensed.problem(mu, factors=[1.0, 0.0])
    path = jfric.trace(problem, "load.load2.F", 0.0, 2 * mu * weight, seeds=1, starts=4)
    assert path.special[-1].parameter == pytest.approx(mu * weight, rel=1e-10)


def test_path_over_mu_agrees_with_independent_solutions_on_both_sides_of_each_change():
    x = np.linspace(0.0, 1.0, 6)

    def traction(points):
        left = points[0] < 0.62
        return np.stack([0 * points[0] + 4e5, np.where(left, -1e6, 2e5)])

    held = (lambda points: np.isclose(points[0], 0.0),) * 2
    upper = Block(
        x, np.linspace(0, 0.3, 3), 1e9, 0.3, held=held, tractions=[(level(0.3), traction)]
    )
    lower = Block(x, np.linspace(-0.3, 0, 3), 1e9, 0.3, held=(level(-0.3), level(-0.3)))
    problem = jfric.condense(two_blocks(upper, lower)).problem(0.3)
    path = jfric.trace(problem, "parameters.mu", 0.0, 1.2, seeds=[0.0], starts=4)
    (branch,) = path.branches
    changes = [point for point in branch.special if point.kind == "mode change"]
    assert len(changes) >= 3
    for point in changes:
        for h, slope in ((-1e-6, point.dq_before), (1e-6, point.dq_after)):
            there = jfric.set_parameters(problem, {"parameters.mu": point.parameter + h})
            found = jfric.equilibria(there, starts=4)
            q = np.asarray(found.q)[np.asarray(found.exists)]
            near = np.min(np.max(np.abs(q - point.q - h * slope), axis=1))
            assert near < 1e-8 * np.max(np.abs(point.q))


def test_files_of_another_program(tmp_path):
    structure = pressed()
    sp.save_npz(tmp_path / "K.npz", structure.K)
    pairs = {
        name: np.array([[W.indices[W.indptr[i]], -1] for i in range(3)], int)
        for name, W in (("normal", structure.W_N[1:4]), ("tangent", structure.W_T[1:4]))
    }
    np.savez(tmp_path / "contacts.npz", loads=structure.loads, **pairs)
    read = jfric.load_structure(tmp_path / "K.npz", tmp_path / "contacts.npz")
    assert read.n_contacts == 3
    assert (read.K != structure.K).nnz == 0
    with pytest.raises(jfric.ProblemError, match=r"allowed are files \.mtx and \.npz"):
        jfric.load_structure(tmp_path / "K.txt", tmp_path / "contacts.npz")
    np.savez(tmp_path / "bad.npz", normal=pairs["normal"])
    with pytest.raises(jfric.ProblemError, match="tangent is missing"):
        jfric.load_structure(tmp_path / "K.npz", tmp_path / "bad.npz")
    floating = jfric.Structure(
        0.0 * structure.K, structure.W_N, structure.W_T, structure.loads, structure.gap
    )
    with pytest.raises(jfric.ProblemError, match="hold every body"):
        jfric.condense(floating)


@functools.cache
def held_block():
    """A block on a foundation, pressed down on its top; 4 contacts."""
    x = np.linspace(0.0, 0.6, 4)

    def down(points):
        return np.stack([0 * points[0], 0 * points[0] - PRESSURE])

    def left(points):
        return np.isclose(points[0], 0.0) & (points[1] > 0.1)

    upper = Block(
        x, np.linspace(0.0, 0.3, 4), 1e9, 0.3, 1000.0, held=(left, left),
        tractions=[(level(0.3), down)],
    )  # fmt: skip
    lower = Block(x, np.linspace(-0.3, 0.0, 4), 1e9, 0.3, 1000.0, held=(level(-0.3), level(-0.3)))
    return two_blocks(upper, lower)


def test_mass_redistribution_keeps_mass_centre_and_inertia():
    structure = held_block()
    moved = redistribute_mass(structure)
    assert np.all(moved.M.diagonal()[moved.contact_dofs] == 0.0)
    assert np.all(moved.M.diagonal() >= 0.0)
    lumped = np.asarray(structure.M.sum(axis=1)).ravel()
    for body in (0, 1):
        chosen = (structure.body == body) & (structure.dofs[:, 0] >= 0)
        dofs, (x, y) = structure.dofs[chosen, 0], structure.nodes[chosen].T
        for shape in (np.ones_like(x), x, y, x**2 + y**2):
            before, after = lumped[dofs] @ shape, moved.M.diagonal()[dofs] @ shape
            assert abs(after - before) < 1e-10 * np.abs(lumped[dofs] @ np.abs(shape))


def test_reduction_has_the_lowest_frequencies_of_the_structure():
    structure = held_block()
    n, m = structure.K.shape[0], structure.n_contacts
    most = jfric.reduce_structure(structure, n - 2 * m - 1)
    exact = np.sort(eigh(structure.K.toarray(), structure.M.toarray(), eigvals_only=True))
    reduced = np.sort(eigh(most.K, most.M, eigvals_only=True))
    np.testing.assert_allclose(reduced[:10], exact[:10], rtol=1e-4)
    # With fewer modes frequencies are bounds from above, and the lowest are close.
    small = jfric.reduce_structure(structure, 6)
    few = np.sort(eigh(small.K, small.M, eigvals_only=True))
    assert few.size == 2 * m + 6
    assert np.all(few[:3] > exact[:3] * (1 - 1e-9))
    np.testing.assert_allclose(few[:3], exact[:3], rtol=2e-2)


def test_the_dynamic_problem_has_what_is_given():
    reduced = jfric.reduce_structure(held_block(), 3)
    first, *_, last = reduced.axes
    problem = reduced.problem(
        0.3, [2.0], time=1.5, damping=2e-5, e=0.4, initial={first: 1e-4, last: 2e-3}
    )
    np.testing.assert_allclose(problem.matrices.C, 2e-5 * np.asarray(reduced.K), rtol=1e-12)
    np.testing.assert_array_equal(problem.matrices.M, reduced.M)
    contacts = problem.resolved().elements["contact"].values()
    assert {(float(c.e), float(c.law.mu)) for c in contacts} == {(0.4, 0.3)}
    (load,) = problem.elements["load"].values()
    assert float(load.F(0.7)) == 2.0
    start = {name: float(x.q) for name, x in problem.initial.items() if x.q != 0.0}
    assert start == {first: 1e-4, last: 2e-3}
    assert float(problem.time.end) == 1.5
    condensed, _ = solved()
    (load,) = condensed.problem(0.4, [2.5]).elements["load"].values()
    assert float(load.F(0.0)) == 2.5


@pytest.mark.slow
def test_both_solvers_agree_on_the_shaken_reduced_structure():
    reduced = jfric.reduce_structure(held_block(), 3, mass_redistribution=True)
    frequency = np.sqrt(eigh(reduced.K, reduced.M, eigvals_only=True)[0])
    period = 2 * np.pi / (0.7 * frequency)
    rest = np.asarray(reduced.F)[0, 8:] / np.diag(np.asarray(reduced.K))[8:]
    problem = reduced.problem(
        0.3,
        [jfric.Sum((jfric.Constant(1.0), jfric.Harmonic(1.5, 2 * np.pi / period)))],
        time=period,
        damping=2e-5,
        initial=dict(zip(reduced.axes[8:], rest, strict=True)),
    )
    exact = jfric.simulate(problem, jfric.EventDriven(max_events=500))
    rows = exact.event_table()
    assert exact.status == jfric.Status.OK
    assert any(row["to"] == "open" for row in rows)
    assert any(row["from"] == "stick" and row["to"] != "open" for row in rows)
    scale = np.abs(exact.final.q).max()
    off = []
    for steps in (2000, 8000):
        found = jfric.simulate(problem, jfric.MoreauJean(dt=period / steps, max_events=5000))
        off.append(np.abs(np.asarray(found.final.q) - np.asarray(exact.final.q)).max() / scale)
    assert off[1] < 0.5 * off[0]
    assert off[1] < 1e-3
