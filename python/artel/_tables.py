"""Converts pandas and pyarrow tables for Artel's table encoder."""

from decimal import Decimal
from numbers import Real
from typing import NamedTuple

import numpy as np

from artel import _artel, _data, _html


class Encodable(NamedTuple):
    """A table for the encoder, with optional weights of the rows."""

    table: _artel.Table
    weights: np.ndarray | None = None


class Columns(list):
    """The columns of a table, a list of `Column`. Notebooks show it as a table."""

    def _repr_html_(self):
        return _html.table(Column._fields, self)


class Column(NamedTuple):
    name: str
    use: str  # "number", "3 names", "target", ...
    missing: int
    content: str  # "0.5 to 7.9, mean 3.2" or "Berlin, Oslo, ..."
    warning: str  # a possible mistake, with advice; usually empty


def columns(data, target=""):
    """Describes how Artel would use each column of a table, like `artel data show csv`.

    `target` is the name of the target column, by default the last one.

    >>> import pandas
    >>> frame = pandas.DataFrame({"area": [30.0, 50, 80], "town": ["Ulm", "Ulm", "Bonn"],
    ...                           "price": [90.5, 200, 310]})
    >>> columns(frame, target="price")[1]
    Column(name='town', use='2 names', missing=0, content='Bonn, Ulm', warning='')
    """
    if not is_table(data):
        raise _artel.Error(f"columns: got {type(data).__name__}, expected a table of pandas or "
                           "pyarrow")
    return Columns(Column(*described) for described in table(data).describe(target))


def is_table(data):
    return _is_pandas(data) or _is_arrow(data)


def is_mixed(data):
    """True for a table with a column that is not numeric or has missing values."""
    if not is_table(data):
        return False
    return any(values.dtype == np.int32 or np.isnan(values).any() for _, values, _ in _columns(data))


def table(data, name="table", target=None):
    """The columns of a table. `target` has the values of an additional column named "target"."""
    rows = len(data) if _is_pandas(data) else data.num_rows
    result = _artel.Table(name, rows)
    if len(data.columns) == 0:
        raise _artel.Error(f"[{name}] the table has no columns")
    for column, values, names in _columns(data):
        result.add(column, values, names)
    if target is not None:
        result.add("target", np.ascontiguousarray(target, dtype=np.float64))
    return result


def _is_pandas(data):
    return hasattr(data, "columns") and hasattr(data, "iloc")


def _is_arrow(data):
    return hasattr(data, "column_names") and hasattr(data, "to_pydict")


def _columns(data):
    names = list(data.columns if _is_pandas(data) else data.column_names)
    texts = [str(name) for name in names]
    for text in texts:
        if texts.count(text) > 1:
            raise _artel.Error(f"[{text}] {texts.count(text)} columns of the table have this name; "
                               "rename them")
    for name, text in zip(names, texts):
        try:
            values = _pandas_values(data[name]) if _is_pandas(data) else _arrow_values(data[name])
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise _artel.Error(f"[{text}] the column cannot be read: "
                               + _data.first_line(error)) from error
        yield (text, *_coded(values))


def _pandas_values(column):
    """Numbers as f64, with NaN for missing values; other columns as text, with None."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = column.isna().to_numpy()
    values = [None if gap else value for value, gap in zip(column.tolist(), missing)]
    return _texts(values) if str(column.dtype) == "category" else _plain(values)


def _arrow_values(column):
    from pyarrow import types

    if types.is_integer(column.type) or types.is_floating(column.type):
        return column.to_numpy().astype(np.float64)
    return _plain(column.to_pylist())


def _plain(values):
    """Numbers of Python, such as decimals, as f64; anything else as texts."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
                       for value in present):
        return np.array([np.nan if value is None else float(value) for value in values])
    return _texts(values)


def _texts(values):
    return [None if value is None else str(value) for value in values]


def _coded(values):
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values), []
    names = sorted({value for value in values if value is not None})
    places = {name: place for place, name in enumerate(names)}
    codes = np.fromiter((places.get(value, -1) for value in values), np.int32, len(values))
    return codes, names
