"""Nothing is lost: kills, full disks, damaged chunks, lost workers, other device counts."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import jfric
from jfric.sweeps.progress import Progress
from jfric.sweeps.sweeping import execute, prepare
from jfric.sweeps.table import ZarrTable

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "ve0116.toml"
LANES, BLOCK = 192, 8
RANGE = jfric.Range(0.05, 0.3, LANES)
OBSERVED = "final.u,stop_time,dissipated"
#: What a process of its own computes.
SCRIPT = f"""
import sys, jax, numpy as np
from jfric.numerics.compilation import use_compilation_cache
import jfric
jax.config.update("jax_enable_x64", True)
use_compilation_cache()
problem = jfric.load({str(CONFIG)!r})
table = jfric.sweep(
    problem, {{"friction.mu": jfric.Range(0.05, 0.3, {LANES})}}, {OBSERVED!r},
    store=sys.argv[1], chunk={BLOCK}, block=int(sys.argv[2]),
)
print(len(jax.devices()))
"""


def prepared():
    return prepare(jfric.load(CONFIG), {"friction.mu": RANGE}, OBSERVED)


def run(store, block=BLOCK):
    """A sweep in this process; its arrays and the number of lanes that were computed."""
    sink, summary = execute(prepared(), store=store, chunk=BLOCK, block=block, devices=1)
    table = sink.dataset().load()
    assert set(table["status"].values.tolist()) == {0}
    return {str(name): table[name].values for name in table.variables}, summary.computed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted sweep."""
    arrays, computed = run(tmp_path_factory.mktemp("whole") / "sweep.zarr")
    assert computed == LANES
    return arrays


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        assert found[name].tobytes() == values.tobytes(), name


def finished(store) -> int:
    return len(list((store / "status" / "c").glob("*"))) if store.exists() else 0


def start(store, block=BLOCK, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(store), str(block)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_killed_sweep_goes_on_with_the_same_bits(tmp_path, whole):
    store = tmp_path / "sweep.zarr"
    moment = random.Random(20260)
    killed = 0
    for _ in range(2):
        process = start(store)
        # Some tiles further, at any point between two of them.
        goal = finished(store) + moment.randrange(2, 8)
        while process.poll() is None and finished(store) < goal:
            time.sleep(0.001)
        time.sleep(0.01 * moment.random())
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert process.returncode in (-signal.SIGKILL, 0), errors
    assert killed
    assert 0 < finished(store) < LANES // BLOCK
    arrays, computed = run(store)
    assert 0 < computed < LANES
    assert_same_bits(arrays, whole)
    assert not list(store.rglob("*.partial"))
    assert run(store)[1] == 0


def test_a_full_disk_is_reported_and_the_sweep_goes_on(tmp_path, whole, monkeypatch):
    import zarr.storage._local as local

    store = tmp_path / "sweep.zarr"
    put, written = local._put, []

    def full(path, value, exclusive=False):
        if f"{os.sep}c{os.sep}" in str(path) and not str(path).startswith(str(store / "friction")):
            written.append(path)
            if len(written) > 21:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return put(path, value, exclusive)

    with monkeypatch.context() as patch:
        patch.setattr(local, "_put", full)
        with pytest.raises(jfric.ProblemError) as caught:
            run(store)
    message = str(caught.value)
    assert "No space left on device" in message
    assert "finished are kept" in message
    assert "\n" not in message
    # Whoever looks into the store meanwhile sees what is there: nothing but zeros in the rest.
    kept = jfric.open_sweep(store)
    missing = np.asarray(kept["status"]) == -1
    assert missing.sum() == LANES - 3 * BLOCK
    for name in ("steps", "flags"):
        assert not np.any(np.asarray(kept[name])[np.argwhere(missing).ravel()[BLOCK:]])
    assert np.all(np.asarray(kept["steps"])[~missing] > 0)
    arrays, computed = run(store)
    # Six arrays: three tiles were complete, of the fourth there were three chunks.
    assert computed == LANES - 3 * BLOCK
    assert_same_bits(arrays, whole)


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "removed"])
def test_a_damaged_chunk_is_computed_again(tmp_path, whole, damage):
    store = tmp_path / "sweep.zarr"
    run(store)
    chunk = store / "final.u" / "c" / "5"
    content = chunk.read_bytes()
    if damage == "truncated":
        chunk.write_bytes(content[: len(content) // 2])
    elif damage == "emptied":
        chunk.write_bytes(b"")
    elif damage == "flipped":
        chunk.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    else:
        chunk.unlink()
    arrays, computed = run(store)
    assert computed == BLOCK
    assert_same_bits(arrays, whole)


def test_the_layout_of_a_store_is_kept(tmp_path, whole, monkeypatch):
    """Other options at the second call change neither the tiles nor the bits; the bar begins with
    what is there."""
    store, said = tmp_path / "sweep.zarr", []
    run(store)
    (store / "status" / "c" / "3").unlink()
    monkeypatch.setattr(Progress, "_update", lambda bar, *_: said.append(bar._count))
    sink, summary = execute(prepared(), store=store, chunk=64, block=64, devices=1)
    assert isinstance(sink, ZarrTable)
    assert summary.computed == BLOCK
    assert said == [f"{LANES - BLOCK}/{LANES}", f"{LANES}/{LANES}"]
    table = sink.dataset().load()
    assert_same_bits({str(n): table[n].values for n in table.variables}, whole)


@pytest.mark.slow
def test_another_number_of_devices_agrees(tmp_path, whole):
    store = tmp_path / "sweep.zarr"
    process = start(store, 64, XLA_FLAGS="--xla_force_host_platform_device_count=2")
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert output.split()[-1] == "2"
    table = jfric.open_sweep(store).load()
    assert table.attrs["jfric_layout"]["devices"] == 2
    for name, values in whole.items():
        np.testing.assert_allclose(table[name].values, values, rtol=1e-12, atol=1e-12)
    # This process has one device: it cannot go on as the sweep began.
    if len(jax.local_devices()) == 1:
        (store / "status" / "c" / "0").unlink()
        with pytest.raises(jfric.ProblemError, match="devices: found 2, but 1 is available"):
            execute(prepared(), store=store)


@pytest.mark.slow
def test_the_loss_of_a_worker_loses_nothing(tmp_path, whole):
    distributed = pytest.importorskip("distributed")
    store = tmp_path / "sweep.zarr"
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    lost = []

    def kill_one():
        while finished(store) < 2:
            time.sleep(0.002)
        pid = next(iter(cluster.workers.values())).pid
        lost.append((pid, finished(store)))
        os.kill(pid, signal.SIGKILL)

    with cluster:
        killer = threading.Thread(target=kill_one)
        killer.start()
        sink, summary = execute(
            prepared(), store=store, chunk=BLOCK, block=BLOCK, scheduler=cluster.scheduler_address
        )
        killer.join()
    assert summary.computed == LANES
    assert lost
    assert lost[0][1] < LANES // BLOCK
    table = sink.dataset().load()
    assert_same_bits({str(n): table[n].values for n in table.variables}, whole)
