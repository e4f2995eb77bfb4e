#!/usr/bin/env bash
# mpi.sh SIZE PROGRAM: the program under mpirun, as that many ranks.
set -euo pipefail
# Open MPI unloads its modules before leaks are looked for: what they have kept cannot be told from leaks of ours.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
root=(); [[ $(id -u) -eq 0 ]] && root=(--allow-run-as-root)
exec mpirun "${root[@]}" --oversubscribe --bind-to none -np "$1" "$2" mpi
