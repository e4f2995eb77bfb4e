#!/usr/bin/env bash
# mpi.sh SIZE PROGRAM: the program under mpirun, as that many ranks.
set -euo pipefail
root=(); [[ $(id -u) -eq 0 ]] && root=(--allow-run-as-root)
exec mpirun "${root[@]}" --oversubscribe --bind-to none -np "$1" "$2" mpi
