"""Cores that sweeps are shared out to: asked for in time, and named where they are idle."""

import subprocess
import sys
import warnings

import jax
import pytest

import jfric
from jfric.numerics import cores
from jfric.sweeps import sweeping

EARLY = """
import jfric
assert jfric.use_cores(3) == 3
import jax
assert len(jax.devices()) == 3
assert jfric.use_cores(3) == 3
try:
    jfric.use_cores(2)
except jfric.ProblemError as error:
    print(error)
"""


def test_devices_are_as_many_as_asked_for_in_time():
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "cores: found 2, but JAX uses 3 already; call jfric.use_cores before the first array, and "
        "before a system is read\n"
    )


def test_what_cannot_be_is_one_sentence():
    with pytest.raises(jfric.ProblemError, match="cores: found 0, expected a whole number, at"):
        jfric.use_cores(0)
    assert jfric.use_cores(jax.local_device_count()) == jax.local_device_count()


def test_a_large_sweep_names_idle_cores_once(monkeypatch):
    problem = jfric.Problem(
        ["u"],
        {"mass": jfric.Mass("u", 1.0), "spring": jfric.Spring("u", 4.0)},
        initial={"u": jfric.InitialState(q=1.0)},
        time=0.5,
    )
    used = jax.local_device_count()
    monkeypatch.setattr(sweeping, "MANY", 3)
    monkeypatch.setattr(sweeping, "cores", lambda: used + 1)
    cores.warn_idle_cores.cache_clear()

    def sweep(count, **given):
        values = {"spring.k": jfric.Range(1.0, 2.0, count)}
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            jfric.sweep(problem, values, "final.u", progress=False, **given)
        return [str(x.message) for x in found if "cores" in str(x.message)]

    assert sweep(2) == []
    assert sweep(3, devices=used) == []
    (said,) = sweep(3)
    assert said.startswith(f"a sweep runs on {used} of {used + 1} cores; for all of them call")
    assert sweep(3) == []
    cores.warn_idle_cores.cache_clear()
