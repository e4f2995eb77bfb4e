#!/usr/bin/env bash
# run.sh ARTEL CASE: kills, stops, adds, and removes workers of a run (a function test_CASE below). The others continue with the bits of an
# undisturbed run.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; kill -CONT "${workers[@]}" 2>/dev/null || true; wait; remove_folder' EXIT

# goes_on [STEPS]: waits until the run has saved a step at least STEPS (100) after the present one.
goes_on() {
  local tries=0 from
  from=$(newest_step)
  until (($(newest_step) >= from + ${1:-100})); do
    sleep 0.05
    kill -0 $launcher 2>/dev/null || { cat out err >&2; fail "the run has ended"; }
    ((++tries < 1200)) || { cat err >&2; fail "no step was finished after step $from within 60 s"; }
  done
}

# kill_worker NUMBER...: all at once.
kill_worker() {
  local number processes=()
  for number in "$@"; do processes+=("${workers[$number]}"); done
  kill -KILL "${processes[@]}"
}

# Ctrl-C; then the weights are those of one worker after as many steps, and the metrics have each step once.
same_as_undisturbed() {
  interrupt
  expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step) "$@"
  expect 0 "$artel" verify one run
  python3 - <<'PYTHON'
import json
steps = [json.loads(line)["step"] for line in open("run/metrics.jsonl") if "train/loss" in line]
assert steps == list(range(1, len(steps) + 1)), [s for s, t in zip(steps, range(1, len(steps) + 1)) if s != t][:3]
PYTHON
  local worker
  for worker in "${workers[@]}"; do
    if kill -0 "$worker" 2>/dev/null; then fail "process $worker lives on"; fi
  done
}

# The reporting worker comes last: each time another worker is the first one.
test_one_after_another() {
  start_endless_run 4
  local number
  for number in 2 0 1; do
    kill_worker $number
    goes_on
    contains err "worker $number (process ${workers[$number]} on host"
  done
  contains err "continuing with 1 worker"
  same_as_undisturbed
  python3 - <<'PYTHON'
import json
changes = json.load(open("run/summary.json"))["changes"]
assert [change["left"][0]["worker"] for change in changes] == [2, 0, 1], changes
assert [change["went_on"] for change in changes] == [[0, 1, 3], [1, 3], [3]], changes
PYTHON
  contains run/metrics.jsonl '"cluster/workers":2'
}

test_together() {
  start_endless_run 4
  kill_worker 0 2
  goes_on
  same_as_undisturbed
}

# Each worker has only a part of the network, and another one has a copy. Steps are repeated from there, and the remaining workers form
# another mesh. The last one has the whole network.
test_mesh() {
  local options
  for options in cluster.pipeline=3 "cluster.sharding=weights --set cluster.transport=gloo"; do
    rm -rf run one
    workers=()
    start_endless_run 3 --set train.save_every=5 --set $options
    kill_worker 1
    goes_on 20
    contains err "ended: continuing with 2 workers"
    kill_worker 0
    goes_on 20
    same_as_undisturbed
    contains run/summary.json '"repeated_steps":'
  done
}

# Two pipelines, of which one loses a stage: the new worker gets its part.
test_mesh_restart() {
  start_endless_run 4 --set cluster.pipeline=2 --set cluster.restarts=8 --set cluster.sharding=optimizer --set train.save_every=5
  kill_worker 3
  awaits "joins: continuing with 4 workers"
  goes_on 20
  kill_worker 0
  awaits "continuing with 4 workers" 2
  goes_on 20
  same_as_undisturbed
}

# A worker that leaves a mesh hands its part over; one that joins gets a part. Of two that are asked to leave together, one waits
# until the other one's part is in place.
test_mesh_leave() {
  start_endless_run 3 --set cluster.pipeline=3 --set train.save_every=5
  kill -TERM "${workers[1]}"
  awaits "worker 1 (process ${workers[1]} on host $(hostname)) left: continuing with 2 workers"
  goes_on 20
  join_as newcomer --join run --set cluster.pipeline=3 --set train.save_every=5
  awaits "joins: continuing with 3 workers"
  goes_on 20
  kill -TERM "${workers[2]}" $joined
  awaits "left: continuing with 1 worker"
  goes_on 20
  same_as_undisturbed
}

# The first to die is the one at whose address all have met.
test_gloo() {
  start_endless_run 4 --set cluster.transport=gloo
  kill_worker 0
  goes_on
  kill_worker 1 3
  goes_on
  same_as_undisturbed
}

# Most of the time goes into tests of the network, of which each epoch has one.
test_validation() {
  start_endless_run 3 --set data.test_fraction=0.9
  local number
  for number in 1 0; do
    kill_worker $number
    goes_on
  done
  same_as_undisturbed --set data.test_fraction=0.9
}

# Worker 0 dies while it writes: what it leaves behind is swept, and another one writes on.
test_checkpoint() {
  start_endless_run 3 --set train.save_every=1 --set train.keep_checkpoints=200
  python3 - "${workers[0]}" <<'PYTHON'
import os, signal, sys, time
names, end = set(), time.time() + 60
while time.time() < end:
    if any(not name.startswith("step-") or not name[5:].isdigit() for name in os.listdir("run/checkpoints") if name != "best"):
        os.kill(int(sys.argv[1]), signal.SIGKILL)
        sys.exit()
sys.exit("no checkpoint was being written")
PYTHON
  goes_on
  same_as_undisturbed
}

# However early a worker dies: the run begins anew, or continues. Only worker 0 knows what a run begins with, until it has
# told the others.
test_start() {
  make_run
  expect 0 "$artel" train run.toml --out one
  local try code number process
  for try in 1 2 3 4 5 6; do
    number=$((try % 3))
    rm -rf run
    "$artel" train run.toml --out run -n 3 >out 2>err &
    launcher=$!
    sleep 0.0$((try * 13))
    for process in $(pgrep -P $launcher); do
      if (tr '\0' '\n' <"/proc/$process/environ") 2>/dev/null | grep -qx "ARTEL_RANK=$number"; then
        kill -KILL "$process" 2>/dev/null || true
      fi
    done
    code=0
    timeout 60 tail --pid=$launcher -f /dev/null || fail "the run hangs: $(cat err)"
    wait $launcher || code=$?
    ((code == 0)) || fail "exit code $code: $(cat err)"
    expect 0 "$artel" verify one run
  done
}

# Killed when it has only the end to wait for, or has just ended.
test_last() {
  make_run
  expect 0 "$artel" train run.toml --out one --set train.steps=60
  local try code
  for try in 1 2 3; do
    rm -rf run
    "$artel" train run.toml --out run -n 3 --set train.steps=60 >out 2>err &
    launcher=$!
    local tries=0
    until compgen -G "run/checkpoints/step-000000060" >/dev/null; do
      sleep 0.005
      ((++tries < 12000)) || fail "no last checkpoint: $(cat err)"
    done
    pkill -KILL -P $launcher -n || true
    code=0
    wait $launcher || code=$?
    ((code == 0)) || fail "exit code $code: $(cat err)"
    expect 0 "$artel" verify one run
  done
}

# join_as NAME OPTIONS...: another worker, whose process is $joined and whose output is in the file NAME.
join_as() {
  "$artel" train run.toml --set train.steps=100000000 --set train.save_every=50 "${@:2}" >"$1" 2>&1 &
  joined=$!
}

# ends_with CODE PROCESS
ends_with() {
  local code=0
  timeout 60 tail --pid="$2" -f /dev/null || fail "process $2 lives on: $(cat err)"
  wait "$2" || code=$?
  ((code == $1)) || fail "exit code $code of process $2, expected $1: $(cat err)"
}

# Dead workers are started again, worker 0 too, and get lanes.
test_restart() {
  start_endless_run 3 --set cluster.restarts=8
  kill_worker 1
  awaits "joins: continuing with 3 workers"
  goes_on
  kill_worker 0 2
  awaits "continuing with 3 workers" 2
  goes_on
  # The launcher calls those that it has started again by their numbers in the run.
  local again
  again=$(pgrep -n -P $launcher)
  kill -KILL "$again"
  awaits "(process $again) was killed by signal 9"
  grep -qE "worker [45] \(process $again\) was killed by signal" err || fail "the launcher gives another number: $(cat err)"
  goes_on
  same_as_undisturbed
  contains run/metrics.jsonl '"cluster/joined":'
  # The last one that reports has joined later, and knows what was before.
  python3 - <<'PYTHON'
import json
summary = json.load(open("run/summary.json"))
first = summary["changes"][0]
assert first["left"][0]["worker"] == 1 and first["went_on"] == [0, 2], summary["changes"]
seconds = [json.loads(line)["seconds"] for line in open("run/metrics.jsonl") if "train/loss" in line]
assert seconds == sorted(seconds)
assert all(a["at_second"] <= b["at_second"] for a, b in zip(summary["changes"], summary["changes"][1:])), summary["changes"]
PYTHON
}

# A worker that cannot finish a step, for which the others wait, is not restarted forever.
test_again() {
  make_run
  sed -i 's/"dense 16"/"dense 3000", "relu", "dense 3000"/; s/batch_size = 20/batch_size = 160/' run.toml
  "$artel" train run.toml --out run -n 3..3 --set train.steps=100000000 --set train.save_every=1 >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  kill -KILL "$(pgrep -P $launcher | tail -1)"
  awaits "joins: continuing with 3 workers"
  kill -KILL "$(pgrep -n -P $launcher)"
  ends_with 1 $launcher
  contains err "as did the one before it: the run stops"
}

# A newcomer is let in at the next step, or learns why not.
test_join() {
  start_endless_run 2
  join_as newcomer --join run
  awaits "worker 2 (process $joined on host"
  contains err "joins: continuing with 3 workers"
  goes_on
  expect 1 "$artel" train run.toml --join run --set train.steps=100000000 --set train.optimizer.lr=0.2
  contains err "it was started differently: it has 'optimizer.lr"
  kill_worker 0
  goes_on
  kill_worker 1  # the newcomer alone goes on
  local from tries=0
  from=$(newest_step)
  until (($(newest_step) >= from + 100)); do sleep 0.05; ((++tries < 1200)) || fail "the newcomer does not go on: $(cat newcomer)"; done
  kill -INT $joined
  ends_with 130 $joined
  ends_with 137 $launcher
  expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step)
  expect 0 "$artel" verify one run
}

# More workers than lanes: the newcomer stands by, and takes over when a worker with lanes dies.
test_stand_by() {
  start_endless_run 2 --set cluster.lanes=2
  join_as newcomer --join run --set cluster.lanes=2
  awaits "joins: continuing with 3 workers"
  awaits "3 workers for 2 lanes: 1 stand by"
  goes_on
  kill_worker 1
  goes_on
  same_as_undisturbed --set cluster.lanes=2
}

# The same where each worker, also one without lanes, keeps a part of the weights.
test_stand_by_parts() {
  local -r parts=(--set cluster.lanes=2 --set cluster.sharding=weights)
  start_endless_run 2 "${parts[@]}"
  join_as newcomer --join run "${parts[@]}"
  awaits "3 workers for 2 lanes: 1 stand by"
  goes_on
  kill_worker 1
  goes_on
  same_as_undisturbed --set cluster.lanes=2
}

# Workers that train apart let others in, and go, when they have averaged their weights.
test_join_local() {
  start_endless_run 2 --set cluster.local_steps=4
  join_as newcomer --join run --set cluster.local_steps=4
  awaits "joins: continuing with 3 workers"
  goes_on
  "$artel" leave run 1 >left || fail "artel leave: $(cat err)"
  awaits "left: continuing with 2 workers"
  goes_on
  interrupt
  expect 0 "$artel" evaluate run
}

# Over TCP the newcomer needs only the address at which the run began, also when its first group is gone. One that has joined by the
# folder says how to resume in the same way.
test_join_gloo() {
  make_run
  local i common=(--join 127.0.0.1:$port --token secret --set "cluster.workers=2..4")
  for i in 0 1; do
    "$artel" train run.toml --out run --set train.steps=100000000 --set train.save_every=50 "${common[@]}" >out$i 2>&1 &
    workers[$i]=$!
    sleep 0.2
  done
  launcher=${workers[0]}
  wait_for_checkpoint run
  ln -s out0 err
  join_as newcomer "${common[@]}"
  awaits "worker 2 (process $joined on host"
  goes_on
  join_as another --join run --set "cluster.workers=2..4"
  awaits "continuing with 4 workers"
  goes_on
  expect_refused "${common[@]}"
  kill -KILL "${workers[1]}"
  goes_on
  kill -INT "${workers[0]}"
  ends_with 130 "${workers[0]}"
  for i in $joined $(jobs -p); do timeout 60 tail --pid="$i" -f /dev/null || fail "process $i lives on"; done
  for i in out0 another; do contains $i "to resume, on each machine: artel train run.toml --join 127.0.0.1:$port --out run --resume"; done
  contains another "(with the same --token)"
  expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step)
  expect 0 "$artel" verify one run
}
expect_refused() {
  rm err
  expect 1 "$artel" train run.toml --set train.steps=100000000 --set train.save_every=50 "$@"
  contains err "it has 4 workers already"
  rm err
  ln -s out0 err
}

# Processes that hold connections open without a word do not keep workers from joining: before the workers meet, and while they train.
test_strangers() {
  make_run
  local common=(--join 127.0.0.1:$port --token secret --set "cluster.workers=2..3")
  "$artel" train run.toml --out run --set train.steps=100000000 --set train.save_every=50 "${common[@]}" >out0 2>&1 &
  workers[0]=$!
  hold_connections
  "$artel" train run.toml --out run --set train.steps=100000000 --set train.save_every=50 "${common[@]}" >out1 2>&1 &
  workers[1]=$!
  launcher=${workers[0]}
  ln -s out0 err
  wait_for_checkpoint run
  awaits "that sent no greeting, the last from 127.0.0.1"
  hold_connections
  join_as newcomer "${common[@]}"
  awaits "worker 2 (process $joined on host"
  goes_on
  kill -INT "${workers[0]}"
  ends_with 130 "${workers[0]}"
  expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step)
  expect 0 "$artel" verify one run
}
# Opens 1,500 idle connections to the port where the workers meet, and holds them until the test ends.
hold_connections() {
  python3 -c '
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
deadline, held = time.monotonic() + 60, []
while len(held) < 1500 and time.monotonic() < deadline:
    try:
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10))
    except OSError:
        time.sleep(0.02)
print("held" if len(held) == 1500 else "could not connect", flush=True)
time.sleep(150)
' "$port" >held 2>&1 &
  timeout 90 bash -c 'until grep -q . held; do sleep 0.05; done'
  contains held "held"
}

# By command and by signal, also for worker 0: a worker that leaves ends with code 0.
test_leave() {
  start_endless_run 4
  "$artel" leave run 2 >left || fail "artel leave: $(cat err)"
  contains left "worker 2 (process ${workers[2]} on host"
  awaits "worker 2 (process ${workers[2]} on host $(hostname)) left: continuing with 3 workers"
  kill -TERM "${workers[0]}"
  awaits "worker 0 (process ${workers[0]} on host $(hostname)) left: continuing with 2 workers"
  goes_on
  expect 1 "$artel" leave run 0
  contains err "got 0, expected one of 1, 3"
  same_as_undisturbed
  contains run/summary.json '"why": "left"'
}

# MPI ends the job, which prints how to continue; that gives the same bits.
test_mpi() {
  command -v mpirun >/dev/null || { echo "skipped: no mpirun" >&2; exit 77; }
  local root=()
  if ((EUID == 0)); then root=(--allow-run-as-root); fi
  ignore_leaks
  local mpi=(mpirun "${root[@]}" --oversubscribe --bind-to none -n 2 "$artel" train run.toml --out run --set train.save_every=5)
  make_run
  "${mpi[@]}" --set train.steps=100000000 >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  workers=($(pgrep -P $launcher))
  kill_one "${workers[1]}"
  # Where mpirun's own SIGTERM is faster than the news, only mpirun says what has happened.
  grep -qE "MPI ends the job; continue from the last checkpoint with --resume|noticed that process rank 1 .* exited on signal 9" err ||
    fail "nobody says what has happened: $(cat err)"
  timeout 20 tail --pid="${workers[0]}" -f /dev/null || fail "process ${workers[0]} lives on"
  local steps=$(($(newest_step) + 10))
  expect 0 "${mpi[@]}" --set train.steps=$steps --resume
  expect 0 "$artel" train run.toml --out one --set train.steps=$steps
  expect 0 "$artel" verify one run
}

# Four workers share each layer, which three cannot, and none has room for the whole: they wait for another one.
test_memory() {
  make_run
  sed -i 's/"dense 16"/"dense 2000", "relu", "dense 2000"/; s/, momentum = 0.9//' run.toml
  local options=(--set cluster.tensor=4 --set cluster.memory='80 MiB' --set train.steps=100000000 --set train.save_every=2)
  "$artel" train run.toml --out run -n 4 --set cluster.restarts=0 "${options[@]}" >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  workers=($(pgrep -P $launcher))
  kill_worker 1
  awaits "3 workers left, but cluster.memory: got 80 MiB for worker 0, expected at least"
  contains err ": waiting up to 3600 s for others (cluster.wait)"
  join_as newcomer --join run "${options[@]}"
  awaits "joins: continuing with 4 workers"
  goes_on 4
  same_as_undisturbed --set cluster.shards=4
}

# Below the minimum of workers the run waits, and continues when there are enough again.
test_fewest() {
  start_endless_run 2..3
  kill_worker 0
  goes_on
  kill_worker 2
  awaits "1 worker left, but the run needs 2 (cluster.workers): waiting up to 3600 s for others"
  local from="" tries=0
  until [[ $(newest_step) == "$from" ]]; do  # the last checkpoint may be being written
    ((++tries < 5)) || fail "it goes on with too few workers"
    from=$(newest_step)
    sleep 0.5
  done
  join_as newcomer --join run --set "cluster.workers=2..3"
  goes_on
  same_as_undisturbed
}

# A stopped worker is given up, worker 0 too, and joins again when it wakes.
test_stopped() {
  start_endless_run 3 --set cluster.patience=1 "$@"
  local number
  for number in 1 0; do
    sleep 0.7  # until all know what the others do
    kill -STOP "${workers[$number]}"
    awaits "worker $number (process ${workers[$number]} on host $(hostname)) did not answer for 1 s, last seen "
    goes_on
    kill -CONT "${workers[$number]}"
    awaits "worker $number is no longer part of the run"
    awaits "joins: continuing with 3 workers" $((2 - number))
    goes_on
  done
  same_as_undisturbed
  # They waited for the stopped one for a second after its last sign of life, of which there are two a second.
  python3 - <<'PYTHON'
import json
lost = [each["cluster/seconds_lost"] for each in map(json.loads, open("run/metrics.jsonl")) if each.get("cluster/left")]
assert len(lost) == 2 and min(lost) >= 0.5, lost
PYTHON
}
# Worker 0 and another one wake up while the others look for a new leader: all meet again, even those given up by then.
test_woken() {
  start_endless_run 5 --set cluster.patience=1 "$@"
  local pause
  for pause in 2.0 2.1 3.1; do
    sleep 0.7  # until all know what the others do
    kill -STOP "${workers[0]}" "${workers[1]}"
    sleep $pause
    kill -CONT "${workers[0]}" "${workers[1]}"
    goes_on
    awaits_all_workers
  done
  same_as_undisturbed
}
test_woken_gloo() { test_woken --set cluster.transport=gloo; }
# Until all processes are in the list of workers.
awaits_all_workers() {
  local tries=0 process
  for process in "${workers[@]}"; do
    until grep -q "\"process\": *$process\b" run/workers.json; do
      sleep 0.05
      ((++tries < 600)) || { cat out err >&2; fail "process $process is not back within 30 s: $(cat run/workers.json)"; }
    done
  done
}

# All workers get SIGTERM, alone or together with their launcher: the last state is saved, with a summary. So it is where each worker
# has only a part, or where they rarely meet, and where steps are slow.
test_terminated() {
  local network=()
  terminate workers
  terminate all
  terminate repeatedly
  network=(--set 'model.layers=["dense 1000", "relu", "dense 1000", "relu", "dense 1000", "relu", "dense 2"]')
  terminate workers --set cluster.pipeline=3
  terminate workers --set cluster.pipeline=3 --set cluster.mirror_every=0
  terminate all --set cluster.sharding=weights
  terminate workers --set cluster.sharding=weights --set cluster.transport=gloo
  terminate workers --set cluster.local_steps=4
}
# terminate WHO OPTIONS...: sends SIGTERM to the workers of a new run with the options, to all of its processes, or three times to all,
# while a worker that stands still keeps the others from saving.
terminate() {
  local who=$1 step
  shift
  rm -rf run one
  workers=()
  start_endless_run 3 "${network[@]}" "$@" --set train.save_every=1000
  sleep 0.$((RANDOM % 5))
  case $who in
    workers) kill -TERM "${workers[@]}" ;;
    all) kill -TERM $launcher "${workers[@]}" ;;
    repeatedly) terminate_repeatedly "${workers[2]}" $launcher "${workers[@]}" ;;
  esac
  ends_with 143 $launcher
  saved_when_terminated out
  if [[ "$*" == *local_steps* ]]; then
    expect 0 "$artel" evaluate run
  else
    expect 0 "$artel" train run.toml --out one "${network[@]}" --set train.steps=$step
    expect 0 "$artel" verify one run
  fi
}

# terminate_repeatedly STANDS PROCESS...: three times SIGTERM to the processes, with pauses in which one of them stands still.
terminate_repeatedly() {
  local try
  kill -STOP "$1"
  for try in 1 2 3; do
    kill -TERM "${@:2}"
    sleep 0.7
  done
  kill -CONT "$1"
}
# saved_when_terminated OUTPUT...: one of the outputs says how to resume.
saved_when_terminated() {
  [[ ! -e run/workers.json ]] || fail "workers.json is left: $(cat "$@")"
  contains run/summary.json '"stopped_by": "request"'
  grep -qF -- "--resume" "$@" || fail "nobody says how to resume: $(cat "$@")"
  step=$(newest_step)
  python3 -c "import json; assert json.load(open('run/summary.json'))['step'] == $step"
}

# The same without a launcher of ours. Workers started by hand, and those of srun, get SIGTERM once or several times.
test_terminated_by_hand() { terminate_tasks start_by_hand; }
test_terminated_srun() { terminate_tasks start_as_srun; }
start_by_hand() { exec "$artel" train run.toml --join 127.0.0.1:$port --token secret --set cluster.workers=3..3 "$@"; }
# Task $task of three, as srun without PMIx starts it.
start_as_srun() {
  exec env SLURM_PROCID=$task SLURM_STEP_NUM_TASKS=3 SLURM_JOB_ID=$$ SLURM_STEP_ID=$runs SLURM_STEP_NUM_NODES=1 "$artel" train run.toml "$@"
}
# terminate_tasks START: in runs of three processes that START starts.
terminate_tasks() {
  local how task step
  for how in once repeatedly; do
    rm -rf run one
    make_run
    workers=() runs=$((runs + 1))
    for task in 0 1 2; do
      "$1" --out run --set train.steps=100000000 --set train.save_every=1000 >out$task 2>&1 &
      workers+=($!)
    done
    wait_for_checkpoint run
    if [[ $how == once ]]; then kill -TERM "${workers[@]}"; else terminate_repeatedly "${workers[2]}" "${workers[@]}"; fi
    for task in 0 1 2; do ends_when_terminated "${workers[$task]}" out$task; done
    saved_when_terminated out0 out1 out2
    expect 0 "$artel" train run.toml --out one --set train.steps=$step
    expect 0 "$artel" verify one run
  done
}
# ends_when_terminated PROCESS OUTPUT: a worker that has left the others ends with code 0, one that has stopped the run with 143.
ends_when_terminated() {
  local code=0
  timeout 60 tail --pid="$1" -f /dev/null || fail "process $1 lives on: $(cat "$2")"
  wait "$1" || code=$?
  ((code == 0 || code == 143)) || fail "exit code $code: $(cat "$2")"
}

# mpirun passes SIGTERM on after this many seconds, in which it reads no output, and kills the workers after as many.
test_terminated_mpi() {
  command -v mpirun >/dev/null || { echo "skipped: no mpirun" >&2; exit 77; }
  local root=() step
  if ((EUID == 0)); then root=(--allow-run-as-root); fi
  ignore_leaks
  make_run
  mpirun "${root[@]}" --oversubscribe --bind-to none --mca odls_base_sigkill_timeout 5 -n 2 "$artel" train run.toml --out run \
    --set train.steps=100000000 --set train.save_every=1000 >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  kill -TERM $launcher
  timeout 60 tail --pid=$launcher -f /dev/null || fail "mpirun lives on: $(cat out err)"
  wait $launcher || true
  saved_when_terminated out err
  expect 0 "$artel" train run.toml --out one --set train.steps=$step
  expect 0 "$artel" verify one run
}

# Several writers of metrics die in quick succession, and those who take over have just joined.
test_writers() {
  start_endless_run 3 --set cluster.restarts=50
  local try
  for try in 1 2 3; do
    kill -KILL "$(writer)" || true
    sleep 0.$((2 * try))
    kill -KILL "$(writer)" || true
    awaits "joins: continuing with 3 workers" $try
    goes_on
  done
  interrupt
  python3 - <<'PYTHON'
import json
steps = [json.loads(line)["step"] for line in open("run/metrics.jsonl") if "train/loss" in line]
assert steps == list(range(1, len(steps) + 1)), [s for s, t in zip(steps, range(1, len(steps) + 1)) if s != t][:3]
PYTHON
  epochs_continue
}
# Each writer goes on where the one before it stopped: no epoch is missing, and times do not start over. A line that was written right before
# a writer died may come twice.
epochs_continue() {
  python3 - <<'PYTHON'
import json, re
changes = open("err").read().count("ended: continuing with")
lines = re.findall(r"^epoch (\d+)/.*, ([\d.]+) (ms|s|min)$", open("err").read(), re.M)
epochs = [int(number) for number, *_ in lines]
assert sorted(set(epochs)) == list(range(1, epochs[-1] + 1)), epochs
assert epochs == sorted(epochs) and len(epochs) - len(set(epochs)) <= changes, epochs
times = [float(time) * {"ms": 0.001, "s": 1, "min": 60}[unit] for _, time, unit in lines]
assert all(b > a / 2 for a, b in zip(times, times[1:])), times  # workers' clocks differ by their start
steps = [json.loads(line) for line in open("run/metrics.jsonl") if "train/loss" in line]
seconds = [step["seconds"] for step in steps]
assert all(b > a / 2 for a, b in zip(seconds, seconds[1:])), seconds
PYTHON
}
# The process of worker 0.
writer() { python3 -c 'import json; print(json.load(open("run/workers.json"))["workers"][0]["process"])'; }

# The last worker is asked to leave: it stops the run and saves.
test_leave_last() {
  start_endless_run 2
  "$artel" leave run 1 >left || fail "artel leave: $(cat err)"
  awaits "left: continuing with 1 worker"
  "$artel" leave run 0 >left || fail "artel leave: $(cat err)"
  wait $launcher || true
  [[ ! -e run/workers.json ]] || fail "workers.json is left"
  contains run/summary.json '"stopped_by": "request"'
}

# A worker that gets no more memory is lost alone and named; it is started again. The death of another one makes it need some.
test_exhausted() {
  start_endless_run 4 --set cluster.restarts=5
  prlimit --pid "${workers[1]}" --as="$(awk '{ print $1 * 4096 }' "/proc/${workers[1]}/statm"):"
  kill_worker 2
  awaits "worker 1 (process ${workers[1]} on host $(hostname)) ran out of memory"
  awaits "continuing with 4 workers"
  goes_on
  same_as_undisturbed
}

# The last worker is killed: the launcher says how to resume.
test_killed_last() {
  start_endless_run 2
  kill_worker 0 1
  ends_with 137 $launcher
  contains out "no worker is left; to resume: artel train run.toml --out run --resume"
}

# Worker 0 of workers that were started one by one dies when they have met, and before the first step: another one begins.
test_first_by_hand() {
  make_run
  expect 0 "$artel" train run.toml --out one
  local try port i processes code anew=0
  for ((try = 1; try <= 8 || anew == 0; ++try)); do
    ((try <= 40)) || fail "worker 0 never died between the meeting and the first step"
    rm -rf run
    port=$((20000 + (RANDOM + $$) % 9000)) processes=()
    for i in 0 1 2; do
      "$artel" train run.toml --out run -n 3 --rank $i --join 127.0.0.1:$port --token secret --set cluster.join_timeout=20 >log$i 2>&1 &
      processes+=($!)
    done
    # From the moment when all have met: the others know its door then.
    timeout 30 bash -c 'until ls -l /proc/'"${processes[1]}"'/fd 2>/dev/null | grep -q socket; do sleep 0.01; done'
    sleep 0.$((RANDOM % 3))$((RANDOM % 10))
    kill -KILL "${processes[0]}" 2>/dev/null || true  # the run may have ended, or its port may be taken
    for i in 1 2; do
      code=0
      timeout 60 tail --pid="${processes[$i]}" -f /dev/null || fail "worker $i lives on: $(cat log$i)"
      wait "${processes[$i]}" || code=$?
      ((code == 0)) || break
    done
    if ((code == 0)); then
      expect 0 "$artel" verify one run
      if grep -qF "restarting the run with 2 workers" log1 log2; then ((++anew)); fi
    else
      # It died before they had met: their first group was never formed.
      if ! grep -qF "[comm" log1 log2 || grep -qF "before the first step" log1 log2; then fail "exit code $code: $(cat log1 log2)"; fi
    fi
    kill -KILL "${processes[@]}" 2>/dev/null || true
  done
  echo "$anew of $((try - 1)) began anew"
}

# Most workers are stopped for longer than the others wait for them, several times: all are back soon, without regrouping in vain.
test_stopped_together() {
  start_endless_run 4 --set cluster.patience=2 --set cluster.restarts=50 "$@"
  local try tries
  for try in 1 2 3; do
    readarray -t workers < <(processes_of_run)
    kill -STOP "${workers[@]:1}"
    sleep 5
    kill -CONT "${workers[@]:1}"
    tries=0
    until (($(processes_of_run | wc -l) == 4)) && goes_on; do
      sleep 0.1
      ((++tries < 300)) || { cat out err >&2; fail "not all are back within 30 s: $(cat run/workers.json)"; }
    done
  done
  # Each of the nine that come back may fail once, when several are on their way.
  (($(grep -c "failed to join" err || true) <= 9)) || fail "regrouped in vain: $(grep -v ^epoch err)"
  same_as_undisturbed
}
test_stopped_together_gloo() { test_stopped_together --set cluster.transport=gloo; }
# The processes of all workers, by rank.
processes_of_run() { python3 -c 'import json; [print(w["process"]) for w in json.load(open("run/workers.json"))["workers"]]'; }

# A worker that finds most of the others silent stops, since they may continue without it; when they do, it is started again.
test_apart() {
  start_endless_run 3 --set cluster.patience=1 --set cluster.restarts=3
  sleep 0.7  # until all know what the others do
  kill -STOP "${workers[1]}" "${workers[2]}"
  awaits "only 1 of 3 workers can be reached, and the others may continue without them"
  kill -CONT "${workers[1]}" "${workers[2]}"
  awaits "joins: continuing with 3 workers"
  goes_on
  same_as_undisturbed
}
test_stopped_gloo() { test_stopped --set cluster.transport=gloo; }

# A batch per worker is fixed when the run begins: workers that die, join, or resume do not change the steps.
test_per_worker() {
  start_endless_run 3 --set "train.batch_size=8 per worker" --set cluster.restarts=1
  contains run/config.toml "batch_size = 24"
  kill_worker 1
  awaits "joins: continuing with 3 workers"
  kill_worker 2
  awaits "continuing with 2 workers"
  goes_on
  interrupt
  local steps
  steps=$(($(newest_step) + 10))
  expect 0 "$artel" train run.toml --out run --resume -n 2 --set "train.batch_size=8 per worker" --set train.steps=$steps
  contains run/config.toml "batch_size = 24"
  expect 0 "$artel" train run.toml --out one --set train.batch_size=24 --set train.steps=$steps
  expect 0 "$artel" verify one run
  expect 1 "$artel" train run.toml --set "train.batch_size=8 each"
  contains err 'expected a number of samples, or "32 per worker"'
}

"test_$case"
echo "passed"
