"""Programs for an accelerator, lowered on a machine without one: what they call, how they loop."""

from __future__ import annotations

import functools
import os
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.extend.core import jaxprs_in_params
from jax.interpreters.mlir import ir_constant

import jfric
from jfric.fits.data.stacking import function_paths
from jfric.numerics.compilation import compiles_lowered, platform, quick_options
from jfric.numerics.tracing import tracing_for
from jfric.solvers.sampled.run import run_sampled
from jfric.sweeps import runner
from jfric.sweeps.sweeping import prepare
from jfric.sweeps.tiles import start_layout

LANES = 12_345
STILL = jfric.InitialState(q=0.0, v=0.0)
#: Libraries of the accelerator, and notes to the compiler.
ALLOWED = re.compile(r"cu(solver|blas|sparse|fft|dnn|da|_)\w*|Sharding|SPMD\w*|annotate_\w+")


def exported(call, *arguments) -> str:
    """The program of ``call`` for CUDA, traced for it. Lowering itself refuses Python callbacks:
    they need the device."""
    with tracing_for("cuda"):
        return export.export(jax.jit(call), platforms=["cuda"])(*arguments).mlir_module()


def lanes(*shape: int):
    return jax.ShapeDtypeStruct((LANES, *shape), jnp.float64)


def foreign_calls(program: str) -> list[str]:
    """Calls of libraries that an accelerator does not have."""
    called = re.findall(r"custom_call @([\w$.]+)", program)
    return sorted({name for name in called if not ALLOWED.fullmatch(name)})


@functools.cache
def oscillator() -> jfric.Problem:
    elements = {
        "mass": jfric.Mass("u", 100.0),
        "spring": jfric.Spring("u", 5000.0),
        "friction": jfric.Friction("u", jfric.Coulomb(0.1), N=1000.0),
        "load": jfric.Load("u", 1500.0),
    }
    return jfric.Problem(("u",), elements, initial={"u": STILL}, time=4.0)


@functools.cache
def block() -> jfric.Problem:
    """Thrown onto two corners."""
    corners = {
        name: jfric.Contact({"y": 1.0, "a": side}, {"x": 1.0, "a": 0.3}, jfric.Coulomb(0.3), e=0.3)
        for name, side in (("l", -0.5), ("r", 0.5))
    }
    elements = {
        "mass": {axis: jfric.Mass(axis, 1.0) for axis in "xya"},
        "contact": corners,
        "load": {"g": jfric.Load("y", -9.81), "f": jfric.Load("x", jfric.Harmonic(5.0, 7.0))},
    }
    start = {"x": STILL, "y": jfric.InitialState(q=0.05, v=0.0), "a": STILL}
    return jfric.Problem(("x", "y", "a"), elements, initial=start, time=3.0)


@functools.cache
def chain(n: int, massless: bool = False) -> jfric.Problem:
    """So long a row of masses that its matrices are a library's."""
    names = tuple(f"x{i}" for i in range(n))
    springs = {
        x: jfric.Spring(x if i == 0 else (names[i - 1], x), 50.0) for i, x in enumerate(names)
    }
    elements = {
        "spring": springs,
        "friction": {x: jfric.Friction(x, jfric.Coulomb(0.3), N=10.0) for x in names},
        "load": jfric.Load(names[-1], jfric.Harmonic(20.0, 5.0)),
    }
    if not massless:
        elements["mass"] = {x: jfric.Mass(x, 1.0) for x in names}
    return jfric.Problem(names, elements, initial=dict.fromkeys(names, STILL), time=1.0)


slow = pytest.mark.slow


@functools.cache
def switched() -> jfric.Problem:
    """Pulled over spring-slider elements, and put back by an event."""
    elements = {
        **oscillator().elements,
        "jenkins": jfric.Jenkins("u", k=2000.0, R=300.0),
        "event": jfric.Event("u - 0.1", "up", change={"v.u": "-0.5*v.u"}),
    }
    return jfric.Problem(("u",), elements, initial={"u": STILL}, time=4.0)


CASES = {
    "event-driven": (oscillator, jfric.EventDriven()),
    "stored states": (oscillator, jfric.EventDriven(adjoint="reverse")),
    **{
        f"{kernel} kernel": (oscillator, jfric.EventDriven(kernel=kernel))
        for kernel in ("general", "lowered")
    },
    **{
        f"{kernel} kernel, runge-kutta": (
            oscillator, jfric.EventDriven(kernel=kernel, flow="runge-kutta")
        )
        for kernel in ("general", "lowered")
    },
    "lowered kernel, several contacts": (
        lambda: chain(2), jfric.EventDriven(kernel="lowered", adjoint="none")
    ),
    "events and sliders": (switched, jfric.EventDriven()),
    "general kernel, impacts": (block, jfric.EventDriven(kernel="general")),
    "general kernel, many contacts": (lambda: chain(34), jfric.EventDriven(kernel="general")),
    "moreau-jean": (oscillator, jfric.MoreauJean(dt=1e-3)),
    "midpoint": (oscillator, jfric.Midpoint(dt=1e-3)),
    "stabilised-midpoint": (oscillator, jfric.StabilisedMidpoint(dt=1e-3)),
    "moreau-jean, impacts": (block, jfric.MoreauJean(dt=1e-3)),
    "moreau-jean, many contacts": (lambda: chain(34), jfric.MoreauJean(dt=1e-3)),
    "quasi-static": (oscillator, jfric.QuasiStatic()),
    "quasi-static, many contacts": (lambda: chain(34, massless=True), jfric.QuasiStatic()),
}  # fmt: skip
#: What takes longer than a second or two.
QUICK = ("event-driven", "general kernel", "moreau-jean", "quasi-static")


def test_calls_of_a_cpu_are_seen():
    """What the tests below look for is there where it should be."""
    given = jax.ShapeDtypeStruct((40, 40), jnp.float64)
    assert not foreign_calls(exported(jnp.linalg.inv, given))
    on_cpu = export.export(jax.jit(jnp.linalg.inv), platforms=["cpu"])(given).mlir_module()
    assert "lapack_dgetrf_ffi" in foreign_calls(on_cpu)
    with pytest.raises(ValueError, match="different from the lowering platform cuda"):
        exported(lambda x: jax.pure_callback(np.sin, x, x), given)


def outputs(problem: jfric.Problem, solver):
    """A run for each value of the first coefficient of friction."""
    path = next(p for p in jfric.parameters(problem) if p.endswith("mu"))

    def one(mu):
        changed = jfric.set_parameters(problem, {path: mu})
        found = jfric.simulate(changed, solver, ts=jnp.linspace(0.0, 1.0, 5))
        return found.q, found.lambda_t, found.status, found.events.time

    return jax.vmap(one)


@pytest.mark.parametrize("case", [pytest.param(c, marks=() if c in QUICK else slow) for c in CASES])
def test_a_run_calls_nothing_that_only_a_cpu_has(case):
    make, solver = CASES[case]
    assert not foreign_calls(exported(outputs(make(), solver), lanes()))


@slow
def test_a_sampled_run_calls_nothing_that_only_a_cpu_has():
    problem, times = oscillator(), jnp.linspace(0.0, 1.0, 50)
    slots = {"load.F": function_paths(problem)["load.F"]}

    def one(push):
        return run_sampled(problem, times, {"load.F": push}, slots)

    assert not foreign_calls(exported(jax.vmap(one), lanes(50)))


@slow
def test_callbacks_of_the_smoothed_solver_stay_outside_its_loop():
    """diffrax refuses output times that decrease by a callback; it is called where they do."""
    run = outputs(oscillator(), jfric.Smoothed())
    callbacks = {}

    def visit(jaxpr, inside):
        for eqn in jaxpr.eqns:
            if "callback" in eqn.primitive.name:
                callbacks.setdefault(eqn.primitive, []).append(inside)
            for inner in jaxprs_in_params(eqn.params):
                visit(inner, (*inside, eqn.primitive.name))

    visit(jax.make_jaxpr(run)(lanes()).jaxpr, ())
    (primitive,) = callbacks
    assert callbacks[primitive]
    for inside in callbacks[primitive]:
        assert "cond" in inside
        assert not {"while", "scan"} & set(inside)

    def instead(ctx, *arguments, **params):
        """The result as if nothing were wrong: a callback itself cannot be lowered here."""
        return [ir_constant(np.zeros(x.shape, x.dtype)) for x in ctx.avals_out]

    program = export.export(
        jax.jit(run), platforms=["cuda"], _override_lowering_rules=((primitive, instead),)
    )
    assert not foreign_calls(program(lanes()).mlir_module())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_rows_of_a_sweep_are_chosen_by_platform(name):
    """An accelerator steps the whole batch at once; a processor goes from row to row."""
    job = prepare(oscillator(), {"friction.mu": jfric.Range(0.1, 0.4, LANES)}, "final.u,max.v").job
    layout = start_layout(
        (LANES,),
        devices=1,
        platform=platform(name),
        small=job.solver.has_small_passes(job.problem),
        chunk=None,
        block=None,
        max_steps=job.most_passes,
        lane_bytes=20,
    )
    shape = (layout.rows, layout.lanes)

    def rows(values, budgets):
        devices = tuple(jax.local_devices()[:1])
        static = (job.names, job.observables, job.solver, devices)
        return runner._rows(job.problem, values, budgets, *static)

    def one_row(values, budgets):
        def lane(x, budget):
            return runner._trajectory(
                job.problem, x, budget, job.names, job.observables, job.solver
            )

        return jax.vmap(lane)(values, budgets)

    values = jax.ShapeDtypeStruct((*shape, 1), jnp.float64)
    budgets = jax.ShapeDtypeStruct(shape, jnp.int32)

    def loops(call, *arguments):
        if name == "cuda":
            program = exported(call, *arguments)
            assert not foreign_calls(program)
        else:
            program = export.export(jax.jit(call), platforms=[name])(*arguments).mlir_module()
        return program.count("stablehlo.while")

    row = (jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in (values, budgets))
    more = loops(rows, values, budgets) - loops(one_row, *row)
    if name == "cuda":
        assert (layout.rows, more) == (1, 0)
        assert layout.lanes >= LANES
    else:
        assert layout.rows > 1
        assert more == 1


@pytest.mark.slow
@pytest.mark.skipif(not compiles_lowered(), reason="a jaxlib whose flags are not known")
def test_programs_that_compile_for_minutes_are_warned_of(monkeypatch):
    solver = jfric.EventDriven(kernel="lowered", adjoint="none")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.eval_shape(lambda problem: jfric.simulate(problem, solver).final.q, chain(2))
    monkeypatch.setenv("XLA_FLAGS", "")
    with pytest.warns(UserWarning, match=r"call jfric\.compile_quickly\(\) before"):
        jax.eval_shape(lambda problem: jfric.simulate(problem, solver).final.q, chain(3))


def test_what_the_environment_asks_of_the_compiler_stays(monkeypatch):
    wide = "xla_cpu_prefer_vector_width"
    for flags, expected in (("", 512), (f"--{wide}=256", None)):
        monkeypatch.setenv("XLA_FLAGS", flags)
        assert quick_options().get(wide) == expected
        jfric.compile_quickly()
        set_now = os.environ["XLA_FLAGS"].split()
        if len(set_now) > 1:  # a jaxlib whose flags are known
            assert [x for x in set_now if wide in x] == [f"--{wide}={expected or 256}"]
