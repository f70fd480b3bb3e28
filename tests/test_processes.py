"""A verification in several processes."""

import os

import pytest

import jfric
from jfric.verification.jobs import Job

CASES = "c1[0-3]*"


def final_state(job, computed):
    """Sent back in place of a whole trajectory."""
    return computed.solution.q[-1].tolist() if isinstance(job, Job) else None


def die_at_one(job, computed):
    """The end of a process, as for want of memory."""
    if job.case == "c10_conveyor":
        os._exit(9)


@pytest.mark.slow
def test_several_processes_find_what_one_does():
    """All results in the same order, and what was observed of each job."""
    found = {}
    here, there = {}, {}
    for seen, number in ((here, 1), (there, 2)):
        found[number] = jfric.verify(
            case=CASES,
            each=lambda job, made, results, seen=seen: seen.update({(job.case, job.label): made}),
            observe=final_state,
            processes=number,
        )
    assert found[1] == found[2]
    assert here == there
    assert len(here) > 8


@pytest.mark.slow
def test_a_process_that_ends_fails_what_it_was_at_alone():
    results = jfric.verify(case=CASES, observe=die_at_one, processes=2)
    passed = {r.case: True for r in results}
    for r in results:
        passed[r.case] &= r.passed
    assert len(passed) > 4
    assert {case for case, good in passed.items() if not good} == {"c10_conveyor"}
    assert any("its process ended" in r.quantity for r in results)
