"""Processors without AVX2 are not refused: kernels have versions for SSE4, with bits of their own."""

import os
import pathlib
import platform
import shutil
import subprocess
import sys

import artel
import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="for x86-64")

SCRIPT = """
import sys
sys.path += {path!r}
import artel, numpy
artel.show_versions()
x = numpy.random.default_rng(0).normal(size=(200, 4)).astype("f4")
artel.train(["dense 16", "relu", "dense 2"], (x, x[:, 0] > 0), epochs=2, lanes=2, lr=0.1, threads=1, quiet=True, out=sys.argv[1])
"""


def run(name, *emulator, **variables):
    script = SCRIPT.format(path=[path for path in sys.path if path])
    python = pathlib.Path(sys.executable).resolve()
    result = subprocess.run([*emulator, python, "-c", script, name], env=dict(os.environ, **variables), capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout, {name: array.tobytes() for name, array in artel.load(name).state_dict().items()}


def test_without_avx2():
    shown, bits = run("limited", ARTEL_INSTRUCTIONS="sse4")
    assert "instructions  sse4" in shown
    if not shutil.which("qemu-x86_64"):
        pytest.skip("no qemu-x86_64 (the Debian package qemu-user), which emulates such a processor")
    shown, emulated = run("emulated", "qemu-x86_64", "-cpu", "Nehalem")
    assert "instructions  sse4" in shown
    assert emulated == bits


def test_unknown_instructions_are_refused_by_name():
    result = subprocess.run([sys.executable, "-c", "import artel; artel.show_versions()"], capture_output=True, text=True,
                            env=dict(os.environ, ARTEL_INSTRUCTIONS="avx3"), check=False)
    assert "artel.Error: the environment variable ARTEL_INSTRUCTIONS is 'avx3', expected one of sse4" in result.stderr
