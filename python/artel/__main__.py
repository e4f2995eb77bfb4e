"""`python -m artel` runs the program `artel`."""

import sys

from artel._artel import run_program


def main():
    sys.exit(run_program(sys.argv[1:]))


if __name__ == "__main__":
    main()
