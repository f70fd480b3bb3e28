"""A law whose numbers are the weights of a network."""

import jax
import numpy as np
import pytest
from identify_curve import axis
from network_law import NetworkLaw, record, simulated, trained

import jfric


def network():
    return axis(NetworkLaw(jax.random.key(0)))


def test_weights_are_parameters_of_the_problem():
    problem = network()
    weights = jfric.parameters(problem)["friction.last.weight"]
    assert np.shape(weights) == (2, 12)
    law = problem.section("friction")["friction"].law
    for at_rest, sliding in zip(law.static(), law.kinetic(np.zeros(())), strict=True):
        assert float(at_rest) == float(sliding) > 0.0
    with pytest.raises(jfric.ProblemError, match=r"friction\.mu: found \[1.0, 2.0\], expected one"):
        axis(jfric.Coulomb(np.array([1.0, 2.0])))


@pytest.mark.slow
def test_a_network_sticks_exactly_and_learns():
    data, clean, _ = record(100, 0)
    found, errors = trained(data, 25)
    assert errors[-1] < 0.7 * errors[0]
    force, velocity = simulated(found, data)
    assert 0 < np.sum(velocity == 0.0) < velocity.size
    assert np.std(force - clean) < np.std(clean)
