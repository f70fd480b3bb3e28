"""Gathers and scatters at known places, against XLA's own, whatever their dimension numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax.extend.core import Literal
from jax.lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

from jfric.numerics.lowering.movement import gathered, scattered

MODES = (
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
)


def _subset(draw, places) -> list[int]:
    return [p for p in places if draw(st.booleans())]


@st.composite
def windows(draw):
    """Shape of an array, sizes of windows, of the batch and of what is kept of a window, mode,
    indices, and dimension numbers, which mean the same for gathers and scatters: where windows go,
    which axes are left out, which are indexed, which go along with the batch, and with what."""
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    sizes = [draw(st.integers(1, n)) for n in shape]
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    along: list[tuple[int, int]] = []
    if batch and draw(st.booleans()):
        axis = draw(st.sampled_from(range(len(shape))))
        shape[axis], sizes[axis] = batch[0], 1
        along = [(axis, 0)]
    others = [a for a in range(len(shape)) if (a, 0) not in along]
    indexed = draw(st.permutations(_subset(draw, others)))
    left_out = [a for a in others if sizes[a] == 1 and draw(st.booleans())]
    mode = draw(st.sampled_from(MODES))
    inside = mode is GatherScatterMode.PROMISE_IN_BOUNDS
    index = np.zeros((*batch, len(indexed)), np.int64)
    for at in np.ndindex(*batch):
        for i, a in enumerate(indexed):
            room = shape[a] - sizes[a]
            index[(*at, i)] = draw(st.integers(0, room) if inside else st.integers(-2, room + 2))
    kept = [s for a, s in enumerate(sizes) if a not in left_out and (a, 0) not in along]
    rank = len(batch) + len(kept)
    offsets = sorted(draw(st.permutations(range(rank)))[: len(kept)])
    batched = ([a for a, _ in along], [b for _, b in along])
    numbers = tuple(map(tuple, (offsets, left_out, indexed, *batched)))
    return shape, sizes, batch, kept, mode, index, numbers


@settings(max_examples=25, deadline=None)
@given(case=windows())
def test_gathers(case):
    shape, sizes, batch, kept, mode, index, places = case
    numbers = np.arange(np.prod(shape)).reshape(shape)
    dimensions = GatherDimensionNumbers(*places)
    expected = jax.lax.gather(
        jnp.asarray(numbers), jnp.asarray(index), dimensions, tuple(sizes), mode=mode, fill_value=-1
    )
    p = {"dimension_numbers": dimensions, "slice_sizes": tuple(sizes), "mode": mode}
    found = gathered(numbers, index, expected.shape, p)
    assert len(expected.shape) == len(batch) + len(kept)
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=25, deadline=None)
@given(case=windows())
def test_scatters(case):
    shape, _, batch, kept, mode, index, places = case
    # Several windows in one place: which is last is not defined.
    assume(index.shape[-1] > 0 or np.prod(batch, dtype=int) <= 1)
    operand = -1 - np.arange(np.prod(shape)).reshape(shape)
    rest, windows = iter(batch), iter(kept)
    rank = len(batch) + len(kept)
    full = [next(windows) if i in places[0] else next(rest) for i in range(rank)]
    update = np.arange(np.prod(full, dtype=int)).reshape(full)
    dimensions = ScatterDimensionNumbers(*places)
    expected = jax.lax.scatter(
        jnp.asarray(operand), jnp.asarray(index), jnp.asarray(update), dimensions, mode=mode
    )
    found = scattered(operand, index, update, {"dimension_numbers": dimensions, "mode": mode})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i],
        lambda x, i: x[:, i],
        lambda x, i: x[i, ::-1],
        lambda x, i: x.at[i, 1].set(7.0),
        lambda x, i: jax.vmap(lambda a, k: a[k])(x, i),
        lambda x, i: jax.vmap(lambda a, k: a.at[k].set(0.0))(x, i),
        lambda x, i: jnp.take_along_axis(x, i[:, None], axis=1),
    ],
)
def test_indices_as_they_are_written(call):
    """The equations that NumPy's indices become."""
    x, i = jnp.arange(9.0).reshape(3, 3), jnp.asarray([2, 0, 1])

    def visit(closed, given):
        jaxpr = closed.jaxpr
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *given], strict=True))
        for e in jaxpr.eqns:
            own = [v.val if isinstance(v, Literal) else known[v] for v in e.invars]
            if e.primitive.name == "jit":
                outs = visit(e.params["jaxpr"], own)
            else:
                out = e.primitive.bind(*own, **e.primitive.get_bind_params(e.params))
                outs = out if e.primitive.multiple_results else [out]
            numbers = [np.asarray(a) for a in own]
            if e.primitive.name == "gather":
                seen.append((gathered(*numbers, outs[0].shape, e.params), outs[0]))
            elif e.primitive.name == "scatter":
                seen.append((scattered(*numbers, e.params), outs[0]))
            known.update(zip(e.outvars, outs, strict=True))
        return [known[v] for v in jaxpr.outvars]

    seen: list = []
    visit(jax.make_jaxpr(call)(x, i), [x, i])
    assert seen
    for by_numpy, expected in seen:
        np.testing.assert_array_equal(by_numpy, expected)
