#!/usr/bin/env bash
# run.sh ARTEL CASE: runs one case (a function test_CASE below) of several workers in an empty folder.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
# A stopped process ends only after it is continued.
trap 'kill $(jobs -p) 2>/dev/null || true; kill -CONT "${workers[@]}" 2>/dev/null || true; wait; remove_folder' EXIT

# Starts worker RANK of a run of two over gloo, in the background: join RANK OPTIONS...
join() {
  "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank "$1" --token secret "${@:2}" >out$1 2>err$1 &
}

test_exact() {
  make_run
  expect 0 "$artel" train run.toml --out one
  local workers
  for workers in 2 3 5 8; do
    expect 0 "$artel" train run.toml --out workers$workers -n $workers
    contains err "worker $((workers - 1)) on host"
    expect 0 "$artel" verify one workers$workers
  done
  join 0 --out gloo
  join 1
  wait %1 %2 || fail "$(cat err0 err1)"
  expect 0 "$artel" verify one gloo
}

test_differences() {
  make_run
  join 0
  join 1 --set train.optimizer.lr=0.2
  local code=0
  wait %1 || code=$?
  [[ $code -eq 1 ]] || fail "exit code $code, expected 1"
  contains err0 "worker 1 has 'optimizer.lr = 0.2', worker 0 has 'optimizer.lr = 0.1'"
}

# Kernels of other instruction sets round differently.
test_processors() {
  make_run
  join 0
  ONEDNN_MAX_CPU_ISA=SSE41 join 1
  local code=0
  wait %1 || code=$?
  [[ $code -eq 1 ]] || fail "exit code $code, expected 1"
  contains err0 "worker 1 has 'processor = "
  contains err0 "sse41"
}

# Worker 1 has a broken picture; all end within five seconds of its error, and say what it was.
test_exception() {
  local picture=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
  local worker class i
  for worker in 0 1; do
    for class in cat dog; do
      mkdir -p $worker/pictures/$class
      for i in {10..29}; do base64 -d <<<$picture >$worker/pictures/$class/$i.png; done
    done
    cat >$worker/run.toml <<'TOML'
[data]
set = "folder"
path = "pictures"
[model]
layers = ["flatten", "dense 2"]
[train]
batch_size = 4
epochs = 100
save_every = 2
TOML
  done
  for i in {15..25}; do echo broken >1/pictures/cat/$i.png; done
  for worker in 0 1; do
    (cd $worker && exec "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank $worker --token secret \
      --out run >../out$worker 2>../err$worker) &
  done
  local code=0
  wait %2 || code=$?
  [[ $code -eq 1 ]] || fail "worker 1: exit code $code, expected 1"
  local begin=$SECONDS
  code=0
  wait %1 || code=$?
  [[ $code -eq 1 ]] || fail "worker 0: exit code $code, expected 1"
  ((SECONDS - begin <= 5)) || fail "worker 0 ended $((SECONDS - begin)) s after worker 1"
  contains err0 "worker 1: "
  contains err0 ".png"
}

# As under MPI, or if a run should not continue with fewer workers.
test_killed() {
  start_endless_run 3 --set cluster.elastic=false
  kill_one "${workers[1]}"
  contains err "(process ${workers[1]})"
  local worker
  for worker in "${workers[@]}"; do
    if kill -0 "$worker" 2>/dev/null; then fail "process $worker lives on"; fi
  done
  expect 0 "$artel" evaluate run
  expect 0 "$artel" train run.toml --out run --resume -n 2 --set train.steps=$(($(newest_step) + 3))
}

# A worker that does not answer is named after ten seconds; once it continues, so does the run.
test_stopped() {
  start_endless_run 3
  kill -STOP "${workers[2]}"
  local tries=0
  until grep -q "rank 2" err; do
    sleep 0.2
    ((++tries < 300)) || fail "nobody named the stopped worker: $(cat err)"
  done
  kill -CONT "${workers[2]}"
  interrupt
  expect 0 "$artel" evaluate run
}

# Worker 1 is stopped half of the time; sooner or later it has fewer lanes than worker 0. The bits do not change.
test_balance() {
  start_endless_run 2
  while kill -STOP "${workers[1]}" && sleep 0.02 && kill -CONT "${workers[1]}" && sleep 0.02; do :; done 2>/dev/null &
  local tries=0
  until grep -qE "worker 1 is the slowest and gets [123] of the 8 lanes" err; do
    sleep 0.1
    ((++tries < 1200)) || fail "the slow worker kept its lanes: $(cat err)"
  done
  interrupt
  expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step)
  expect 0 "$artel" verify one run
}

# Without a launcher that MPI understands each worker would be alone; that must not pass for a run of two.
# As srun starts workers: without PMIx they meet through what Slurm says, with it through MPI.
test_slurm() {
  make_run
  export SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=1
  SLURM_PROCID=1 "$artel" train run.toml >out1 2>err1 &
  SLURM_PROCID=0 expect 0 "$artel" train run.toml --out run
  wait %1 || fail "$(cat err1)"
  contains err "worker 1 on host"
  # An MPI that does not find PMIx leaves each worker alone.
  PMIX_RANK=0 SLURM_PROCID=0 expect 1 "$artel" train run.toml --out alone
}

# from_summary RUN EXPRESSION: of the run's summary s.
from_summary() { python3 -c 'import json, sys; s = json.load(open(sys.argv[1] + "/summary.json")); print(eval(sys.argv[2]))' "$1" "$2"; }

# A fast reduction chooses by measured links, and a resumed run by those of the run before it.
test_links() {
  make_run
  local fast=(--set cluster.transport=gloo --set cluster.reduction=fast)
  expect 0 "$artel" train run.toml --out whole -n 3 "${fast[@]}"
  contains err "measured links: "
  [[ $(from_summary whole 's["links"]') == "hosts 0,0,0: artel-calibration-1 "* ]] || fail "$(cat whole/summary.json)"
  expect 0 "$artel" train run.toml --out parts -n 3 "${fast[@]}" --set train.epochs=2
  local links
  links=$(from_summary parts 's["links"]')
  expect 0 "$artel" train run.toml --out parts -n 3 "${fast[@]}" --resume
  if grep -q "measured links" err; then fail "measured again"; fi
  [[ $(from_summary parts 's["links"]') == "$links" ]] || fail "$links became $(from_summary parts 's["links"]')"
  expect 0 "$artel" train run.toml --out exact -n 3 --set cluster.transport=gloo
  [[ $(from_summary exact '"links" in s') == False ]] || fail "an exact run has measured links"
}

# Workers have received exactly the bytes sent, by any path, and more bytes where the path requires it.
test_traffic() {
  make_run
  local way
  for way in auto tree coordinator; do
    expect 0 "$artel" train run.toml --out $way -n 4 --set cluster.strategy=$way --set cluster.transport=gloo \
      --set cluster.reduction=$([[ $way == tree ]] && echo fast || echo exact)
    contains out "sent by a worker"
    from_summary $way 'str(abs(sum(t["sent_bytes"] - t["received_bytes"] for t in s["traffic"])) <= 0.02 * sum(t["sent_bytes"] for t in s["traffic"])) + " " + str(len(s["traffic"]))' >equal
    contains equal "True 4"
  done
  # Totals come from the coordinator; on the default path all workers send the same.
  [[ $(from_summary coordinator 's["traffic"][0]["sent_bytes"] > 1.5 * s["traffic"][3]["sent_bytes"]') == True ]] ||
    fail "coordinator: $(cat coordinator/summary.json)"
  [[ $(from_summary auto 'max(t["sent_bytes"] for t in s["traffic"]) < 1.2 * min(t["sent_bytes"] for t in s["traffic"])') == True ]] ||
    fail "auto: $(cat auto/summary.json)"
}

# Runs of an earlier version name an algorithm and ask for exact sums, which took another way then.
test_earlier() {
  make_run
  expect 0 "$artel" train run.toml --out one
  local strategy
  for strategy in ring tree halving; do
    expect 0 "$artel" train run.toml --out $strategy -n 2 --set train.steps=20
    sed -i "s/^strategy = .*/strategy = \"$strategy\"/; s/^reduction = .*/reduction = \"exact\"/" $strategy/config.toml
    expect 1 "$artel" train $strategy/config.toml --out $strategy --resume -n 2 --set train.steps=0
    contains err 'got "exact" with cluster.strategy = "'$strategy'"'
    contains err 'try cluster.strategy = "auto" (also to resume a run of an earlier version with the same bits)'
    expect 0 "$artel" train $strategy/config.toml --out $strategy --resume -n 2 --set train.steps=0 --set cluster.strategy=auto
    expect 0 "$artel" verify one $strategy
  done
}

test_transports() {
  make_run
  expect 0 "$artel" train run.toml --out shm -n 2 --set cluster.transport=shm
  expect 0 "$artel" train run.toml --out gloo -n 2 --set cluster.transport=gloo
  expect 0 "$artel" verify shm gloo
  expect 1 "$artel" train run.toml -n 2 --set cluster.transport=mpi
  contains err 'artel: error: cluster.transport: got "mpi" without MPI'"'"'s launcher, which connects the workers; try mpirun -n 2 artel train FILE'
  expect 1 "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 0 --set cluster.transport=shm
  contains err 'artel: error: cluster.transport: got "shm", but these workers were started to connect through gloo; try "auto"'
}

test_local() {
  make_run
  expect 0 "$artel" train run.toml --out one -n 3 --set cluster.local_steps=4 --set cluster.outer_momentum=0.5 --set cluster.outer_lr=0.5 --set train.epochs=8
  expect 0 "$artel" train run.toml --out two -n 3 --set cluster.local_steps=4 --set cluster.outer_momentum=0.5 --set cluster.outer_lr=0.5 --set train.epochs=8
  expect 0 "$artel" verify one two
  expect 0 "$artel" evaluate one --json
  grep -qE '"accuracy":(0\.[89]|1)' out || fail "accuracy: $(cat out)"
}

test_compressed() {
  make_run
  local codec
  for codec in int8 'top-k 5%' 'powersgd 2'; do
    expect 0 "$artel" train run.toml --out "one $codec" -n 2 --set cluster.compress="$codec"
    expect 0 "$artel" train run.toml --out "two $codec" -n 2 --set cluster.compress="$codec"
    expect 0 "$artel" verify "one $codec" "two $codec"
  done
  expect 1 "$artel" train run.toml --out wrong -n 2 --set cluster.compress=zip
  contains err "zip"
}

test_trace() {
  make_run
  expect 0 "$artel" train run.toml --out run -n 2 --trace trace.json
  python3 - <<'PYTHON'
import json
events = [e for e in json.load(open("trace.json"))["traceEvents"] if e["ph"] == "X"]
for worker in (0, 1):
    own = [e for e in events if e["pid"] == worker]
    assert {"compute", "wait", "wire", "update"} <= {e["cat"] for e in own}, worker
    assert all(e["ts"] >= 0 and e["dur"] >= 0 for e in own)
# Bytes sent by one worker are received by the other.
wires = [[e["name"] for e in events if e["pid"] == w and e["cat"] == "wire"] for w in (0, 1)]
assert wires[0] and wires[0] == wires[1], [len(w) for w in wires]
PYTHON
}

test_compare() {
  make_run
  expect 0 "$artel" compare run.toml --strategies "ring,tree,coordinator,local 8,top-k 1%" -n 2 --steps 20 --out all
  local name
  for name in ring tree coordinator "local 8" "top-k 1%" waiting "test accuracy"; do contains out "$name"; done
  # The exchange that ran, and its lanes.
  local exchange
  for exchange in "ring, fast" "tree, fast" "coordinator, exact" "average every 8 steps, local" "top-k 1%, lossy"; do
    grep -qE "  $exchange +8  " out || fail "no '$exchange' in 8 lanes: $(cat out)"
  done
  contains all/compare.svg "<svg"
  # An explicit reduction is not changed for the comparison.
  expect 1 "$artel" compare run.toml --strategies ring -n 2 --steps 2 --out exact --set cluster.reduction=exact
  contains out 'got "exact" with cluster.strategy = "ring"'
  expect 0 "$artel" compare run.toml --strategies auto -n 2 --steps 2 --out fast --set cluster.reduction=fast
  contains out "automatic, fast"
  expect 1 "$artel" compare run.toml --strategies rings -n 2 --out wrong
  contains err "did you mean 'ring'"
}

# A stand-in for ssh that runs the line here, and notes it: everybody could read it there.
test_launch() {
  make_run
  printf '#!/bin/bash\necho "$@" >>%s/lines\nexec bash -c "${@: -1}"\n' "$folder" >shell
  chmod +x shell
  expect 0 "$artel" train run.toml --out one
  ARTEL_SSH="$folder/shell -q" expect 0 "$artel" launch --hosts localhost,localhost --port $port \
    --program "$artel" -- train run.toml --out launched
  contains err "worker 1 on host"
  expect 0 "$artel" verify one launched
  contains lines ARTEL_ADDRESS
  ! grep -q "ARTEL_TOKEN=" lines || fail "the token is on a command line"
  # An option of ssh, or a command, is not accepted as a host.
  rm lines
  local hosts
  for hosts in "localhost,-oProxyCommand=touch harm" "-oProxyCommand=touch harm,localhost"; do
    ARTEL_SSH="$folder/shell -q" expect 1 "$artel" launch "--hosts=$hosts" --port $port --program "$artel" -- train run.toml
    contains err "artel: error: [--hosts] got '-oProxyCommand=touch harm', expected the name or address of a machine"
  done
  [[ ! -e lines && ! -e harm ]] || fail "ssh was started for a host that is an option"
}

# Where the token comes from, and what happens without it or with another one.
test_token() {
  make_run
  expect 1 "$artel" train run.toml -n 2 --join 192.0.2.1:$port
  contains err "artel: error: [comm] token: got none, but other users or machines can reach 192.0.2.1:$port; try --token-file FILE"
  (umask 077 && echo secret >token && echo other >wrong)
  "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 0 --token-file token --out run >out0 2>err0 &
  expect 1 "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 1 --token-file wrong
  contains err "refused rank 1: wrong token; it belongs to another run"
  expect 1 "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 1
  contains err "wrong token"
  ARTEL_TOKEN=secret expect 0 "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 1
  wait %1 || fail "$(cat err0)"
  contains err0 "refused"
  # At an address of this machine, processes of one user find the same token. Those of another one do not.
  XDG_CONFIG_HOME=$folder/mine "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 0 --out local >out0 2>err0 &
  XDG_CONFIG_HOME=$folder/theirs expect 1 "$artel" train run.toml -n 2 --join localhost:$port --rank 1
  contains err "refused rank 1: wrong token; it belongs to another run"
  XDG_CONFIG_HOME=$folder/mine expect 0 "$artel" train run.toml -n 2 --join localhost:$port --rank 1
  wait $! || fail "$(cat err0)"
  [[ $(stat -c %a mine/artel mine/artel/key) == $'700\n600' ]] || fail "others can read the key"
}

test_encrypted() {
  make_run
  expect 0 "$artel" train run.toml --out one
  join 0 --out encrypted --set cluster.encrypt=true
  expect 1 "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 1 --token secret
  contains err "the run encrypts its connections, but this worker does not; try the same cluster.encrypt for all workers"
  expect 1 "$artel" train run.toml -n 2 --join 127.0.0.1:$port --rank 1 --token other --set cluster.encrypt=true
  contains err "wrong token"
  join 1 --set cluster.encrypt=true
  wait %1 %2 || fail "$(cat err0 err1)"
  expect 0 "$artel" verify one encrypted
}

# Workers with different processors: refused, unless they use what all have.
test_instructions() {
  [[ $(uname -m) == x86_64 ]] || return 0
  make_run
  expect 0 "$artel" train run.toml --out sse4 --set cluster.instructions=sse4
  join 0
  ARTEL_INSTRUCTIONS=sse4 join 1
  local code=0
  wait %1 || code=$?
  wait %2 || true
  [[ $code -eq 1 ]] || fail "exit code $code, expected 1"
  contains err0 "worker 1 has 'processor = "
  port=$((port + 1))
  join 0 --out common --set cluster.instructions=common
  local first=$!
  ARTEL_INSTRUCTIONS=sse4 join 1 --set cluster.instructions=common
  wait $first $! || fail "$(cat err0 err1)"
  contains err0 "all workers use sse4"
  expect 0 "$artel" verify sse4 common
  expect 1 "$artel" train run.toml --out none --set cluster.instructions=neon
  contains err 'cluster.instructions: got "neon", but this kind of processor has sse4, avx2, avx512'
}

# Without ranks, a worker that can listen is worker 0, and the others get ranks in the order of arrival.
test_join() {
  make_run
  expect 0 "$artel" train run.toml --out one
  local i
  for i in 1 2 3; do
    "$artel" train run.toml -n 3 --join 127.0.0.1:$port --token secret --out joined >out$i 2>err$i &
  done
  wait %1 %2 %3 || fail "$(cat err1 err2 err3)"
  expect 0 "$artel" verify one joined
}

"test_$case"
echo "passed"
