"""What is installed in other ways than by the wheel: a clone by pip, and the files of packaging/."""

import os
import pathlib
import subprocess
import sys

import pytest
from test_wheel import has

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_kubernetes_manifest_is_valid(tmp_path):
    if not has("kubernetes_validate"):
        pytest.skip("kubernetes-validate is not installed")
    validate = [sys.executable, "-m", "kubernetes_validate", "--strict"]
    manifest = PROJECT / "packaging/kubernetes.yaml"
    shown = run(*validate, manifest)
    assert "passed for resource service/artel" in shown and "passed for resource job/artel" in shown
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(manifest.read_text().replace("completionMode:", "completionModes:"))
    assert subprocess.run([*validate, wrong], capture_output=True, check=False).returncode != 0


TRY = """
import artel, numpy
x = numpy.random.default_rng(0).normal(size=(200, 4)).astype("f4")
for workers in (1, 2):
    run = artel.train(["dense 8", "relu", "dense 2"], (x, x[:, 0] > 0), epochs=3, lr=0.3, workers=workers, lanes=2, quiet=True)
    print(workers, "workers", run.evaluate()["accuracy"])
print(artel.__file__)
"""
TABLE = """
[data]
set = "csv"
path = "table.csv"
[model]
layers = ["dense 1"]
[train]
epochs = 2
batch_size = 10
loss = "mse"
"""


@pytest.mark.skipif("ARTEL_TEST_PIP_INSTALL" not in os.environ, reason="compiles for minutes; set ARTEL_TEST_PIP_INSTALL=1")
def test_pip_installs_a_clone(tmp_path):
    """Downloads what the build and the package need from PyPI."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin/pip", "install", PROJECT, env=environment)
    shown = run(venv / "bin/python", "-c", TRY, cwd=tmp_path, env=environment)
    assert "2 workers" in shown and str(venv) in shown
    (tmp_path / "table.csv").write_text("a,b\n" + "".join(f"{n},{2 * n}\n" for n in range(60)))
    (tmp_path / "table.toml").write_text(TABLE)
    for name, command in (("module", [venv / "bin/python", "-m", "artel"]), ("script", [venv / "bin/artel"])):
        run(*command, "train", "table.toml", "-n", "2", "--out", name, cwd=tmp_path, env=environment)
    assert run(venv / "bin/artel", "verify", "module", "script", cwd=tmp_path, env=environment)
