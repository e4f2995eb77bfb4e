#!/usr/bin/env bash
# run.sh ARTEL CASE: runs one case (a function test_CASE below) of workers and servers in an empty folder.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT

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
  contains err "resuming half after step 15"
  python3 - $(objective plain) $(objective half) <<'PYTHON'
import sys
plain, half = map(float, sys.argv[1:])
assert abs(half - plain) < 1e-5 * plain, (plain, half)
PYTHON
  # All is done: the same weights are left.
  cp half/checkpoints/step-000000040/model.safetensors before
  expect 0 "$artel" train sparse.toml --out half -n 2 --resume
  cmp before half/checkpoints/step-000000040/model.safetensors || fail "the weights have changed"
  # A run is a run: it can be judged, used and described like any other.
  expect 0 "$artel" evaluate plain --json
  python3 - plain <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1] + "/summary.json"))
evaluation = json.load(open("out"))
assert evaluation["samples"] == 500, evaluation
assert abs(evaluation["loss"] - summary["test_loss"]) < 1e-9, (evaluation, summary)
assert evaluation["accuracy"] == summary["test_accuracy"] > 0.6, (evaluation, summary)
assert summary["step"] == 40 and summary["stopped_by"] == "epochs", summary
metrics = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
assert any("train/objective" in each for each in metrics) and any("test/loss" in each for each in metrics)
PYTHON
  expect 0 "$artel" info plain
  contains out "checkpoint"
  python3 - plain <<'PYTHON'
import json, sys
features = json.load(open(sys.argv[1] + "/samples.json"))["input"][0]
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (3, {features}), }}".ljust(117).encode() + b"\n"
open("rows.npy", "wb").write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(12 * features))
PYTHON
  expect 0 "$artel" predict plain rows.npy
  contains out "rows.npy[2]: "
  # Without a test file, a part of the samples is kept for it.
  expect 0 "$artel" train sparse.toml --out fraction -n 2 --set data.test_path= --set data.test_fraction=0.25 --set train.epochs=3
  contains err "1,500 training and 500 test samples"
  # Criteria that worker 0 sees stop all.
  expect 0 "$artel" train sparse.toml --out aimed -n 3 --servers 2 --set cluster.delay=4 --set train.target_accuracy=0.55
  contains aimed/summary.json '"stopped_by": "target accuracy"'
  expect 0 "$artel" train sparse.toml --out still -n 2 --set train.tolerance=0.01
  contains still/summary.json '"stopped_by": "tolerance"'
  # Samples of which only a part is in memory at a time.
  sanitized || (ulimit -d 400000; expect 0 "$artel" train sparse.toml --out small -n 2 --set train.epochs=2)
  # The training file has an index 0, so those of the test file count from 0, too.
  for ((i = 0; i < 50; ++i)); do printf '1 0:1\n-1 1:1\n'; done >train.libsvm
  for ((i = 0; i < 5; ++i)); do echo '-1 1:1'; done >test.libsvm
  expect 0 "$artel" train sparse.toml --out zero -n 2 --set train.epochs=5
  contains err "train.libsvm: an index is 0, so all indices of this set count from 0"
  contains zero/summary.json '"test_accuracy": 1.0'
  expect 1 "$artel" train sparse.toml --out bad --set data.set=mnist
  contains err "expected \"a9a\", or \"libsvm\" with a data.path"
  expect 1 "$artel" train sparse.toml --out bad --set model.name=mlp
  contains err "expected the model \"linear\""
}

# start_endless_run OPTIONS...: saves often; its processes are $launcher, two servers and three workers.
# The launcher's processes by rank; process numbers may start over at any time.
children_by_rank() {
  local process
  for process in $(pgrep -P $launcher); do
    echo "$(tr '\0' '\n' <"/proc/$process/environ" | sed -n 's/^ARTEL_RANK=//p') $process"
  done | sort -n | cut -d' ' -f2
}

start_endless_run() {
  make_run
  "$artel" train run.toml --out run -n 3 --servers 2 --set train.steps=100000000 --set train.save_every=50 "$@" >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  mapfile -t processes < <(children_by_rank)
  [[ ${#processes[@]} -eq 5 ]] || fail "expected 5 processes: ${processes[*]}"
}

# say TEXT [COUNT]: waits until the run has said it, so often.
say() {
  local tries=0
  until [[ $(grep -cE "$1" err) -ge ${2:-1} ]]; do
    sleep 0.05
    ((++tries < 600)) || fail "nobody said '$1' within 30 s: $(cat err)"
  done
}

# process_of RANK: of a worker or server, also of one that was started again.
process_of() {
  local process
  for process in $(pgrep -P $launcher); do
    ! tr '\0' '\n' </proc/$process/environ | grep -qx "ARTEL_RANK=$1" || echo "$process"
  done
}

# The run continues: another checkpoint comes.
goes_on() {
  rm -rf run/checkpoints/step-* || true  # it may be writing there
  wait_for_checkpoint run
}

# ends_exactly OPTIONS...: the run stops at a signal, with what one worker gets to by itself.
ends_exactly() {
  goes_on
  interrupt
  expect 0 "$artel" train run.toml --out alone --set train.steps=$(newest_step) "$@"
  expect 0 "$artel" verify alone run
  rm -r run alone
}

# With a delay, any worker may go, also the one that reports and saves; and others take their places.
test_worker_killed() {
  start_endless_run --set cluster.delay=4
  kill -KILL "${processes[2]}"
  say "worker 2 .* ended: continuing with 2 workers and 2 servers"
  say "worker 5 .* joins: continuing"
  kill -KILL "${processes[0]}"
  say "worker 0 .* ended: continuing with 2 workers and 2 servers"
  goes_on
  interrupt
  contains run/summary.json '"worker": 0'
  expect 0 "$artel" evaluate run
}

# Independent workers of a stopped run end after different iterations: none waits for more from one that was behind.
test_stopped_apart() {
  start_endless_run --set cluster.delay=4
  kill -STOP "${processes[1]}"
  sleep 0.5  # the others come as far ahead as they may
  kill -INT "$launcher"
  sleep 0.2
  kill -CONT "${processes[1]}"
  ends_interrupted
  expect 0 "$artel" evaluate run
}

# A run of ddpg survives the loss of a worker, stops at a signal, and can be used and resumed then.
test_ddpg_killed() {
  make_sparse_data
  "$artel" train sparse.toml --out run -n 3 --servers 2 --set cluster.delay=4 --set train.epochs=100000000 \
    --set train.save_every=20 >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  mapfile -t processes < <(children_by_rank)
  kill -KILL "${processes[2]}"
  say "worker 2 was lost after iteration"
  goes_on
  interrupt
  contains out "lost worker 2"
  expect 0 "$artel" evaluate run
  expect 0 "$artel" train sparse.toml --out run --resume -n 2 --set train.epochs=$(($(newest_step) + 3))
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
  contains err "cluster.replicas = 2"
  resumes_exactly
}

# All workers and servers get SIGTERM, alone or together with their launcher: the last state is saved, with a summary.
test_terminated() {
  local options with code
  for options in cluster.delay=0 cluster.delay=4 cluster.replicas=2; do
    for with in "" launcher; do
      start_endless_run --set $options
      kill -TERM "${processes[@]}" ${with:+$launcher}
      timeout 60 tail --pid=$launcher -f /dev/null || fail "the run hangs: $(cat err)"
      code=0
      wait $launcher || code=$?
      ((code == 143)) || fail "exit code $code with $options: $(cat out err)"
      [[ ! -e run/workers.json ]] || fail "workers.json is left with $options: $(cat err)"
      contains run/summary.json '"stopped_by": "request"'
      contains out "--resume"
      python3 -c "import json; assert json.load(open('run/summary.json'))['step'] == $(newest_step)"
      if [[ $options != cluster.delay=4 ]]; then
        expect 0 "$artel" train run.toml --out alone --set train.steps=$(newest_step)
        expect 0 "$artel" verify alone run
        rm -r alone
      fi
      rm -r run
    done
  done
}

# Without any server the run ends, and names them.
test_servers_gone() {
  start_endless_run --set cluster.replicas=2
  kill -KILL "${processes[3]}" "${processes[4]}"
  local code=0
  timeout 60 tail --pid=$launcher -f /dev/null || fail "the run hangs: $(cat err)"
  wait $launcher || code=$?
  ((code == 1)) || fail "exit code $code"
  contains err "no parameter server is left: server 0 (process ${processes[3]} on host"
  contains err "server 1 (process ${processes[4]} on host"
  contains out "the run has ended early; to resume: artel train run.toml --out run --resume --set train.steps="
  resumes_exactly
}

# Each part of the weights is on two servers: any one may die, then another one, and workers as well.
test_replicas() {
  local options
  for options in cluster.transport=shm cluster.transport=gloo train.clip_norm=0.1; do
    start_endless_run --set cluster.replicas=2 --set $options
    kill -KILL "${processes[4]}"
    say "server 1 .* ended: continuing with 3 workers and 1 server"
    say "server 1 .* joins: continuing with 3 workers and 2 servers"
    goes_on
    kill -KILL "${processes[3]}"
    say "server 0 .* joins: continuing"
    kill -KILL "$(process_of 0)"
    say "worker 0 .* ended"
    ends_exactly --set $options
  done
  # Pushes of workers that run apart arrive as well.
  for options in cluster.delay=4 cluster.strategy=downpour cluster.compress=int8; do
    start_endless_run --set cluster.replicas=2 --set $options
    kill -KILL "${processes[3]}"
    say "server 0 .* joins: continuing"
    goes_on
    interrupt
    expect 0 "$artel" evaluate run
    rm -r run
  done
  # Servers inside workers die and come again with them.
  make_run
  "$artel" train run.toml --out run -n 3 --servers 2 --set train.steps=100000000 --set train.save_every=50 \
    --set cluster.servers_inside=true --set cluster.replicas=2 >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  kill -KILL "$(process_of 1)"
  say "server 1 .* ended"
  say "server 1 .* joins: continuing"
  ends_exactly
  expect 1 "$artel" train run.toml --servers 1 -n 2 --set cluster.replicas=2
  contains err "cluster.replicas: got 2 with 1 server"
}

# A server that is stopped counts as dead after the patience, with and without a delay, also over TCP. When it wakes,
# it joins again.
test_server_stopped() {
  local options
  for options in cluster.delay=0 cluster.delay=4 cluster.transport=gloo; do
    start_endless_run --set cluster.patience=1 --set cluster.replicas=2 --set $options
    kill -STOP "${processes[4]}"
    say "server 1 .* did not answer for 1 s"
    goes_on
    kill -CONT "${processes[4]}"
    say "server 1 .* joins: continuing"
    if [[ $options == cluster.delay=4 ]]; then
      interrupt
      rm -r run
    else
      ends_exactly
    fi
  done
  # Without a copy, that is the end.
  start_endless_run --set cluster.patience=1
  kill -STOP "${processes[4]}"
  say "server 1 .* did not answer for 1 s"
  say "all servers that kept part 2 of 2 of the weights are gone"
  kill -CONT "${processes[4]}"
  timeout 60 tail --pid=$launcher -f /dev/null || fail "the run waits for a stopped server: $(cat err)"
  local code=0
  wait $launcher || code=$?
  ((code != 0)) || fail "exit code 0"
  resumes_exactly
}

# Server 0 and worker 0 are stopped together and wake up while the others look for a new leader: all meet again.
test_woken() {
  local transport pause
  for transport in shm gloo; do
    start_endless_run --set cluster.patience=2 --set cluster.replicas=2 --set cluster.transport=$transport
    for pause in 4 4.3; do
      sleep 0.7  # until all know what the others do
      kill -STOP "${processes[0]}" "${processes[3]}"
      sleep $pause
      kill -CONT "${processes[0]}" "${processes[3]}"
      all_are_there
      goes_on
    done
    ends_exactly
  done
}
# The last change, of which there is one, has left or brought all workers and servers.
all_are_there() {
  local tries=0
  until grep -o "continuing with .*" err | tail -n 1 | grep -q "continuing with 3 workers and 2 servers"; do
    sleep 0.05
    ((++tries < 1200)) || fail "not all are back within 60 s: $(grep -v ^epoch err)"
  done
}

# A clipped step takes two turns: somewhere between them a worker dies, and a server in another run.
test_killed_while_clipping() {
  start_endless_run --set train.clip_norm=0.1
  kill -KILL "${processes[1]}"
  say "worker 1 .* ended"
  ends_exactly --set train.clip_norm=0.1
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
  ignore_leaks
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
