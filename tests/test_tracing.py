"""For which platform programs are traced; garbage waits meanwhile."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import jaxprs_in_params

import jfric
from jfric.numerics.loops import once, skipped
from jfric.numerics.tracing import KERNELS, collecting_later, traced_for, tracing_for

CONFIGS = Path(__file__).parents[1] / "configs"


@jax.jit
def _both(x):
    y = once(2.0 * x, x < 3.0)
    return y + skipped(x > 0.0, lambda: jnp.sin(y), jnp.zeros(()))


def _names(jaxpr) -> list[str]:
    inner = [n for e in jaxpr.eqns for j in jaxprs_in_params(e.params) for n in _names(j)]
    return [e.primitive.name for e in jaxpr.eqns] + inner


def _conditionals() -> int:
    return _names(jax.make_jaxpr(_both)(1.0).jaxpr).count("cond")


def test_each_platform_has_a_program_of_its_own():
    """The same compiled function, again and again: what was traced for one is not used for
    another. All give the same numbers."""
    assert traced_for() == jax.default_backend()
    on_cpu = {"cpu": 2}
    for name in ("cuda", "cpu", KERNELS, "cpu", "cuda"):
        with tracing_for(name):
            assert traced_for() == name
            assert _conditionals() == on_cpu.get(name, 0)
            assert _both(1.0) == pytest.approx(2.0 + jnp.sin(2.0))
    assert tracing_for.value is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"),
    [("slider_crank", 11_500), ("g1_rimless_wheel", 21_500), ("f3_incline", 13_500)],
)
def test_programs_of_mechanisms_stay_short(name, most):
    """What is traced for a run, which a user waits for: bodies are an array program, texts of one
    form are one program, and no derivative goes through an elimination."""
    problem = jfric.load(CONFIGS / f"{name}.toml")
    leaves, structure = jax.tree.flatten(problem)

    def run(leaves):
        return jfric.simulate(jax.tree.unflatten(structure, leaves)).final.q

    assert len(_names(jax.make_jaxpr(run)(leaves).jaxpr)) <= most


def test_reading_a_mechanism_compiles_a_handful_of_programs(caplog, tmp_path):
    """Its start is put on its joints by one program; a body of another name makes another."""
    file = tmp_path / "system.toml"
    text = (CONFIGS / "slider_crank.toml").read_text("utf-8")
    file.write_text(text.replace("crank", "throw"), "utf-8")
    with jax.log_compiles(), caplog.at_level("WARNING"):
        jfric.load(file)
    found = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling ")]
    assert 0 < len(found) <= 8, found


def test_a_chosen_device_decides():
    (device, *_) = jax.devices("cpu")
    for chosen in (device, "cpu"):
        with jax.default_device(chosen):
            assert traced_for() == "cpu"


@pytest.fixture(params=[True, False])
def collects(request):
    """Whether Python looks for garbage at all."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_garbage_waits_and_is_looked_for_again(collects):
    """Who has switched it off goes on to collect by hand."""
    assert gc.isenabled() is collects
    with collecting_later():
        assert not gc.isenabled()
        with collecting_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is collects
    with pytest.raises(ValueError, match="within"), collecting_later():
        raise ValueError("within")
    assert gc.isenabled() is collects


def test_the_last_of_several_threads_ends_the_pause(collects):
    inside, leave = threading.Event(), threading.Event()

    def other():
        with collecting_later():
            inside.set()
            leave.wait(10.0)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10.0)
    with collecting_later():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join(10.0)
    assert gc.isenabled() is collects


def test_a_run_that_is_refused_leaves_no_pause_behind(collects):
    elements = {
        "mass": jfric.Mass("u", 1.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=10.0),
    }
    start = {"u": jfric.InitialState(q=0.0, v=1.0)}
    problem = jfric.Problem(("u",), elements, initial=start, time=1.0)
    with pytest.raises(jfric.ProblemError, match="flow"):
        jfric.simulate(problem, jfric.EventDriven(flow="unknown"))
    assert gc.isenabled() is collects
    jfric.simulate(problem).check()
    assert gc.isenabled() is collects
