import os

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path, monkeypatch):
    """Runs go to a folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def blobs():
    """300 samples of three classes that a small network can tell apart."""
    random = np.random.default_rng(7)
    y = np.arange(300) % 3
    centres = np.array([[3, 0, 0, 1], [0, 3, 0, -1], [0, 0, 3, 0]], dtype=np.float32)
    x = centres[y] + random.normal(size=(300, 4)).astype(np.float32)
    return x.astype(np.float32), y.astype(np.int32)


@pytest.fixture
def program():
    return os.environ["ARTEL_PROGRAM"]


LAYERS = ["dense 16", "relu", "dense 3"]
