#!/usr/bin/env bash
# run.sh ARTEL CASE: runs one case (a function test_CASE below) of workers and servers in an empty folder.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

# Without delay: the bits of one worker, whatever the number of workers and servers, and where they live.
test_exact() {
  make_run
  expect 0 "$artel" train run.toml --out one
  expect 0 "$artel" train run.toml --out two --servers 2 -n 4
  contains out staleness
  expect 0 "$artel" verify one two
  expect 0 "$artel" train run.toml --out three --servers 3 -n 2 --set cluster.servers_inside=true
  expect 0 "$artel" verify one three
  expect 0 "$artel" train run.toml --out adam1 --set train.optimizer=adam
  expect 0 "$artel" train run.toml --out adam2 -n 3 --set train.optimizer=adam --set cluster.strategy=ps
  expect 0 "$artel" verify adam1 adam2
  # Resumed in the middle, on other numbers of workers and servers.
  expect 0 "$artel" train run.toml --out half --servers 2 -n 2 --set train.epochs=1
  expect 0 "$artel" train run.toml --out half --servers 1 -n 3 --resume
  expect 0 "$artel" verify one half
}

# Clipping by the length of the whole gradient, of which each server has a part.
test_clipping() {
  make_run
  sed -i 's/^\[train\]/&\nclip_norm = 0.1/' run.toml
  expect 0 "$artel" train run.toml --out one
  expect 0 "$artel" train run.toml --out free --set train.clip_norm=0
  expect 1 "$artel" verify one free
  local workers servers
  for workers in 1 2 3; do
    for servers in 1 2; do
      expect 0 "$artel" train run.toml --out "run-$workers-$servers" -n $workers --servers $servers
      expect 0 "$artel" verify one "run-$workers-$servers"
    done
  done
}

# staleness FOLDER: the largest that the servers saw.
staleness() {
  python3 -c 'import json, sys; print(max(map(int, json.load(open(sys.argv[1] + "/summary.json"))["staleness"])))' "$1"
}

test_delay() {
  make_run
  expect 0 "$artel" train run.toml --out zero -n 3 --servers 2
  [[ $(staleness zero) -eq 0 ]] || fail "staleness without delay: $(cat zero/summary.json)"
  local delay
  for delay in 1 4 none; do
    expect 0 "$artel" train run.toml --out "run-$delay" -n 3 --servers 2 --set cluster.delay=$delay --set train.epochs=20 \
      --set train.optimizer.momentum=0
    expect 0 "$artel" evaluate "run-$delay" --json
    grep -qE '"accuracy":(0\.[789]|1)' out || fail "accuracy with delay $delay: $(cat out)"
  done
  # While a worker computes iteration t, each of the two others may finish t-1, t and t+1.
  [[ $(staleness run-1) -le 6 ]] || fail "staleness with delay 1: $(cat run-1/summary.json)"
  expect 0 "$artel" train run.toml --out coded -n 2 --servers 1 --set cluster.compress=int8 --set train.epochs=20
  expect 0 "$artel" evaluate coded --json
  grep -qE '"accuracy":(0\.[89]|1)' out || fail "accuracy with int8: $(cat out)"
}

test_downpour() {
  make_run
  expect 0 "$artel" train run.toml --out run -n 2 --servers 1 --set cluster.strategy=downpour \
    --set train.optimizer=sgd --set train.optimizer.lr=0.05 --set train.epochs=8 \
    --set cluster.push_every=2 --set cluster.fetch_every=3
  expect 0 "$artel" evaluate run --json
  grep -qE '"accuracy":(0\.[89]|1)' out || fail "accuracy: $(cat out)"
}

make_sparse_data() {
  expect 0 "$artel" data make train.libsvm --rows 2000 --features 5000 --nonzeros 20
  expect 0 "$artel" data make test.libsvm --rows 500 --features 5000 --nonzeros 20 --seed 0
  cat >sparse.toml <<'TOML'
[data]
set = "libsvm"
path = "train.libsvm"
test_path = "test.libsvm"
[train]
l1 = 1.0
epochs = 40
[cluster]
strategy = "ddpg"
blocks = 8
TOML
}

objective() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1] + "/summary.json"))["objective"])' "$1"; }

test_ddpg() {
  make_sparse_data
  expect 0 "$artel" train sparse.toml --out plain
  expect 0 "$artel" train sparse.toml --out delayed -n 3 --servers 2 --set cluster.delay=4
  expect 0 "$artel" train sparse.toml --out filtered -n 3 --servers 2 --set cluster.delay=4 \
    --set 'cluster.filters=["key cache", "changes", "kkt 0.5", "fp16"]'
  python3 - $(objective plain) $(objective delayed) $(objective filtered) <<'PYTHON'
import sys
plain, delayed, filtered = map(float, sys.argv[1:])
assert abs(delayed - plain) < 0.01 * plain, (plain, delayed)
assert abs(filtered - plain) < 0.01 * plain, (plain, filtered)
PYTHON
  # Resumed in the middle, on other numbers of workers and servers.
  expect 0 "$artel" train sparse.toml --out half -n 2 --servers 1 --set train.epochs=15
  expect 0 "$artel" train sparse.toml --out half -n 3 --servers 2 --resume
  contains err "resuming half after pass 15"
  expect 1 "$artel" train sparse.toml --out half -n 2 --resume
  contains err "passes: all 40 are done"
  python3 - $(objective plain) $(objective half) <<'PYTHON'
import sys
plain, half = map(float, sys.argv[1:])
assert abs(half - plain) < 1e-5 * plain, (plain, half)
PYTHON
  # Samples of which only a part is in memory at a time.
  (ulimit -d 400000; expect 0 "$artel" train sparse.toml --out small -n 2 --set train.epochs=2)
  # The training file has an index 0, so those of the test file count from 0, too.
  for ((i = 0; i < 50; ++i)); do printf '1 0:1\n-1 1:1\n'; done >train.libsvm
  for ((i = 0; i < 5; ++i)); do echo '-1 1:1'; done >test.libsvm
  expect 0 "$artel" train sparse.toml --out zero -n 2 --set train.epochs=5
  contains err "train.libsvm: an index is 0, so all indices of this set count from 0"
  contains zero/summary.json '"test_accuracy": 1.0'
  expect 1 "$artel" train sparse.toml --out bad --set data.set=mnist
  contains err "expected \"a9a\", or \"libsvm\" with a data.path"
}

# start_endless_run OPTIONS...: saves often; its processes are $launcher, two servers and three workers.
start_endless_run() {
  make_run
  "$artel" train run.toml --out run -n 3 --servers 2 --set train.steps=100000000 --set train.save_every=50 "$@" >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  mapfile -t processes < <(pgrep -P $launcher | sort -n)
  [[ ${#processes[@]} -eq 5 ]] || fail "expected 5 processes: ${processes[*]}"
}

test_worker_killed() {
  start_endless_run --set cluster.delay=4
  kill -KILL "${processes[2]}"
  local tries=0
  until grep -q "worker 2 was lost after iteration" err; do
    sleep 0.1
    ((++tries < 100)) || fail "nobody stated the loss: $(cat err)"
  done
  # The others go on: another checkpoint comes.
  rm -rf run/checkpoints/step-* || true  # it may be writing there
  wait_for_checkpoint run
  interrupt
  contains out "lost worker 2"
  expect 0 "$artel" evaluate run
}

# Worker 0 reports and saves: without it all stop, and what it saved last is there.
test_first_worker_killed() {
  start_endless_run --set cluster.delay=4
  kill_one "${processes[0]}"
  contains err "worker 0"
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume -n 2 --servers 1 --set cluster.delay=4 --set train.steps=$((step + 3))
  contains err "resuming run after step"
}

# resumes_exactly OPTIONS...: what the servers held is exactly what one worker gets to by itself.
resumes_exactly() {
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume -n 2 --servers 1 --set train.steps=$((step + 3)) "$@"
  expect 0 "$artel" train run.toml --out alone --set train.steps=$((step + 3)) "$@"
  expect 0 "$artel" verify alone run
}

test_server_killed() {
  start_endless_run
  kill_one "${processes[4]}"
  contains err "server 1"
  resumes_exactly
}

# A clipped step takes two turns: somewhere between them a worker dies, and a server in another run.
test_killed_while_clipping() {
  start_endless_run --set train.clip_norm=0.1
  kill_one "${processes[1]}"
  contains err "worker 1"
  resumes_exactly --set train.clip_norm=0.1
  rm -r run alone
  start_endless_run --set train.clip_norm=0.1
  kill_one "${processes[4]}"
  contains err "server 1"
  resumes_exactly --set train.clip_norm=0.1
}

# MPI starts the processes; the configuration says which are servers.
test_mpi() {
  make_run
  expect 0 "$artel" train run.toml --out one
  sed -i 's/^lanes = 8/servers = 1\n&/' run.toml
  local root=()
  [[ $(id -u) -ne 0 ]] || root=(--allow-run-as-root)
  expect 0 mpirun "${root[@]}" --oversubscribe --bind-to none -n 4 "$artel" train run.toml --out mpi
  contains err "worker 2 on host"
  expect 0 "$artel" verify one mpi
}

# Workers and servers that meet at an address.
test_join() {
  make_run
  expect 0 "$artel" train run.toml --out one
  local i
  for i in 1 2; do
    "$artel" train run.toml -n 2 --servers 2 --join 127.0.0.1:$port --token secret --out joined >out$i 2>err$i &
    "$artel" serve -n 2 --servers 2 --join 127.0.0.1:$port --token secret >serve$i 2>&1 &
  done
  wait %1 %2 %3 %4 || fail "$(cat err1 err2 serve1 serve2)"
  contains serve1 "all workers have left"
  expect 0 "$artel" verify one joined
}

test_wrong() {
  make_run
  expect 1 "$artel" train run.toml --servers 2 --set cluster.strategy=ring
  contains err 'cluster.servers: got 2 with the strategy "ring"'
  expect 1 "$artel" train run.toml --servers 1 -n 2 --set cluster.delay=sometimes
  contains err "cluster.delay"
  expect 1 "$artel" train run.toml --servers 1 -n 2 --set train.optimizer.lr=1e30
  contains err "refused"
  expect 2 "$artel" serve -n 2
}

"test_$case"
echo "passed"
