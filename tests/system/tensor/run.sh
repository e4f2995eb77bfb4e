#!/usr/bin/env bash
# run.sh ARTEL CASE: trains by workers that share layers (a function test_CASE below) and compares with one worker that has as many shards.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT

# Networks that are wide enough to be cut into four shards.
make_wide() {
  make_run
  sed -i 's/"dense 16"/"dense 64"/' run.toml
  make_text
  sed -i 's/^width = 16/width = 64/; s/^heads = 2/heads = 4/' text.toml
}

test_exact() {
  make_wide
  local file
  for file in run text; do
    expect 0 "$artel" train $file.toml --out $file --set cluster.shards=4
    same_with_workers $file 2 --set cluster.shards=4 --set cluster.tensor=2 --set cluster.transport=shm
    same_with_workers $file 2 --set cluster.shards=4 --set cluster.tensor=2 --set cluster.transport=gloo
    same_with_workers $file 4 --set cluster.shards=4 --set cluster.tensor=4
    same_with_workers $file 4 --set cluster.shards=4 --set cluster.tensor=2 --set cluster.transport=gloo
    contains err.train "2 tensor groups of 2 workers, 4 shards"
  done
}

# Checkpoints do not depend on who has which shards.
test_resume() {
  make_wide
  expect 0 "$artel" train text.toml --out text --set cluster.shards=4
  expect 0 "$artel" train text.toml --out mixed -n 4 --set cluster.shards=4 --set cluster.tensor=4 --set train.steps=2
  expect 0 "$artel" train text.toml --out mixed --resume -n 4 --set cluster.shards=4 --set cluster.tensor=2 --set train.steps=4
  expect 0 "$artel" train text.toml --out mixed --resume --set cluster.shards=4 --set cluster.tensor=1
  expect 0 "$artel" verify text mixed
  expect 1 "$artel" train text.toml --out mixed --resume --set cluster.shards=2 --set cluster.tensor=1 --set train.steps=9
  contains err "cluster.shards: got 2, but the run has 4"
}

# Without copies of its parts the run ends and names the worker; it can be resumed.
test_killed() {
  make_wide
  cp run.toml wide.toml
  make_run() { cp wide.toml run.toml; }
  start_endless_run 4 --set cluster.tensor=2 --set cluster.mirror_every=0
  kill_one "${workers[3]}"
  contains err "rank 3 on host"
  contains err "died"
  contains err ", data 1, tensor 1"
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume -n 2 --set cluster.tensor=2 --set train.steps=$((step + 5))
  expect 0 "$artel" train run.toml --out one --set cluster.shards=2 --set train.steps=$((step + 5))
  expect 0 "$artel" verify one run
}

test_refused() {
  make_wide
  refused() {
    expect 1 "$artel" train text.toml --out refused "${@:2}"
    contains err "$1"
  }
  refused 'cluster.tensor: got 2 for one worker, expected as many workers or a multiple; try -n 2' --set cluster.tensor=2
  refused 'cluster.tensor: got 2 for 3 workers, expected a number that divides them; try 1 or 3' -n 3 --set cluster.tensor=2
  refused 'cluster.shards: got 3 for cluster.tensor = 2, expected a multiple of it; try 4' -n 2 --set cluster.tensor=2 --set cluster.shards=3 --set model.heads=6 --set model.width=96
  refused 'attention: got 4 heads for cluster.shards = 8, expected a multiple of it; try cluster.shards = 1 or 2 or 4' -n 2 --set cluster.tensor=2 --set cluster.shards=8
}

"test_$case"
echo "passed"
