"""PyTorch in the same process: tensors share memory, and its OpenMP and ours do not disturb each other.

`tools/setup python` does not install PyTorch: the tests run where it is, or where `tools/setup newest` has installed it for the same
version of Python.
"""

import os
import pathlib
import sys

import artel
import numpy as np
import pytest
from conftest import LAYERS

cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
sys.path.append(str(cache / f"artel/peers/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"))
torch = pytest.importorskip("torch")

KEYS = dict(epochs=1, batch_size=30, lanes=2, lr=0.1, quiet=True)


def bits(run):
    return {name: array.tobytes() for name, array in run.state_dict().items()}


def module():
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def test_weights_share_memory(blobs):
    run = artel.train(LAYERS, blobs, **KEYS)
    network = module()
    network.load_state_dict(run.to_torch())
    x = torch.from_numpy(blobs[0])
    np.testing.assert_allclose(network(x).detach().numpy(), run.predict(x), rtol=1e-4, atol=1e-5)
    state = artel.from_torch(network)
    assert np.shares_memory(state["0.weight"], network[0].weight.detach().numpy())
    assert bits(artel.train(LAYERS, blobs, weights=state, **dict(KEYS, lr=0.0))) == bits(run)


def test_weights_of_bf16_become_f32(blobs):
    network = module().bfloat16()
    state = artel.from_torch(network)
    assert all(array.dtype == np.float32 for array in state.values())
    assert np.array_equal(state["0.weight"], network[0].weight.detach().float().numpy())
    with pytest.raises(artel.Error, match=r"\[phase\] got an array of type complex64"):
        artel.from_torch({"phase": torch.zeros(3, dtype=torch.complex64)})


def test_dlpack_copies_nothing(blobs):
    array = artel.train(LAYERS, blobs, **KEYS).state_dict()["0.weight"]
    tensor = torch.utils.dlpack.from_dlpack(array)
    assert tensor.data_ptr() == array.ctypes.data
    assert np.from_dlpack(tensor).ctypes.data == array.ctypes.data


def test_tensors_and_data_sets_are_samples(blobs):
    expected = bits(artel.train(LAYERS, blobs, **KEYS))
    tensors = [torch.from_numpy(array) for array in blobs]
    assert bits(artel.train(LAYERS, tuple(tensors), **KEYS)) == expected
    assert bits(artel.train(LAYERS, torch.utils.data.TensorDataset(*tensors), **KEYS)) == expected


def test_tensors_that_numpy_does_not_have(blobs):
    x, y = torch.from_numpy(blobs[0]).bfloat16(), torch.from_numpy(blobs[1])
    expected = bits(artel.train(LAYERS, (x.float(), y), **KEYS))
    run = artel.train(LAYERS, (x, y), **KEYS)
    assert bits(run) == expected
    assert bits(artel.train(LAYERS, torch.utils.data.TensorDataset(x, y), **KEYS)) == expected
    assert bits(artel.train(LAYERS, (x.float().requires_grad_(), y), **KEYS)) == expected
    np.testing.assert_array_equal(run.predict(x.t().contiguous().t()), run.predict(x.float()))
    half = bits(artel.train(LAYERS, (x.float().half().float(), y), **KEYS))
    assert bits(artel.train(LAYERS, (x.half(), y), **KEYS)) == half
    with pytest.raises(artel.Error, match=r"\[x\] got Tensor, expected an array of numbers in this machine's memory") as caught:
        artel.train(LAYERS, (torch.empty((3, 4), device="meta"), y[:3]), **KEYS)
    assert "\n" not in str(caught.value)


def test_threads_of_both_in_one_process(blobs):
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        expected = bits(artel.train(LAYERS, blobs, **KEYS))
        for workers in (1, 2, 1):  # two are forked after PyTorch has started its threads
            assert (torch.ones(600, 600) @ torch.ones(600, 600))[0, 0] == 600
            assert bits(artel.train(LAYERS, blobs, workers=workers, **KEYS)) == expected
        network = module()
        torch.nn.functional.cross_entropy(network(torch.from_numpy(blobs[0])), torch.from_numpy(blobs[1]).long()).backward()
        assert torch.isfinite(network[0].weight.grad).all()
    finally:
        torch.set_num_threads(before)
