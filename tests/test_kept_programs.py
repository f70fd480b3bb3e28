"""Programs that another process has traced."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.numerics import kept_programs
from jfric.numerics.compilation import compilation_folder
from jfric.numerics.kept_programs import Kept, NotKeptError, fingerprint
from jfric.numerics.tracing import warn_once
from jfric.solvers.simulation import _solve
from jfric.system.mechanics import inverse_of_mass


def _problem(mu=0.3, potential="x^2", k=40.0):
    return jfric.Problem(
        dofs=("x",),
        elements={
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", k=k),
            "friction": jfric.Friction("x", jfric.Coulomb(mu), N=1.0),
            "lagrangian": jfric.Lagrangian(potential=f"0.1*{potential}"),
        },
        initial={"x": jfric.InitialState(0.1)},
        time=1.0,
    )


def test_a_function_with_options_of_the_compiler_is_a_part_of_another_program():
    def square(x):
        return x**2

    kept = Kept(square, options=lambda: {"xla_backend_optimization_level": 0})
    assert jax.jit(lambda x: kept(x) + kept(jnp.asarray(2.0)))(3.0) == 13.0
    assert jax.grad(kept)(3.0) == 6.0
    assert kept(3.0) == 9.0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of programs; a list of those that are traced."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    monkeypatch.setattr(kept_programs, "compilation_folder", compilation_folder)
    traced = []
    made = Kept._made
    monkeypatch.setattr(
        Kept, "_made", lambda self, *x: traced.append(self.function) or made(self, *x)
    )
    yield tmp_path / "programs", traced
    jax.config.update("jax_compilation_cache_dir", before)


def _simulated(problem, solver=None):
    """As another process would: by an object that has seen no program."""
    ts = jnp.linspace(0.0, 1.0, 5)
    return Kept(_solve)(solver or jfric.EventDriven(), None, problem, ts, None, 0)


def test_other_numbers_run_without_being_traced(folder):
    files, traced = folder
    first = _simulated(_problem())
    assert traced == [_solve]
    assert len(list(files.glob("*.program"))) == 1
    again, other = _simulated(_problem()), _simulated(_problem(0.2, k=30.0))
    assert traced == [_solve]
    assert jax.tree.structure(again) == jax.tree.structure(first)
    for a, b in zip(*map(jax.tree.leaves, (first, again)), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    expected = jfric.simulate(_problem(0.2, k=30.0), ts=jnp.linspace(0.0, 1.0, 5))
    np.testing.assert_allclose(other.q, expected.q, rtol=0.0, atol=1e-15)
    assert abs(float(other.q[-1, 0] - first.q[-1, 0])) > 1e-3
    assert other.names == expected.names
    assert jfric.get_parameter(_problem(0.2), "friction.mu") == 0.2


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        pytest.param(_problem(potential="x^4"), None, marks=pytest.mark.slow),
        (_problem(potential="x^4"), jfric.MoreauJean(1e-2)),
        pytest.param(_problem(), jfric.EventDriven(max_events=7), marks=pytest.mark.slow),
        pytest.param(_problem(), jfric.EventDriven(flow="runge-kutta"), marks=pytest.mark.slow),
    ],
    ids=["text", "text of another solver", "size", "flow"],
)
def test_another_structure_is_another_program(folder, problem, solver):
    _, traced = folder
    _simulated(_problem(), solver if isinstance(solver, jfric.MoreauJean) else None)
    found = _simulated(problem, solver)
    assert len(traced) == 2
    expected = jfric.simulate(problem, solver, ts=jnp.linspace(0.0, 1.0, 5))
    np.testing.assert_allclose(found.q, expected.q, rtol=0.0, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("field", ["sources", "setting"])
def test_programs_of_other_versions_are_left_alone(folder, monkeypatch, field):
    _, traced = folder
    _simulated(_problem())
    if field == "sources":
        surroundings = kept_programs.surroundings()
        monkeypatch.setattr(kept_programs, "surroundings", lambda: (*surroundings, "changed"))
        _simulated(_problem())
    else:
        with jax.numpy_dtype_promotion("strict"):
            _simulated(_problem())
    assert len(traced) == 2


@pytest.mark.slow
def test_a_file_that_is_cut_off_is_made_again(folder):
    files, traced = folder
    first = _simulated(_problem())
    (path,) = files.glob("*.program")
    path.write_bytes(path.read_bytes()[:1000])
    second = _simulated(_problem())
    assert len(traced) == 2
    np.testing.assert_array_equal(first.q, second.q)
    _simulated(_problem())
    assert len(traced) == 2


@pytest.mark.slow
def test_programs_that_call_python_are_not_kept(folder):
    files, traced = folder
    problem, solver = _problem(), jfric.Smoothed(width=1e-3)
    for _ in range(2):
        found = _simulated(problem, solver)
    assert len(traced) == 2
    assert not files.exists()
    expected = jfric.simulate(problem, solver, ts=jnp.linspace(0.0, 1.0, 5))
    np.testing.assert_allclose(found.q, expected.q, rtol=0.0, atol=1e-15)


def test_programs_that_jax_does_not_store_are_not_kept(folder, monkeypatch):
    """JAX promises nothing about the pivoted QR decomposition of other versions."""
    files, traced = folder
    monkeypatch.setattr(kept_programs, "_name", lambda x: f"{x.__module__}.{x.__qualname__}")
    q, r, order = Kept(_pivoted)(np.diag([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(q @ r, np.diag([1.0, 3.0, 2.0])[:, order], atol=1e-14)
    assert len(traced) == 1
    assert not files.exists()


def _pivoted(a):
    return jax.scipy.linalg.qr(a, pivoting=True)


def _gains(t, y, u):
    return u


def test_functions_from_outside_are_not_kept(folder):
    """Their names do not say what they do: the next process may find others."""
    files, traced = folder
    scale = jnp.asarray(3.0)

    def scaled(x):
        return scale * x

    assert float(Kept(scaled)(2.0)) == 6.0
    assert float(Kept(scaled).ready(jnp.asarray(2.0))()) == 6.0
    assert not traced
    assert not files.exists()
    for value in (lambda x: x, _gains, object(), _problem):
        with pytest.raises(NotKeptError):
            fingerprint(value)
    assert fingerprint(jnp.sin) != fingerprint(jnp.cos)


class OwnLaw(jfric.Coulomb):
    """A law of the user's own, whose methods the next process may find changed."""


def test_laws_of_the_users_own_are_not_kept(folder):
    files, traced = folder
    problem = _problem()
    problem.elements["friction"]["friction"] = jfric.Friction("x", OwnLaw(0.3), N=1.0)
    with pytest.raises(NotKeptError):
        fingerprint(problem)
    found = _simulated(problem)
    assert not traced
    assert not files.exists()
    expected = jfric.simulate(_problem(), ts=jnp.linspace(0.0, 1.0, 5))
    np.testing.assert_allclose(found.q, expected.q, rtol=0.0, atol=1e-12)


def test_names_tell_apart_what_programs_depend_on():
    same = [np.zeros(3), np.ones(3)]
    assert len({fingerprint(x) for x in same}) == 1
    others = [0.0, 1.0, 1, True, "1", None, (1, 2), (12,), ((1,), 2), (1, (2,)), [1, 2], {1: 2}]
    others += [np.zeros(2), np.zeros((3, 1)), np.zeros(3, np.float32), jnp.zeros(3), b"1"]
    others += [jfric.Mode.STICK, jfric.EventDriven(), jfric.EventDriven(rtol=1e-7), -0.0, {2: 1}]
    others += [
        jfric.Coulomb(0.1),
        _problem(),
        _problem(potential="2*x"),
        jfric.Coulomb,
        jnp.asarray(0.0),
    ]
    assert len({fingerprint(x) for x in others}) == len(others)


def test_remarks_of_tracing_are_repeated(folder):
    _, traced = folder
    with jax.enable_x64(False):
        for _ in range(2):
            warn_once.cache_clear()
            with pytest.warns(UserWarning, match="float32"):
                _simulated(_problem())
    assert len(traced) == 1


@pytest.mark.slow
def test_programs_that_were_not_used_for_longest_go(folder, monkeypatch):
    files, traced = folder
    _simulated(_problem())
    (first,) = files.iterdir()
    monkeypatch.setattr(kept_programs, "MOST", first.stat().st_size - 1)
    _simulated(_problem(potential="x^4"))
    assert not first.exists()
    assert len(list(files.iterdir())) == 1
    _simulated(_problem(potential="x^4"))
    assert len(traced) == 2


@pytest.mark.slow
def test_programs_that_are_forgotten_are_read_again(folder):
    files, traced = folder
    kept = Kept(inverse_of_mass)
    before = kept(np.eye(3))
    kept_programs.forget_programs()
    (path,) = files.iterdir()
    path.unlink()
    np.testing.assert_array_equal(kept(np.eye(3)), before)
    assert len(traced) == 2
    kept(2.0 * np.eye(3))
    assert len(traced) == 2


@pytest.mark.slow
def test_traced_calls_are_a_part_of_the_caller(folder):
    _, traced = folder
    slope = jax.grad(lambda k: _simulated(_problem(k=k)).q[-1, 0])(40.0)
    both = jax.vmap(lambda k: _simulated(_problem(k=k)).q[-1, 0])(jnp.asarray([40.0, 40.001]))
    assert not traced
    assert float(slope) == pytest.approx(float(both[1] - both[0]) / 0.001, rel=1e-3)


def test_another_process_finds_the_functions_of_lapack(folder):
    """They are fetched while a program is traced: one that is read must not be without."""
    files, traced = folder
    M = np.eye(9) + 0.1
    found = Kept(inverse_of_mass)(M)
    np.testing.assert_allclose(found @ M, np.eye(9), atol=1e-14)
    assert traced == [inverse_of_mass]
    text = f"""
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", {str(files.parent)!r})
from jfric.numerics.kept_programs import Kept
from jfric.system.mechanics import inverse_of_mass
Kept._made = None
M = np.eye(9) + 0.1
assert np.allclose(Kept(inverse_of_mass)(M) @ M, np.eye(9), atol=1e-14)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
