"""Losses, metrics, and layers in Python give the bits of those that come with Artel."""

import artel
import numpy as np
import pytest
from artel import ops
from conftest import LAYERS

KEYS = dict(epochs=2, batch_size=30, lanes=2, lr=0.1, quiet=True)


def bits(run):
    return {name: array.tobytes() for name, array in run.state_dict().items()}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loss_of_ones_own(blobs, workers):
    def own_cross_entropy(prediction, target):
        return ops.cross_entropy(prediction, target)

    own = artel.train(LAYERS, blobs, loss=own_cross_entropy, workers=workers, **KEYS)
    assert bits(own) == bits(artel.train(LAYERS, blobs, **KEYS))


def test_a_loss_is_differentiated():
    x = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]

    @artel.loss
    def cubic(prediction, target):
        off = ops.abs(prediction - target)
        return ops.mean(off * off * off)

    run = artel.train(["dense 1"], (x, 3 * x + 1), loss=cubic, epochs=200, lr=0.05, batch_size=20,
                      quiet=True)
    np.testing.assert_allclose(run.predict(x), 3 * x + 1, atol=0.15)


def test_a_metric_of_ones_own(blobs):
    def own_accuracy(prediction, target):
        right = ops.equal(ops.argmax(prediction), target)
        return ops.sum(right), target.shape[0]

    run = artel.train(LAYERS, blobs, metrics=[own_accuracy, "accuracy"], **KEYS)
    tested = run.evaluate(blobs)
    assert tested["own_accuracy"] == tested["accuracy"]


def test_a_layer_of_ones_own(blobs):
    @artel.layer
    def scaled(build, x, initial):
        return x * build.parameter("scale", [x.shape[-1]], float(initial))

    run = artel.train(["scaled 2", "dense 3"], blobs, **KEYS)
    state = run.state_dict()
    assert state["0.scale"].shape == (4,)
    assert not np.array_equal(state["0.scale"], np.full(4, 2, np.float32))
    x = blobs[0][:5]
    np.testing.assert_allclose(run.predict(x),
                               (x * state["0.scale"]) @ state["1.weight"].T + state["1.bias"],
                               rtol=1e-4, atol=1e-4)


def test_redefining_replaces(blobs):
    def factor(build, x):
        return x * 1.0

    artel.layer(factor)
    artel.train(["factor", "dense 3"], blobs, **KEYS)

    def factor(build, x):  # noqa: F811
        raise TypeError("second")

    artel.layer(factor)
    with pytest.raises(artel.Error, match="layer factor.*TypeError: second"):
        artel.train(["factor", "dense 3"], blobs, **KEYS)


def test_numbers_next_to_infinite_values():
    x = np.array([[-np.inf], [-1], [2], [np.inf]], dtype=np.float32)

    @artel.layer
    def signs(build, x):
        return ops.select(x < 1.5, 2.0 / (ops.abs(x) + 1.0), 5.0 - 1.0 / x)

    run = artel.train(["signs", "dense 1"], (np.zeros((4, 1), np.float32), np.zeros((4, 1), np.float32)), loss="mse",
                      **dict(KEYS, batch_size=4))
    state = run.state_dict()
    expected = np.array([[0], [1], [4.5], [5]]) @ state["1.weight"].T + state["1.bias"]
    np.testing.assert_allclose(run.predict(x), expected, rtol=1e-5)


def test_a_loss_that_returns_nonsense(blobs):
    def nonsense(prediction, target):
        return 7

    with pytest.raises(artel.Error, match="loss nonsense"):
        artel.train(LAYERS, blobs, loss=nonsense, **KEYS)
