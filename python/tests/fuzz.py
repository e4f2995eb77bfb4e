"""Feeds random data of all kinds to training, prediction, and evaluation: the answer is a result or an `artel.Error` of one
line, never a crash.

fuzz.py [--seconds S] [--cases N] [--seed N]: a case that ends badly is repeated by its own seed, with `--cases 1`. `make fuzz`
runs it for a share of its minutes, and `test_fuzz.py` a few hundred cases with a new seed.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import artel
import numpy as np

try:
    import pandas
    import pyarrow
    import scipy.sparse
except ModuleNotFoundError:
    pandas = None

TYPES = ["f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "O", "U3", "S2", "M8[s]", "m8[D]",
         ">f4", ">f8", ">i4", ">u2", "f4,i4"]
USUAL = ["f4", "f8", "i4", "i8", "u1", "?"]
NUMBERS = [0, 1, -1, 2, 0.5, 255, 256, -129, 1e30, 2**31, -2**31 - 1, 2**40, np.nan, np.inf]


class Raised(Exception):
    """What data of a case raises itself."""


def pick(random, choices):
    return choices[random.integers(len(choices))]


def any_shape(random):
    return tuple(int(n) for n in random.integers(0 if random.random() < 0.2 else 1, 6, random.integers(0, 5)))


def values(random, shape, kind):
    numbers = random.integers(0, 3, shape)
    if random.random() < 0.3:
        numbers = np.asarray(NUMBERS, dtype=object)[random.integers(0, len(NUMBERS), shape)]
    type_ = np.dtype(kind)
    with np.errstate(all="ignore"):
        if type_.kind in "iubMm":
            numbers = np.nan_to_num(np.asarray(numbers, dtype=np.float64)).clip(-2.0**62, 2.0**62).astype(np.int64)
        return np.zeros(shape, type_) if type_.kind == "V" else np.asarray(numbers).astype(type_)


def any_array(random, shape=None):
    shape = any_shape(random) if shape is None else shape
    kind = pick(random, USUAL if random.random() < 0.6 else TYPES)
    try:
        array = values(random, shape, kind)
    except (TypeError, ValueError, OverflowError):  # numbers that the type does not have
        array = np.zeros(shape, kind)
    return laid_out(random, array)


def laid_out(random, array):
    """The array, or one with other strides."""
    way = random.integers(12)
    if array.ndim == 0 or way > 6:
        return array
    if way == 0:
        return array[::-1]
    if way == 1:
        return np.asfortranarray(array)
    if way == 2:
        return array[..., ::2]
    if way == 3:
        return np.broadcast_to(array[:1], array.shape) if len(array) else array
    if way == 4 and array.dtype.kind not in "OV":  # not aligned
        held = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
        return held.view(array.dtype).reshape(array.shape) if array.size else array
    if way == 5:
        array.flags.writeable = False
        return array
    return np.moveaxis(array, 0, -1)


def any_targets(random, rows):
    if random.random() < 0.6:
        return np.arange(rows) % 3
    return any_array(random, (rows, *any_shape(random)[:1]))


def arrays(random):
    x = any_array(random)
    return (x, any_targets(random, len(x))) if x.ndim and random.random() < 0.8 else (x, any_array(random))


def inputs_alone(random):
    return any_array(random)


def sparse(random):
    shape = tuple(int(n) for n in random.integers(0, 9, 2))
    matrix = scipy.sparse.random(*shape, density=0.4, random_state=int(random.integers(2**31)), format="csr")
    matrix.data = matrix.data.astype(pick(random, ["f4", "f8", "i4", "u1", "c8"]))
    if random.random() < 0.4:  # indices that lead outside
        which = pick(random, [matrix.indices, matrix.indptr])
        if len(which):
            which[random.integers(len(which))] = pick(random, [-1, 7, 10**6, 2**31 - 1, -2**31])
    elif random.random() < 0.3:
        matrix = pick(random, [matrix.tocsc, matrix.tocoo, matrix.tolil])()
    return matrix, any_targets(random, shape[0])


def any_column(random, rows):
    kind = random.integers(8)
    if kind == 0:
        return [pick(random, ["a", "bb", None, "", "ä\n", "\0", "1.5", "2001-05-09"]) for _ in range(rows)]
    if kind == 1:
        return pandas.Categorical([pick(random, ["x", "y", None]) for _ in range(rows)])
    if kind == 2:
        return pandas.array([pick(random, [1, 2, None]) for _ in range(rows)], dtype="Int64")
    if kind == 3:
        return pandas.Timestamp(0) + pandas.to_timedelta(random.integers(0, 10**6, rows), "h")
    if kind == 4:
        return [pick(random, [1, "b", None, 2.5, (1,), {}, b"c"]) for _ in range(rows)]
    column = any_array(random, (rows,))
    return column if column.shape == (rows,) and column.dtype.kind != "V" else range(rows)


def table(random):
    rows, names = int(random.integers(0, 12)), ["a", "b", "y", "a b", "", "ä", 3]
    columns = [(pick(random, names), any_column(random, rows)) for _ in range(random.integers(0, 5))]
    if random.random() < 0.8:
        columns = list(dict(columns).items())
    try:
        frame = pandas.concat([pandas.Series(column, name=name) for name, column in columns], axis=1)
        return pyarrow.Table.from_pandas(frame) if random.random() < 0.3 else frame
    except (ValueError, TypeError, OverflowError, NotImplementedError, pyarrow.ArrowException):
        return pandas.DataFrame({"a": range(rows), "b": range(rows)})  # pandas or pyarrow has refused it


def any_sample(random, like):
    sample = like
    if random.random() < 0.05:
        sample = any_array(random)
    way = random.integers(40)
    parts = (sample, int(random.integers(0, 3)))
    return {0: sample, 1: (*parts, 1), 2: None, 3: (sample, any_array(random)), 4: dict(x=sample, label=parts[1]),
            5: (sample, -1), 6: (sample, "a"), 7: (sample, 2**40)}.get(way, parts)


class Sequence:
    def __init__(self, samples, length):
        self.samples, self.length = samples, length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if not 0 <= i < len(self.samples):
            raise Raised
        sample = self.samples[i]
        if isinstance(sample, Raised):
            raise sample
        return sample


def sequence(random):
    like = any_array(random)
    samples = [any_sample(random, like) for _ in range(random.integers(1, 9))]
    if random.random() < 0.1:
        samples[random.integers(len(samples))] = Raised()
    way = random.integers(4)
    if way == 0:
        return samples
    if way == 1:
        return iter(samples)
    return Sequence(samples, len(samples) if way == 2 else int(random.integers(0, 12)))


def anything(random):
    return pick(random, [None, 3, "text", b"bytes", [], {}, (), (1, 2), [[]], object(), [None], np.float32, iter([])])


KINDS = [arrays, arrays, arrays, inputs_alone, sequence, sequence, anything]
if pandas:
    KINDS += [sparse, table]
LAYERS = [["flatten", "dense 3"], ["dense 3"], ["flatten", "dense 4", "relu", "dense 1"], ["embedding 9 4", "flatten", "dense 3"]]


def answer(call):
    """The result, or None after an error that is as it must be."""
    try:
        return call()
    except artel.Error as error:
        text = str(error)
        assert text and "\n" not in text and "incompatible function arguments" not in text, text
    except (Raised, KeyboardInterrupt):
        pass
    return None


def run_case(seed):
    random = np.random.default_rng(seed)
    data = pick(random, KINDS)(random)
    words = dict(steps=1, batch_size=int(random.integers(1, 4)), lanes=1, test_fraction=pick(random, [0, 0, 0.3]), quiet=True,
                 live=False, out=f"case-{seed}", loss=pick(random, ["cross_entropy", "mse", None]))
    if isinstance(data, str):
        return False  # the name of a data set: not data
    run = answer(lambda: artel.train(pick(random, LAYERS), data, **words))
    answer(lambda: artel.columns(data, target="y"))
    for used in (run, GOOD[0]):
        if used is None:
            continue
        other = pick(random, KINDS)(random)
        answer(lambda: used.predict(other))
        answer(lambda: used.evaluate(other if not isinstance(other, str) else "tset"))
        answer(lambda: used.features(pick(random, KINDS)(random)))
    return run is not None


GOOD = []  # a trained network that all cases use


def work(arguments, progress):
    """All cases; `progress` is a file that has the seed of the case under way."""
    import warnings

    warnings.simplefilter("ignore")
    x = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    GOOD.append(artel.train(["dense 3"], (x, np.arange(30) % 3), steps=1, batch_size=3, lanes=1, quiet=True))
    end, trained, cases = time.monotonic() + arguments.seconds, 0, 0
    while cases < arguments.cases and time.monotonic() < end:
        seed = arguments.seed + cases
        os.pwrite(progress, f"{seed:<20}".encode(), 0)
        trained += run_case(seed)
        cases += 1
    print(f"{cases} cases from seed {arguments.seed}, {trained} of them trained a network")
    return 0 if trained or cases < 50 else "no case has trained a network"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--progress", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.progress is not None:
        sys.exit(work(arguments, arguments.progress))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as progress:
        script = [sys.executable, "-X", "faulthandler", pathlib.Path(__file__).resolve(), "--progress", str(progress.fileno()),
                  "--seed", str(arguments.seed), "--cases", str(arguments.cases), "--seconds", str(arguments.seconds)]
        code = subprocess.run(script, cwd=folder, pass_fds=[progress.fileno()], check=False).returncode
        if code != 0:
            seed = os.pread(progress.fileno(), 20, 0).decode().strip()
            sys.exit(f"a case ended badly (code {code}); repeat it: {sys.executable} {__file__} --seed {seed} --cases 1")


main()
