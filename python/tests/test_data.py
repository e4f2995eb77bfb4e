"""What can be trained on, and what is refused with one clear line."""

import decimal

import artel
import numpy as np
import pytest
from conftest import LAYERS

KEYS = dict(epochs=1, batch_size=30, lanes=2, lr=0.1, quiet=True)


def bits(run):
    return {name: array.tobytes() for name, array in run.state_dict().items()}


class Pairs:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        if not 0 <= i < len(self):
            raise IndexError(i)
        return self.x[i], self.y[i]


@pytest.mark.parametrize("workers", [1, 2])
def test_sequences_and_generators_are_arrays(blobs, workers):
    x, y = blobs
    expected = bits(artel.train(LAYERS, blobs, **KEYS))
    assert bits(artel.train(LAYERS, Pairs(x, y), workers=workers, **KEYS)) == expected
    assert bits(artel.train(LAYERS, zip(x, y), workers=workers, **KEYS)) == expected
    assert bits(artel.train(LAYERS, list(zip(x, y)), workers=workers, **KEYS)) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_pictures_of_bytes_are_alike_in_arrays_and_sequences(workers):
    random = np.random.default_rng(5)
    x, y = random.integers(0, 256, (60, 6, 6, 3)).astype(np.uint8), np.arange(60) % 3
    layers, keys = ["conv 4 3x3", "relu", "flatten", "dense 3"], dict(KEYS, workers=workers)
    of_numbers = bits(artel.train(layers, (x.transpose(0, 3, 1, 2) * np.float32(1 / 255), y), **keys))
    run = artel.train(layers, (x, y), **keys)
    assert bits(run) == of_numbers
    assert bits(artel.train(layers, Pairs(x, y), **keys)) == of_numbers
    assert bits(artel.train(layers, zip(x, y), **keys)) == of_numbers
    np.testing.assert_array_equal(run.predict(Pairs(x, y)), run.predict(x))
    grey = artel.train(["flatten", "dense 3"], Pairs(x[..., 0], y), **keys)
    assert bits(grey) == bits(artel.train(["flatten", "dense 3"], (x[..., 0], y), **keys))


class OnlyDlpack:
    """An array of a library that NumPy knows nothing of."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_of_any_kind_are_read_alike(blobs):
    x, y = blobs
    x = x.astype(np.float16).astype(np.float32)  # so that all types can hold it
    expected = bits(artel.train(LAYERS, (x, y), **KEYS))
    for other in (x.astype(np.float64), x.astype(np.float16), x.astype(">f4"), x.astype(">f8"), np.asfortranarray(x),
                  np.repeat(x, 2, axis=0)[::2], OnlyDlpack(x), np.asarray(x.tolist(), dtype="f4")):
        assert bits(artel.train(LAYERS, (other, y), **KEYS)) == expected
    for labels in (y.astype(np.int64), y.astype(np.uint8), y.astype(">i4"), y[:, None], OnlyDlpack(y)):
        assert bits(artel.train(LAYERS, (x, labels), **KEYS)) == expected
    signs = bits(artel.train(LAYERS, ((x > 0).astype(np.float32), y), **KEYS))
    assert bits(artel.train(LAYERS, (x > 0, y), **KEYS)) == signs
    assert bits(artel.train(LAYERS, Pairs(x > 0, y), **KEYS)) == signs


class ClassLabel:
    names = ["red", "green", "blue"]


class NamedColumns:
    """What Hugging Face's data sets have."""

    def __init__(self, **columns):
        self.columns_, self.column_names = columns, list(columns)
        self.features = {name: ClassLabel if name == "label" else None for name in columns}

    def __len__(self):
        return len(self.columns_[self.column_names[0]])

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns_[key]
        return {name: column[key] for name, column in self.columns_.items()}


def test_columns_are_chosen_by_name(blobs):
    x, y = blobs
    expected = bits(artel.train(LAYERS, blobs, **KEYS))
    run = artel.train(LAYERS, NamedColumns(label=y, image=x), **KEYS)
    assert bits(run) == expected and run.classes == ["red", "green", "blue"]
    assert run.evaluate(NamedColumns(label=y, image=x)) == run.evaluate(blobs)
    kind = NamedColumns(kind=y, image=x)
    run = artel.train(LAYERS, kind, target="kind", **KEYS)
    assert bits(run) == expected and run.evaluate(kind)["samples"] == 300
    assert bits(artel.train(LAYERS, (kind[i] for i in range(300)), target="kind", **KEYS)) == expected
    np.testing.assert_array_equal(run.predict(kind), run.predict(x))
    with pytest.raises(artel.Error, match="target: got 'sort', expected a column of the data: kind, image"):
        artel.train(LAYERS, kind, target="sort", **KEYS)
    with pytest.raises(artel.Error, match=r"got the columns id, image, label.*try dataset.select_columns"):
        artel.train(LAYERS, NamedColumns(id=y, image=x, label=y), **KEYS)


def test_data_sets_of_hugging_face(blobs):
    datasets = pytest.importorskip("datasets")
    x, y = blobs
    features = datasets.Features(x=datasets.Sequence(datasets.Value("float32")), label=datasets.ClassLabel(names=ClassLabel.names))
    samples = datasets.Dataset.from_dict({"x": x.tolist(), "label": y.tolist()}, features=features).with_format("numpy")
    run = artel.train(LAYERS, samples, **KEYS)
    assert bits(run) == bits(artel.train(LAYERS, blobs, **KEYS)) and run.classes == ClassLabel.names
    assert bits(artel.train(LAYERS, samples.to_iterable_dataset(), **KEYS)) == bits(run)


def test_arrays_are_borrowed(blobs):
    x, y = blobs
    data = artel._data.dataset((x, y))
    run = artel.train(LAYERS, blobs, **KEYS)
    before = run.predict(data)
    x += 1  # the data set sees it
    assert not np.array_equal(run.predict(data), before)


def test_sparse_matrices(blobs):
    sparse = pytest.importorskip("scipy.sparse")
    x, y = blobs
    x = np.where(np.abs(x) > 1, x, 0).astype(np.float32)
    run = artel.train(LAYERS, (sparse.csr_matrix(x), y), **KEYS)
    assert bits(run) == bits(artel.train(LAYERS, (x, y), **KEYS))
    np.testing.assert_array_equal(run.predict(sparse.coo_matrix(x)), run.predict(x))


def houses(pandas, rows=240):
    random = np.random.default_rng(3)
    area = random.uniform(30, 200, rows).round(1)
    town = random.choice(["Berlin", "Köln", "Ulm"], rows)
    built = pandas.Timestamp("1990-01-01") + pandas.to_timedelta(random.integers(0, 9999, rows), "D")
    price = area * 3 + np.where(town == "Ulm", 50, 0) + random.normal(size=rows)
    frame = pandas.DataFrame({"area": area, "town": town, "built": built, "price": price.round(2)})
    frame.loc[::17, "area"] = np.nan
    frame.loc[5::31, "town"] = None
    return frame


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_tables_are_encoded_as_csv_files(kind):
    pandas = pytest.importorskip("pandas")
    frame = houses(pandas)
    frame.to_csv("houses.csv", index=False, date_format="%Y-%m-%d")
    frame["built"] = frame["built"].dt.strftime("%Y-%m-%d")
    data = frame if kind == "pandas" else pytest.importorskip("pyarrow").Table.from_pandas(frame)
    keys = dict(KEYS, loss="mse", target="price")
    of_file = artel.train(["dense 8", "relu", "dense 1"], "houses.csv", **keys)
    run = artel.train(["dense 8", "relu", "dense 1"], data, **keys)
    assert bits(run) == bits(of_file)
    without = frame.drop(columns=["price"])
    predicted = run.predict(without)
    assert predicted.shape == (240, 1) and 50 < predicted.mean() < 700
    assert run.evaluate(frame)["mean absolute error"] > 0


def kinds_of_columns(pandas, rows=120):
    """A column of each type that pandas and pyarrow have, and a target."""
    pyarrow = pytest.importorskip("pyarrow")
    random = np.random.default_rng(8)
    number = random.integers(0, 90, rows)
    gaps = np.arange(rows) % 7 == 3
    frame = pandas.DataFrame({
        "whole": number, "small": number.astype(np.int8), "half": (number / 4).astype(np.float16),
        "yes": number > 40, "day": pandas.Timestamp("2001-05-09") + pandas.to_timedelta(number, "D"),
        "moment": pandas.Timestamp("2001-05-09 01:02:03") + pandas.to_timedelta(number, "h"),
        "sort": pandas.Categorical(random.choice(["a", "b", "c"], rows)),
        "nullable": pandas.array(np.where(gaps, None, number), dtype="Int64"),
        "perhaps": pandas.array(np.where(gaps, None, number > 20), dtype="boolean"),
        "text": pandas.array(np.where(gaps, None, random.choice(["x", "y"], rows)), dtype="string"),
        "arrow": pandas.array(np.where(gaps, None, number), dtype=pandas.ArrowDtype(pyarrow.int32())),
        "arrow text": pandas.array(random.choice(["p", "q"], rows), dtype=pandas.ArrowDtype(pyarrow.string())),
        "price": [decimal.Decimal(int(n)) / 4 for n in number],
        "target": number * 0.5 + random.normal(size=rows).round(3)})
    frame.loc[gaps, "day"] = None
    return frame


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_columns_of_each_type_are_read_as_in_a_csv_file(kind):
    pandas = pytest.importorskip("pandas")
    frame = kinds_of_columns(pandas)
    for column in frame.columns[:-1]:
        part = frame[[column, "target"]]
        part.to_csv("part.csv", index=False)
        data = part if kind == "pandas" else pytest.importorskip("pyarrow").Table.from_pandas(part)
        keys = dict(KEYS, loss="mse", target="target")
        of_file = artel.train(["dense 3", "relu", "dense 1"], "part.csv", **keys)
        assert bits(artel.train(["dense 3", "relu", "dense 1"], data, **keys)) == bits(of_file), column


BAD = [
    (lambda x, y: (OnlyDlpack(x.astype(complex)), y), r"\[x\] got OnlyDlpack, expected an array of numbers|type"),
    (lambda x, y: ({"a": x}, y), r"\[x\] got an array of type object"),
    (lambda x, y: [(x[0], y[0], 1)] * 30, "got a sample of 3 parts"),
    (lambda x, y: [(x[0].astype(np.int64), 0), (x[0], 0)] * 30, r"\[sample \d+\] its input has the type f32, that of sample 0"),
    (lambda x, y: (x[:5], y), "the numbers of samples differ"),
    (lambda x, y: (x.astype(object), y), r"\[x\] got an array of type object"),
    (lambda x, y: (x.astype(complex), y), r"\[x\] got an array of type complex128"),
    (lambda x, y: (np.array(["a", "b"]), y[:2]), r"\[x\] got an array of type <U1"),
    (lambda x, y: (x[:0], y[:0]), "got an array of shape"),
    (lambda x, y: (x, np.where(y == 1, np.nan, y)), r"\[y\] the target of sample 1 is nan"),
    (lambda x, y: (x, -y), "label"),
    (lambda x, y: 17, "got int"),
    (lambda x, y: iter([]), "ended after 0 samples"),
    (lambda x, y: iter([(x[0], 0), (x[0][:2], 0)]), "differ"),
    (lambda x, y: Pairs([x[0], x[0][:2]], [0, 1]), r"sample 1.*shape"),
]


@pytest.mark.parametrize("make, text", BAD)
def test_bad_data_is_refused_by_name(blobs, make, text):
    keys = dict(KEYS, test_fraction=0, batch_size=2)
    with pytest.raises(artel.Error, match=text) as caught:
        artel.train(LAYERS, make(*blobs), **keys)
    assert "\n" not in str(caught.value)


def test_samples_without_a_target_are_named(blobs):
    sparse = pytest.importorskip("scipy.sparse")
    x = blobs[0]
    y = np.where(np.arange(300) == 77, np.nan, x[:, :1].T).T.reshape(300, 1)
    with pytest.raises(artel.Error, match=r"\[y\] the target of sample 77 is nan"):
        artel.train(["dense 1"], (sparse.csr_matrix(x), y), loss="mse", **KEYS)
    with pytest.raises(artel.Error, match=r"\[sample 77\] its target is nan, expected a finite number"):
        artel.train(["dense 1"], Pairs(x, y), loss="mse", **dict(KEYS, test_fraction=0))


class Counting(Pairs):
    reads = 0

    def __getitem__(self, i):
        self.reads += 1
        return super().__getitem__(i)


class WithTargets(Counting):
    @property
    def targets(self):
        return self.y


@pytest.mark.parametrize("kind, words", [(Counting, {}), (WithTargets, {}), (Counting, dict(classes=3))])
def test_targets_of_a_sequence_are_read_once(blobs, kind, words):
    x, y = blobs[0][:240], blobs[1][:240]
    samples = kind(x, y)
    run = artel.train(LAYERS, samples, steps=1, test=None, **dict(KEYS, **words))
    # The targets, for the split by classes; five batches, most of them read ahead; a test; and samples that identify the data.
    assert samples.reads < 240 + 5 * 30 + 24 + 50, samples.reads
    assert bits(run) == bits(artel.train(LAYERS, (x, y), steps=1, **KEYS))


def test_classes_of_a_sequence_may_be_given(blobs, capfd):
    run = artel.train(["dense 5"], Pairs(*blobs), classes=5, **KEYS)
    assert run.predict(blobs[0]).shape == (300, 5)
    assert capfd.readouterr().err == ""
    with pytest.raises(artel.Error, match="its class is 2, expected one below 2"):
        artel.train(["dense 2"], Pairs(*blobs), classes=2, **KEYS)


def test_columns_with_one_name_are_refused():
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    columns = [range(20), range(20), range(20)]
    frame = pandas.DataFrame(dict(enumerate(columns))).set_axis(["a", "a", "b"], axis=1)
    for table in (frame, pyarrow.table([pyarrow.array(c) for c in columns], names=["a", "a", "b"])):
        with pytest.raises(artel.Error, match=r"\[a\] 2 columns of the table have this name"):
            artel.train(["dense 1"], table, **KEYS)


def test_a_sample_that_raises_is_named(blobs):
    class Faulty(Pairs):
        targets = blobs[1]

        def __getitem__(self, i):
            if i == 77:
                raise OSError("disk on fire")
            return super().__getitem__(i)

    with pytest.raises(artel.Error, match="sample 77.*OSError: disk on fire") as caught:
        artel.train(LAYERS, Faulty(*blobs), **KEYS)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_generator_that_raises_or_ends_early(blobs):
    def faulty():
        yield blobs[0][0], 0
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        artel.train(LAYERS, faulty(), **KEYS)
    with pytest.raises(artel.Error, match="ended after 300 samples, expected 400"):
        artel.train(LAYERS, zip(*blobs), samples=400, **KEYS)


def test_wrong_shapes_for_a_trained_network(blobs):
    run = artel.train(LAYERS, blobs, **KEYS)
    with pytest.raises(artel.Error, match=r"expected f32 \[4\] as in training"):
        run.predict(np.zeros((3, 5), np.float32))
