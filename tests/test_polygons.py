"""Contacts with polygons and plates: edges that end, corners, and what is said of mistakes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jfric
from jfric.files.read_toml import loads
from jfric.files.write_toml import dump
from jfric.system.assembly import assemble

TEXT = """
[time]
end = "1 s"

[gravity]
g = "10 m/s^2"

[body.p]
m = 1
J = 1
at = [0, 3]

[body.box]
m = 2
J = 1
angle = "90 deg"

[body.box.points]
a = [1, -0.5]
b = [1, 0.5]
c = [-1, 0.5]
d = [-1, -0.5]
e = [0.5, 0]

[contact.corner]
point = "p"
mu = 0.1
polygon = ["box.a", "box.b", "box.c", "box.d"]

[contact.disc]
point = "p"
radius = 0.2
gap = 0.01
mu = 0.1
polygon = ["box.d", "box.c", "box.b", "box.a"]

[contact.plate]
point = "p"
radius = 0.2
mu = 0.1
polygon = ["box.c", "box.d"]
"""


def nearest(p, corners):
    """The place of a closed chain of corners nearest to ``p``."""
    found = []
    for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
        s = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        found.append(a + s * (b - a))
    return min(found, key=lambda x: np.linalg.norm(p - x))


def slip(q, v, at):
    """Velocity of the first body relative to the second where both cover ``at``."""
    found = []
    for i in (0, 3):
        x = at - q[i : i + 2]
        found.append(v[i : i + 2] + v[i + 2] * np.array([-x[1], x[0]]))
    return found[0] - found[1]


@pytest.mark.slow
def test_gaps_and_sliding_are_those_of_the_nearest_place():
    mechanics = assemble(loads(TEXT).problem)
    chains = {
        "corner": ("abcd", 0.0, 0.0),
        "disc": ("abcd", 0.2, 0.01),
        "plate": ("cd", 0.2, 0.0),
    }
    own = {"a": (1, -0.5), "b": (1, 0.5), "c": (-1, 0.5), "d": (-1, -0.5)}
    rng = np.random.default_rng(0)
    seen = 0

    @jax.jit
    @jax.vmap
    def rates(q, v):
        here = mechanics.at(jnp.zeros(()), q, v)
        return here.gaps(jnp.zeros(()), q), here.W_T @ v, here.W_N @ v

    motion = rng.normal(size=(40, 6)) * np.array([2, 2, 1, 1, 1, 2]), rng.normal(size=(40, 6))
    for q, v, gaps, sliding, opening in zip(*motion, *rates(*motion), strict=True):
        turn = np.array([[np.cos(q[5]), -np.sin(q[5])], [np.sin(q[5]), np.cos(q[5])]])
        inside = np.all(np.abs(turn.T @ (q[:2] - q[3:5])) < [1.0, 0.5])
        for row, (letters, radius, gap) in enumerate(chains.values()):
            if inside and len(letters) > 2:
                assert gaps[row] < 0.0
                continue
            corners = [q[3:5] + turn @ np.array(own[x]) for x in letters]
            place = nearest(q[:2], corners)
            way = q[:2] - place
            distance = np.linalg.norm(way)
            np.testing.assert_allclose(gaps[row], distance - radius + gap, rtol=1e-12)
            if row == 0:
                continue
            n = way / distance
            touching = q[:2] - radius * n

            along = np.array([n[1], -n[0]])
            np.testing.assert_allclose(sliding[row], along @ slip(q, v, touching), atol=1e-12)
            np.testing.assert_allclose(opening[row], n @ slip(q, v, place), rtol=1e-9)
            seen += 1
    assert seen > 60


def test_files_with_polygons_are_written_as_they_were_read():
    problem = loads(TEXT).problem
    assert jax.tree.structure(loads(dump(problem)).problem) == jax.tree.structure(
        jfric.build(problem)
    )


MISTAKES = [
    ('["box.c", "box.d"]', '["box.c"]', "contact.plate.polygon: found ('box.c',), expected corn"),
    ('["box.c", "box.d"]', '["box.c", "box.c"]', "found the corner 'box.c' twice"),
    ('["box.c", "box.d"]', '["box.c", "p"]', "found points of 'box' and 'p', all must be of one"),
    ('["box.c", "box.d"]', '["box.c", "box.x"]', "has no point 'x'; it has a, b, c, d, e"),
    ('["box.d", "box.c", "box.b", "box.a"]', '["box.d", "box.c", "box.b", "box.a", "box.e"]', "no "
     "corner at 'box.e', or one that points inwards"),
    ('["box.d", "box.c", "box.b", "box.a"]', '["box.d", "box.b", "box.c", "box.a"]', "corner"),
    ('radius = 0.2\ngap', 'line = "ground"\ngap', "contact.disc.line: cannot be combined with"),
    ("at = [0, 3]", "at = [0, 1.1]", "starts with a gap of -"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_sentence(old, new, sentence):
    assert old in TEXT
    with pytest.raises(jfric.ProblemError) as error:
        jfric.simulate(loads(TEXT.replace(old, new)).problem)
    assert sentence in str(error.value)


def test_time_stepping_refuses_edges_that_end():
    with pytest.raises(jfric.ProblemError, match=r"contact.corner.polygon: a step does not end"):
        jfric.simulate(loads(TEXT).problem, solver=jfric.MoreauJean(dt=1e-3))


#: A particle on a table of 2 m that stands on the floor.
TABLE = """
[time]
end = "1.5 s"

[gravity]
g = "10 m/s^2"

[body.p]
m = 1
J = 1
v = [2, 0]

[ground.points]
a = [-1, 0]
b = [1, 0]
c = [1, -0.8]
d = [-1, -0.8]

[contact.table]
point = "p"
polygon = ["ground.a", "ground.b", "ground.c", "ground.d"]
mu = 0.1

[contact.floor]
point = "p"
line = ["ground.d", "ground.c"]
mu = 10.0
"""


@pytest.mark.slow
def test_a_particle_slides_over_the_edge_of_a_table():
    """It leaves the edge with what friction left of its speed, falls beside the table and lands."""
    solution = jfric.simulate(loads(TABLE).problem).check()
    rows = solution.event_table()
    speed = np.sqrt(2.0)
    assert [(r["contact"], r["to"]) for r in rows[:2]] == [
        ("contact.table", "open"),
        ("contact.floor", "stick"),
    ]
    np.testing.assert_allclose(rows[0]["time"], 2.0 - speed, rtol=1e-12)
    np.testing.assert_allclose(rows[1]["time"], 2.0 - speed + 0.4, rtol=1e-12)
    np.testing.assert_allclose(rows[1]["q"][:2], [1.0 + 0.4 * speed, -0.8], rtol=1e-12)


#: A beam that slides off a knife edge, tilting.
BEAM = """
[time]
end = "0.5 s"

[gravity]
g = "10 m/s^2"

[body.beam]
m = 1
J = 0.4
at = [0.3, 0.1]
v = [0.5, 0]

[body.beam.points]
a = [-0.4, -0.1]
b = [1, -0.1]
c = [1, 0.1]
d = [-0.4, 0.1]

[contact.edge]
point = "ground"
mu = 0.1
{}
"""


@pytest.mark.slow
def test_a_beam_leaves_an_edge_where_it_ends():
    """Until its corner comes past, the beam moves as one without ends; then nothing touches it."""
    ended = BEAM.format('polygon = ["beam.a", "beam.b", "beam.c", "beam.d"]')
    endless = BEAM.format('line = ["beam.b", "beam.a"]')
    ts = np.linspace(0.0, 0.5, 26)
    ends, goes_on = (jfric.simulate(loads(x).problem, ts=ts).check() for x in (ended, endless))
    (row,) = ends.event_table()
    assert row["to"] == "open"
    x, y, phi = row["q"]
    corner = np.array([x, y]) + np.array(
        [-0.4 * np.cos(phi) + 0.1 * np.sin(phi), -0.4 * np.sin(phi) - 0.1 * np.cos(phi)]
    )
    np.testing.assert_allclose(corner, [0.0, 0.0], atol=1e-10)
    before = np.asarray(ends.ts) < row["time"]
    assert before.sum() > 5
    np.testing.assert_allclose(ends.q[before], goes_on.q[before], atol=1e-9)
    after = np.asarray(ends.ts)[~before] - row["time"]
    falls = row["q"][1] + row["v"][1] * after - 5.0 * after**2
    np.testing.assert_allclose(np.asarray(ends.q)[~before, 1], falls, atol=1e-10)
