"""Random data of all kinds: a result or an `artel.Error`, never a crash (fuzz.py)."""

import pathlib
import subprocess
import sys


def test_random_data_never_crashes():
    fuzz = pathlib.Path(__file__).with_name("fuzz.py")
    result = subprocess.run([sys.executable, fuzz, "--cases", "300", "--seconds", "60"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, check=False)
    assert result.returncode == 0, result.stdout
