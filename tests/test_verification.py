import dataclasses
import fnmatch
import json
import math

import equinox as eqx
import jax
import numpy as np
import pytest
from trajectories import HALF_PERIOD, machine, oscillator

import jfric
from jfric.files.read_toml import load_config
from jfric.results.quantity import parse_quantity, resolve
from jfric.verification import jobs
from jfric.verification.configs import config_directory, files_in, shipped
from jfric.verification.evaluate import Trajectory, evaluate, scale
from jfric.verification.job_lists import cases, listed_jobs
from jfric.verification.jobs import batches, judge
from jfric.verification.result import compare
from jfric.verification.runner import agreement


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("u(4)", 0.32),
        ("v.u(0)", 0.0),
        ("a.u(1)", 0.0),
        ("lambda_t.friction(0)", -100.0),
        ("lambda_t(4)", 100.0),
        ("event_time(7)", 7 * HALF_PERIOD),
        ("event.u(1)", 0.56),
        ("event_v.u(1)", 0.0),
        ("event_v_before.u(1)", 0.0),
        ("event_count", 7.0),
        ("impact_count", 0.0),
        ("final.u", 0.32),
        ("final_v.u", 0.0),
        ("last_event_time", 7 * HALF_PERIOD),
        ("end_time", 7 * HALF_PERIOD),
        ("slip.friction(4)", 0.0),
        ("force.spring(4)", -0.32 * 5000.0),
    ],
)
def test_evaluate(text, value):
    assert value_of(text, oscillator()) == pytest.approx(value, abs=1e-15)


def value_of(text, trajectory):
    problem, solution = trajectory
    quantity = resolve(parse_quantity(text), problem)
    return evaluate(quantity, Trajectory(problem, solution))


@pytest.mark.slow
def test_evaluate_with_contacts_and_impacts():
    trajectory = machine(outputs=51)
    assert value_of("lambda_n.contact(10)", trajectory) == 9.81
    assert value_of("lambda_n(10)", trajectory) == 9.81
    assert value_of("lambda_t.friction.hinge(0.2)", trajectory) == 1.0
    assert value_of("force.gap_spring(10)", trajectory) == pytest.approx(-(np.sin(10.0) - 0.1))
    assert value_of("event_v_before.arm(1)", trajectory) == -1.0
    assert value_of("impact_count", trajectory) == 1.0
    with pytest.raises(jfric.ProblemError, match=r"no quantity 'lambda_t.x'"):
        value_of("lambda_t.x(0.2)", trajectory)
    with pytest.raises(jfric.ProblemError, match=r"did you mean 'cart'"):
        value_of("card(0.2)", trajectory)
    with pytest.raises(jfric.ProblemError, match="positions and velocities only are known before"):
        value_of("before_event.lambda_n(1)", trajectory)


def test_a_missing_event_fails():
    result = compare(parse_quantity("event_time(8)"), 3.5, Trajectory(*oscillator()), tolerance=1e9)
    assert np.isnan(result.value)
    assert not result.passed
    assert result.as_dict()["value"] is None


def test_errors_are_relative_to_the_peak_or_the_time():
    trajectory = Trajectory(*oscillator())
    assert scale(parse_quantity("u(0)"), 0.0, trajectory) == 0.56
    assert scale(parse_quantity("event_time(1)"), 2.0, trajectory) == 2.0
    assert scale(parse_quantity("event_count"), 7.0, trajectory) == 0.0
    assert scale(parse_quantity("dissipated"), 7.0, trajectory) == 7.0
    quantity = parse_quantity("u(4)")
    assert compare(quantity, 0.32 + 1e-8, trajectory, relative=1e-7).passed
    assert not compare(quantity, 0.32 + 1e-7, trajectory, relative=1e-7).passed
    assert not compare(quantity, 0.32 + 1e-7, trajectory, tolerance=1e-8).passed


def test_judge_reports_an_incomplete_trajectory_and_a_wrong_sequence():
    job = next(job for job in listed_jobs("ve0116", "exact"))
    problem, solution = oscillator()
    trajectory = Trajectory(problem, solution)
    job = dataclasses.replace(job, checks=())
    assert [r.passed for r in judge(job, trajectory)] == [True]
    stopped = eqx.tree_at(lambda s: s.status, solution, np.array(2))
    result = judge(job, Trajectory(problem, stopped))[-1]
    assert result.quantity == "status: stopped before the end time: raise max_steps"
    assert not result.passed
    wrong = judge(
        dataclasses.replace(job, sequence=(*job.sequence[:-1], "slip+ > slip-")), trajectory
    )
    assert wrong[0].value == 1.0


@pytest.mark.slow
def test_a_case_that_cannot_run_fails_and_the_others_go_on(monkeypatch):
    possible = jobs.run_batch

    def run_batch(group):
        if group[0].solver.flow != "exact":
            return possible(group)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory\nmore")

    monkeypatch.setattr(jobs, "run_batch", run_batch)
    results = jfric.verify(case="c8_incline")
    exact = [r for r in results if r.solver == "event-driven (exact)"]
    assert exact[-1].quantity == "did not run: RESOURCE_EXHAUSTED: out of memory"
    assert len(exact) > 1
    assert not any(r.passed for r in exact)
    others = [r for r in results if r.solver != "event-driven (exact)"]
    assert len(others) == len(exact) - 1
    assert all(r.passed for r in others)


@pytest.mark.slow
def test_a_start_along_the_normal_of_an_ellipse():
    """The load meets the edge of what friction holds: rounding there is not for the motion."""
    results = jfric.verify(case="f5_ellipse")
    assert len(results) == 6
    assert all(r.passed for r in results)


def test_equilibria_that_cannot_be_found_fail(monkeypatch):
    def fail(self, quantity):
        raise jax.errors.JaxRuntimeError("INTERNAL: none")

    monkeypatch.setattr("jfric.verification.system_checks.SystemValues.of", fail)
    results = jfric.verify(case="janovsky_static_e1")
    assert results[-1].quantity == "did not run: INTERNAL: none"
    assert not any(r.passed for r in results)


def test_list_is_sound():
    entries = cases()
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names)
    # The largest is that of stiff bristles, against numbers of another program.
    assert max(entry.relative for entry in entries) <= 1e-7
    configs = {path.stem: load_config(path) for path in config_directory().glob("*.toml")}
    # Files that say how to read measured data are for fits.
    assert {name for name, c in configs.items() if c.data is None} == {e.config for e in entries}
    problems = {e.config: configs[e.config].problem for e in entries}
    for entry in entries:
        problem = jfric.set_parameters(problems[entry.config], entry.set)
        for expected in entry.expected:
            resolve(expected.quantity, problem)


def test_listed_numbers_are_those_of_their_formulas():
    """Closed forms of the staircase and of stops, as the comments of the list state them."""
    for entry in cases():
        values = {str(e.quantity): e.expected for e in entry.expected}
        if entry.name.startswith("ve0116 staircase"):
            rest, d = 1500.0 / 5000.0, entry.set["friction.mu"] * 1000.0 / 5000.0
            # The quotient is an exact integer on an edge, where its float may lie beyond.
            turns = max(math.ceil(round((rest / d - 1.0) / 2.0, 9)), 0)
            residual = rest - (-1) ** turns * (rest - 2 * turns * d)
            assert values["event_count"] == turns
            assert values["final.u"] == pytest.approx(residual if turns else 0.0, rel=1e-14)
            assert values.get("last_event_time", 0.0) == pytest.approx(turns * HALF_PERIOD)
        if entry.name.startswith("f2_stop load"):
            f, r = entry.set["load.F"], 0.4 / entry.set["load.F"]
            assert values["event_time(1)"] == pytest.approx(0.4 / (0.4**2 - f**2), rel=1e-14)
            assert values["final.x"] == pytest.approx(0.25 / (f * (r**2 - 1)), rel=1e-14)
            assert values["final.y"] == pytest.approx(2 * r / (f * (4 * r**2 - 1)), rel=1e-14)


def test_variants_share_a_batch():
    listed = listed_jobs("ve0116*", "exact")
    assert [len(group) for group in batches(listed)] == [len(listed)]
    assert len(listed) == 18
    assert len(batches(listed_jobs("c7_bouncing_ball*", "exact"))) == 1


@pytest.mark.slow
def test_residual_staircase_as_one_batch():
    results = jfric.verify(case="ve0116 staircase*", flow="exact")
    assert len(results) == 41
    assert all(r.passed for r in results)
    assert {r.solver for r in results} == {"event-driven (exact)"}


@pytest.mark.slow
@pytest.mark.parametrize("family", dict.fromkeys(x.name.split()[0] for x in cases()))
def test_published_values_hold(family):
    """All of ``jfric verify``, a part with each commit."""
    results = [
        r
        for own in (family, f"{family} *")
        if any(fnmatch.fnmatchcase(x.name, own) for x in cases())
        for r in jfric.verify(case=own)
    ]
    assert results
    assert [r for r in results if not r.passed] == []


@pytest.mark.slow
def test_fixed_steps_give_what_is_published_of_them():
    results = jfric.verify(case="janovsky_5_3 stabilised")
    assert len(results) == 6
    assert [r for r in results if not r.passed] == []


@pytest.mark.slow
def test_a_kernel_of_choice():
    """Another form of the computation passes the same checks; cases that it cannot run are left."""
    general = jfric.verify(case="ve0116 staircase mu=0.2*", flow="exact", kernel="general")
    assert general
    assert all(r.passed and "general kernel" in r.solver for r in general)
    with pytest.raises(jfric.ProblemError, match="no case runs with 'one-dof'"):
        jfric.verify(case="m7_gear_load", kernel="one-dof")
    with pytest.raises(jfric.ProblemError, match="did you mean 'general'"):
        jfric.verify(case="ve0119", kernel="genral")


@pytest.mark.slow
def test_all_kernels_must_agree():
    """With every kernel that can run a case; a difference between two is a failed check."""
    results = jfric.verify(case="ve0116 mu=0.11", flow="runge-kutta", kernel="all")
    assert all(r.passed for r in results)
    between = [r.quantity for r in results if r.quantity.startswith("other ")]
    names = ("status", "flags", "events", "event times", "positions")
    assert between == [f"other {x} than with the general kernel" for x in names]
    assert len(results) == 2 * 5 + len(names)


@pytest.mark.slow
def test_kernels_are_compared_however_many_processes_are_given(tmp_path):
    """Other processes send numbers back, no motions."""
    for name, spring in (("a", ""), ("b", '[spring]\ndof = "x"\nk = 1\nx0 = 1\n')):
        (tmp_path / f"{name}.toml").write_text(
            'dofs = ["x"]\ntime = {end = 1}\n[mass]\ndof = "x"\nm = 1\n[friction]\ndof = "x"\n'
            f'mu = 0.1\nN = 1\n[load]\ndof = "x"\nF = 1\n{spring}'
            '[[check]]\nquantity = "max.v"\nexpected = 1\ntolerance = 9\nsource = "wide"\n'
        )
    results = jfric.verify([tmp_path], flow="exact", kernel="all", processes=2)
    assert all(r.passed for r in results)
    compared = "other positions than with the general kernel"
    assert {r.case for r in results if r.quantity == compared} == {"a", "b"}


def test_a_difference_between_kernels_is_named():
    job = dataclasses.replace(next(iter(listed_jobs("ve0116", "exact"))), kernel="general")
    problem, solution = oscillator()
    other = eqx.tree_at(
        lambda s: (s.flags, s.q, s.events.time, s.events.to_mode, s.events.count),
        solution,
        (
            solution.flags ^ 4,
            solution.q + 1e-6,
            solution.events.time + 1e-6,
            solution.events.to_mode + 1,
            np.array(6),
        ),
    )
    same = agreement(job, Trajectory(problem, solution), job, Trajectory(problem, solution))
    assert all(r.passed and r.value == 0.0 for r in same)
    found = agreement(job, Trajectory(problem, solution), job, Trajectory(problem, other))
    assert [r.passed for r in found] == [True, False, False, False, False]
    assert [r.value for r in found] == pytest.approx([0.0, 4.0, 7.0, 1e-6, 1e-6], rel=1e-3)


@pytest.mark.slow
def test_both_flows_and_progress():
    seen = []
    results = jfric.verify(case="c8*", progress=lambda *args: seen.append(args))
    assert all(r.passed for r in results)
    assert {r.solver for r in results} == {"event-driven (exact)", "event-driven (runge-kutta)"}
    assert [(done, total) for done, total, _ in seen] == [(0, 4), (2, 4), (4, 4)]
    keys = "case quantity solver expected value error tolerance passed source"
    assert list(results[0].as_dict()) == keys.split()
    json.dumps([r.as_dict() for r in results], allow_nan=False)


@pytest.mark.slow
def test_bad_requests(tmp_path):
    with pytest.raises(jfric.ProblemError, match=r"no case 've011' \(did you mean 've011[69]'\?\)"):
        jfric.verify(case="ve011")
    with pytest.raises(jfric.ProblemError, match="no case 've011'"):
        jfric.verify(case=["ve0119", "ve011"])
    found = jfric.verify(case=["c8_incline_s*", "c8_incline"], flow="exact")
    assert [*dict.fromkeys(r.case for r in found)] == ["c8_incline", "c8_incline_stick"]
    with pytest.raises(jfric.ProblemError, match="no such file or folder"):
        jfric.verify([tmp_path / "none.toml"])
    with pytest.raises(jfric.ProblemError, match=r"found no \.toml file"):
        files_in([tmp_path])
    with jax.enable_x64(False), pytest.raises(jfric.ProblemError, match="checks need float64"):
        jfric.verify(case="c8_incline")
    with pytest.raises(jfric.ProblemError, match="no shipped configuration"):
        shipped("ve9999")


@pytest.mark.slow
def test_a_path_without_a_first_orbit_is_a_failed_check_and_the_others_stay(tmp_path):
    """A mass that an even force drives away has no periodic motion."""
    (tmp_path / "away.toml").write_text(
        """
dofs = ["x"]
[time]
end = "1 s"
[mass]
dof = "x"
m = "1 kg"
[damper]
dof = "x"
c = "1 N*s/m"
[load]
dof = "x"
F = "1 N"
[periodic]
period = "1 s"
cycles = 3
vary = "load.F"
start = 1.0
stop = 2.0
[[check]]
quantity = "fold(1)"
expected = 1.0
tolerance = 1e-3
[[check]]
quantity = "v.x(0)"
expected = 0.0
tolerance = 0.0
"""
    )
    results = jfric.verify([tmp_path / "away.toml"])
    assert [r.passed for r in results if r.quantity == "v.x(0)"] == [True]
    (failed,) = (r for r in results if r.quantity == "fold(1)")
    assert not failed.passed
    assert any(r.quantity.startswith("did not run: ") for r in results)
