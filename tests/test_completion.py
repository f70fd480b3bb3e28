"""Words that the shell completes: true ones, without waiting for JAX."""

import subprocess
import sys
import types
from pathlib import Path

import click
import pytest
import typer

import jfric
from jfric.cli.main import app
from jfric.cli.options import parameter_paths, starting_files
from jfric.verification.configs import shipped

FILES = (
    *("ve0116", "slider_crank", "g1_rimless_wheel", "m5_lugre", "janovsky_4_2_coulomb"),
    *("f3_incline", "p6_duffing", "relief_valve", "c4_belt", "m2_iwan", "janovsky_static_e1"),
)


def _completed(config: Path | str, incomplete: str = "", args=()) -> list[str]:
    context = types.SimpleNamespace(params={"config": config}, args=list(args))
    return parameter_paths(context, incomplete)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", FILES)
def test_paths_are_parameters(name):
    problem = jfric.load(shipped(name))
    found = _completed(shipped(name))
    assert len(found) > 3
    for path in found:
        assert path.endswith("=")
        jfric.get_parameter(problem, path[:-1])


def test_paths_begin_with_what_is_typed():
    every = _completed(shipped("ve0116"))
    assert _completed(shipped("ve0116"), "fr") == [x for x in every if x.startswith("fr")]
    assert "friction.mu=" in every
    assert _completed(None, "fr", ["ve0116", str(shipped("ve0116"))]) == [
        "friction.mu=",
        "friction.N=",
    ]
    assert not _completed(shipped("ve0116"), "friction.mu=0")
    assert not _completed("missing.toml")
    assert not _completed(None)


def test_options_that_name_parameters_complete_their_paths(monkeypatch):
    main = typer.main.get_command(app)
    found = set()
    for name, command in main.commands.items():
        context = click.Context(command)
        context.params = {"config": shipped("ve0116")}
        for option in command.params:
            words = [item.value for item in option.shell_complete(context, "friction.m")]
            found |= {(name, option.opts[-1])} if words == ["friction.mu="] else set()
    varied = {(name, "--vary") for name in ("bifurcations", "lyapunov", "sweep", "trace")}
    freed = {(name, "--free") for name in ("compare", "fit", "optimise")}
    changed = {(name, "--set") for name in main.commands if ("--set",) in _options(main, name)}
    others = {
        *(("basins", "--plane"), ("periodic", "--over"), ("periodic", "--parameter")),
        *(("response", "--over"), ("run", "--derivative")),
        *(("flutter", "--vary"), ("flutter", "--second")),
    }
    assert found == varied | freed | changed | others


def _options(main, name):
    return {tuple(option.opts) for option in main.commands[name].params}


def test_files_to_begin_with():
    assert starting_files("mec") == ["mechanism"]
    assert {"oscillator", "ve0116"} < set(starting_files(""))


def test_jax_is_not_loaded():
    text = (
        "import sys, jfric.cli.main; assert 'jax' not in sys.modules and 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
