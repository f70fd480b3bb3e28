"""The static problem of ``two_blocks.py`` in GetFEM: same mesh, load and pairs of contact nodes.

GetFEM (Debian's python3-getfem) runs under the system's Python: this script writes the data, calls
itself there, and compares the contact forces. GetFEM assembles its own stiffness matrix from the
mesh; nodal loads and pairs of nodes come from jfric.

    python experiments/getfem_comparison.py --mu 0.2
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SHIFT = 1.0


def solve_in_getfem(path: str) -> None:
    """Runs under the system's Python: read the data, write the contact forces and the time."""
    import getfem as gf

    data = np.load(path)
    begun = time.perf_counter()
    # The lower block is moved away, so that its nodes on the interface are separate nodes.
    mesh = gf.Mesh("empty", 2)
    square = gf.GeoTrans("GT_QK(2,1)")
    for body, offset in ((0, 0.0), (1, -SHIFT)):
        nodes = data["nodes"][data["body"] == body]
        x, y = np.unique(nodes[:, 0].round(12)), np.unique(nodes[:, 1].round(12)) + offset
        for i in range(x.size - 1):
            for j in range(y.size - 1):
                mesh.add_convex(
                    square,
                    np.array([[x[i], x[i + 1], x[i], x[i + 1]], [y[j], y[j], y[j + 1], y[j + 1]]]),
                )
    fem = gf.MeshFem(mesh, 2)
    fem.set_fem(gf.Fem("FEM_QK(2,1)"))
    rule = gf.MeshIm(mesh, gf.Integ("IM_GAUSS_PARALLELEPIPED(2,4)"))
    places = fem.basic_dof_nodes()
    index = {
        (round(places[0, 2 * k], 9), round(places[1, 2 * k], 9)): 2 * k
        for k in range(fem.nbdof() // 2)
    }

    def dof(node: int, axis: int) -> int:
        px, py = data["nodes"][node]
        return index[(round(px, 9), round(py - SHIFT * data["body"][node], 9))] + axis

    own = np.array([[dof(k, 0), dof(k, 1)] for k in range(len(data["nodes"]))])
    rhs = np.zeros(fem.nbdof())
    held = []
    for node, pair in enumerate(data["dofs"]):
        for axis, free in enumerate(pair):
            if free >= 0:
                rhs[own[node, axis]] = data["load"][free]
            else:
                held.append(own[node, axis])
    B = {}
    for name, axis in (("N", 1), ("T", 0)):
        B[name] = gf.Spmat("empty", len(data["pairs"]), fem.nbdof())
        # GetFEM uses gap - B_N u, hence the opposite sign.
        sign = -1.0 if name == "N" else 1.0
        for row, (upper, lower) in enumerate(data["pairs"]):
            B[name].add(row, own[upper, axis], sign)
            B[name].add(row, own[lower, axis], -sign)
    model = gf.Model("real")
    model.add_fem_variable("u", fem)
    model.add_initialized_data("lame1", float(data["lame"][0]))
    model.add_initialized_data("lame2", float(data["lame"][1]))
    model.add_isotropic_linearized_elasticity_brick(rule, "u", "lame1", "lame2")
    model.add_explicit_rhs("u", rhs)
    fixed = gf.Spmat("empty", len(held), fem.nbdof())
    for row, column in enumerate(held):
        fixed.add(row, column, 1.0)
    model.add_variable("support", len(held))
    model.add_constraint_with_multipliers("u", "support", fixed, np.zeros(len(held)))
    count = len(data["pairs"])
    model.add_variable("normal", count)
    model.add_variable("tangential", count)
    model.add_initialized_data("r", float(data["r"]))
    model.add_initialized_data("mu", float(data["mu"]))
    model.add_initialized_data("gap", np.zeros(count))
    model.add_initialized_data("alpha", np.ones(count))
    model.add_basic_contact_brick(
        "u", "normal", "tangential", "r", B["N"], B["T"], "mu", "gap", "alpha", 1
    )
    model.solve("max_res", 1e-9, "max_iter", 200, "noisy")
    seconds = time.perf_counter() - begun
    np.savez(
        path.replace(".npz", "-getfem.npz"),
        normal=model.variable("normal"),
        tangential=model.variable("tangential"),
        seconds=seconds,
    )


def main(mu: float, python: str) -> None:
    import common  # noqa: F401  (float64)
    from two_blocks import POISSON, YOUNG, structure

    import jfric

    begun = time.perf_counter()
    blocks = structure()
    problem = jfric.condense(blocks).problem(mu)
    row = jfric.equilibria(problem, starts=8).table()[0]
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    jfric.equilibria(problem, starts=8).count.block_until_ready()
    second = time.perf_counter() - begun
    level = np.isclose(blocks.nodes[:, 1], 0.0)
    sides = [np.flatnonzero(level & (blocks.body == body)) for body in (0, 1)]
    sides = [side[np.argsort(blocks.nodes[side, 0])] for side in sides]
    lame = (YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), YOUNG / (2 * (1 + POISSON)))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "problem.npz")
        np.savez(
            path,
            nodes=blocks.nodes,
            body=blocks.body,
            dofs=blocks.dofs,
            load=blocks.loads.sum(axis=0),
            pairs=np.stack(sides, axis=1),
            lame=lame,
            r=YOUNG,
            mu=mu,
        )
        done = subprocess.run(
            [python, __file__, "--solve", path], capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"GetFEM did not run: {done.stderr.strip().splitlines()[-1]}")
        other = np.load(path.replace(".npz", "-getfem.npz"))
        normal, tangential = -other["normal"], other["tangential"]
        seconds = float(other["seconds"])
    scale = np.max(row["lambda_n"])
    print(f"mu = {mu}: contact forces up to {scale:.6g} N")
    for name, mine, theirs in (
        ("normal", row["lambda_n"], normal),
        ("tangential", row["lambda_t"], tangential),
    ):
        off = min(np.max(np.abs(mine - s * theirs)) for s in (1.0, -1.0)) / scale
        print(f"{name} forces differ by {off:.1e} of the largest")
    print(
        f"jfric: {first:.2f} s with meshing and compilation, {second:.3f} s again for 8 starts; "
        f"GetFEM: {seconds:.2f} s with meshing"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mu", type=float, default=0.2)
    parser.add_argument("--python", default="/usr/bin/python3", help="Python that has getfem")
    parser.add_argument("--solve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.solve:
        solve_in_getfem(arguments.solve)
    else:
        main(arguments.mu, arguments.python)
