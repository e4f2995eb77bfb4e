#!/usr/bin/env bash
# run.sh ARTEL PROGRAM CASE: runs one case (a function test_CASE below) in an empty folder.
set -euo pipefail
artel=$1 program=$2 case=$3
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT

# launch SIZE ARGUMENTS...: the program as that many processes that meet at an address.
launch() {
  local size=$1 rank
  for ((rank = 0; rank < size; ++rank)); do
    ARTEL_TRANSPORT=gloo ARTEL_RANK=$rank ARTEL_SIZE=$size ARTEL_ADDRESS=127.0.0.1:$port ARTEL_TOKEN=secret \
      "$program" "${@:2}" >out$rank 2>&1 &
  done
  for rank in $(jobs -p); do
    wait "$rank" || fail "$(cat out?)"
  done
}

test_alone() {
  make_run
  expect 0 "$artel" train run.toml --out one
  expect 0 "$artel" evaluate one
  local accuracy
  accuracy=$(grep -oE '[0-9]+\.[0-9]+' out | head -1)
  expect 0 "$program" run.toml program
  contains out "worker 0: accuracy $accuracy"
  expect 0 "$artel" verify one program
  expect 1 "$program" run.toml program
  contains out "[program] the folder already contains a run"
  sed -i 's/^lanes/workers = 2\n&/' run.toml
  expect 1 "$program" run.toml lonely
  contains out "[run.toml] cluster: got 2 workers and 0 servers, but they were not started"
}

test_workers() {
  make_run
  expect 0 "$artel" train run.toml --out one
  launch 3 run.toml program
  expect 0 "$artel" verify one program
  [[ $(grep -h "^worker" out? | cut -d' ' -f3- | sort -u | wc -l) -eq 1 ]] || fail "workers differ: $(cat out?)"
}

# The configuration says which processes are servers.
test_servers() {
  make_run
  expect 0 "$artel" train run.toml --out one
  sed -i 's/^lanes/servers = 1\n&/' run.toml
  launch 3 run.toml program
  contains out2 server
  expect 0 "$artel" verify one program
}

test_several() {
  make_run
  expect 0 "$artel" train run.toml --out one
  launch 2 run.toml first second
  expect 0 "$artel" verify one first
  expect 0 "$artel" verify one second
}

"test_$case"
echo "passed"
