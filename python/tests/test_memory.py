"""Fitting borrows arrays: memory does not grow with the data."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, artel, numpy
x = numpy.ones((200_000, 256), numpy.float32)  # 205 MB
y = (numpy.arange(len(x)) % 2).astype(numpy.int32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{fit}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (x.nbytes / 1024))
"""
FIT = {
    "train": "artel.train(['dense 2'], (x, y), steps=20, batch_size=64, test_fraction=0, quiet=True)",
    "Classifier": "artel.Classifier([], epochs=1, batch_size=2000).fit(x, y)",
}


@pytest.mark.parametrize("how", FIT)
def test_arrays_are_not_copied(how):
    """0.4 is for the program itself, about 60 MB; a copy would be 1."""
    script = SCRIPT.format(fit=FIT[how])
    if how == "Classifier":
        script = script.replace("before =", "artel.Classifier([], epochs=1).fit(x[:100], y[:100])\nbefore =")
    result = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert float(result.stdout) < 0.4
