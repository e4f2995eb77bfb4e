"""`artel.Run`: a trained network."""

import codecs
import json
import os
import queue
import threading
import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np

from artel import _artel, _data, _html, _tables
from artel._torch import to_torch


class Run:
    """A trained network and its run folder, returned by `artel.train` and `artel.load`."""

    def __init__(self, trained):
        self._trained = trained

    @property
    def folder(self):
        """The run folder; None on a worker whose machine does not have it."""
        folder = self._trained.folder
        return folder if os.fspath(folder) not in ("", ".") else None

    @property
    def config(self) -> dict[str, Any]:
        """The complete configuration, as a dictionary."""
        return tomllib.loads(self._trained.config_text())

    @property
    def classes(self) -> list[str]:
        """Names of the classes; empty if they have none."""
        return self._trained.layout()["class_names"]

    @property
    def history(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, with the metrics of steps and epochs."""
        if self.folder is None:
            raise _artel.Error("history: this worker does not have the run's folder; read it on worker 0")
        with open(self.folder / "metrics.jsonl", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    @property
    def summary(self) -> dict[str, Any]:
        """The contents of summary.json, the result of training. Every worker has it."""
        return json.loads(self._trained.summary())

    def state_dict(self) -> dict[str, np.ndarray]:
        """Weights and states by name, as NumPy arrays that share the network's memory."""
        return self._trained.weights()

    def predict(self, x, output="prediction") -> np.ndarray:
        """The unprocessed output of the network for each sample: class scores or values."""
        return self._trained.predict(self._samples(x), output)

    def probabilities(self, x) -> np.ndarray:
        """The probability of each class for each sample."""
        return softmax(self.predict(x))

    def evaluate(self, data="test") -> dict[str, Any]:
        """Loss and metrics on a part of the run's data, or on samples with targets."""
        if isinstance(data, str):
            return self._trained.evaluate_part(data)
        if _tables.is_table(data):
            return self._trained.evaluate(self._trained.encoded(_tables.table(data), True))
        return self._trained.evaluate(self._dataset(data))

    def features(self, x, layer="", pooling="mean") -> np.ndarray:
        """The output of a layer for each sample; by default, the input of the last layer."""
        return self._trained.features(self._samples(x), layer, pooling)

    def to_torch(self):
        """The weights as PyTorch tensors that share the network's memory."""
        return to_torch(self.state_dict())

    def generate(self, prompt="\n", tokens=256, temperature=1.0, top_k=0, top_p=1.0, seed=0,
                 threads=0) -> Iterator[str]:
        """Continues a text with a language model and yields the pieces of text.

        The first piece is the prompt. Leaving the loop stops the generation.
        """
        pieces: queue.Queue = queue.Queue(maxsize=1)
        wanted = threading.Event()
        wanted.set()

        def write():
            try:
                self._trained.write_text(prompt, tokens, temperature, top_k, top_p, seed, threads,
                                         lambda text: pieces.put(text) or wanted.is_set())
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield decoder.decode(piece)
        finally:
            wanted.clear()
            while writer.is_alive():  # let it notice
                try:
                    pieces.get(timeout=0.01)
                except queue.Empty:
                    pass

    def embed(self, texts) -> np.ndarray:
        """Sentence vectors of length 1, computed by a BERT network."""
        return np.asarray(self._trained.text_vectors(list(texts)))

    def confusion(self, data="test"):
        """The confusion matrix with labels as rows. Notebooks show it as a table."""
        measuring = Run(self._trained.measuring(["confusion matrix"]))
        measured = measuring.evaluate(data)
        if "confusion matrix" not in measured:
            raise _artel.Error("confusion: the network has no classes, or more than 100")
        return Confusion(measured["confusion matrix"], self.classes)

    def _repr_html_(self):
        return _html.run(self)

    def _samples(self, x):
        if _tables.is_table(x):
            return self._trained.encoded(_tables.table(x), False)
        if _data.is_sequence(x) and not isinstance(x, (list, tuple)) and not hasattr(x, "__array__"):
            return self._dataset(x)  # samples, whose targets do not matter
        return x if isinstance(x, _artel.Dataset) else _data.dataset((x, None))

    def _dataset(self, data):
        return _data.dataset(data, classes=self._trained.layout()["classes"],
                             config=[f"data.target={self.config['data'].get('target', '')}"])

    def __repr__(self):
        return f"artel.Run({os.fspath(self.folder) if self.folder else 'in memory'!r})"


class Confusion(np.ndarray):
    """A confusion matrix that notebooks show as a table."""

    def __new__(cls, matrix, names):
        result = np.asarray(matrix).view(cls)
        result.names = names
        return result

    def __array_finalize__(self, other):
        self.names = getattr(other, "names", ())

    def _repr_html_(self):
        return _html.confusion(self, self.names)


def softmax(scores):
    """Converts scores to probabilities along the last axis."""
    scores = scores - scores.max(axis=-1, keepdims=True).astype(np.float64)
    np.exp(scores, out=scores)
    return scores / scores.sum(axis=-1, keepdims=True)


def load(path, best=False, trained=False, **words) -> Run:
    """Opens a run folder or a checkpoint.

    `best` selects the best checkpoint instead of the newest. `trained` selects the trained weights
    instead of averaged ones. Keywords are configuration keys, as in `train`.
    """
    from artel._train import overrides_of

    return Run(_artel.TrainedRun(os.fspath(path), best, trained, overrides_of(words)))
