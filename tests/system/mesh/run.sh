#!/usr/bin/env bash
# run.sh ARTEL CASE: trains in meshes of data x pipeline x tensor (a function test_CASE below) and compares with one worker.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT

# Networks that are wide enough to be cut into two shards, in as many for every mesh.
make_wide() {
  make_run
  sed -i 's/"dense 16"/"dense 64", "relu", "dense 32"/' run.toml
  printf 'shards = 2\n' >>run.toml
  make_text
  sed -i 's/^width = 16/width = 64/' text.toml
  printf 'shards = 2\n' >>text.toml
}

test_exact() {
  make_wide
  expect 0 "$artel" train run.toml --out run
  same_with_workers run 8 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.sharding=gradients
  sed -i 's/"adamw", lr = 0.01/"lamb", lr = 0.01/' text.toml
  expect 0 "$artel" train text.toml --out text
  same_with_workers text 4 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.transport=shm
  same_with_workers text 4 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.transport=gloo --set cluster.schedule=zero_bubble
  same_with_workers text 4 --set cluster.tensor=2 --set cluster.sharding=weights
  if command -v mpirun >/dev/null; then
    ignore_leaks
    expect 0 mpirun --allow-run-as-root --oversubscribe -n 4 "$artel" train text.toml --out mpi --set cluster.pipeline=2 --set cluster.tensor=2
    expect 0 "$artel" verify text mpi
  fi
}

# Checkpoints do not depend on the mesh.
test_resume() {
  make_wide
  expect 0 "$artel" train text.toml --out text
  expect 0 "$artel" train text.toml --out mixed -n 8 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.sharding=optimizer --set train.steps=2
  expect 0 "$artel" train text.toml --out mixed --resume -n 4 --set cluster.pipeline=1 --set cluster.tensor=2 --set cluster.sharding=weights --set train.steps=4
  expect 0 "$artel" train text.toml --out mixed --resume -n 4 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.sharding=none --set train.steps=5
  expect 0 "$artel" train text.toml --out mixed --resume --set cluster.pipeline=1 --set cluster.tensor=1
  expect 0 "$artel" verify text mixed
}

# The run ends and names the worker with its place; it can be resumed.
test_killed() {
  make_wide
  cp run.toml wide.toml
  make_run() { cp wide.toml run.toml; }
  start_endless_run 8 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.mirror_every=0
  kill_one "${workers[6]}"
  contains err "rank 6 on host"
  contains err "data 1, stage 1, tensor 0"
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume -n 4 --set cluster.pipeline=2 --set cluster.tensor=2 --set train.steps=$((step + 5))
  expect 0 "$artel" train run.toml --out one --set train.steps=$((step + 5))
  expect 0 "$artel" verify one run
}

# Left to Artel: what it chooses fits, it says why, and the bits are the same.
test_chosen() {
  make_wide
  expect 0 "$artel" train text.toml --out text
  same_with_workers text 4 --set cluster.mesh=auto
  contains err.train "mesh: data"
  contains err.train "ms a step"
  expect 1 "$artel" train text.toml --out refused -n 4 --set cluster.mesh=auto --set cluster.pipeline=2
  contains err 'cluster.mesh: got "auto" with cluster.pipeline = 2 and cluster.tensor = 1, expected 1 for both'
}

# below_peak KIB COMMAND...: none of its processes has ever had more memory.
below_peak() {
  if sanitized; then "${@:2}" && return; fi
  python3 - "$@" <<'PYTHON'
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
sys.exit(code or (f"a process took {peak} KiB" if peak > int(sys.argv[1]) else 0))
PYTHON
}

# A network that one worker has no room for trains on two, each of which stays below the limit.
test_memory() {
  make_text
  sed -i 's/^width = 16/width = 512/; s/^depth = 3/depth = 6/; s/^heads = 2/heads = 8/; s/^steps = 6/steps = 2/' text.toml
  sed -i 's/^batch_size = 16/batch_size = 8/; s/^lanes = 8/lanes = 4/; s/context = 16/context = 16\ntest_fraction = 0/' text.toml
  expect 1 "$artel" train text.toml --out refused --set cluster.memory='350 MiB'
  contains err 'cluster.memory: got 350 MiB for worker 0, expected at least'
  contains err 'try -n 2 with cluster.'
  expect 0 "$artel" train text.toml --out one
  local mesh
  for mesh in cluster.pipeline=2 cluster.sharding=weights cluster.mesh=auto; do
    expect 0 below_peak $((350 << 10)) "$artel" train text.toml --out two -n 2 --set $mesh --set cluster.memory='350 MiB'
    expect 0 "$artel" verify one two
    rm -rf two
  done
}

test_refused() {
  make_wide
  refused() {
    expect 1 "$artel" train text.toml --out refused "${@:2}"
    contains err "$1"
  }
  refused 'cluster.pipeline: got 4 with cluster.tensor = 2 for 4 workers, expected numbers whose product divides them; try cluster.pipeline = 1 or 2, or -n 8' -n 4 --set cluster.pipeline=4 --set cluster.tensor=2
  refused 'with local steps, expected 1' -n 4 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.local_steps=4
  refused 'with cluster.tensor and cluster.cuts = "measured"' -n 4 --set cluster.pipeline=2 --set cluster.tensor=2 --set cluster.cuts=measured
}

"test_$case"
echo "passed"
