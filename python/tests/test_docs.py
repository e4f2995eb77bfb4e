"""The examples in docstrings run."""

import doctest

import artel
import numpy
import pytest
from artel import _data, _estimators, _finetune, _model, _parts, _run, _tables, _train, _versions


@pytest.mark.parametrize("module", [artel, _data, _estimators, _finetune, _model, _parts, _run, _tables,
                                    _train, _versions])
def test_examples(module):
    names = dict(vars(module), artel=artel, numpy=numpy, ops=artel.ops)
    assert doctest.testmod(module, extraglobs=names).failed == 0
