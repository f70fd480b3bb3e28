"""Several coupled contacts against independent references, which are themselves checked first."""

from __future__ import annotations

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import block, chain

import jfric

jax.config.update("jax_enable_x64", True)

MODES = {"open": jfric.Mode.OPEN, "stick": jfric.Mode.STICK, "slip+": jfric.Mode.SLIP_POS,
         "slip-": jfric.Mode.SLIP_NEG}  # fmt: skip


# The references: they agree with themselves at other tolerances and steps, with the matrix
# exponential, and with the balance of energy, and no guard is violated between their events.


@pytest.mark.slow
@pytest.mark.parametrize("module", [chain, block], ids=["chain", "block"])
def test_references_are_converged(module):
    case = {chain: "slow", block: "tall"}[module]
    fine = module.solution(case)
    coarse = module.solve(module.CASES[case], rtol=1e-12, max_step=0.02)
    ts = np.linspace(0.0, module.CASES[case].end, 101)
    n = module.reference([0.0], case)["q"].shape[1]
    assert [r[1:] for r in fine.records] == [r[1:] for r in coarse.records]
    np.testing.assert_allclose(coarse.event_times, fine.event_times, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        coarse.state(ts)[:, : 2 * n], fine.state(ts)[:, : 2 * n], rtol=0, atol=1e-10
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "case"),
    [(chain, "fast"), (chain, "slow"), (chain, "long"), (block, "flat"), (block, "tall")],
)
def test_references_are_consistent(module, case):
    data, result = module.CASES[case], module.solution(case)
    residual, exchanged = module.energy_residual(data, result, np.linspace(0.0, data.end, 101))
    assert np.abs(residual).max() < 1e-12 * exchanged
    assert module.propagation_error(data, result) < 1e-12
    assert module.admissibility(data, result, samples=5) > -1e-12


@pytest.mark.slow
def test_reference_impacts_lose_energy():
    for case in block.CASES:
        result = block.solution(case)
        assert len(result.impacts) >= 15
        assert min(result.losses) >= 0.0


# jfric against them.


SOLVER = jfric.EventDriven(flow="exact", max_events=1024)
#: Output times of every run: the first so many are uniform, the others are nodes of a quadrature.
#: One number for all cases, so that cases of the same structure share one compilation.
UNIFORM, TOTAL = 201, 8192


def _times(module, case: str) -> np.ndarray:
    return np.linspace(0.0, module.CASES[case].end, UNIFORM)


@functools.cache
def _quadrature(module, case: str) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a 10-point Gauss rule on panels between the events, in one array of
    fixed length: filled up with uniform times of weight zero."""
    end = module.CASES[case].end
    edges = np.concatenate([[0.0], module.solution(case).event_times, [end]])
    panels = np.concatenate(
        [
            np.linspace(a, b, int(np.ceil((b - a) / 0.05)) + 1)[:-1]
            for a, b in itertools.pairwise(edges)
        ]
        + [[end]]
    )
    x, w = np.polynomial.legendre.leggauss(10)
    half = 0.5 * np.diff(panels)[:, None]
    nodes = (panels[:-1, None] + half * (1.0 + x)).ravel()
    filling = TOTAL - UNIFORM - nodes.size
    return (
        np.concatenate([nodes, np.linspace(0.0, end, filling)]),
        np.concatenate([(half * w).ravel(), np.zeros(filling)]),
    )


@functools.cache
def _run(module, case: str, order: tuple[int, ...] | None = None):
    """jfric's solution at all times, and the rows of the uniform and of the quadrature times."""
    problem = module.problem(case) if order is None else module.problem(case, order)
    times = np.concatenate([_times(module, case), _quadrature(module, case)[0]])
    rank = np.argsort(times, kind="stable")
    solution = jfric.simulate(problem, SOLVER, ts=jnp.asarray(times[rank]))
    back = np.argsort(rank, kind="stable")
    return solution, back[:UNIFORM], back[UNIFORM:]


def _at(solution, rows):
    fields = ("ts", "q", "v", "a", "lambda_n", "lambda_t", "mode", "segment")
    values = [np.asarray(getattr(solution, name))[rows] for name in fields]
    return eqx.tree_at(lambda s: [getattr(s, name) for name in fields], solution, values)


def _solution(module, case: str, order: tuple[int, ...] | None = None):
    solution, uniform, _ = _run(module, case, order)
    return _at(solution, uniform)


def _groups(records, apart: float = 1e-6):
    """Records grouped by instant: (time, {contact: (from, to)}) in order of time."""
    groups: list[tuple[float, dict]] = []
    for time, contact, before, after in sorted(records):
        if not groups or time - groups[-1][0] > apart:
            groups.append((time, {}))
        groups[-1][1][contact] = (before, after)
    return groups


def _records(solution) -> list[tuple[float, str, str, str]]:
    return [
        (e["time"], e["contact"].split(".")[-1], e["from"], e["to"]) for e in solution.event_table()
    ]


#: Two hundred events, and a reference of half a minute.
SLOW = pytest.param("slow", marks=pytest.mark.slow)
LONG = pytest.param("long", marks=pytest.mark.slow)
CASES = [
    pytest.param(chain, "fast", id="chain-fast"),
    *(pytest.param(chain, c, marks=pytest.mark.slow, id=f"chain-{c}") for c in ("slow", "long")),
    pytest.param(block, "flat", marks=pytest.mark.slow, id="block-flat"),
    pytest.param(block, "tall", marks=pytest.mark.slow, id="block-tall"),
]


@pytest.mark.parametrize(("module", "case"), CASES)
def test_states_agree_with_the_reference(module, case):
    solution = _solution(module, case)
    expected = module.reference(_times(module, case), case)
    assert solution.status == jfric.Status.OK
    np.testing.assert_allclose(solution.q, expected["q"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.v, expected["v"], rtol=0, atol=1e-8)


@pytest.mark.parametrize(("module", "case"), CASES)
def test_events_agree_with_the_reference(module, case):
    found = _groups(_records(_solution(module, case)))
    expected = _groups([r[:4] for r in module.solution(case).records])
    # Impacts that leave every mode as it was change no mode and are not compared here.
    assert [changes for _, changes in found] == [changes for _, changes in expected]
    np.testing.assert_allclose([t for t, _ in found], [t for t, _ in expected], rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "case"), [case for case in CASES if not case.marks])
def test_order_of_contacts_does_not_matter(module, case):
    solution = _solution(module, case)
    count = solution.mode.shape[1]
    order = tuple(int(i) for i in np.random.default_rng(3).permutation(count))
    if module is block:
        order = (1, 0)
    other = _solution(module, case, order)
    assert other.status == jfric.Status.OK
    np.testing.assert_allclose(other.q, solution.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other.v, solution.v, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(other.mode, np.asarray(solution.mode)[:, list(order)])
    found, expected = _groups(_records(other)), _groups(_records(solution))
    assert [changes for _, changes in found] == [changes for _, changes in expected]


def _chain_powers(data, solution, ts):
    """Power lost to friction and dampers, and power of the base, from jfric's outputs."""
    q, v = np.asarray(solution.q), np.asarray(solution.v)
    gamma = np.concatenate([v, np.diff(v, axis=1)], axis=1)
    z = data.amplitude * np.sin(data.omega * ts)[:, None]
    z_dot = data.amplitude * data.omega * np.cos(data.omega * ts)[:, None]
    friction = -(np.asarray(solution.lambda_t) * gamma).sum(1)
    damping = (data.c_base * (z_dot - v) ** 2).sum(1)
    damping += (data.c_link * gamma[:, data.n :] ** 2).sum(1)
    work = ((data.k_base * (z - q) + data.c_base * (z_dot - v)) * z_dot).sum(1)
    return friction + damping, work


def _block_powers(data, solution, ts):
    v = np.asarray(solution.v)
    friction = -(np.asarray(solution.lambda_t) * (v @ data.T.T)).sum(1)
    work = np.array([data.push(t) for t in ts]) * (v[:, 0] - data.p * v[:, 2])
    return friction + data.c * v[:, 0] ** 2, work


@pytest.mark.parametrize(("module", "case"), CASES)
def test_energy_balance(module, case):
    """Energy stored + dissipated = work done; the integrals by a quadrature that is exact to
    rounding for the smooth motion between events."""
    data = module.CASES[case]
    whole, _, nodes = _run(module, case)
    solution, rows = _at(whole, nodes), whole.event_table()
    ts, weights = _quadrature(module, case)
    powers = _chain_powers if module is chain else _block_powers
    lost, work = (float(weights @ p) for p in powers(data, solution, ts))
    ends = _solution(module, case)
    q, v = np.asarray(ends.q)[[0, -1]], np.asarray(ends.v)[[0, -1]]
    if module is chain:
        stored = chain.stored_energy(data, np.array([0.0, data.end]), q, v)
    else:
        stored = block.stored_energy(data, q, v)
        shocks = {r["time"]: r for r in rows if r["impact"]}.values()
        before, after = (sum(0.5 * r[k] @ data.M @ r[k] for r in shocks) for k in ("v_before", "v"))
        lost += before - after
    exchanged = abs(lost) + abs(work)
    assert abs(stored[1] - stored[0] + lost - work) < 1e-10 * exchanged


@pytest.mark.parametrize("case", ["fast", SLOW, LONG])
def test_friction_law_holds_on_the_chain(case):
    """Forces within their limits, opposed to sliding, and balanced with the accelerations."""
    data, solution = chain.CASES[case], _solution(chain, case)
    caps = np.concatenate([data.ground, data.link])
    q, v, a = (np.asarray(x) for x in (solution.q, solution.v, solution.a))
    force, mode = np.asarray(solution.lambda_t), np.asarray(solution.mode)
    gamma = np.concatenate([v, np.diff(v, axis=1)], axis=1)
    assert np.all(np.abs(force) <= caps * (1.0 + 1e-10))
    stick = mode == MODES["stick"]
    assert np.abs(gamma[stick]).max() < 1e-14
    for name, sign in (("slip+", 1.0), ("slip-", -1.0)):
        sliding = mode == MODES[name]
        assert np.all(sign * gamma[sliding] > -1e-12)
        limits = np.broadcast_to(caps, force.shape)[sliding]
        np.testing.assert_allclose(force[sliding], -sign * limits, rtol=1e-13)
    assert np.all(stick | (mode == MODES["slip+"]) | (mode == MODES["slip-"]))
    system = chain._System(data)
    for t, q_t, v_t, a_t, force_t in zip(_times(chain, case), q, v, a, force, strict=True):
        residual = data.m * a_t - system.applied(t, q_t, v_t) - system.W.T @ force_t
        assert np.abs(residual).max() < 1e-10


@pytest.mark.parametrize("case", ["flat", "tall"])
def test_contact_laws_hold_on_the_block(case):
    data, solution = block.CASES[case], _solution(block, case)
    q, v, a = (np.asarray(x) for x in (solution.q, solution.v, solution.a))
    normal, tangential = np.asarray(solution.lambda_n), np.asarray(solution.lambda_t)
    mode, scale = np.asarray(solution.mode), data.m * data.g
    gaps, gamma = q @ data.N.T, v @ data.T.T
    mu = np.array(data.mu)
    assert gaps.min() > -1e-10
    assert normal.min() > -1e-10 * scale
    assert np.abs(gaps * normal).max() < 1e-10 * scale
    assert np.all(normal[mode == MODES["open"]] == 0.0)
    assert np.abs(gaps[mode != MODES["open"]]).max() < 1e-12
    # Both contacts share one sliding velocity: the sum of their forces is what the law fixes,
    # and the reported distribution lies in both cones.
    assert np.all(np.abs(tangential) <= mu * normal + 1e-10 * scale)
    for name, sign in (("slip+", 1.0), ("slip-", -1.0)):
        sliding = mode == MODES[name]
        assert np.all(sign * gamma[sliding] > -1e-12)
        np.testing.assert_allclose(
            tangential[sliding], -sign * (mu * normal)[sliding], rtol=0, atol=1e-10 * scale
        )
    assert np.abs(gamma[mode == MODES["stick"]]).max() < 1e-12
    for t, q_t, v_t, a_t, n_t, t_t in zip(
        _times(block, case), q, v, a, normal, tangential, strict=True
    ):
        residual = data.M @ a_t - data.applied(t, q_t, v_t) - data.N.T @ n_t - data.T.T @ t_t
        assert np.abs(residual).max() < 1e-10 * scale


@pytest.mark.parametrize("case", ["fast", SLOW, LONG])
def test_stick_to_the_ground_is_exact(case):
    """The position of a body stuck to the ground is the same number at every output."""
    whole, _, _ = _run(chain, case)
    n = chain.CASES[case].n
    q, v, ts = (np.asarray(x) for x in (whole.q, whole.v, whole.ts))
    stick = np.asarray(whole.mode)[:, :n] == MODES["stick"]
    assert np.abs(v[stick]).max() == 0.0
    for i in range(n):
        changes = [r[0] for r in chain.solution(case).records if r[1] == f"ground{i}"]
        # Outputs between two changes of this contact's mode, none of them at a change.
        for a, b in itertools.pairwise([0.0, *changes, chain.CASES[case].end]):
            rows = (ts > a + 1e-9) & (ts < b - 1e-9) & stick[:, i]
            assert np.ptp(q[rows, i]) == 0.0 if np.any(rows) else True


@pytest.mark.parametrize("k", [0.2, 0.5, 0.8])
def test_a_rocking_block_comes_to_rest_without_restitution(k):
    """Two corners push each other off, with r = (1 - k)/(1 + k) of the speed, k = m l^2/I.

    The first impact comes after t with the speed w; flights of 2 r^i w/a follow, i = 1, 2, ...
    """
    h, g, end = 0.01, 9.81, 1.0
    corners = {"A": {"z": 1.0, "theta": 1.0}, "B": {"z": 1.0, "theta": -1.0}}
    problem = jfric.Problem(
        ("z", "theta"),
        {
            "mass": {"m": jfric.Mass("z", 1.0), "I": jfric.Mass("theta", 1.0 / k)},
            "contact": {name: jfric.Contact(corner) for name, corner in corners.items()},
            "load": jfric.Load("z", -g),
        },
        initial={"z": jfric.InitialState(q=h / 2), "theta": jfric.InitialState(q=-h / 2)},
        time=end,
    )
    solution = jfric.simulate(problem, jfric.EventDriven(max_events=200), ts=[0.5, end])
    a, r = 2 * g * k / (1 + k), (1 - k) / (1 + k)
    rest = np.sqrt(2 * h / a) * (1 + 2 * r / (1 - r))
    assert solution.status == jfric.Status.OK
    assert int(solution.flags) & int(jfric.Flag.ZENO)
    rows = solution.event_table()
    assert abs(rows[-1]["time"] - rest) < 1e-7 * rest
    # Each flight is r times the one before, down to the last.
    times = np.array([row["time"] for row in rows if row["impact"]])
    flights = np.diff(times)
    np.testing.assert_allclose(flights[1:5] / flights[:4], r, rtol=1e-9)
    np.testing.assert_allclose(solution.v, 0.0, atol=1e-15)
    np.testing.assert_allclose(solution.q, 0.0, atol=1e-15)
    np.testing.assert_allclose(solution.lambda_n[-1], g / 2, rtol=1e-12)
