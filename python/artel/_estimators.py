"""`artel.Classifier` and `artel.Regressor`: scikit-learn's interface to Artel."""

import io
import math
import os
import shutil
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import artel
from artel import _artel, _data, _tables

DEFAULT_NETWORK = ("dense 100", "relu")


# Four checkpoints, each with the weights and up to three arrays of optimizer state.
_BYTES_PER_PARAMETER = 4 * 4 * 4
_MEMORY = Path("/dev/shm")


def _temporary_folder(size=None):
    """A temporary folder for `size` bytes. It is in memory if that takes at most a quarter of the free
    space there, because writing to a disk takes longer than training a small network. TMPDIR selects
    another place."""
    in_memory = (size is not None and "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK)
                 and 4 * size < shutil.disk_usage(_MEMORY).free)
    return tempfile.TemporaryDirectory(prefix="artel-", dir=_MEMORY if in_memory else None,
                                       ignore_cleanup_errors=True)


class _Estimator(BaseEstimator):
    """Base class of `Classifier` and `Regressor`.

    `network` is a list of layers without the last one, the name of a zoo network, or a complete
    `artel.Model`. Alternatively, `base` is a trained network to fine-tune, and `blocks` selects the
    blocks to train, as in `artel.finetune`. `keys` are other configuration keys, such as
    `{"schedule": "cosine"}`. Samples with several dimensions, such as pictures, are arrays with
    more than two dimensions.
    """

    def __init__(self, network=DEFAULT_NETWORK, *, base=None, blocks="auto", epochs=20,
                 batch_size=200, optimizer="adam", lr=0.001, random_state=None, validation=0.0,
                 patience=0, workers=1, warm_start=False, keys=None):
        self.network = network
        self.base = base
        self.blocks = blocks
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.lr = lr
        self.random_state = random_state
        self.validation = validation
        self.patience = patience
        self.workers = workers
        self.warm_start = warm_start
        self.keys = keys

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, x, **options):
        # Networks for vectors get floating-point numbers. Pictures may be bytes, and texts tokens.
        of_vectors = isinstance(self.network, (list, tuple)) and self.base is None
        plain = of_vectors and getattr(x, "ndim", 2) <= 2
        return validate_data(self, x, accept_sparse="csr", accept_large_sparse=False, allow_nd=True,
                             dtype=[np.float32, np.float64] if plain else "numeric", **options)

    def _dataset(self, x, y, weights=None, classes=()):
        """Samples that borrow the arrays. With weights, these are appended to the targets."""
        x = x.astype(np.float32) if hasattr(x, "tocsr") else x
        names = [str(name) for name in classes] if len(classes) > 1 else []
        data = _data.dataset((x, y), max(len(classes), 2) if len(classes) else 0, names=names)
        return data if weights is None else _artel.weighted(data, weights)

    def _model(self, outputs):
        if isinstance(self.network, artel.Model):
            return self.network
        if not isinstance(self.network, (str, Path)):
            return artel.Model([*self.network, f"dense {outputs}"])
        if Path(self.network).is_dir():
            raise artel.Error(f"network: got the folder '{self.network}', expected layers or the name "
                              f"of a network; to fine-tune what it has, try base='{self.network}'")
        file = str(self.network).endswith(".toml")
        return artel.Model(self.network, **({} if file else dict(classes=outputs)))

    def _fit(self, x, y, outputs, loss, weights, validation, before, more_epochs, classes=()):
        if weights is not None:
            loss, weights = "weighted_" + loss, _check_sample_weight(weights, y, dtype=np.float32)
        data, test = self._dataset(x, y, weights, classes), None
        if validation is not None:
            ones = None if weights is None else np.ones(len(validation[1]), np.float32)
            test = self._dataset(*validation, ones, classes)
        return self._train(data, x.shape, outputs, loss, {}, test, before, more_epochs)

    def _train(self, data, shape, outputs, loss, more, test=None, before=None, more_epochs=0):
        """Trains a network on inputs of this shape; only the number of rows is known for tables.
        `more_epochs` is not 0 in `partial_fit`, which continues a training."""
        self._of_table = isinstance(data, _tables.Encodable)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        words = dict(epochs=more_epochs or self.epochs, batch_size=min(self.batch_size, shape[0]),
                     lr=self.lr,
                     optimizer=self.optimizer, loss=loss, seed=seed, workers=self.workers,
                     test_fraction=0, keep_last_batch=True, live=False, keep_checkpoints=1,
                     tensorboard="scalars", mistakes=0, quiet=True, patience=self.patience,
                     common_seed=self.random_state is None,
                     data_validation=self.validation if test is None else 0.0)
        if more_epochs:
            words.update(patience=0, data_validation=0.0)  # nothing stops early
        if words["batch_size"] < 8:
            words["lanes"] = 1  # each lane needs a sample
        words.update(more, **(self.keys or {}))
        with _temporary_folder(self._run_bytes(shape, outputs)) as path:
            folder = Path(path)
            if before is not None:
                before._write(folder / "before")
                if more_epochs and before.optimizer == self.optimizer:
                    words.update(self._continuing(before, shape[0], folder / "run"))
            run = self._run(data, test, outputs, folder, words, before is not None)
            self._network = _Kept(run)
            self.loss_ = run.summary["loss"]
            self.n_iter_ = more_epochs or run.summary["epoch"]
        return self

    def _run_bytes(self, shape, outputs):
        """The most bytes of a run folder, or None if it cannot be told before training."""
        if self.base is not None or len(shape) < 2:
            return None
        try:
            parameters = self._model(outputs).parameters(shape[1:])
        except artel.Error:  # such as a network for tokens; training explains a mistake
            return None
        return _BYTES_PER_PARAMETER * sum(math.prod(extents) for _, extents in parameters)

    def _continuing(self, before, rows, folder):
        """Keys that continue a training by an epoch, with its optimizer state and order of samples."""
        before._write_checkpoint(folder)
        # The number of lanes is that of the run. A small last batch may leave lanes without samples.
        return dict(resume=True, seed=before.seed, lanes=None, batch_size=self.batch_size,
                    steps=before.step + -(-rows // self.batch_size))

    def _run(self, data, test, outputs, folder, words, continues):
        """Trains a network, or continues the one in `folder`/before."""
        words["out"] = folder / "run"
        if continues:
            words["weights"] = str(folder / "before")
        if self.base is None:
            return artel.train(self._model(outputs), data, test=test, **words)
        if self.network != DEFAULT_NETWORK:
            raise artel.Error("network and base: got both, expected one of them")
        if not continues:
            return artel.finetune(self.base, data, test=test, blocks=self.blocks, outputs=outputs,
                                  cache=False, **words)  # the last batch is smaller
        # Its configuration contains the frozen layers and the learning rate of each block.
        del words["optimizer"]
        return artel.train(folder / "before" / "config.toml", data, test=test, new_layers=[], **words)

    def _before(self, X):
        """The network of the previous fit, if the next fit continues it."""
        if _tables.is_mixed(X):
            raise artel.Error("tables with names or gaps cannot continue an earlier fit: each fit "
                              "learns their encoding; encode them first, or fit once")
        return getattr(self, "_network", None)

    def _fit_table(self, X, y, outputs, loss, task, weights, validation):
        """Trains on a table with categories or missing values, encoded like a CSV file."""
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} rows, y has {len(y)}")
        self.n_features_in_ = len(X.columns if hasattr(X, "columns") else X.column_names)
        if weights is not None:
            loss, weights = "weighted_" + loss, _check_sample_weight(weights, y, dtype=np.float32)
        data = _tables.Encodable(_tables.table(X, target=y), weights)
        test = validation and _tables.Encodable(_tables.table(validation[0], target=validation[1]))
        return self._train(data, (len(y),), outputs, loss,
                           dict(target="target", task=task, scale_target=True), test)

    def _outputs(self, x):
        check_is_fitted(self, "_network")
        if self._of_table:
            return self._network.run().predict(x)
        return self._network.run().predict(self._dataset(self._checked(x, reset=False), None))


class _Kept:
    """The files of a trained network, kept in memory so that the estimator can be pickled."""

    NAMES = ("config.toml", "samples.json", "table.json")

    def __init__(self, run):
        self.version = artel.__version__
        self._run = None
        # Workers other than worker 0 have only the weights and receive the rest from worker 0.
        self.complete = run.folder is not None
        if self.complete:
            self._pack(run.folder)
            return
        with _temporary_folder() as folder:
            run._trained.save(folder)
            self._pack(Path(folder))

    def _pack(self, folder):
        archive = io.BytesIO()
        newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
        self.step = int(newest.name.removeprefix("step-"))
        train = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))["train"]
        self.seed, self.optimizer = train["seed"], train["optimizer"]["name"]
        with zipfile.ZipFile(archive, "w") as files:
            for name in self.NAMES:
                if (folder / name).exists():
                    files.write(folder / name, name)
            for file in newest.rglob("*"):
                if file.is_file():
                    files.write(file, file.relative_to(folder))
        self.archive = archive.getvalue()

    def _write_checkpoint(self, folder):
        """Writes the state of the training as the only checkpoint of a run."""
        with zipfile.ZipFile(io.BytesIO(self.archive)) as files:
            names = [name for name in files.namelist() if name not in self.NAMES]
            files.extractall(folder, names)

    def _write(self, folder):
        if self.version != artel.__version__:
            raise artel.Error(f"the network was pickled by Artel {self.version}, this is "
                              f"{artel.__version__}; fit it again, or use that version")
        with zipfile.ZipFile(io.BytesIO(self.archive)) as files:
            files.extractall(folder)

    def run(self):
        if self._run is None:
            with _temporary_folder(len(self.archive)) as folder:
                self._write(folder)
                self._run = artel.load(folder)
                self._run.state_dict()  # reads it while the folder exists
        return self._run

    def __getstate__(self):
        # A copy may be continued without worker 0.
        return dict(self.__dict__, _run=None, optimizer=self.optimizer if self.complete else None)


class Classifier(ClassifierMixin, _Estimator):
    """A classifier with scikit-learn's interface.

    >>> x = numpy.random.default_rng(0).normal(size=(200, 2))
    >>> y = numpy.where(x[:, 0] > x[:, 1], "left", "right")
    >>> model = Classifier(["dense 16", "relu"], epochs=30, lr=0.01, random_state=0).fit(x, y)
    >>> bool(model.score(x, y) > 0.9)
    True
    >>> model.predict(x[:2]).tolist() == y[:2].tolist()
    True
    """

    def fit(self, X, y, sample_weight=None, validation_data=None):
        """Trains on rows of X and their classes."""
        before = self._before(X) if self.warm_start else None
        return self._fit_classes(X, y, sample_weight, validation_data, None, before)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Trains for one more epoch, with the state of the optimizer and the order of samples of the
        earlier ones. The first call needs `classes`, the list of all classes."""
        before = self._before(X)
        if before is None and classes is None:
            raise ValueError("classes must be given at the first call of partial_fit")
        classes = self.classes_ if before is not None else np.unique(classes)
        return self._fit_classes(X, y, sample_weight, None, classes, before, more_epochs=1)

    def _fit_classes(self, X, y, sample_weight, validation_data, classes, before, more_epochs=0):
        if _tables.is_mixed(X):
            y = column_or_1d(y)
            self.classes_ = np.unique(y)
            if validation_data is not None:
                validation_data = validation_data[0], self._numbers(validation_data[1])
            return self._fit_table(X, self._numbers(y), max(len(self.classes_), 2), "cross_entropy",
                                   "classes", sample_weight, validation_data)
        x, y = self._checked(X, y=y, reset=before is None)
        check_classification_targets(y)
        self.classes_ = np.unique(y) if classes is None else classes
        validation = None
        if validation_data is not None:
            other = self._checked(validation_data[0], reset=False)
            validation = (other, self._numbers(validation_data[1]))
        return self._fit(x, self._numbers(y), max(len(self.classes_), 2), "cross_entropy",
                         sample_weight, validation, before, more_epochs, self.classes_)

    def _numbers(self, y):
        y = np.asarray(y)
        places = np.searchsorted(self.classes_, y)
        if not np.array_equal(self.classes_[np.minimum(places, len(self.classes_) - 1)], y):
            raise ValueError("y has classes that were not among those of the first fit")
        return places.astype(np.int32)

    def predict_proba(self, X):
        """The probability of each class, in the order of `classes_`."""
        scores = self._outputs(X).astype(np.float64)
        if self._of_table:  # their classes are in the order of their names
            scores = scores[:, np.argsort([int(name) for name in self._network.run().classes])]
        return artel._run.softmax(scores)[:, :len(self.classes_)]

    def predict(self, X):
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class Regressor(RegressorMixin, _Estimator):
    """A regressor with scikit-learn's interface. Scales targets to mean 0 and deviation 1.

    >>> x = numpy.random.default_rng(0).normal(size=(200, 2))
    >>> model = Regressor(["dense 32", "relu"], epochs=60, lr=0.01, random_state=0)
    >>> bool(model.fit(x, x[:, 0] * 3).score(x, x[:, 0] * 3) > 0.9)
    True
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None, validation_data=None):
        """Trains on rows of X and their values."""
        before = self._before(X) if self.warm_start else None
        return self._fit_values(X, y, sample_weight, validation_data, before)

    def partial_fit(self, X, y, sample_weight=None):
        """Trains for one more epoch, with the state of the optimizer and the order of samples of the
        earlier ones."""
        return self._fit_values(X, y, sample_weight, None, self._before(X), more_epochs=1)

    def _fit_values(self, X, y, sample_weight, validation_data, before, more_epochs=0):
        if _tables.is_mixed(X):
            self._flat, self._offset, self._unit = True, 0.0, 1.0
            y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
            return self._fit_table(X, y, 1, "mse", "values", sample_weight, validation_data)
        x, y = self._checked(X, y=y, reset=before is None, multi_output=True, y_numeric=True)
        y = y.astype(np.float64)
        self._flat = y.ndim == 1
        if before is None:
            deviation = y.std(axis=0)
            self._offset, self._unit = y.mean(axis=0), np.where(deviation > 0, deviation, 1)
        validation = None
        if validation_data is not None:
            other = self._checked(validation_data[0], reset=False)
            validation = (other, self._scaled(np.asarray(validation_data[1])))
        return self._fit(x, self._scaled(y), 1 if self._flat else y.shape[1], "mse", sample_weight,
                         validation, before, more_epochs)

    def _scaled(self, y):
        scaled = ((y - self._offset) / self._unit).astype(np.float32)
        return scaled[:, None] if self._flat else scaled

    def predict(self, X):
        """The predicted value of each row."""
        outputs = self._outputs(X).astype(np.float64)
        return (outputs[:, 0] if self._flat else outputs) * self._unit + self._offset
