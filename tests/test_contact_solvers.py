"""Methods for the contact problem of a step, on random problems, judged by one residual.

Problems are padded to a few sizes so that each method compiles once for each.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from complementarity import random_problem

import jfric
from jfric.contact.contact_methods import METHODS, require_method, solve_impulses
from jfric.contact.contact_problem import ContactProblem, impulse_residual
from jfric.contact.iterative_methods import impulses_in_mode
from jfric.results.modes import Mode
from jfric.results.status import Status

jax.config.update("jax_enable_x64", True)

#: Slots of a padded problem (the first have given limits, the others unilateral contacts), and
#: how many random problems fill them: 300 in all.
SIZES = {(1, 0): 50, (0, 1): 80, (2, 4): 160, (60, 140): 10}
GENERAL = ("auto", "lemke", "newton", "gauss-seidel")
RUNS = [
    *[(method, size) for method in GENERAL for size in SIZES],
    ("closed-form", (1, 0)),
    ("closed-form", (0, 1)),
]
#: Sweeps over 200 contacts take long: experiments/complementarity.py makes them.
RUNS.remove(("gauss-seidel", (60, 140)))
RUNS = [
    pytest.param(*run, marks=pytest.mark.slow) if run == ("lemke", (60, 140)) else run
    for run in RUNS
]


@functools.cache
def _problems(size: tuple[int, int]) -> tuple[ContactProblem, ...]:
    rng = np.random.default_rng(sum(size))
    problems = (random_problem(rng, *size, i % 3) for i in range(SIZES[size]))
    return tuple(jax.tree.map(jnp.asarray, p) for p in problems)


_residual = jax.jit(impulse_residual)


@functools.cache
def _compiled(method: str):
    solve = jax.jit(functools.partial(solve_impulses, method=method))
    return lambda problem: solve(jax.tree.map(jnp.asarray, problem))


@pytest.mark.parametrize(("method", "size"), RUNS)
def test_random_problems_are_solved(method, size):
    solve = _compiled(method)
    problems = _problems(size)
    solved = 0
    for problem in problems:
        result = solve(problem)
        residual = float(_residual(problem, result.impulse))
        # Never silent: what is called solved is solved.
        assert (int(result.status) == Status.OK) == (float(result.residual) <= 1e-10)
        if int(result.status) == Status.OK:
            assert residual < 1e-10
            assert int(result.iterations) >= 0
            solved += 1
    assert solved >= (len(problems) if method != "newton" else 0.9 * len(problems))


def test_methods_agree():
    # Moderate friction: the solution is unique.
    for problem in _problems((2, 4))[:12]:
        exact = _compiled("lemke")(problem).impulse
        for method in ("auto", "gauss-seidel"):
            other = _compiled(method)(problem).impulse
            np.testing.assert_allclose(other, exact, rtol=0, atol=1e-9 * np.abs(exact).max())


def test_the_order_of_contacts_does_not_matter():
    problem = _problems((2, 4))[0]
    result = _compiled("auto")(problem)
    order = np.array([1, 0, 4, 2, 5, 3])
    normal = order[2:] - 2
    rows = np.concatenate([order, 6 + normal])
    pick = {"touching": normal, "mu_positive": normal, "mu_negative": normal}
    pick |= {"D": np.ix_(rows, rows), "gamma": rows}
    names = [f.name for f in dataclasses.fields(problem) if f.name != "planes"]
    shuffled = {k: getattr(problem, k)[pick.get(k, order)] for k in names}
    np.testing.assert_allclose(
        _compiled("auto")(ContactProblem(**shuffled)).impulse,
        np.asarray(result.impulse)[rows],
        rtol=0,
        atol=1e-12,
    )


def test_redundant_contacts_are_solved():
    """Three supports under one body that may also tilt: forces are not unique, motion is."""
    normals = np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]])
    W = np.concatenate([np.zeros((3, 3)), np.eye(1, 3).repeat(3, 0)])
    W[:3, 0] = 1.0
    W[3:] = np.concatenate([np.zeros((3, 1)), normals], axis=1)
    problem = ContactProblem(
        D=W @ W.T,
        gamma=W @ np.array([0.3, -1.0, 0.1]),
        decided=np.ones(3, bool),
        touching=np.ones(3, bool),
        sliding=np.zeros(3),
        mu_positive=np.full(3, 0.2),
        mu_negative=np.full(3, 0.2),
        cap_positive=np.zeros(3),
        cap_negative=np.zeros(3),
    )
    results = {m: _compiled(m)(problem) for m in ("auto", "lemke", "gauss-seidel")}
    for result in results.values():
        assert int(result.status) == Status.OK
        np.testing.assert_allclose(result.gamma[3:], 0.0, atol=1e-9)
        np.testing.assert_allclose(result.gamma, results["lemke"].gamma, rtol=0, atol=1e-9)


def test_a_problem_without_solution_is_a_status():
    """Friction turns every normal force into a pull towards the ground (Painleve)."""
    D = np.array([[1.0, 0.9], [0.9, 1.0]])
    problem = ContactProblem(
        D=D,
        gamma=np.array([5.0, -1.0]),
        decided=np.ones(1, bool),
        touching=np.ones(1, bool),
        sliding=np.zeros(1),
        mu_positive=np.array([3.0]),
        mu_negative=np.array([3.0]),
        cap_positive=np.zeros(1),
        cap_negative=np.zeros(1),
    )
    lemke = _compiled("lemke")(problem)
    assert int(lemke.status) == Status.OK, "sticking obeys all laws"
    np.testing.assert_allclose(lemke.gamma, 0.0, atol=1e-12)
    impossible = dataclasses.replace(problem, D=np.array([[1.0, 2.0], [2.0, 1.0]]))
    for method in GENERAL:
        assert (
            int(_compiled(method)(impossible).status) != Status.OK
            or float(_residual(impossible, _compiled(method)(impossible).impulse)) < 1e-10
        )


def test_kept_directions_and_missing_friction():
    D = np.array([[1.0, 0.2], [0.2, 1.0]])
    base = ContactProblem(
        D=D,
        gamma=np.array([1.0, -1.0]),
        decided=np.zeros(1, bool),
        touching=np.ones(1, bool),
        sliding=np.ones(1),
        mu_positive=np.array([0.5]),
        mu_negative=np.array([0.5]),
        cap_positive=np.zeros(1),
        cap_negative=np.zeros(1),
    )
    # lambda_T = -mu lambda_N and gamma_N = 0: lambda_N = 1 / (1 - 0.2 * 0.5).
    expected = np.array([-0.5, 1.0]) / 0.9
    for method in METHODS:
        np.testing.assert_allclose(_compiled(method)(base).impulse, expected, rtol=1e-12)
        smooth = _compiled(method)(dataclasses.replace(base, sliding=np.zeros(1)))
        np.testing.assert_allclose(smooth.impulse, [0.0, 1.0], rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_derivatives_of_impulses():
    problem = _problems((2, 4))[0]
    rng = np.random.default_rng(3)
    direction = rng.standard_normal(problem.gamma.shape)

    def impulse(s, method="auto"):
        changed = dataclasses.replace(problem, gamma=jnp.asarray(problem.gamma) + s * direction)
        return solve_impulses(changed, method).impulse

    forward = jax.jit(jax.jacfwd(impulse))(0.0)
    reverse = jax.jit(jax.jacrev(impulse))(0.0)
    h = 1e-6
    difference = (impulse(h) - impulse(-h)) / (2 * h)
    np.testing.assert_allclose(forward, difference, rtol=0, atol=1e-8)
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-12)


def test_batches_agree_with_single_problems():
    problems = [jax.tree.map(jnp.asarray, p) for p in _problems((2, 4))[:8]]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *problems)
    together = jax.jit(jax.vmap(solve_impulses))(batch)
    for i, problem in enumerate(problems):
        np.testing.assert_allclose(
            together.impulse[i], _compiled("auto")(problem).impulse, rtol=0, atol=1e-12
        )


def test_modes_give_the_impulses():
    ones = np.ones(6)
    problem = dataclasses.replace(
        _problems((2, 4))[0],
        decided=np.ones(6, bool),
        touching=np.zeros(4, bool),
        cap_positive=ones,
        cap_negative=ones,
    )
    mode = jnp.asarray([Mode.SLIP_POS, Mode.STICK, *[Mode.OPEN] * 4])
    impulse = jax.jit(impulses_in_mode)(problem, mode)
    assert impulse[0] == -1.0
    assert abs(float((problem.gamma + problem.D @ impulse)[1])) < 1e-12
    np.testing.assert_array_equal(impulse[2:], 0.0)


def test_unknown_and_unfit_methods_are_refused():
    with pytest.raises(
        jfric.ProblemError, match=r"method: found 'lemk' \(did you mean 'lemke'\?\)"
    ):
        require_method("lemk", 1)
    with pytest.raises(jfric.ProblemError, match="'closed-form' solves one contact, found 2"):
        require_method("closed-form", 2)


def test_all_rows_may_be_negative():
    from jfric.numerics.lemke import lemke

    found = lemke(jnp.eye(2), jnp.array([-10.0, -20.0]))
    assert bool(found.solved)
    np.testing.assert_allclose(found.z, [10.0, 20.0], rtol=1e-14)
