"""`artel.train`: keywords become configuration keys, and Python data becomes samples."""

import json
import os
import sys
import tempfile
import threading

import numpy as np

from artel import _artel, _data, _notebook, _parts, _tables
from artel._model import Model
from artel._run import Run

# Short keywords for long keys, and for names that several sections have.
_SHORT = {
    "lr": "train.optimizer.lr",
    "optimizer": "train.optimizer.name",
    "schedule": "train.schedule.name",
    "threads": "cluster.threads",
    "patience": "train.patience",
    "layers": "model.layers",
    "weights": "model.weights",
    "cache": "train.cache",
}


def keys() -> list[str]:
    """All configuration keys, such as `train.epochs`. `artel config` explains them.

    >>> "train.epochs" in keys()
    True
    """
    return _artel.key_names()


def _key_of(word):
    """The key of a keyword: `epochs` and `train_epochs` are `train.epochs`."""
    if word in _SHORT:
        return _SHORT[word]
    known = keys()
    dotted = [key for key in known if key.replace(".", "_") == word or key == word]
    found = dotted or [key for key in known if key.split(".", 1)[1] == word]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(key.replace(".", "_") for key in found)
        raise _artel.Error(f"keyword '{word}': several keys have this name; try {names}")
    # The configuration names the nearest key.
    return word.replace("_", ".", 1) if word.split("_")[0] in _sections() else word


def _sections():
    return {key.split(".", 1)[0] for key in keys()}


def _text_of(value):
    """A value in TOML notation. Text needs no quotes after `--set`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(json.dumps(str(v)) if isinstance(v, str) else _text_of(v)
                               for v in value) + "]"
    if hasattr(value, "item") and not isinstance(value, str):  # a number of NumPy
        value = value.item()
    return repr(value) if isinstance(value, float) else str(value)


def overrides_of(words):
    """Converts `epochs=3, optimizer={"name": "adam", "lr": 0.1}` to `train.epochs=3`, ..."""
    words = dict(words)
    if "loss" in words:
        words["loss"] = _parts.name_of("loss", words["loss"])
    if "metrics" in words:
        words["metrics"] = [_parts.name_of("metric", metric) for metric in words["metrics"]]
    result = []
    for word, value in words.items():
        if isinstance(value, dict):
            prefix = word if word in _sections() else _key_of(word).removesuffix(".name")
            result += [f"{prefix}.{name}={_text_of(v)}" for name, v in _flat(value)]
        elif value is not None:
            result.append(f"{_key_of(word)}={_text_of(value)}")
    # Options of an optimizer follow its name.
    return sorted(result, key=lambda text: ".optimizer.name=" not in text)


def _flat(tree):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", v) for inner, v in _flat(value))
        else:
            yield name, value


def _config_of(config):
    """The configuration file, if there is one, and overrides for everything else."""
    if isinstance(config, dict):
        return None, [f"{name}={_text_of(value)}" for name, value in _flat(config)]
    if isinstance(config, Model):
        return None, config._overrides()
    if isinstance(config, (str, os.PathLike)) and os.fspath(config).endswith(".toml"):
        return os.fspath(config), []
    return None, Model(config)._overrides()


def _initial_weights(words):
    """Writes initial weights that are arrays to a file, which the workers read."""
    weights = words.get("weights")
    if not isinstance(weights, dict):
        return None
    folder = tempfile.TemporaryDirectory(prefix="artel-")
    words["weights"] = os.path.join(folder.name, "weights.npz")
    np.savez(words["weights"], **{name: np.asarray(array) for name, array in weights.items()})
    return folder


def train(config, data=None, *, test=None, workers=None, callbacks=(), after_epoch=(), out="",
          name="", resume=False, force=False, quiet=False, trace="", join=None, rank=-1, token="",
          common_seed=False, **words) -> Run:
    """Trains a network and returns its `Run`.

    `config` is a TOML file, a dictionary with the same sections, a `Model`, a list of layers, or the
    name of a network. `data` is the training data (see docs/python.md); by default, the data of the
    configuration. Without `test` samples, a share of the data is held out (`test_fraction=0.1`).
    Each configuration key is a keyword: `epochs=3`, `batch_size=64`,
    `optimizer={"name": "adam", "lr": 1e-3}`.

    `loss`, `metrics`, and layers may be functions, see `artel.loss`. `weights` are the initial
    weights. They may be named arrays, such as `run.state_dict()` or `artel.from_torch(module)`.

    `workers=4` starts four processes on this machine, with the same bits as one. Under mpirun and
    srun, the launcher's processes are the workers. With `join` or the variable ARTEL_JOIN, this
    process joins others at HOST:PORT. With `common_seed`, all of them use worker 0's `seed`.

    Each of `callbacks` is called with a `TrainingState` after each step, and each of `after_epoch`
    after each epoch, in every worker. They stop training by returning False. Ctrl-C stops after
    the current step, saves, and raises KeyboardInterrupt.

    >>> x, y = numpy.eye(4, dtype="f4"), numpy.arange(4)
    >>> run = train(["dense 4"], (x, y), test=(x, y), epochs=50, lr=1.0, batch_size=4, quiet=True)
    >>> run.evaluate((x, y))["accuracy"]
    1.0
    """
    file, overrides = _config_of(config)
    words = dict(words, workers=workers)
    initial = _initial_weights(words)
    overrides += overrides_of(words)
    given = samples_of(data, test, overrides)
    try:
        return run(file, overrides, given, callbacks=callbacks, after_epoch=after_epoch, out=out,
                   name=name, resume=resume, force=force, quiet=quiet, trace=trace, join=join,
                   rank=rank, token=token, common_seed=common_seed)
    finally:
        if initial is not None:
            initial.cleanup()


def samples_of(data, test, overrides):
    """The samples or tables to pass to C++. Adds the configuration keys that refer to them."""
    if isinstance(data, (str, os.PathLike)):
        overrides += _data.overrides_of(os.fspath(data))
        if test is not None:
            overrides.append(f"data.test_path={os.path.abspath(test)}")
        return {}
    if data is None:
        if test is not None:
            raise _artel.Error("test: got samples without data; give both, or data.test_path")
        return {}
    overrides.append("data.set=given")
    if isinstance(data, _tables.Encodable):
        return dict(table=data.table, test_table=test and test.table, row_weights=data.weights)
    if _tables.is_table(data):
        return dict(table=_tables.table(data),
                    test_table=None if test is None else _tables.table(test))
    samples = _data.dataset(data, config=overrides)
    if _data.is_sequence(data) and any(text.startswith("model.layers=") for text in overrides):
        # `classes=` describes the samples only: the layers set the number of outputs themselves.
        overrides[:] = [text for text in overrides if not text.startswith("model.classes=")]
    return dict(train=samples,
                test=None if test is None else _data.dataset(test, classes=samples.classes))


def run(file, overrides, given, *, callbacks=(), after_epoch=(), out="", name="", resume=False,
        force=False, quiet=False, trace="", join=None, rank=-1, token="", common_seed=False):
    """Trains a configuration file with overrides on `samples_of`. Returns the `Run`."""
    sys.stdout.flush()
    with _notebook.progress():
        trained = _artel.train(
            file, overrides, **given, out=os.fspath(out), name=name, resume=resume, force=force,
            quiet=quiet, trace=trace, after_step=list(callbacks), after_epoch=list(after_epoch),
            join=join or os.environ.get("ARTEL_JOIN", ""), rank=rank, token=token,
            stop_on_signals=threading.current_thread() is threading.main_thread(),
            common_seed=common_seed)
    return Run(trained)


def flush():
    """Writes buffered output."""
    sys.stdout.flush()
    sys.stderr.flush()


def fork():
    """Forks a worker. Flushes output first, so that it is not printed twice."""
    flush()
    return os.fork()
