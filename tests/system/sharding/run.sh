#!/usr/bin/env bash
# run.sh ARTEL CASE: trains by workers that keep parts of the model (a function test_CASE below) and compares with one worker.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT

test_exact() {
  make_run
  make_text
  local file
  for file in run text; do
    expect 0 "$artel" train $file.toml --out $file
    same_with_workers $file 2 --set cluster.sharding=optimizer --set cluster.transport=gloo
    same_with_workers $file 3 --set cluster.sharding=gradients --set cluster.transport=shm
    same_with_workers $file 2 --set cluster.sharding=weights --set cluster.transport=shm
    same_with_workers $file 3 --set cluster.sharding=weights --set cluster.transport=gloo
    same_with_workers $file 4 --set cluster.sharding=gradients --set cluster.pipeline=2
  done
}

# Checkpoints do not depend on who keeps what.
test_resume() {
  make_text
  expect 0 "$artel" train text.toml --out text
  expect 0 "$artel" train text.toml --out mixed -n 3 --set cluster.sharding=weights --set train.steps=2
  expect 0 "$artel" train text.toml --out mixed --resume -n 2 --set cluster.pipeline=2 --set cluster.sharding=none --set train.steps=3
  expect 0 "$artel" train text.toml --out mixed --resume -n 2 --set cluster.pipeline=1 --set cluster.sharding=optimizer --set train.steps=4
  expect 0 "$artel" train text.toml --out mixed --resume --set cluster.sharding=none
  expect 0 "$artel" verify text mixed
}

# Without copies of its parts the run ends and names the worker; it can be resumed.
test_killed() {
  start_endless_run 2 --set cluster.sharding=weights --set cluster.mirror_every=0
  kill_one "${workers[1]}"
  contains err "rank 1 on host"
  contains err "died"
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume -n 2 --set cluster.sharding=weights --set train.steps=$((step + 5))
  expect 0 "$artel" train run.toml --out one --set train.steps=$((step + 5))
  expect 0 "$artel" verify one run
}

# A worker that dies while the others save takes its parts with it: what was saved before stays, and nothing else does.
test_killed_while_saving() {
  local mesh
  for mesh in cluster.sharding=weights cluster.pipeline=2; do
    rm -rf run
    start_endless_run 2 --set $mesh --set cluster.mirror_every=0 --set train.save_every=1 --set train.keep_checkpoints=2
    kill_one "${workers[1]}"
    contains err "rank 1 on host"
    local step
    step=$(newest_step)
    expect 0 "$artel" train run.toml --out run --resume -n 2 --set $mesh --set train.save_every=50 --set train.steps=$((step + 2))
    [[ -z $(find run/checkpoints -name '.*') ]] || fail "half a checkpoint is left: $(ls -A run/checkpoints)"
    expect 0 "$artel" train run.toml --out one --set train.steps=$((step + 2))
    expect 0 "$artel" verify one run
    rm -rf one
  done
}

# On one machine weights are read in place, so a memory limit may divide the lanes of a thread into groups. A trace records a group
# under its first lane.
test_limited() {
  make_run
  sed -i 's/"dense 16"/"dense 400", "relu", "dense 400"/; s/batch_size = 20/batch_size = 256/' run.toml
  groups() {
    expect 0 "$artel" train run.toml --out "$1" -n 2 --set train.steps=4 --trace trace.json "${@:2}"
    python3 -c 'import json; print(len({e["tid"] for e in json.load(open("trace.json"))["traceEvents"] if e["ph"] == "X" and e["pid"] == 0 and e["tid"] > 1}))'
  }
  local limit
  expect 1 "$artel" train run.toml --out small -n 2 --set cluster.sharding=weights --set train.memory_limit="1 KiB"
  limit=$(sed -n 's/.*expected at least \([0-9]* KiB\);.*/\1/p' err)
  [[ $(groups whole --set cluster.sharding=weights) == 1 ]] || fail "without a limit, lanes did not run together"
  [[ $(groups plain --set train.memory_limit="$limit") == 4 ]] || fail "lanes ran together in spite of a limit of $limit"
  [[ $(groups limited --set cluster.sharding=weights --set train.memory_limit="$limit") == 4 ]] ||
    fail "lanes with sharded weights ran together in spite of a limit of $limit"
  expect 0 "$artel" verify whole limited
}

test_refused() {
  make_run
  refused() {
    expect 1 "$artel" train run.toml --out refused -n 2 "${@:2}"
    contains err "$1"
  }
  refused 'cluster.sharding: got "weights" with local steps, expected "none"; try that, or cluster.local_steps = 1' --set cluster.sharding=weights --set cluster.local_steps=4
  refused 'cluster.sharding: got "optimizer" with cluster.compress = "int8"' --set cluster.sharding=optimizer --set cluster.compress=int8
  refused 'cluster.sharding: got "weights" with pipelines, expected "none"; try that, or "gradients"' --set cluster.sharding=weights --set cluster.pipeline=2
  refused 'cluster.sharding' --set cluster.sharding=everything
}

"test_$case"
echo "passed"
