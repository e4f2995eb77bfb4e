#!/usr/bin/env bash
# run.sh ARTEL CASE: trains in pipelines (a function test_CASE below) and compares with one worker.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; kill -CONT "${workers[@]}" 2>/dev/null || true; wait; remove_folder' EXIT

same_in_pipelines() {
  same_with_workers "$@"
  contains err.train "workers, schedule"
}

test_exact() {
  make_run
  make_text
  local file
  for file in run text; do
    expect 0 "$artel" train $file.toml --out $file
    same_in_pipelines $file 2 --set cluster.pipeline=2 --set cluster.transport=shm
    same_in_pipelines $file 2 --set cluster.pipeline=2 --set cluster.transport=gloo --set cluster.schedule=zero_bubble
    same_in_pipelines $file 4 --set cluster.pipeline=4 --set cluster.schedule=1f1b
    same_in_pipelines $file 4 --set cluster.pipeline=2 --set cluster.schedule=gpipe
    same_in_pipelines $file 4 --set cluster.pipeline=2 --set cluster.transport=gloo --set cluster.schedule=interleaved
  done
}

# Lanes of two and three sequences: the smaller ones look up fewer rows than the tied table has, the larger ones more, and under
# a limit of memory only the larger ones have to recompute.
test_unequal_lanes() {
  make_text
  local unequal=(--set train.batch_size=20 --set cluster.lanes=8) limit
  expect 0 "$artel" train text.toml --out text "${unequal[@]}"
  for limit in 0 '"150 KiB"' '"100 KiB"'; do
    same_in_pipelines text 2 "${unequal[@]}" --set cluster.pipeline=2 --set "train.memory_limit=$limit"
  done
  same_in_pipelines text 4 "${unequal[@]}" --set cluster.pipeline=2 --set cluster.schedule=interleaved --set 'train.memory_limit="100 KiB"'
}

# Checkpoints do not depend on the mesh.
test_resume() {
  make_text
  expect 0 "$artel" train text.toml --out text
  expect 0 "$artel" train text.toml --out mixed --set train.steps=2
  expect 0 "$artel" train text.toml --out mixed --resume -n 4 --set cluster.pipeline=2 --set train.steps=4
  expect 0 "$artel" train text.toml --out mixed --resume -n 2 --set cluster.pipeline=2
  expect 0 "$artel" verify text mixed
  expect 0 "$artel" train text.toml --out back -n 2 --set cluster.pipeline=2 --set train.steps=3
  expect 0 "$artel" train text.toml --out back --resume
  expect 0 "$artel" verify text back
}

# Without copies of its parts the run ends and names the worker with its stage; it can be resumed.
test_killed() {
  start_endless_run 2 --set cluster.pipeline=2 --set cluster.mirror_every=0
  kill_one "${workers[1]}"
  contains err "rank 1 on host"
  contains err "died"
  contains err "stage 1"
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume -n 2 --set cluster.pipeline=2 --set train.steps=$((step + 5))
  expect 0 "$artel" train run.toml --out one --set train.steps=$((step + 5))
  expect 0 "$artel" verify one run
}

test_interrupted() {
  start_endless_run 2 --set cluster.pipeline=2
  interrupt
  expect 0 "$artel" evaluate run
  expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step)
  expect 0 "$artel" verify one run
}

test_refused() {
  make_run
  refused() {
    expect 1 "$artel" train run.toml --out refused "${@:2}"
    contains err "$1"
  }
  refused "cluster.pipeline: got 2 for one worker, expected as many workers or a multiple; try -n 2, or cluster.pipeline = 1" --set cluster.pipeline=2
  refused "cluster.pipeline: got 3 for 4 workers, expected a number that divides them; try 2 or 4" -n 4 --set cluster.pipeline=3
  refused "expected at most one for each; try" -n 8 --set cluster.pipeline=8 --set 'model.layers=["dense 2"]'
  refused "cluster.schedule" -n 2 --set cluster.pipeline=2 --set cluster.schedule=2f2b
  # A new run has a lane for each copy of the network. A run that is resumed keeps its lanes.
  expect 0 "$artel" train run.toml --out one -n 4 --set cluster.pipeline=2 --set cluster.lanes=1 --set train.steps=1
  contains err "2 lanes instead of 1, because the run has 4 workers"
  expect 0 "$artel" train run.toml --out few -n 4 --set cluster.pipeline=2 --set cluster.lanes=3 --set train.steps=2
  contains few/config.toml "lanes = 3"
  expect 1 "$artel" train run.toml --out few -n 5 --resume --set cluster.local_steps=2 --set cluster.lanes=3 --set train.steps=4
  contains err 'the run has 3 for 5 workers, which cannot stand by with the strategy "auto" (Local steps); try -n 3, or a new run with cluster.lanes = 5'
}

"test_$case"
echo "passed"
