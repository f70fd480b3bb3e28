"""Pages of stored results: what they hold, and that they answer in a browser without a network."""

import base64
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import xarray
from scipy.stats import qmc
from typer.testing import CliRunner

from jfric.cli.fit_record import samples
from jfric.cli.main import app
from jfric.errors import ProblemError
from jfric.figures.view import sweep_view
from jfric.figures.view.fit_view import fit_page, read_fit
from jfric.figures.view.page import data, label, text
from jfric.figures.view.run_view import run_page, spans
from jfric.figures.view.stored import StoredRun, find, read_run
from jfric.files.output import as_json
from jfric.fits.uncertainty.posterior import Posterior
from jfric.sweeps.table import open_sweep

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(BROWSER is None, reason="needs chromium")
TITLE = "<script>document.body.remove()</script> & 'more'"
SYSTEM = f'''
title = "{TITLE}"
dofs = ["u"]
[time]
end = "2 s"
outputs = 81
[mass]
dof = "u"
m = "100 kg"
[spring]
dof = "u"
k = "5 kN/m"
[friction]
dof = "u"
mu = 0.1
N = "1 kN"
[load]
dof = "u"
F = "1.5 kN"
'''


def jfric(*arguments):
    found = CliRunner().invoke(app, [str(a) for a in arguments])
    assert found.exit_code == 0, found.output
    return found.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, and a sweep over three parameters, with their pages."""
    place = tmp_path_factory.mktemp("view")
    (place / "system.toml").write_text(SYSTEM)
    jfric("run", place / "system.toml", "--out", place / "run")
    jfric(
        "sweep", place / "system.toml", "--set", "spring.k=5.5 kN/m", "--set", "mass.m=99",
        "--vary", "friction.mu=0.05:0.3:7", "--vary", "load.F=1000:2000:5", "--vary",
        "mass.m=[90, 110]", "--observe", "final.u,max.v", "--out", place / "sweep.zarr",
    )  # fmt: skip
    for result in ("run", "sweep.zarr"):
        assert "wrote" in jfric("view", place / result)
    return place


def held(page):
    """Data of a page by name, as its scripts find them."""
    (block,) = re.findall(r'<script type="application/gzip" id="data">(.*?)</script>', page)
    inside = gzip.decompress(base64.b85decode(block.replace(",", "<"))).decode()
    found = re.findall(r'<script type="application/json" id="(.*?)">(.*?)</script>', inside)
    return {name: json.loads(content) for name, content in found}


def driven(page, script, before="", size="1200,900"):
    """What ``script`` leaves in ``found``, run in the page once it is there; ``before``: run first
    of all."""
    watch = (
        f"<script>{before}; var problems = []; "
        "addEventListener('error', e => problems.push(e.message));"
        "addEventListener('securitypolicyviolation', e => problems.push(e.blockedURI));</script>"
    )
    drive = (
        "<script>drawn.then(() => setTimeout(async () => { const found = {};"
        f"{script}; const out = document.createElement('pre'); out.id = 'driven';"
        "out.textContent = JSON.stringify({...found, problems}); document.body.append(out);"
        "}, 200))</script>"
    )
    page_text = page.read_text("utf-8")
    changed = page.with_name("driven.html")
    changed.write_text(page_text.replace("<head>", f"<head>{watch}").replace("</body>", drive))
    done = subprocess.run(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
            f"--window-size={size}", "--virtual-time-budget=10000", f"file://{changed}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found = re.search(r'<pre id="driven">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_a_page_reaches_nothing(folder):
    for page in (folder / "run" / "run-001.html", folder / "sweep.html"):
        found = page.read_text("utf-8")
        assert "default-src 'none'" in found
        assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", found.split("<body>")[1])
        assert TITLE not in found
        assert text(TITLE) in found
        assert "[friction]" in found
        assert "no file holds" not in found
        # Drawing library included.
        assert len(found) < 2 * 2**20


@in_browser
def test_a_browser_that_cannot_unpack_says_so(folder):
    page = folder / "run" / "run-001.html"
    script = "found.said = Array.from(document.querySelectorAll('p.failed'), (p) => p.textContent);"
    found = driven(page, script, before="delete window.DecompressionStream")
    (said,) = found["said"]
    assert said.startswith("No plots: this browser has no DecompressionStream; those of 2023 and")
    assert found["problems"] == []


@in_browser
def test_a_run_is_drawn_and_its_cursor_follows(folder):
    found = driven(
        folder / "run" / "run-001.html",
        """
        const time = document.getElementById('time');
        const portrait = document.getElementById('portrait');
        found.title = document.querySelector('h1').textContent;
        found.names = time.data.map((d) => d.name);
        found.shapes = time.layout.shapes.length;
        found.svg = document.querySelectorAll('#time .scatterlayer .trace').length;
        time.emit('plotly_hover', { points: [{ x: 0.5 }] });
        const last = portrait.data[portrait.data.length - 1];
        found.at = [last.x[0], last.y[0]];
        found.events = document.querySelectorAll('table tr').length;
        """,
    )
    assert found["problems"] == []
    assert found["title"] == TITLE
    assert {"q.u", "v.u", "lambda_t.friction", "mode.friction"} <= set(found["names"])
    assert found["svg"] >= 5
    run = read_run(folder / "run" / "run-001.json")
    row = int(np.flatnonzero(np.isclose(run.columns["t"], 0.5))[0])
    assert found["at"] == [run.columns["q.u"][row], run.columns["v.u"][row]]
    # A line for each event and a band for each phase.
    events = run.about["events"]
    assert found["shapes"] == len(events) + len(spans(run, "mode.friction"))
    assert len(events) == 4


def test_a_page_has_no_colour_twice_and_eight_curves_in_a_panel(folder):
    run = read_run(folder / "run" / "run-001.json")
    for i in range(12):
        run.columns[f"z.{i}"] = run.columns["v.u"]
    plot = held(run_page(run, "run"))["time-data"]
    curves = [trace for trace in plot["data"] if trace.get("line", {}).get("width") == 1.4]
    assert len({trace["line"]["color"] for trace in curves}) == len(curves) == 12 + 4
    # Each panel has a legend of its own, at its upper end.
    legends = {trace["yaxis"]: trace["legend"] for trace in curves}
    assert len(set(legends.values())) == len(legends) == len({t["legend"] for t in curves}) == 5
    for axis, legend in legends.items():
        top = plot["layout"][axis.replace("y1", "y").replace("y", "yaxis")]["domain"][1]
        assert plot["layout"][legend]["y"] == top
    states = [trace.get("visible", True) for trace in curves if trace["name"].startswith("z.")]
    assert states == [True] * 8 + ["legendonly"] * 4
    assert [note["text"] for note in plot["layout"]["annotations"]] == ["4 more: click their names"]


@in_browser
def test_sliders_move_the_curve_and_a_point_has_its_command(folder):
    found = driven(
        folder / "sweep.html",
        """
        const curve = document.getElementById('curve'), map = document.getElementById('map');
        const y = () => Array.from(curve.data[0].y);
        const move = (axis, to) => {
          const slider = document.querySelector(`input[data-axis="${axis}"]`);
          slider.value = to; slider.dispatchEvent(new Event('input'));
        };
        const [quantity] = document.querySelectorAll('#controls select');
        found.title = document.querySelector('h1').textContent;
        move('load.F', 0); move('mass.m', 0); found.first = y();
        move('load.F', 4); found.force = y();
        move('mass.m', 1); found.mass = y(); found.map = map.data[0].z;
        quantity.value = 1; quantity.dispatchEvent(new Event('input')); found.speed = y();
        curve.emit('plotly_hover', { points: [{ customdata: 3 }] });
        found.readout = document.getElementById('readout').innerText;
        found.command = document.getElementById('command').textContent;
        """,
    )
    assert found["problems"] == []
    assert found["title"] == TITLE
    table = open_sweep(folder / "sweep.zarr")
    position = table["final.u"].transpose("friction.mu", "load.F", "mass.m").values
    assert found["first"] == position[:, 0, 0].tolist()
    assert found["force"] == position[:, 4, 0].tolist()
    assert found["mass"] == position[:, 4, 1].tolist()
    assert found["map"] == position[:, :, 1].T.tolist()
    speed = table["max.v"].transpose("friction.mu", "load.F", "mass.m").values
    assert found["speed"] == speed[:, 4, 1].tolist()
    at = {"friction.mu": 3, "load.F": 4, "mass.m": 1}
    numbers = dict(re.findall(r"([\w.]+) = (\S+?)(?:,| |$)", found["readout"], re.MULTILINE))
    assert float(numbers["final.u"]) == pytest.approx(float(table["final.u"][at]), rel=1e-9)
    # The command is complete: it gives the same number.
    program, *arguments = shlex.split(found["command"])
    assert program == "jfric"
    jfric(*arguments, "--out", folder / "again")
    again = read_run(folder / "again" / "run-001.json")
    assert again.columns["q.u"][-1] == pytest.approx(float(table["final.u"][at]), abs=1e-12)


ROD = """
[time]
end = "0.5 s"
outputs = 51
[gravity]
g = "10 m/s^2"
[body.rod]
m = "2 kg"
J = "0.5 kg*m^2"
at = [0, "1 m"]
[body.rod.points]
left = ["-0.8 m", 0]
right = ["0.8 m", 0]
[link_spring]
points = ["rod.left", "ground"]
k = "10 N/m"
[contact]
point = "rod.right"
radius = "0.1 m"
line = "ground"
"""


@pytest.fixture(scope="module")
def page_of_rod(tmp_path_factory):
    """The page of a run of a mechanism."""
    place = tmp_path_factory.mktemp("rod")
    (place / "rod.toml").write_text(ROD)
    jfric("run", place / "rod.toml", "--out", place / "run")
    jfric("view", place / "run")
    return place / "run" / "run-001.html"


def test_a_page_has_the_script_of_mechanisms_where_one_is_drawn(folder, page_of_rod):
    for page, drawn in ((page_of_rod, True), (folder / "run" / "run-001.html", False)):
        content = page.read_text("utf-8")
        assert ("<canvas id=mechanism>" in content) == drawn
        assert ('document.getElementById("mechanism")' in content) == drawn


@in_browser
def test_a_mechanism_moves_under_a_slider_and_plays(page_of_rod):
    page = page_of_rod
    scene = held(page.read_text())["scene"]
    shown = {shape["kind"]: shape for shape in scene["shapes"]}
    assert set(shown) == {"strokes", "circle", "polygon", "spring", "mark"}
    # Ends of the rod and its motion, in the unit of the view.
    ends = np.array(shown["polygon"]["at"]).reshape(-1, 2, 2)
    unit = np.hypot(*(ends[0, 1] - ends[0, 0])) / 1.6
    run = read_run(page.with_suffix(".json"))
    fall = np.interp(scene["times"], run.columns["t"], run.columns["q.rod_y"]) - 1.0
    middle = ends.mean(axis=1)
    np.testing.assert_allclose((middle - middle[0])[:, 1] / unit, fall, atol=2e-3)
    found = driven(
        page,
        """
        const canvas = document.getElementById('mechanism');
        const [button, slider] = document.querySelectorAll('#playing button, #playing input');
        const height = () => {
          const { width, height } = canvas, pen = canvas.getContext('2d');
          const { data } = pen.getImageData(0, 0, width, height);
          // The first row with the colour of the body.
          const blue = (i) => data[i] < 60 && data[i + 2] > 90 && data[i + 3] > 200;
          return Math.floor(data.findIndex((_, i) => i % 4 === 0 && blue(i)) / 4 / width) / height;
        };
        found.first = height();
        slider.value = slider.max; slider.dispatchEvent(new Event('input'));
        found.last = height(); found.time = document.querySelector('#playing output').textContent;
        button.click(); found.says = button.textContent;
        await new Promise((then) => setTimeout(then, 300));
        found.played = Number(slider.value);
        document.getElementById('time').emit('plotly_hover', { points: [{ x: 0.26 }] });
        found.read = document.querySelector('#playing output').textContent;
        found.stopped = button.textContent;
        """,
    )
    assert found["problems"] == []
    assert 0.0 <= found["first"] < found["last"] - 0.2
    assert (found["time"], found["says"]) == ("t = 0.5000 s", "Pause")
    assert 0 < found["played"] < len(scene["times"])
    assert (found["read"], found["stopped"]) == ("t = 0.2600 s", "Play")


def test_a_page_of_a_part_of_the_samples_shows_the_whole_box_and_says_so(monkeypatch):
    monkeypatch.setattr(sweep_view, "MOST_NUMBERS", 8_000)
    mu = qmc.Sobol(1, rng=0).random(2**13)[:, 0]
    table = xarray.Dataset(
        {"final.u": ("trajectory", mu), "status": ("trajectory", np.zeros(mu.size, np.int8))},
        {"mu": ("trajectory", mu)},
        {"parameters": ["mu"], "observables": ["final.u"]},
    )
    found = sweep_view.sweep_page(table, "sweep")
    words = "Of trajectory 2,731, chosen at random, of 8,192 values are on this page"
    assert words in found
    assert "Python code, which no file holds." in found
    packed = held(found)["sweep"]["parameters"][0]["values"]["bytes"]
    shown = np.frombuffer(base64.b64decode(packed))
    shares = np.histogram(shown, bins=8, range=(0.0, 1.0))[0] / 2_731
    np.testing.assert_allclose(shares, 1 / 8, atol=0.02)


def test_a_page_of_a_part_of_a_grid_begins_at_its_first_value(monkeypatch):
    """Every third of one axis, every second of the other; a third one is short."""
    monkeypatch.setattr(sweep_view, "MOST_NUMBERS", 500)
    shape, dims = (30, 20, 2), ("a", "b", "c")
    values = np.arange(1200.0).reshape(shape)
    table = xarray.Dataset(
        {"final.u": (dims, values), "status": (dims, np.zeros(shape, np.int8))},
        {"a": np.arange(30.0), "b": np.arange(20.0)[::-1], "c": [0.0, 1.0]},
        {"observables": ["final.u"]},
    )
    found = sweep_view.sweep_page(table, "sweep")
    for words in (
        "Of a every 3rd of 30 values is on this page; the store holds all.",
        "Of b every 2nd of 20 values is on this page; the store holds all.",
        "sweep: 1,200 points",
    ):
        assert words in found
    axes = held(found)["sweep"]["axes"]
    shown = {
        name: np.frombuffer(base64.b64decode(x["values"]["bytes"])) for name, x in axes.items()
    }
    assert shown["a"].tolist() == list(range(0, 30, 3))
    assert shown["b"].tolist() == list(range(19, 0, -2))
    assert shown["c"].tolist() == [0.0, 1.0]


RECORD = {
    "title": TITLE, "config": "dofs = ['u']", "data": [{"path": "<b>.csv", "sha256": "0"}],
    "free": {}, "parameters": {"friction.mu": {
        "value": 0.1, "standard_error": "inf", "interval": None, "at_bound": 1},
        "spring.coupling.k": {"value": 8.60031234, "unit": "N*m/rad", "standard_error": 5e-4,
                              "interval": [8.59933, 8.60131], "at_bound": 0}},
    "outcome": "converged", "cost": 1.5, "remarks": ["<i>mind</i>"], "method": "hac",
    "waterfall": [{"cost": 1.5, "outcome": "converged", "start": {"friction.mu": 1.0},
                   "values": {"friction.mu": 0.1}, "iterations": 3},
                  {"cost": "inf", "outcome": "failed", "start": {"friction.mu": 9.0},
                   "values": {"friction.mu": 9.0}, "iterations": 0}],
    "versions": {"jfric": "1"},
    "series": [{"record": f"<r{i}>", "signal": "u", "unit": "m", "t": [0.0, 1.0],
                "measured": [i + 0.0, i + 1.0], "predicted": [i + 0.5, i + 1.0],
                "spread": [0.1, 0.1]} for i in range(2)],
}  # fmt: skip


def test_a_fit_says_which_parameters_are_at_a_bound():
    page = fit_page(RECORD, "fit-001")
    assert ">none, at a bound<" in page
    assert ">8.59933 to 8.60131<" in page


def test_a_page_has_the_samples_of_the_posterior():
    """How many there are, how many are in the picture, and why they are doubtful."""
    names = ("friction.mu", "spring.coupling.k")
    drawn = np.random.default_rng(0).normal(size=(4, 500, 2)) * [1e-3, 0.1] + [0.1, 8.6]
    posterior = Posterior(names, drawn, np.array([1.5, 1.0]), np.array([40.0, 1900.0]), 0.3)
    taken = samples(posterior)
    assert taken["count"] == 2_000
    assert taken["values"].shape == (1_000, 2)
    free = {name: {"low": 0.0, "high": 10.0} for name in names}
    record = RECORD | {"free": free, "posterior": posterior.to_dict(), "samples": taken}
    page = fit_page(json.loads(as_json(record)), "fit-001")
    assert "2,000 samples of the posterior, for independent normal noise; 1,000 of 2,000" in page
    (row,) = re.findall(r"<tr><td>spring\.<wbr>coupling\.<wbr>k \[N·m/rad\].*?</tr>", page)[1:]
    low, high = posterior.intervals()["spring.coupling.k"]
    for words in (">8.5994<", ">0.099<", f">{low:.6g} to {high:.6g}<", ">1.000<", ">1,900<"):
        assert words in row
    assert "R-hat above" in page
    assert "fewer than" in page


@in_browser
def test_a_fit_shows_one_record_at_a_time(tmp_path):
    (tmp_path / "fit.html").write_text(fit_page(RECORD, "fit-001"), "utf-8")
    found = driven(
        tmp_path / "fit.html",
        """
        const plot = document.getElementById('compared');
        const choice = document.getElementById('choice');
        const y = (name) => Array.from(plot._fullData.find((d) => d.name === name).y);
        found.title = document.querySelector('h1').textContent;
        found.names = Array.from(choice.options, (o) => o.textContent);
        found.first = y('measured');
        choice.value = 1; choice.dispatchEvent(new Event('input'));
        found.second = y('measured'); found.residual = y('residual');
        found.costs = Array.from(document.getElementById('starts')._fullData[0].y);
        found.units = Array.from(document.querySelectorAll('.g-ytitle'), (e) => e.textContent);
        found.shown = document.querySelector('table').innerText;
        document.body.style.width = '368px';
        const { scrollWidth, clientWidth } = document.querySelector('.wide');
        found.cut = scrollWidth - clientWidth;
        """,
        size="500,900",
    )
    assert found["problems"] == []
    assert found["title"] == TITLE
    assert found["names"] == ["<r0>: u", "<r1>: u"]
    assert (found["first"], found["second"]) == ([0.0, 1.0], [1.0, 2.0])
    assert found["residual"] == [0.5, 0.0]
    assert found["costs"] == [1.5, None]
    assert "u [m]" in found["units"]
    assert "spring.coupling.k [N·m/rad]\t8.60031\t0.0005\t8.59933 to 8.60131" in found["shown"]
    # The column of intervals is not cut on a phone of 400 px.
    assert found["cut"] == 0


def test_what_is_there_is_found(folder, tmp_path):
    assert find(folder / "run") == ("run", folder / "run" / "run-001.json")
    assert find(folder / "run" / "run-001.csv")[0] == "run"
    assert find(folder / "sweep.zarr") == ("sweep", folder / "sweep.zarr")
    (tmp_path / "other.json").write_text("[1]")
    (tmp_path / "fit-001.json").write_text(json.dumps(RECORD))
    assert find(tmp_path) == ("fit", tmp_path / "fit-001.json")
    for place, sentence in (
        (tmp_path / "none", "no such file or folder"),
        (tmp_path / "other.json", r"other.json: no run \(run-001.json\), sweep"),
    ):
        with pytest.raises(ProblemError, match=sentence):
            find(place)
    (tmp_path / "fit-001.json").unlink()
    with pytest.raises(ProblemError, match="holds no run, sweep or fit"):
        find(tmp_path)
    (tmp_path / "old.json").write_text(json.dumps(RECORD | {"series": []}))
    with pytest.raises(ProblemError, match="holds no series, it was written by an older version"):
        read_fit(tmp_path / "old.json")


def test_a_run_without_its_trajectory_is_refused(folder, tmp_path):
    shutil.copy(folder / "run" / "run-001.json", tmp_path)
    found = CliRunner().invoke(app, ["view", str(tmp_path / "run-001.json")])
    assert found.exit_code == 2
    assert "run-001.csv: no such file, run-001.json names it as its trajectory" in found.output


def test_modes_where_the_log_of_events_ends_early():
    event = {"time": 1.5, "contact": "f", "from": "stick", "to": "slip+", "impact": False}
    columns = {
        "t": np.arange(5.0),
        "mode.f": np.array(["stick", "stick", "slip+", "slip-", "slip-"]),
    }
    run = StoredRun(columns, {"events": [event], "event_count": 2})
    expected = [(0.0, 1.5, "stick"), (1.5, 3.0, "slip+"), (3.0, 4.0, "slip-")]
    assert spans(run, "mode.f") == expected


def test_text_stays_text():
    assert label("<b>&", "N*m") == "&lt;b&gt;&amp; [N·m]"
    inside = data("x", {"a": "</script><script>"})
    assert inside.count("</script>") == 1
    (written,) = re.findall(r">(.*)</script>", inside)
    assert json.loads(written) == {"a": "</script><script>"}


def test_without_the_library_there_is_a_sentence(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    found = CliRunner().invoke(app, ["view", str(folder / "run")])
    assert found.exit_code == 2
    assert "needs plotly, which is not installed (pip install jfric[view])" in found.output


@pytest.mark.parametrize("word", ["stick"])
def test_the_legend_of_modes_has_squares(word):
    from jfric.figures.view.run_view import _key

    entry = _key(word, "#123456")
    assert (entry["mode"], entry["marker"]["symbol"]) == ("markers", "square")
