"""Long work shows how far it is on a terminal, and Ctrl-C ends it in one sentence."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import jfric
from jfric.cli.fit import _Watch
from jfric.cli.interrupt import NOTHING, Interrupted, kept
from jfric.fits.free import Free, lay_out
from jfric.fits.objective import Normal
from jfric.sweeps.progress import Progress
from jfric.sweeps.table import open_sweep

ROOT = Path(__file__).resolve().parents[1]
CONFIG = str(ROOT / "configs" / "ve0116.toml")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}
RUN = "import sys; from jfric_command import main; sys.argv[0] = 'jfric'; main()"


def on_terminal(arguments, folder, stop_at=None, patience=300.0):
    """What a command says on a terminal, its exit status, and the seconds from the Ctrl-C, sent
    once ``stop_at`` is on the screen, to its end."""
    process, terminal = pty.fork()
    if not process:
        # A shell ignores it for what it runs in the background, and what that starts does, too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.chdir(folder)
        os.execvpe(sys.executable, [sys.executable, "-c", RUN, *arguments], ENVIRONMENT)
    said, sent, begun = b"", None, time.perf_counter()
    while time.perf_counter() - begun < patience:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        if (
            stop_at is not None
            and sent is None
            and re.search(stop_at, said.decode("utf-8", "replace"))
        ):
            os.write(terminal, b"\x03")
            sent = time.perf_counter()
    ended = time.perf_counter()
    if ended - begun >= patience:
        os.kill(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(terminal)
    return said.decode("utf-8", "replace"), status, None if sent is None else ended - sent


@pytest.mark.slow
def test_a_sweep_shows_its_rate_and_keeps_what_is_finished(tmp_path):
    arguments = [
        "sweep", CONFIG, "--vary", "friction.mu=0.05:0.3:30000000", "--observe", "final.u",
        "--block", "200000", "--out", "long.zarr",
    ]  # fmt: skip
    said, status, seconds = on_terminal(arguments, tmp_path, r"sweep .*\d/s")
    assert re.search(r"[\d,]+/30,000,000 [\d,]+/s", said)
    assert re.search(r"left \S*\d:\d\d:\d\d", said)
    last = said.splitlines()[-1]
    assert last.endswith(
        "jfric: interrupted; what is finished is kept, "
        "the same command with --out long.zarr goes on"
    )
    assert status == 130
    assert "Traceback" not in said
    assert seconds < 60.0
    finished = int((open_sweep(tmp_path / "long.zarr")["status"] == 0).sum())
    assert 0 < finished < 30_000_000


@pytest.mark.slow
def test_a_verification_shows_its_cases_and_ends_at_once(tmp_path):
    said, status, seconds = on_terminal(["verify", "--flow", "exact"], tmp_path, r" 0/\d+")
    assert re.search(
        r"interrupted after \d+ of \d+ runs; results are kept only of all of them", said
    )
    assert status == 130
    assert "Traceback" not in said
    assert seconds < 60.0


@pytest.mark.slow
def test_a_bar_is_for_terminals_only(tmp_path):
    arguments = ["verify", "--case", "c8*"]
    said, status, _ = on_terminal(arguments, tmp_path)
    assert status == 0
    assert re.search(r"c8_\w+ .*\d/\d", said)
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=tmp_path, env=ENVIRONMENT, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert "checks passed, 2 cases" in done.stdout


def test_before_the_package_is_there(tmp_path):
    (tmp_path / "jfric").mkdir()
    (tmp_path / "jfric" / "__init__.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, f"jfric: {NOTHING}\n")


#: A command that is inside something that does not listen, as a compiler is.
DEAF = """
import signal, time
from jfric.cli import interrupt
interrupt.GRACE = 0.3
signal.signal(signal.SIGINT, lambda *received: None)
interrupt.end_within_seconds()
with interrupt.kept(lambda: "interrupted; all is kept"):
    print("there", flush=True)
    while True:
        time.sleep(60)
"""


def test_what_does_not_listen_is_ended():
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF], env=ENVIRONMENT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "jfric: interrupted; all is kept\n")


def test_the_innermost_sentence_is_said():
    outside, inside = kept(lambda: "outside"), kept(lambda: "inside")
    with pytest.raises(Interrupted) as found, outside, inside:
        raise KeyboardInterrupt
    assert found.value.args == ("inside",)


def test_the_rate_is_that_of_the_stage(capsys, monkeypatch):
    clock = iter(np.arange(0.0, 1000.0, 2.0))
    monkeypatch.setattr("jfric.sweeps.progress.time.perf_counter", lambda: float(next(clock)))
    bar = Progress(10, shown=False)
    rates = []
    monkeypatch.setattr(bar, "_update", lambda stage, rate="": rates.append((stage, rate)))
    for stage, done in (("a", 0), ("a", 1), ("a", 5), ("b", 0), ("b", 2), ("b", 62)):
        bar.show(done, 100, stage)
    assert rates == [("a", ""), ("a", ""), ("a", "2/s"), ("b", ""), ("b", ""), ("b", "30/s")]
    assert capsys.readouterr().err == ""


class Distance:
    """Half of the squared distance of a parameter from 3."""

    layout = lay_out(
        {"x": Free(0.0, 4.0, init=1.0, scale="linear")}, {"x": np.array([1.0])}, ["record"]
    )

    def normal(self, x):
        r = x[:, :1] - 3.0
        return Normal(0.5 * r[:, 0] ** 2, r, np.ones((len(x), 1, 1)))


@pytest.mark.parametrize("optimiser", [jfric.LevenbergMarquardt(), jfric.LBFGS()])
def test_a_fit_tells_its_cost_and_the_best_so_far(optimiser):
    seen = []
    starts = np.array([[1.0], [0.5]])
    optimiser.minimise(Distance(), starts, 0, lambda *told: seen.append(told))
    costs = [cost for _, _, cost, _ in seen]
    assert [i for i, *_ in seen] == list(range(len(seen)))
    assert costs[0] == pytest.approx(2.0)
    assert costs == sorted(costs, reverse=True)
    assert seen[-1][3][0] == pytest.approx(3.0, abs=1e-4)
    watch = _Watch()
    assert watch.kept() == NOTHING
    with Progress(0, shown=False) as watch.bar:
        watch("starts", 3, 60, 0.25, {"friction.mu": 0.1})
    assert watch.kept() == f"{NOTHING}; the best so far, at a cost of 0.25: friction.mu = 0.1"
