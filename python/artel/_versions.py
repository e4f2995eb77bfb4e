import platform
import sys
from importlib import metadata

from artel import _artel


def show_versions():
    """Prints the versions and processor to include in a bug report.

    >>> show_versions()  # doctest: +ELLIPSIS
    artel ...
    """
    lines = {
        "artel": _artel.__version__,
        "instructions": _artel.instructions(),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
    }
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch"):
        try:
            lines[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            lines[name] = "not installed"
    for name, value in lines.items():
        print(f"{name:13} {value}")
