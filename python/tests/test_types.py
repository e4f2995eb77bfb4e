"""What editors and type checkers see of the package."""

import ast
import pathlib
import subprocess
import sys

import artel
import pytest


@pytest.fixture
def package(tmp_path):
    """The package with the stub of its module, as installed."""
    folder = tmp_path / "artel"
    folder.mkdir()
    built = pathlib.Path(artel._artel.__file__).parent
    for file in [*built.glob("*.py"), built / "py.typed"]:
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "_artel", "-i", built,
                    "-p", pathlib.Path(__file__).parents[1] / "stub.pattern", "-o", folder / "_artel.pyi"], check=True)
    return folder


def test_the_stub_of_the_module_is_python(package):
    stub = ast.parse((package / "_artel.pyi").read_text(encoding="utf-8"))
    names = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {"Dataset", "TrainingState", "Value", "Build", "Error", "train", "from_arrays"} <= names
    state = next(node for node in stub.body if getattr(node, "name", "") == "TrainingState")
    assert {"step", "loss", "rank", "metrics"} <= {node.name for node in state.body if isinstance(node, ast.FunctionDef)}


PROGRAM = """
import artel
import numpy as np

def watch(state: artel.TrainingState) -> bool:
    return state.step < 3 and state.loss < 9

run = artel.train(["dense 2"], (np.zeros((3, 2)), np.zeros(3)), epochs=3, callbacks=[watch])
try:
    rows: np.ndarray = artel.load("runs/a").predict(np.zeros((3, 2)))
except artel.Error as error:
    print(artel.__version__, error)
loss: float = run.summary["loss"]
text: str = next(run.generate("a"))
"""
WRONG = """
import artel

run = artel.train("a.toml")
run.predicted(3)
state: artel.TrainingState
state.stepp
"""


def checked(folder, program):
    (folder / "program.py").write_text(program)
    return subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", folder / "cache", "program.py"],
                          cwd=folder, capture_output=True, text=True, check=False).stdout


def test_a_type_checker_finds_mistakes(package):
    pytest.importorskip("mypy")
    assert "Success" in checked(package.parent, PROGRAM)
    found = checked(package.parent, WRONG)
    assert '"Run" has no attribute "predicted"' in found and '"TrainingState" has no attribute "stepp"' in found
