"""Networks that Artel writes as ONNX models, computed by ONNX Runtime and compared with Artel's own outputs.

Needs the Python packages onnxruntime and numpy (set PYTHON to an interpreter that has them)."""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MOST = 1e-4  # of the largest output


def main():
    parser = argparse.ArgumentParser(prog="bench/run shrink onnx", description=__doc__)
    parser.add_argument("--build", default=os.path.join(HERE, "../../build/release"))
    arguments = parser.parse_args()
    import numpy
    import onnxruntime
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(arguments.build, "artel_bench_onnx"), folder], check=True)
        for file in sorted(glob.glob(os.path.join(folder, "*.onnx"))):
            stem = file[:-len(".onnx")]
            x, y = numpy.load(stem + ".x.npy"), numpy.load(stem + ".y.npy")
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
            got = session.run(["prediction"], {"x": x})[0]
            error = float(numpy.abs(got - y).max() / numpy.abs(y).max()) if got.shape == y.shape else float("inf")
            failures += not error <= MOST
            print(f"{os.path.basename(stem):18} {str(y.shape):22} largest difference {error:.1e}{'' if error <= MOST else '  WRONG'}", flush=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
