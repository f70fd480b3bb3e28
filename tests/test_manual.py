"""The verification manual: what each page shows, that nothing in it is markup, that it fails."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
from generators.manual import site
from generators.manual.__main__ import main
from generators.manual.case_page import results_table
from generators.manual.entry import Entry, ratio, slugs
from generators.manual.equations import equations, said_of
from generators.manual.formulas import formula
from generators.manual.pictures import picture
from generators.manual.sketch import _lanes, _parts, plot_system
from generators.manual.source import inner_comments, statement_and_remarks

import jfric
from jfric.files.config import Check
from jfric.files.read_toml import load_config
from jfric.results.quantity import parse_quantity
from jfric.system.bristle import LuGre
from jfric.verification.configs import shipped
from jfric.verification.job_lists import Case
from jfric.verification.result import Result

FILE = """\
# A block on a belt & a wall. Misprint of the source: <b>none</b>.
title = "Block <script>alert(1)</script>"
source = "A & B, \\"Blocks\\""
dofs = ["x"]
[time]
end = 1.0
[mass]
dof = "x"
m = 2.0
[friction]
dof = "x"
mu = 0.3
N = 2.0
# The belt moves on.
belt = "2 m/s"
[[check]]
quantity = "final.v.x"
expected = 0.3
tolerance = 1e-9
source = "closed <form>"
[[check]]
quantity = "final.x"
expected = 0.15001
tolerance = 1e-6
source = "moved by ten tolerances"
"""


class _Page(HTMLParser):
    """Elements that are open at the end, names of all, and what is loaded."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.loaded = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.loaded += [found[k] for k in ("src", "href") if k in found and tag != "a"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Pages of one file of which a check fails, by the command, and its exit status."""
    folder = tmp_path_factory.mktemp("manual")
    (folder / "block.toml").write_text(FILE, "utf-8")
    status = main([str(folder / "block.toml"), "--html", str(folder / "pages")])
    return folder / "pages", status


def test_the_command_writes_a_page_for_each_case_and_an_index(made):
    pages, status = made
    assert status == 1  # a check fails
    assert sorted(p.name for p in pages.iterdir()) == ["block.html", "index.html"]
    text = (pages / "block.html").read_text("utf-8")
    for heading in ("Statement", "System", "Equations", "Source", "Results", "Motion"):
        assert f"<h2>{heading}</h2>" in text
    assert "<h2>File block.toml</h2>" in text
    assert text.count("<svg") == 2
    assert '<a href="block.html">block</a>' in (pages / "index.html").read_text("utf-8")


def test_a_page_shows_target_result_error_and_tolerance(made):
    pages, _ = made
    text = (pages / "block.html").read_text("utf-8")
    rows = re.findall(r"<tr( class=\"failed\")?><td>(.*?)</td>.*?</tr>", text)
    assert [(bool(failed), name) for failed, name in rows] == [
        (False, "final.v.x"),
        (True, "final.x"),
    ]
    assert re.search(r'final\.x</td>.*?<td class="n">0\.15001</td><td class="n">0\.15</td>', text)
    assert '<td class="n">1e-05</td><td class="n">1e-06</td><td class="n">10</td>' in text
    assert "1 failed" in (pages / "index.html").read_text("utf-8")


def test_targets_and_results_have_twelve_digits():
    third = Result("a", "final.x", "event-driven", 2 / 3, 1 / 3, 1e-9, "by hand")
    text = results_table([third])
    assert "0.333333333333<" in text
    assert "0.666666666667<" in text


def test_text_of_a_file_is_no_markup_and_nothing_is_loaded(made):
    pages, _ = made
    for path in pages.iterdir():
        page = _Page(path.read_text("utf-8"))
        assert "script" not in page.tags
        assert "b" not in page.tags
        assert "form" not in page.tags
        assert not page.loaded
        assert len(set(page.ids)) == len(page.ids)


def test_a_folder_is_needed_before_anything_is_computed(tmp_path, capsys):
    (tmp_path / "pages").write_text("")
    assert main([str(tmp_path / "missing.toml"), "--html", str(tmp_path / "pages")]) == 2
    assert "is a file, the pages need a folder" in capsys.readouterr().err
    assert main([str(tmp_path / "missing.toml")]) == 2
    assert "the pages of your own files need a folder" in capsys.readouterr().err


@pytest.mark.parametrize("moved", [0.0, 10.0])
def test_the_manual_of_the_site_fails_where_a_value_moved(moved, tmp_path, monkeypatch, capsys):
    """By ten tolerances, of a case that only its equilibria are asked of."""
    checks = load_config(shipped("janovsky_static_e1")).checks
    (chosen,) = (c for c in checks if str(c.quantity) == "equilibrium.lambda_n.contact(1)")
    value = chosen.expected + moved * chosen.allowed
    quantity = parse_quantity("equilibrium.lambda_n(1)")
    case = Case(
        "e1",
        "janovsky_static_e1",
        set={"parameters.fnu": 1.3},
        expected=(Check(quantity, value, chosen.allowed, source="closed form"),),
    )
    monkeypatch.setattr("jfric.verification.job_lists.cases", lambda: [case])
    monkeypatch.setattr(site, "FOLDER", tmp_path)
    assert main(["--case", "e1"]) == bool(moved)
    assert ("exceeds" in capsys.readouterr().err) == bool(moved)
    page = (tmp_path / "e1.rst").read_text("utf-8")
    assert "parameters.fnu = 1.3" in page
    assert ('class="failed"' in page) == bool(moved)
    assert "   e1\n" in (tmp_path / "index.rst").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ve0116", ["<mn>5000</mn>", "<mtext>load</mtext>", "<mn>0.1</mn>"]),
        ("sdnd106", ["<mn>10000</mn>", "<mn>0.3</mn>", "<mn>0.2</mn>", "<mn>3000</mn>"]),
        ("g3_slot_polar", ["<mi>R</mi>", "<mi>T</mi>", "<mi>V</mi>"]),
        ("p2_grazing", ["<mn>0.7</mn>", "<mo>⊥</mo>"]),
        ("m5_lugre", ["hand"]),
        pytest.param("slider_crank", [], marks=pytest.mark.slow),
        ("two_blocks", []),
        ("f3_incline", ["<mn>0.6</mn>"]),
    ],
)
def test_equations_are_written_from_the_problem(name, said):
    lines = equations(load_config(shipped(name)).problem)
    shown = [text for _, text in lines if text.startswith("<math")]
    for text in shown:
        ET.fromstring(text)
    assert all(any(part in text for text in shown) for part in said)
    words = " ".join(w for w, _ in lines)
    assert ("And 24 more of contact" in words) == (name == "two_blocks")


def test_a_factor_of_minus_one_is_a_sign():
    """Of a load, and of friction, whose direction is against the coordinate."""

    def signs(load, friction):
        elements = {
            "mass": jfric.Mass("x", 1.0),
            "spring": jfric.Spring("x", 1.0),
            "load": jfric.Load({"x": load}, jfric.Harmonic(1.0, 2.0)),
            "friction": jfric.Friction({"x": friction}, jfric.Coulomb(0.1), N=1.0),
        }
        (_, motion), *_ = equations(jfric.Problem(["x"], elements, time=1.0))
        return motion.count("<mo>\u2212</mo>")

    assert [signs(1.0, 1.0), signs(-1.0, 1.0), signs(1.0, -1.0), signs(-1.0, -1.0)] == [0, 1, 1, 2]


def test_an_element_says_its_own_law():
    assert "F  = sigma0 z + sigma1 z' + sigma2 gamma" in said_of(LuGre)
    assert ">>>" not in said_of(LuGre)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a/b", "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>"),
        ("theta^2", "<msup><mrow><mi>θ</mi></mrow><mrow><mn>2</mn></mrow></msup>"),
        ("v.x", '<mi class="dotted">x\u0307</mi>'),
        ("a<b", "<mtext>a&lt;b</mtext>"),
        ("x - 20 mm", "<mrow><mi>x</mi><mo>−</mo><mn>0.02</mn></mrow>"),  # noqa: RUF001
    ],
)
def test_formulas(text, shown):
    assert formula(text) == shown


def test_brackets_stand_where_they_are_needed():
    assert formula("a*(b + c)").count("<mo>(</mo>") == 1
    assert formula("-(a + b)*c").count("<mo>(</mo>") == 1
    assert formula("a - (b - c)").count("<mo>(</mo>") == 1
    assert "(" not in formula("a*b + c")


def test_elements_of_a_sketch_have_lanes_of_their_own():
    problem = load_config(shipped("m8_spline")).problem.resolved()
    parts = _parts(problem, list(problem.dofs))
    assert [p.section for p in parts].count("contact") == 2
    (drive, _) = (p for p in parts if p.section == "contact")
    assert drive.ground == 0  # a difference alone
    used = [(room, lane) for p, lane in zip(parts, _lanes(parts), strict=True) for room in p.rooms]
    assert len(set(used)) == len(used)
    texts = {t.get_text() for axis in plot_system(problem).axes for t in axis.texts}
    assert {"load.torque", "load.axial", "motor\n0.1 kg·m²"} <= texts


def test_a_contact_that_two_coordinates_close_ends_at_the_ground():
    problem = load_config(shipped("c7_bouncing_block")).problem.resolved()
    contacts = [p for p in _parts(problem, list(problem.dofs)) if p.section == "contact"]
    assert [(len(p.columns), p.ground) for p in contacts] == [(2, -1), (2, -1)]


def test_drawings_take_the_colours_of_the_page_and_large_ones_are_pixels():
    from matplotlib.figure import Figure

    def drawn(points):
        figure = Figure()
        x = np.arange(points)
        figure.subplots().scatter(x, x, c=x)
        return picture(figure, 'a "figure"')

    small = drawn(3)
    assert "currentColor" in small
    assert "#000000" not in small
    assert "a &quot;figure&quot;" in small
    assert small == drawn(3)
    assert "data:image/png;base64," in drawn(5000)


def test_what_a_file_says_of_its_source_is_told_apart():
    statement, remarks = statement_and_remarks(FILE)
    assert statement == "A block on a belt & a wall."
    assert remarks == "Misprint of the source: <b>none</b>."
    assert inner_comments(FILE) == ["The belt moves on."]


def test_names_of_pages_are_safe_and_differ(tmp_path):
    entries = [Entry(name, tmp_path) for name in ("a b", "a/b", "A b", "index", "../x")]
    assert list(slugs(entries).values()) == ["a-b", "a-b-2", "A-b-3", "index-2", "x"]


@pytest.mark.parametrize(
    ("value", "allowed", "share"),
    [(1.0, 0.0, 0.0), (1.5, 1.0, 0.5), (3.0, 1.0, 2.0), (2.0, 0.0, np.inf), (np.nan, 1.0, np.inf)],
)
def test_share_of_a_tolerance(value, allowed, share):
    assert ratio(Result("", "", "", 1.0, value, allowed)) == share


def test_the_sketch_of_a_system_in_python():
    problem = jfric.Problem(
        ["u"],
        {
            "mass": jfric.Mass("u", 1.0),
            "base": {"b": jfric.Base(0.0)},
            "spring": jfric.Spring(("b", "u"), 2.0),
        },
    )
    texts = {t.get_text() for axis in plot_system(problem, "Both").axes for t in axis.texts}
    assert {"Both", "b", "u\n1 kg", "spring: k = 2 N/m"} <= texts
