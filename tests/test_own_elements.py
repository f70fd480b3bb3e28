"""Elements and friction laws from outside the package."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generators.manual.sketch import plot_system

import jfric
from jfric.files.read_toml import loads
from jfric.system import elements as sections


class Magnet(jfric.elements.AbstractForce):
    """A pull ``A/(d - x)^2``."""

    direction: jfric.Direction = eqx.field(converter=jfric.as_direction)
    A: float = eqx.field(**jfric.holds(at_least=0.0))
    d: float = eqx.field(**jfric.holds("length", above=0.0))
    symbol = "spring"
    shown = ("d",)

    def force(self, axes, t, q, v):
        w = self.direction.vector(axes)
        return w * self.A / (self.d - w @ q) ** 2


class Rubber(jfric.elements.AbstractBristle):
    """Bristles that relax."""

    direction: jfric.Direction = eqx.field(converter=jfric.as_direction)
    k: float = eqx.field(**jfric.holds("stiffness", above=0.0))
    R: float = eqx.field(**jfric.holds("force", above=0.0))
    T: float = eqx.field(**jfric.holds("time", above=0.0))
    z0: float = eqx.field(default=0.0, **jfric.holds("length"))

    @property
    def size(self):
        return self.R / self.k

    def rate(self, gamma, z, side):
        return gamma - side * gamma * self.k * z / self.R - z / self.T

    def friction(self, gamma, z, side):
        return self.k * z


class Slippery(jfric.laws.AbstractLaw):
    """Half of the coefficient when sliding."""

    velocity_independent = True
    mu_0: float = eqx.field(**jfric.holds("pure number", at_least=0.0))

    def static(self):
        return self.mu_0, self.mu_0

    def kinetic(self, gamma):
        return 0.5 * self.mu_0, 0.5 * self.mu_0


SYSTEM = """
dofs = ["u"]
time = {end = 1.0}
[mass]
dof = "u"
m = "2 kg"
"""


@pytest.fixture
def known():
    jfric.register("magnet")(Magnet)
    jfric.register("rubber")(Rubber)
    jfric.register("slippery")(Slippery)


def own(text, **more):
    return loads(SYSTEM + text, **more).problem


@pytest.mark.usefixtures("known")
def test_an_element_in_a_file_is_the_one_in_python():
    in_file = own('[magnet]\ndof = "u"\nA = 2.0\nd = "10 cm"')
    assert isinstance(in_file.elements["magnet"]["magnet"], Magnet)
    assert float(jfric.get_parameter(in_file, "magnet.d")) == pytest.approx(0.1)
    given = {"mass": jfric.Mass("u", 2.0), "magnet": Magnet("u", 2.0, "10 cm")}
    in_python = jfric.Problem(["u"], given, time=1.0)
    assert eqx.tree_equal(jax.tree.leaves(in_file), jax.tree.leaves(in_python))
    again = loads(jfric.to_toml(in_python)).problem
    assert eqx.tree_equal(jax.tree.leaves(again), jax.tree.leaves(in_python))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[magnet]\ndof = "u"\nA = 2.0\nd = "3 N"', "magnet.d: found 'N' (a force)"),
        ('[magnet]\ndof = "u"\nA = -2.0\nd = 0.1', "magnet.A: found -2, must not be negative"),
        ('[magnet]\ndof = "u"\nA = 2.0\nd = 0', "magnet.d: found 0, must be positive"),
        ('[magnet]\ndof = "w"\nA = 2.0\nd = 1', "no degree of freedom 'w'"),
        ('[magnet]\ndof = "u"\nA = 2.0\nD = 1', "did you mean 'd'"),
        ('[rubber]\ndof = "u"\nk = 1\nR = 0\nT = 1', "rubber.R: found 0, must be positive"),
    ],
)
def test_what_fields_say_is_held(text, sentence):
    with pytest.raises(jfric.ProblemError) as error:
        own(text)
    assert sentence in str(error.value)


def test_an_unknown_section_is_named():
    with pytest.raises(jfric.ProblemError, match=r"magnet: .*unknown"):
        own('[magnet]\ndof = "u"\nA = 2.0\nd = 0.1')


def test_files_find_what_packages_announce(monkeypatch):
    class Point:
        name = "magnet"

        @staticmethod
        def load():
            return Magnet

    monkeypatch.setattr(sections, "entry_points", lambda group: [Point()])
    sections.register_installed.cache_clear()
    try:
        problem = own('[magnet]\ndof = "u"\nA = 2.0\nd = 0.1')
    finally:
        monkeypatch.undo()
        sections.register_installed.cache_clear()
    assert isinstance(problem.elements["magnet"]["magnet"], Magnet)


@pytest.mark.usefixtures("known")
def test_a_force_moves_is_drawn_and_observed():
    problem = own('[magnet]\ndof = "u"\nA = 1e-3\nd = "10 cm"')
    force = float(jfric.observe(problem, "final.force.magnet").values["final.force.magnet"])
    x = float(jfric.observe(problem, "final.u").values["final.u"])
    assert force == pytest.approx(1e-3 / (0.1 - x) ** 2)
    figure = plot_system(problem)
    assert "magnet: d = 0.1 m" in [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.usefixtures("known")
def test_friction_with_a_state_of_ones_own_relaxes():
    text = '[rubber]\ndof = "u"\nk = 100\nR = 5\nT = 0.5\nz0 = 0.01'
    problem = loads(SYSTEM.replace("2 kg", "1e9 kg") + text).problem
    z = jfric.simulate(problem, ts=jnp.array([0.0, 1.0])).z[:, 0]
    np.testing.assert_allclose(z[1], 0.01 * np.exp(-2.0), rtol=1e-6)


@pytest.mark.usefixtures("known")
def test_a_law_in_a_file():
    text = '[friction]\ndof = "u"\nlaw = "slippery"\nmu_0 = 0.4\nN = 10\n[initial.u]\nv = 1.0'
    problem = own(text)
    assert isinstance(problem.elements["friction"]["friction"].law, Slippery)
    # 2 N slow 2 kg down.
    final = jfric.observe(problem, "final.u").values["final.u"]
    assert float(final) == pytest.approx(0.5)
    with pytest.raises(jfric.ProblemError, match=r"friction.mu_0: found -1, must not be negative"):
        own(text.replace("0.4", "-1"))


def test_names_and_classes_that_are_refused():
    with pytest.raises(jfric.ProblemError, match="'spring', which Spring has"):
        jfric.register("spring")(Magnet)
    with pytest.raises(jfric.ProblemError, match="'My Magnet', names start"):
        jfric.register("My Magnet")(Magnet)
    with pytest.raises(jfric.ProblemError, match=r"must be a subclass of one of jfric\.Abs"):
        jfric.register("magnet")(jfric.Mass)
    jfric.register("magnet")(Magnet)
    assert jfric.register("magnet")(Magnet) is Magnet


def test_a_law_with_the_field_of_an_element_leaves_its_unit_alone():
    @jfric.register("elastic")
    class Elastic(Slippery):
        m: float = eqx.field(**jfric.holds("velocity"))

    assert float(jfric.get_parameter(own(""), "mass.m")) == 2.0
    with pytest.raises(jfric.ProblemError, match=r"mass.m: found 'm/s' \(a velocity\)"):
        loads(SYSTEM.replace("2 kg", "2 m/s"))
