import dataclasses
import itertools
import re
import types
from pathlib import Path

import numpy as np
import pytest
from test_equilibria import LUMPED
from typer.testing import CliRunner

import jfric
from jfric.cli.main import app
from jfric.statics.follower import _locate


def lumped(f_tau, mu):
    return jfric.set_parameters(LUMPED, {"load.tangential.F": f_tau, "contact.mu": mu})


def test_folds_of_the_path_over_the_load_and_its_one_sided_derivatives():
    path = jfric.trace(lumped(0.0, 1.5), "load.tangential.F", 2.5, -2.5)
    (branch,) = path.branches
    kinds = [point.kind for point in branch.special]
    assert kinds == ["end", "mode change", "fold", "fold", "end"]
    parameters = [point.parameter for point in branch.special]
    np.testing.assert_allclose(parameters, [2.5, 1.5, -1.5, -1.2, -2.5], atol=1e-12)
    q = np.array([point.q for point in branch.special])
    exact = [[0, 10 / 27], [0, 0], [0, 0], [0, -1], [-65 / 22, -50 / 11]]
    np.testing.assert_allclose(q, exact, atol=1e-12)
    fold = branch.special[3]
    assert fold.modes("before") == ("slip-",)
    assert fold.modes("after") == ("open",)
    assert fold.contacts == ("contact",)
    assert not fold.differentiable
    np.testing.assert_allclose(fold.dq_before, [0, -1 / 0.3], atol=1e-12)
    np.testing.assert_allclose(fold.dq_after, [1 / 0.44, 1.2 / 0.44], atol=1e-12)
    # Straight lines are followed in one step each.
    assert len(branch.steps) == 4


def test_a_path_of_tiny_forces_and_lengths_is_the_same_path():
    """Nothing is compared with a newton or a metre."""
    tiny = 1e-10
    small = jfric.set_parameters(LUMPED, {"load.normal.F": tiny, "contact.mu": 1.5})
    (branch,) = jfric.trace(small, "load.tangential.F", 2.5 * tiny, -2.5 * tiny).branches
    kinds = [point.kind for point in branch.special]
    assert kinds == ["end", "mode change", "fold", "fold", "end"]
    q = np.array([point.q for point in branch.special])
    exact = [[0, 10 / 27], [0, 0], [0, 0], [0, -1], [-65 / 22, -50 / 11]]
    np.testing.assert_allclose(q / tiny, exact, atol=1e-9)


def test_disconnected_branches_and_derivatives_along_them():
    path = jfric.trace(lumped(-1.35, 0.0), "contact.mu", 0.0, 3.0)
    assert [len(b.special) for b in path.branches] == [2, 3]
    (fold,) = (p for p in path.special if p.kind == "fold")
    assert fold.parameter == pytest.approx(1.35, abs=1e-12)
    sliding = path.branches[1].mode[:, 0] == jfric.Mode.SLIP_NEG
    mu = path.branches[1].parameter[sliding]
    np.testing.assert_allclose(path.branches[1].q[sliding, 1], (mu - 1.35) / (1.2 - mu), atol=1e-12)
    np.testing.assert_allclose(path.branches[1].dq[sliding, 1], -0.15 / (1.2 - mu) ** 2, atol=1e-9)
    assert any(not step.accepted for step in path.branches[1].steps)


def test_a_vertical_segment_at_the_critical_coefficient():
    path = jfric.trace(lumped(0.0, 1.2), "load.tangential.F", 2.5, -2.5)
    vertical = [p for p in path.special if p.kind == "vertical"]
    np.testing.assert_allclose([p.parameter for p in vertical], -1.2, atol=1e-12)
    np.testing.assert_allclose([p.q[1] for p in vertical], [0.0, -1.0], atol=1e-12)


def test_a_branch_ends_where_nothing_holds():
    block = jfric.Problem(
        ["x", "z"],
        {
            "contact": jfric.Contact("z", "x", jfric.Coulomb(0.3)),
            "load": {"weight": jfric.Load("z", -10.0), "push": jfric.Load("x", 0.0)},
        },
    )
    path = jfric.trace(block, "load.push.F", 0.0, 9.0, seeds=1)
    assert path.special[-1].parameter == pytest.approx(3.0, abs=1e-12)
    assert path.special[-1].kind != "end"
    # With one contact there is nothing to tell apart.
    assert [axis.get_title(loc="left") for axis in jfric.plot_path(path).axes] == ["", ""]
    # Of several contacts the title names the one whose modes are shown, the first or a chosen one.
    (branch,) = path.branches
    both = np.concatenate([branch.mode, np.full_like(branch.mode, jfric.Mode.SLIP_POS)], axis=1)
    two = dataclasses.replace(
        path, names=("contact.a", "contact.b"), branches=(dataclasses.replace(branch, mode=both),)
    )
    figure = jfric.plot_path(two, ["z", "x"], contact=["b", None])
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["contact.b", "contact.a"]
    assert [axis.get_ylabel() for axis in figure.axes] == ["z [m]", "x [m]"]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["stick", "slip"]
    for options, said in (
        ({"show": ["y"]}, "no degree of freedom 'y'"),
        ({"contact": "contact"}, "no contact 'contact'"),
        ({"contact": "c"}, "there are contact.a, contact.b"),
    ):
        with pytest.raises(jfric.ProblemError, match=said):
            jfric.plot_path(two, **options)


def test_bad_requests():
    with pytest.raises(jfric.ProblemError, match="stop: found 1, must differ"):
        jfric.trace(LUMPED, "contact.mu", 1.0, 1.0)
    with pytest.raises(jfric.ProblemError, match="seeds: found"):
        jfric.trace(LUMPED, "contact.mu", 0.0, 1.0, seeds=[2.0])
    drops = jfric.Problem(
        ["u"],
        {
            "spring": jfric.Spring("u", 1.0),
            "friction": jfric.Friction("u", jfric.StaticDynamic(0.3, 0.2), N=1.0),
        },
    )
    with pytest.raises(jfric.ProblemError, match=r"^friction: with StaticDynamic"):
        jfric.trace(drops, "spring.k", 1.0, 2.0)


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_commands(tmp_path):
    shown = run("equilibria", "configs/janovsky_static_e5.toml")
    assert shown.exit_code == 0, shown.output
    assert "3 equilibria" in shown.output
    modes = re.findall(r"^\d  (.+?)  ", shown.output, re.MULTILINE)
    assert modes == ["open", "stick", "slip-"]
    result = run(
        "trace",
        "configs/janovsky_static_fold.toml",
        "--vary",
        "parameters.ftau=2.5:-2.5",
        "--plot",
        "--out",
        tmp_path,
    )
    assert result.exit_code == 0, result.output
    assert "fold" in result.output
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".csv", ".json", ".png"]
    rows = (tmp_path / "path-001.csv").read_text().splitlines()
    assert rows[0].startswith("branch,parameters.ftau,q.un,q.ut")
    wrong = run("trace", "configs/janovsky_static_fold.toml", "--vary", "parameters.F=1")
    assert wrong.exit_code == 2
    assert "expected path=start:stop" in wrong.output


def test_a_file_may_ask_for_one_seed_and_its_folder_of_results_has_its_name(tmp_path, monkeypatch):
    text = Path("configs/janovsky_static_fold.toml").read_text("utf-8")
    text = text.replace("[statics]\n", "[statics]\nseeds = 1\n")
    (tmp_path / "one_seed.toml").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    found = run("trace", "one_seed.toml")
    assert found.exit_code == 0, found.output
    written = sorted(p.name for p in (tmp_path / "results" / "one_seed").iterdir())
    assert written == ["path-001.csv", "path-001.json"]
    (tmp_path / "no_seed.toml").write_text(text.replace("seeds = 1", "seeds = 0"), "utf-8")
    refused = run("trace", "no_seed.toml")
    assert refused.exit_code == 2
    assert "statics.seeds: found 0" in refused.output


@pytest.mark.parametrize("limit", [1.0, 3.0])
def test_rest_states_or_a_word_that_there_is_none(tmp_path, limit):
    """A load of 2 N is held by friction of 3 N wherever the body stands, and by 1 N nowhere."""
    file = tmp_path / "pushed.toml"
    file.write_text(
        f"""dofs = ["u"]
time = {{ end = 1.0 }}
[mass.body]
dof = "u"
m = 1.0
[load.push]
dof = "u"
F = 2.0
[friction.ground]
dof = "u"
limit = {limit}
"""
    )
    found = run("equilibria", file, "--rest")
    assert ("there is no rest state" in found.output) == (limit < 2.0)
    assert ("lambda_t.friction" in found.output) == (limit > 2.0)
    assert found.exit_code == int(limit < 2.0), found.output


def test_a_zero_is_found_among_rounding_errors():
    """Newton's steps that no longer shrink have arrived."""
    rounding = itertools.cycle([1e-12, -1e-12])

    def at(p):
        margin = np.array([0.3 - p + next(rounding)])
        return types.SimpleNamespace(p=p, margin=margin, rate=np.array([-1.0]))

    found = _locate(at, at(0.0), at(1.0), 0, 0.5)  # pyright: ignore[reportArgumentType]
    assert found is not None
    assert found.p == pytest.approx(0.3, abs=1e-11)
