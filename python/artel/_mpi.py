"""Loads MPI for wheels, which contain a stub so that MPI is not required.

The module is linked to libmpi.so.40 and uses the first library loaded under that name: the machine's
MPI under an MPI launcher, otherwise a stub without working functions.
"""

import ctypes
import os
import pathlib

STAND_IN = pathlib.Path(__file__).parent / "stand_in" / "libmpi.so.40"


# What launchers say to the processes that MPI connects.
_LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")


def prepare():
    if not STAND_IN.exists():
        return  # not a wheel: the loader finds the library that the module was built with
    if any(name in os.environ for name in _LAUNCHED) and "ARTEL_SIZE" not in os.environ:
        try:
            ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
            return
        except OSError as error:
            if "SLURM_STEP_NUM_TASKS" not in os.environ:
                raise ImportError("artel was started by an MPI launcher, but Open MPI's library is not "
                                  f"on this machine: {error}; install libopenmpi3") from error
        for name in _LAUNCHED:  # srun only offers MPI: workers meet by what else it says
            os.environ.pop(name, None)
    ctypes.CDLL(os.fspath(STAND_IN), mode=ctypes.RTLD_GLOBAL)
