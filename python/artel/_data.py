"""Converts Python data to samples."""

import os

import numpy as np

from artel import _artel

_KINDS = {".csv": "csv", ".tsv": "csv", ".parquet": "csv", ".npz": "npz", ".npy": "npy",
          ".libsvm": "libsvm", ".txt": "text"}
_NO_SAMPLES = (str, bytes, dict)


def overrides_of(path):
    """Keys for a file, a folder of pictures, or the name of a data set."""
    if not os.path.exists(path):
        return [f"data.set={path}"]
    kind = "folder" if os.path.isdir(path) else _KINDS.get(os.path.splitext(path)[1], "libsvm")
    return [f"data.set={kind}", f"data.path={os.path.abspath(path)}"]


def dataset(data, classes=0, config=(), names=()):
    """Samples from arrays (x, y), inputs only, a sparse matrix, a sequence, or a generator.

    `names` are the class names for arrays. `config` are overrides such as `data.samples=9`.
    """
    if isinstance(data, _artel.Dataset):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        x, y = data
    elif _is_array(data) or _is_sparse(data):
        x, y = data, None
    elif is_sequence(data):
        return _from_sequence(data, classes or int(_value_of("model.classes", config) or 0),
                              _value_of("data.target", config))
    elif hasattr(data, "__iter__") and not isinstance(data, _NO_SAMPLES):
        return _from_iterator(data, classes, int(_value_of("data.samples", config) or 0),
                              _value_of("data.target", config))
    else:
        raise _artel.Error(f"data: got {type(data).__name__}, expected arrays (x, y), a table, a "
                           "sequence of samples, or an iterator")
    y = None if y is None else array(y, "y")
    if y is not None and y.ndim == 0:
        raise _artel.Error(f"[y] got the number {y}, expected one for each sample")
    if _is_sparse(x):
        return _from_sparse(x.tocsr(), y, classes, list(names))
    return _artel.from_arrays(array(x, "x"), y, classes, list(names))


def array(values, name):
    """An array of numbers. Copies it only if its rows are not contiguous and in native byte order."""
    result = _as_numpy(values, name)
    if result.dtype.kind in "ui" and result.dtype not in (np.uint8, np.int8, np.int16, np.int32):
        result = result.astype(np.int64, copy=False)
    if result.dtype.kind not in "fiub" or result.dtype.itemsize > 8:
        raise _artel.Error(f"[{name}] got an array of type {result.dtype}, expected numbers; try "
                           "numpy.asarray(..., dtype=numpy.float32)")
    result = result.astype(result.dtype.newbyteorder("="), copy=False)
    return result if result.flags.c_contiguous else result.copy(order="C")


def _as_numpy(values, name):
    """What NumPy reads, and what only DLPack offers: bf16, and arrays of other libraries."""
    if hasattr(values, "detach"):  # a tensor of PyTorch, which may be part of a computation
        values = values.detach()
    try:
        if hasattr(values, "__dlpack__") and not _numpy_reads(values):
            return _artel.as_numpy(values)
        result = np.asarray(values)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise _artel.Error(f"[{name}] got {type(values).__name__}, expected an array of numbers in "
                           f"this machine's memory: {first_line(error)}") from error
    return result.astype(np.float32) if result.dtype.name == "bfloat16" else result


def first_line(error):
    """What an exception of another library says."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _numpy_reads(values):
    return hasattr(values, "__array__") and str(getattr(values, "dtype", "")) != "torch.bfloat16"


def _is_array(data):
    return hasattr(data, "__array__") or hasattr(data, "__dlpack__")


def _is_sparse(data):
    return hasattr(data, "tocsr")


def is_sequence(data):
    """Whether it is an object with samples, such as a data set of PyTorch or Hugging Face."""
    return (hasattr(data, "__getitem__") and hasattr(data, "__len__")
            and not isinstance(data, _NO_SAMPLES))


def _from_sparse(x, y, classes, names):
    values = x.data.astype(x.data.dtype.newbyteorder("="), copy=False)
    return _artel.from_sparse(x.indptr, x.indices, values, x.shape[1], y, classes, names)


def sample_of(samples, index, target_column, has_target):
    """The arrays of one sample of a sequence."""
    x, y = _pair(samples[index], target_column)
    return (array(x, f"sample {index}"),
            array(y, f"target of sample {index}") if has_target else None)


def _pair(sample, target_column):
    """Input and target, which is None where samples are inputs alone."""
    if isinstance(sample, dict):  # of Hugging Face
        return (next(value for name, value in sample.items() if name != target_column),
                sample.get(target_column))
    if not isinstance(sample, (tuple, list)):
        return sample, None
    if len(sample) != 2:
        raise _artel.Error(f"data: got a sample of {len(sample)} parts, expected an input and a "
                           "target")
    return sample


def _target_column(sample, wanted):
    """Which column of a sample with named columns is the target; the other one is the input."""
    if not isinstance(sample, dict):
        return ""
    names = list(sample)
    if wanted and wanted not in names:
        raise _artel.Error(f"target: got '{wanted}', expected a column of the data: "
                           + ", ".join(names))
    if len(names) == 1:
        return ""
    usual = [name for name in ("label", "labels", "target") if name in names]
    target = wanted or (usual or names[-1:])[0]
    if len(names) > 2:
        raise _artel.Error(f"data: got the columns {', '.join(names)}, expected one input and the "
                           f"target {target}; try dataset.select_columns([..., '{target}']), or "
                           "dataset.to_pandas() for a table")
    return target


def _from_sequence(samples, classes, wanted_target):
    if len(samples) == 0:
        raise _artel.Error("data: got no samples")
    column = _target_column(samples[0], wanted_target)
    x, y = sample_of(samples, 0, column, _pair(samples[0], column)[1] is not None)
    names = _class_names(samples, column)
    targets = None
    if y is not None and y.dtype.kind in "iub" and classes == 0:
        if names:
            classes = len(names)
        elif hasattr(samples, "targets"):  # of torchvision
            classes = _largest(array(samples.targets, "y")) + 1
        else:
            targets = array(_targets(samples, column), "y")
            classes = _largest(targets) + 1
    return _artel.from_object(samples, column, x, y, classes, names, targets)


def _class_names(samples, column):
    features = getattr(samples, "features", None)  # of Hugging Face
    if column and hasattr(features, "get"):
        return list(getattr(features.get(column), "names", None) or [])
    return [str(name) for name in getattr(samples, "classes", [])]


def _targets(samples, column):
    if column and hasattr(samples, "column_names"):  # of Hugging Face: without decoding the inputs
        return list(samples[column])
    return [_pair(samples[i], column)[1] for i in range(len(samples))]


def _largest(targets):
    largest = int(targets.max())
    if not 0 <= largest < 2**31 - 1:
        raise _artel.Error(f"data: got {largest} as the largest class, expected numbers from 0, "
                           "below 2^31")
    return largest


def _value_of(key, config):
    """The value that overrides give a key; the last one counts."""
    return next((text.split("=", 1)[1] for text in reversed(config) if text.startswith(key + "=")), "")


def _from_iterator(samples, classes, wanted, wanted_target):
    """Reads a generator to its end, or as many samples as `samples=` asks for."""
    inputs, targets, column = [], [], ""
    for sample in samples:
        column = column or _target_column(sample, wanted_target)
        x, y = _pair(sample, column)
        inputs.append(array(x, f"sample {len(inputs)}"))
        targets += [] if y is None else [y]
        if len(inputs) == wanted:
            break
    if not inputs or len(inputs) < wanted:
        raise _artel.Error(f"data: the generator ended after {len(inputs)} samples"
                           + (f", expected {wanted}" if wanted else ""))
    shapes = {x.shape for x in inputs}
    if len(shapes) > 1 or len(targets) not in (0, len(inputs)):
        raise _artel.Error("data: the generator's samples differ: got shapes "
                           + ", ".join(map(str, sorted(shapes)))
                           + f" and {len(targets)} targets for {len(inputs)} inputs")
    y = array([array(target, "y") for target in targets], "y") if targets else None
    return _artel.from_arrays(np.stack(inputs), y, classes)
