"""`python -m artel` runs the program `artel`."""

import sys

from artel._artel import run_program


def main(arguments=None):
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(run_program([sys.executable, "-m", "artel"], words))


if __name__ == "__main__":
    main()
