"""A verification in several processes."""

import multiprocessing
import multiprocessing.util
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import jfric
from jfric.verification.jobs import Job
from jfric.verification.runner import processes, submitted

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


def test_results_of_two_processes_come_back_whole(tmp_path):
    """The trajectory of a file, and the refusal of another one: both are pickled on the way."""
    slide = tmp_path / "slide.toml"
    slide.write_text(
        'dofs = ["x"]\nmass = {dof = "x", m = 2.0}\nload = {dof = "x", F = 3.0}\ntime.end = 2.0\n'
        '[[check]]\nquantity = "x(2)"\nexpected = 3.0\ntolerance = 1e-12\n'
    )
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('dofs = ["x"]\nmass = {dof = "x", m = -2.0}\ntime.end = 2.0\n')
    seen = {}
    results = jfric.verify(
        [slide, wrong],
        each=lambda job, computed, found: seen.update({job.case: computed}),
        processes=2,
    )
    assert [(r.case, r.passed) for r in results] == [("slide", True), ("wrong", False)]
    assert "mass.m" in results[1].quantity
    assert seen["wrong"] is None
    np.testing.assert_allclose(seen["slide"].solution.q[-1], [3.0], rtol=1e-12)


@pytest.mark.slow
def test_a_process_that_ends_fails_what_it_was_at_alone():
    results = jfric.verify(case=CASES, observe=die_at_one, processes=2)
    passed = {r.case: True for r in results}
    for r in results:
        passed[r.case] &= r.passed
    assert len(passed) > 4
    assert {case for case, good in passed.items() if not good} == {"c10_conveyor"}
    assert any("its process ended" in r.quantity for r in results)


def test_an_error_ends_the_processes_of_the_block_alone():
    """Other processes of the program go on."""
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    mine = []

    def fails():
        with processes(1, bool) as pool:
            assert submitted(pool, abs, -3).result() == 3
            mine.extend(set(multiprocessing.active_children()) - {other})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    for process in mine:
        process.join(20)
    other.join(1)
    assert [process.is_alive() for process in (other, *mine)] == [True, False]
    other.kill()
    other.join()


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked here")
def test_an_interruption_is_not_for_a_process_that_begins():
    """It would end in the middle of its imports, and say so."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert submitted(pool, abs, -3).result() == 3
        (child,) = multiprocessing.active_children()
        blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
        assert signal.SIGINT in blocked
        os.kill(child.pid, signal.SIGINT)
        assert submitted(pool, abs, -4).result() == 4
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.skipif(os.name != "posix", reason="processes start otherwise here")
def test_an_interruption_waits_until_a_process_is_told_what_to_do(monkeypatch):
    """Between its start and what it is to read it would find nothing, and say so."""
    start, ended, pids = multiprocessing.util.spawnv_passfds, threading.Event(), []
    other = threading.Thread(target=ended.wait)
    other.start()  # takes the signal that is blocked in this thread

    def started(*arguments):
        pids.append(start(*arguments))
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return pids[-1]

    # A shell ignores it for what it runs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        with monkeypatch.context() as patched:
            patched.setattr(multiprocessing.util, "spawnv_passfds", started)
            with pytest.raises(KeyboardInterrupt):
                submitted(pool, abs, -3)
        assert submitted(pool, abs, -4).result(timeout=60) == 4
        assert pids == [process.pid for process in multiprocessing.active_children()]
    signal.signal(signal.SIGINT, before)
    ended.set()
    other.join()
