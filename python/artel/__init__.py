"""Trains neural networks on many inexpensive machines, with the same bits on any number of them.

>>> import artel, numpy
>>> x = numpy.random.default_rng(0).normal(size=(200, 2)).astype(numpy.float32)
>>> y = (x[:, 0] > x[:, 1]).astype(numpy.int32)
>>> run = artel.train(["dense 16", "relu", "dense 2"], (x, y), epochs=20, lr=0.5, quiet=True)
>>> bool(run.evaluate((x, y))["accuracy"] > 0.95)
True
>>> run.predict(x[:3]).shape
(3, 2)
"""

from artel import _mpi

_mpi.prepare()

from artel._artel import Build, Dataset, Error, TrainingState, Value, __version__, ops
from artel._dashboard import dashboard
from artel._finetune import finetune
from artel._model import Model
from artel._parts import layer, loss, metric
from artel._run import Run, load
from artel._tables import columns
from artel._torch import from_torch, to_torch
from artel._train import keys, train
from artel._versions import show_versions

__all__ = ["Build", "Classifier", "Dataset", "Error", "Model", "Regressor", "Run", "TrainingState",
           "Value", "columns", "dashboard", "finetune", "from_torch", "keys", "layer", "load", "loss",
           "metric", "ops", "show_versions", "to_torch", "train", "__version__"]


def __getattr__(name):
    """Imports scikit-learn on first use, because it takes longer than training a small network."""
    if name in ("Classifier", "Regressor"):
        try:
            from artel import _estimators
        except ModuleNotFoundError as error:
            raise ImportError(f"artel.{name} needs scikit-learn: pip install scikit-learn") from error

        return getattr(_estimators, name)
    raise AttributeError(f"module 'artel' has no attribute '{name}'")
