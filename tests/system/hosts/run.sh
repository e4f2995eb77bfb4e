#!/usr/bin/env bash
# run.sh ARTEL CASE: what a user meets on several machines, on emulated ones that share no file system.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
source "$(dirname "$0")/../../support/hosts.sh"
slow_group=
# Killed processes belong to it for a moment.
remove_slow_group() {
  [[ -n $slow_group ]] || return 0
  for _ in {1..50}; do ! rmdir "$slow_group" 2>/dev/null || return 0; sleep 0.1; done
}
trap 'remove_hosts || true; remove_slow_group; remove_folder' EXIT

# give MACHINE...: the program and the data.
give() {
  local name
  for name; do
    ln "$artel" "$(home_of "$name")/bin/artel" 2>/dev/null || cp "$artel" "$(home_of "$name")/bin/artel"
    cp data.csv run.toml "$(home_of "$name")"
  done
}

# expect_on MACHINE CODE LINE
expect_on() {
  local got=0
  on "$1" "$3" >out 2>err || got=$?
  [[ $got -eq $2 ]] || { cat out err >&2; fail "$3 on $1 gave $got, expected $2"; }
}

# nothing_runs_on MACHINE...: workers have a moment to end.
nothing_runs_on() {
  local name tries
  for name; do
    tries=0
    while (($(processes_on "$name" '[a]rtel.* (train|launch) ') > 0)); do
      sleep 0.05
      ((++tries < 200)) || { on "$name" "ps ax" >&2; fail "something still runs on $name"; }
    done
  done
}

endless="--set train.steps=100000000 --set train.save_every=50"

test_launch() {
  make_run
  expect 0 "$artel" train run.toml --out one
  make_machines n01 n02 n03
  give n01 n02
  # The third machine gets the program from the first.
  cp data.csv run.toml "$(home_of n03)"
  expect_on n01 1 'artel launch --hosts n01,n02,n03 -- train run.toml --out runs/a'
  contains err "n03: has no program artel; try --install"
  nothing_runs_on n01 n02 n03
  expect_on n01 0 'artel launch --hosts=n01,n02,n03 --install -- train run.toml --out runs/a'
  contains err "n01: "
  contains err "3 machines, 8 lanes: a machine sends 2 partial sums, because its lanes form no whole subtree; a new run with cluster.lanes = 12 sends 33 % less"
  [[ -x $(home_of n03)/.local/bin/artel ]] || fail "the program was not installed"
  expect 0 "$artel" verify one "$(home_of n01)/runs/a"
  contains "$(home_of n01)/runs/a/summary.json" '"seconds_waiting_for_the_wire"'
  nothing_runs_on n01 n02 n03

  # A program of its own finds its place in the environment. A misspelt command is none.
  expect_on n01 0 "artel launch --hosts n01,n02 -- sh -c 'echo rank \$ARTEL_RANK of \$ARTEL_SIZE'"
  contains out "n01: rank 0 of 2"
  contains out "n02: rank 1 of 2"
  expect_on n01 1 'artel launch --hosts n01,n02 -- trian run.toml'
  contains err "[launch] 'trian' is neither a command of artel nor a program on this machine; did you mean 'train'?"

  # Ctrl-C stops the run, which says how to resume; the printed command works.
  on n01 "exec artel launch --hosts n01,n02,n03 -- train run.toml --out runs/b $endless" >log 2>&1 &
  wait_for_checkpoint "$(home_of n01)/runs/b"
  on n01 "pkill -INT -o -f '^artel launch --hosts'"
  local code=0
  wait $! || code=$?
  ((code == 130)) || { cat log >&2; fail "exit code $code after Ctrl-C"; }
  contains log "to resume: artel launch --hosts n01,n02,n03 -- train run.toml --out runs/b --resume"
  nothing_runs_on n01 n02 n03
  expect_on n02 0 "$(sed -n 's/.*to resume: //p' log) --set train.steps=$(($(newest_step_of n01 b) + 10))"
  contains err "worker 2 on host n03"

  # Killing the launcher ends its workers, too, and they save.
  on n01 "exec artel launch --hosts n02,n03 -- train run.toml --out runs/c $endless" >log 2>&1 &
  wait_for_checkpoint "$(home_of n02)/runs/c"
  on n01 "pkill -KILL -o -f '^artel launch --hosts'"
  wait $! || true
  nothing_runs_on n01 n02 n03

  # So does a termination signal to the launcher. Every machine has the last step, and the run continues from there.
  local host launch="artel launch --hosts n01,n02,n03 -- train run.toml --out runs/e --set cluster.checkpoint_copies=3"
  on n01 "exec $launch $endless" >log 2>&1 &
  wait_for_checkpoint "$(home_of n03)/runs/e"
  on n01 "pkill -TERM -o -f '^artel launch --hosts'"
  code=0
  wait $! || code=$?
  ((code == 143)) || { cat log >&2; fail "exit code $code after a termination signal"; }
  contains log "to resume: artel launch --hosts n01,n02,n03 -- train run.toml --out runs/e --resume"
  nothing_runs_on n01 n02 n03
  local stopped
  stopped=$(newest_step_of n01 e)
  for host in n02 n03; do
    (($(newest_step_of $host e) == stopped)) || fail "$host has saved step $(newest_step_of $host e), n01 step $stopped"
  done
  expect_on n01 0 "$(sed -n 's/.*to resume: //p' log) --set train.steps=$((stopped + 10))"
  contains err "resuming runs/e after step $stopped"
  expect 0 "$artel" train run.toml --out two --set train.steps=$((stopped + 10))
  expect 0 "$artel" verify two "$(home_of n01)/runs/e"

  # A machine that loses power leaves the others training.
  on n01 "exec artel launch --hosts n01,n02,n03 -- train run.toml --out runs/d $endless --set cluster.patience=2" >log 2>&1 &
  wait_for_checkpoint "$(home_of n01)/runs/d"
  power_off n03
  awaits_in log "continuing with 2 workers"
  contains log "on host n03"
  on n01 "pkill -INT -o -f '^artel launch --hosts'"
  wait $! || true
  nothing_runs_on n01 n02
}

# A cut between the launcher and the other machines that is shorter than the patience costs nothing, and a worker that is killed
# is started again.
test_restart() {
  make_run
  make_machines n01 n02 n03
  give n01 n02 n03
  on n01 "exec artel launch --hosts n02,n03 -- train run.toml --out runs/a $endless" >log 2>&1 &
  local launcher=$!
  wait_for_checkpoint "$(home_of n02)/runs/a"
  cut_wire n01
  sleep 11
  mend_wire n01
  local steps
  steps=$(newest_step_of n02 a)
  for name in n02 n03; do (($(processes_on $name '[a]rtel train ') > 0)) || fail "the worker on $name has ended"; done
  on n03 "pkill -KILL -f '^/root/bin/artel train'"
  awaits_in log "worker 1 on n03 was lost: killed by signal 9 (Killed); starting it again (1 of 8)"
  awaits_in log "joins: continuing with 2 workers"
  until (($(newest_step_of n02 a) > steps + 100)); do sleep 0.1; done
  on n01 "pkill -INT -o -f '^artel launch --hosts'"
  local code=0
  wait $launcher || code=$?
  ((code == 130)) || { cat log >&2; fail "exit code $code"; }
  nothing_runs_on n01 n02 n03
  ! grep -F "artel-doors" log || fail "the launcher prints lines that are meant for it"
  steps=$(newest_step_of n02 a)
  expect 0 "$artel" train run.toml --out one --set train.steps="$steps"
  expect 0 "$artel" verify one "$(home_of n02)/runs/a"
}

newest_step_of() { ls "$(home_of "$1")/runs/$2/checkpoints" | sed -n 's/^step-0*//p' | tail -1; }

test_bad_hosts() {
  make_run
  make_machines n01 n02 n03 n04
  give n01 n02 n03 n04
  # A machine that takes packets and never answers, one without a name, one that refuses logins, one without the folder.
  in_network 0 ip neigh replace 10.96.0.77 lladdr 02:00:00:00:00:77 dev v0
  : >"$(home_of n03)/.ssh/authorized_keys"
  mkdir "$(home_of n01)/work" "$(home_of n02)/work"
  printf '#!/bin/sh\necho "artel-check version 0.0.1"\n' >"$(home_of n02)/bin/old"
  chmod +x "$(home_of n02)/bin/old"
  local begin=$SECONDS
  expect_on n01 1 'artel launch --hosts n01,n02,n03,n04,10.96.0.77,n99 --folder /root/work -- train run.toml'
  ((SECONDS - begin <= 6)) || fail "it took $((SECONDS - begin)) s"
  contains err "10.96.0.77: "
  contains err "n99: its name cannot be resolved"
  contains err "n03: ssh: "
  contains err "Permission denied"
  contains err "n04: has no folder /root/work"
  contains err "artel: error: [--hosts] 4 of 6 hosts cannot be used; nothing was started"
  ! grep -qE "^n0[12]:" err || fail "a good host was blamed"
  nothing_runs_on n01 n02 n04
  expect_on n01 1 'artel launch --hosts n02 --program old -- train run.toml'
  contains err "n02: has version 0.0.1 of /root/bin/old, expected"

  # Commands that cannot work.
  expect_on n01 1 'artel launch --hosts n01,n02 -- artel train run.toml'
  contains err "[launch] the command begins with 'artel'"
  expect_on n01 1 'artel launch --hosts n01,n02 -- train run.toml --join n01:29400'
  contains err "leave --join out"

  # Processors of different kinds, and a configuration that only mentions the key.
  printf '#!/bin/sh\n[ "$2" = --describe ] || exec artel "$@"\nartel "$@" | sed "s/instructions .*/instructions odd/"\n' \
    >"$(home_of n02)/bin/odd"
  chmod +x "$(home_of n02)/bin/odd"
  ln -s artel "$(home_of n01)/bin/odd"
  for name in n01 n02; do echo '# instructions' >>"$(home_of $name)/run.toml"; done
  local odd="artel launch --hosts n01,n02 --program odd -- train run.toml"
  expect_on n01 1 "$odd"
  contains err "[--hosts] the processors differ: "
  expect_on n01 0 "$odd --set cluster.instructions=common --out runs/common"
  for name in n01 n02; do echo 'instructions = "common"' >>"$(home_of $name)/run.toml"; done
  expect_on n01 0 "$odd --out runs/file"

  # Another build of the same version is told, and replaced on request.
  local program build
  program=$(home_of n02)/bin/artel
  build=$("$artel" launch --describe | sed -n 's/^artel-check build //p')
  [[ ${#build} -eq 16 ]] || fail "build '$build'"
  python3 -c 'import sys; build = bytes.fromhex(sys.argv[3])
open(sys.argv[2], "wb").write(open(sys.argv[1], "rb").read().replace(build, build[::-1]))' "$artel" other "$build"
  rm "$program"
  install -m 755 other "$program"
  expect_on n01 0 'artel launch --hosts n01,n02 -- --version'
  contains err "the builds of artel"
  expect_on n01 0 'artel launch --hosts n01,n02 --program /root/bin/artel --install -- --version'
  ! grep -F "the builds of artel" err || fail "another build was not replaced"
  cmp "$artel" "$program" || fail "another build was not replaced"
}

# Messages name machines, all differences, and the cause of a wrong token under srun.
test_names() {
  make_run
  make_machines n01 n02 n03
  give n01 n02 n03
  sed -i 's/lr = 0.1/lr = 0.2/; s/batch_size = 20/batch_size = 40/' "$(home_of n02)/run.toml"
  expect_on n01 1 'artel launch --hosts n01,n02,n03 -- train run.toml'
  contains err "worker 1 on n02 has 'optimizer.lr = 0.2', workers 0 on n01, 2 on n03 have 'optimizer.lr = 0.1'"
  contains err "worker 1 on n02 has 'batch_size = 40', workers 0 on n01, 2 on n03 have 'batch_size = 20'"
  nothing_runs_on n01 n02 n03
  local slurm='export SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=n[01,03];'
  on n01 "$slurm SLURM_PROCID=0 exec artel train run.toml --out runs/s --set cluster.join_timeout=4" >log 2>&1 &
  expect_on n03 1 "$slurm SLURM_PROCID=1 artel train run.toml --set cluster.join_timeout=4"
  contains err "wrong token"
  contains err "under srun the token comes from /root/.config/artel/key, which must be the same on all hosts"
  wait $! && fail "worker 0 did not fail"
  slurm+=" export ARTEL_TOKEN=secret;"
  on n01 "$slurm SLURM_PROCID=0 exec artel train run.toml --out runs/t" >log 2>&1 &
  expect_on n03 0 "$slurm SLURM_PROCID=1 artel train run.toml"
  wait $! || { cat log >&2; fail "worker 0 failed"; }
  contains err "worker 1 on n03 trains with 1 other worker, from step 1; worker 0 on n01 reports and saves"
}

# A flipped byte in the middle of a file, with the same size and time, is found before the first step, and named.
test_data() {
  make_run
  make_machines n01 n02 n03
  give n01 n02 n03
  local file
  file=$(home_of n03)/data.csv
  sed -i '217s/no$/xx/; 217s/yes$/no/; 217s/xx$/yes/' "$file"
  touch -r data.csv "$file"
  ! cmp -s data.csv "$file" || fail "the data is the same"
  expect_on n01 1 'artel launch --hosts n01,n02,n03 -- train run.toml'
  contains err "worker 2 on n03 has 'file data.csv = "
  contains err ", workers 0 on n01, 1 on n02 have 'file data.csv = "
  # A newcomer with other data does not disturb the run.
  (umask 077; echo secret >secret)
  for name in n01 n02 n03; do cp -p secret "$(home_of $name)"; done
  local join="artel train run.toml --join n01:29400 --token-file secret --out runs/a -n 2..3 $endless"
  on n01 "exec $join" >log1 2>&1 &
  local first=$!
  on n02 "exec $join" >log2 2>&1 &
  local second=$!
  wait_for_checkpoint "$(home_of n01)/runs/a"
  expect_on n03 1 "$join"
  contains err "it was started differently: it has 'file data.csv = "
  on n02 "pkill -INT -o artel"
  wait $first && fail "worker 0 ended as if nothing had happened"
  wait $second && fail "worker 1 ended as if nothing had happened"
  contains log1 "stopped by worker 1 on n02; to resume, on each machine: artel train run.toml --join n01:29400 --token-file secret --out runs/a --resume"
  contains log2 "stopped by worker 1 on n02; to resume, on each machine: artel train run.toml --join n01:29400 --token-file secret --out runs/a --resume"
}

# join_on MACHINE NAME LINE: a worker in the background, with its output in the file NAME and its process in pid_of.
declare -A pid_of=()
join_on() {
  on "$1" "exec $3" >"$2" 2>&1 &
  pid_of[$2]=$!
}
# ends FILE CODE
ends() {
  local code=0
  wait "${pid_of[$1]}" || code=$?
  ((code == $2)) || { cat "$1" >&2; fail "exit code $code of $1, expected $2"; }
}

# The machine of worker 0 loses power. The others continue, tell where the run is kept, and let it in again at the port that
# everybody knows. When all are stopped, the printed command resumes the run from the newest checkpoint, wherever that is.
test_power() {
  make_run
  make_machines n01 n02 n03
  give n01 n02 n03
  (umask 077; echo secret >secret)
  for name in n01 n02 n03; do cp -p secret "$(home_of $name)"; done
  local options="--token-file secret --out runs/a -n 3 $endless --set cluster.patience=2"
  join_on n01 log1 "artel train run.toml --join n01:29400 --rank 0 $options"
  join_on n02 log2 "artel train run.toml --join n01:29400 $options"
  join_on n03 log3 "artel train run.toml --join n01:29400 $options"
  wait_for_checkpoint "$(home_of n01)/runs/a"
  awaits_in log2 "reports and saves"
  awaits_in log3 "reports and saves"
  power_off n01
  wait "${pid_of[log1]}" || true
  local leader=n02 follower=n03
  awaits_any "the run is stored in runs/a on n0" log2 log3
  if grep -q "the run is stored in runs/a on n03" log3; then leader=n03 follower=n02; fi
  wait_for_checkpoint "$(home_of $leader)/runs/a"
  power_on n01
  # The old address has no listener; any other machine of the run can be asked at the same port.
  join_on n01 log4 "artel train run.toml --join n01:29400,$follower:29400 $options"
  awaits_in log${leader#n0} "joins: continuing with 3 workers"
  contains log4 "no answer at n01:29400"
  on $follower "pkill -INT -o artel"
  for log in log2 log3 log4; do
    ends $log 130
    contains $log " on $follower; to resume, on each machine: "
  done
  local old
  old=$(newest_step_of n01 a)
  (($(newest_step_of $leader a) > old)) || fail "n01 has the newest checkpoint"
  local steps=$(($(newest_step_of $leader a) + 20))
  for i in 1 2 3; do
    join_on n0$i again$i "$(sed -n 's/.*to resume, on each machine: //p' log2) --set train.steps=$steps"
  done
  for i in 1 2 3; do ends again$i 0; done
  contains again1 "runs/a on n01 was copied from worker"
  contains again1 "this machine had step $old; the run is stored here from now on"
  expect 0 "$artel" train run.toml --out one --set train.steps=$steps
  expect 0 "$artel" verify one "$(home_of n01)/runs/a"
  [[ $(sed -n 's/^{"step":\([0-9]*\),.*/\1/p' "$(home_of n01)/runs/a/metrics.jsonl" | sort -nu | wc -l) -ge $((steps - 5)) ]] ||
    fail "metrics were lost"
  # A worker that reaches no other worker says so.
  expect_on n02 1 "artel train run.toml --join n03:29555 --rank 1 -n 2 --token-file secret --set cluster.join_timeout=4"
  contains err "nobody listens at n03:29555: waiting up to 4 s for worker 0"
}
awaits_any() {
  local tries=0
  until grep -qF -- "$1" "${@:2}"; do
    sleep 0.05
    ((++tries < 1200)) || { tail -n 40 "${@:2}" >&2; fail "no '$1' within 60 s"; }
  done
}

# Another machine has each checkpoint, too; when that of worker 0 has lost its disk, the run continues from the copy.
test_copies() {
  make_run
  make_machines n01 n02 n03
  give n01 n02 n03
  local hosts="artel launch --hosts n01,n02,n03 -- train run.toml --out runs/a"
  expect_on n01 0 "$hosts --set cluster.checkpoint_copies=2"
  contains err "n02: artel: runs/a on n02 keeps a copy of each checkpoint"
  local newest
  newest=$(ls "$(home_of n01)/runs/a/checkpoints" | grep step | tail -1)
  for file in model.safetensors optimizer.safetensors; do
    cmp "$(home_of n01)/runs/a/checkpoints/$newest/$file" "$(home_of n02)/runs/a/checkpoints/$newest/$file" ||
      fail "the copy differs"
  done
  [[ ! -e $(home_of n03)/runs/a ]] || fail "there is a third copy"
  rm -rf "$(home_of n01)/runs"
  expect_on n01 0 "$hosts --resume --set train.epochs=6"
  contains err "runs/a on n01 was copied from worker 1 on n02"
  contains err "this machine had none"
  expect 0 "$artel" train run.toml --out one --set train.epochs=6
  expect 0 "$artel" verify one "$(home_of n01)/runs/a"

  # Where each worker has only a part of the state, worker 0 sends what it has saved.
  local parts
  for parts in cluster.pipeline=3 cluster.sharding=optimizer; do
    local run=runs/${parts#*.}
    hosts="artel launch --hosts n01,n02,n03 -- train run.toml --out $run --set $parts --set cluster.checkpoint_copies=3"
    expect_on n01 0 "$hosts --set train.epochs=4"
    newest=$(ls "$(home_of n01)/$run/checkpoints" | grep step | tail -1)
    for name in n02 n03; do
      diff -r "$(home_of n01)/$run/checkpoints" "$(home_of $name)/$run/checkpoints" || fail "the copy differs"
    done
    rm -rf "$(home_of n01)/$run"
    expect_on n01 0 "$hosts --resume --set train.epochs=6"
    contains err "$run on n01 was copied from worker 1 on n02"
    expect 0 "$artel" verify one "$(home_of n01)/$run"
  done
}

# Two machines have different runs of the same name. Resumed together, the run of worker 0 continues, and the other one stays as
# it is, also where a copy of the first is kept from now on.
test_strangers() {
  make_run
  make_machines n01 n02
  give n01 n02
  local other
  expect_on n01 0 'artel launch --hosts n01 -- train run.toml --out runs/a --set train.epochs=1'
  expect_on n02 0 'artel launch --hosts n02 -- train run.toml --out runs/a --set train.seed=2 --set train.epochs=3'
  other=$(newest_step_of n02 a)
  local resume="artel launch --hosts n01,n02 -- train run.toml --out runs/a --resume"
  expect_on n01 0 "$resume --set train.epochs=2"
  contains err "ignoring runs/a of worker 1 on n02 (step $other): it holds a different run from runs/a of worker 0 on n01"
  expect_on n01 0 "$resume --set train.epochs=4 --set cluster.checkpoint_copies=2"
  contains err "runs/a on n02 held a different run, which was moved to runs/a.replaced"
  expect 0 "$artel" train run.toml --out one --set train.epochs=4
  expect 0 "$artel" verify one "$(home_of n01)/runs/a"
  expect 0 "$artel" train run.toml --out two --set train.seed=2 --set train.epochs=3
  expect 0 "$artel" verify two "$(home_of n02)/runs/a.replaced"
  (($(newest_step_of n02 a) == $(newest_step_of n01 a))) || fail "n02 keeps no copy"
}

# slow_down MACHINE: it has 8 % of a core.
slow_down() {
  [[ -w /sys/fs/cgroup/cpu/cpu.cfs_quota_us || -w /sys/fs/cgroup/cpu/tasks ]] || cannot "no cgroups of the first version"
  slow_group=/sys/fs/cgroup/cpu/$hosts_id
  mkdir "$slow_group"
  echo 8000 >"$slow_group/cpu.cfs_quota_us"
  local init process
  init=$(pgrep -P "${machine_init[$1]}")
  for process in $init $(pgrep -P "$init"); do echo "$process" >"$slow_group/cgroup.procs"; done
}

# Any machine of the run can ask for a trace, without ssh, also when worker 0 has changed. Other commands name the machine that has
# the folder.
test_trace() {
  make_run
  make_machines n01 n02 n03
  give n01 n02 n03
  (umask 077; echo secret >secret)
  local name
  for name in n01 n02 n03; do
    cp -p secret "$(home_of $name)"
    : >"$(home_of $name)/.ssh/authorized_keys"
  done
  expect_on n02 1 "artel trace runs/a"
  contains err "[runs/a] is not the folder of a run"
  local options="--token-file secret --out runs/a -n 3 $endless --set cluster.patience=2"
  for name in n01 n02 n03; do join_on $name log$name "artel train run.toml --join n01:29400 $options"; done
  wait_for_checkpoint "$(home_of n01)/runs/a"
  awaits_in logn03 "reports and saves"
  expect_on n03 0 "artel trace runs/a --steps 3 --out own.json"
  contains out "/root/own.json: open it"
  for name in 0 1 2; do contains out "worker $name"; done
  expect_on n02 0 "artel trace --steps 3"
  contains out "/root/trace.json: open it"
  expect_on n02 1 "artel top runs/a --once"
  contains err "[runs/a] is not the folder of a run; it is on n01: run the command there"
  power_off n01
  wait "${pid_of[logn01]}" || true
  awaits_any "the run is stored in runs/a on n0" logn02 logn03
  for name in n02 n03; do expect_on $name 0 "artel trace runs/a --steps 3"; done
  on n02 "pkill -INT -o artel"
  for name in n02 n03; do ends log$name 130; done
  for name in n02 n03; do [[ -z $(ls "$(home_of $name)/.cache/artel/elsewhere") ]] || fail "something is left on $name"; done
}

# One machine has little of a core: it is the one that is blamed, and the one line about lanes names it. A trace can be taken
# from there.
test_slow() {
  make_run
  sed -i 's/"dense 16"/"dense 800", "relu", "dense 800"/; s/batch_size = 20/batch_size = 80/' run.toml
  make_machines n01 n02 n03
  give n01 n02 n03
  slow_down n03
  on n01 "exec artel launch --hosts n01,n02,n03 -- train run.toml --out runs/a $endless" >log 2>&1 &
  awaits_in "$(home_of n01)/runs/a/live.json" '"culprit":"worker 2"'
  on n03 "artel trace n01:runs/a --steps 3" >out 2>err || { cat err >&2; fail "no trace from n03"; }
  contains out "/root/trace.json"
  awaits_in log "worker 2 on n03 is the slowest and gets "
}

# A mesh is chosen by the speeds of the machines: the slow one gets the last, smallest stage. When it has become as fast as
# the others, the run notices and chooses again. The bits are those of one worker.
test_slow_mesh() {
  make_run
  sed -i 's/"dense 16"/"dense 400", "relu", "dense 400", "relu", "dense 400", "relu", "dense 16"/; s/batch_size = 20/batch_size = 80/' run.toml
  make_machines n01 n02 n03
  give n01 n02 n03
  slow_down n02
  on n01 "exec artel launch --hosts n01,n02,n03 -- train run.toml --out runs/a $endless --set cluster.mesh=auto" >log 2>&1 &
  local launcher=$!
  awaits_in log "worker 1 on n02 computes at 0."
  awaits_in log "3 workers, schedule"
  contains log "mesh: data 1 x pipeline 3"
  local small
  small=$(grep -F "stage 2: " log)
  wait_for_checkpoint "$(home_of n01)/runs/a"
  sleep 12  # a change counts after two windows of a second or 16 steps have shown the usual speeds
  echo -1 >"$slow_group/cpu.cfs_quota_us"
  awaits_in log "worker speeds changed; choosing another mesh"
  on n01 "pkill -INT -o -f '^artel launch --hosts'"
  wait $launcher || true
  ! tail -n 5 log | grep -qF "$small" || fail "the stages are still the same"
  local steps
  steps=$(newest_step_of n01 a)
  expect 0 "$artel" train run.toml --out one --set train.steps="$steps"
  expect 0 "$artel" verify one "$(home_of n01)/runs/a"
}

# The network decides: large gradients cross a fast one, and only activations a slow one.
test_mesh_links() {
  make_run
  sed -i 's/"dense 16"/"dense 600", "relu", "dense 600", "relu", "dense 600", "relu", "dense 16"/; s/batch_size = 20/batch_size = 240/' run.toml
  make_machines n01 n02
  give n01 n02
  local limit
  for limit in none 20mbit; do
    [[ $limit == none ]] || { limit_port 0 $limit; limit_port 1 $limit; }
    expect_on n01 0 "artel launch --hosts n01,n02 -- train run.toml --out runs/$limit --set train.steps=2 --set cluster.mesh=auto"
    cat out err >"$limit.log"
  done
  contains none.log "mesh: data 2 x pipeline 1"
  contains 20mbit.log "mesh: data 1 x pipeline 2"
}

# Types the commands of docs/cluster.md: lines in its blocks that begin with the name of a machine and "$ ". The lines below a
# command have to appear in its output, except for the name of the machine in front of what only that machine prints.
# "COMMAND &" keeps running in the terminal of its machine; "^C" interrupts it there.
test_page() {
  local page=$1 in_block=0 line command= machine= output= number=0 text
  make_machines n01 n02 n03
  cp "$artel" "$(home_of n01)/bin/artel"
  # Bare machines: no keys, and nobody is let in without a password.
  local name
  for name in n01 n02 n03; do rm "$(home_of $name)"/.ssh/{id_ed25519,authorized_keys,known_hosts}; done
  printf '#!/bin/sh\ncase $1 in *yes/no*) echo yes ;; *) echo secret ;; esac\n' >"$(home_of n01)/.ssh/answer"
  chmod +x "$(home_of n01)/.ssh/answer"
  while IFS= read -r line; do
    if [[ $line == '```'* ]]; then
      in_block=$((1 - in_block))
    elif ((in_block)) && [[ $line =~ ^(n0[0-9])\$\ (.*)$ ]]; then
      machine=${BASH_REMATCH[1]} command=${BASH_REMATCH[2]}
      type_line
    elif ((in_block)); then
      awaits_line "${line#"$machine: "}"
    fi
  done <"$page"
}
# A command that has ended is typed again: a user would not be that quick.
awaits_line() {
  local tries=0
  until grep -qF -- "$1" "$output"; do
    sleep 0.2
    ((++tries < 150)) || { tail -n 30 "$output" >&2; fail "no '$1' after $machine\$ $command"; }
    [[ $command == *"&" || $command == ^C || $command == power* ]] || on "$machine" "$command" >"$output" 2>&1
  done
}
declare -A terminal=() output_of=()
type_line() {
  case $command in
    ssh-copy-id*)  # a program answers in place of a user
      on "$machine" "SSH_ASKPASS=/root/.ssh/answer SSH_ASKPASS_REQUIRE=force $command" >"$folder/typed" 2>&1 ||
        { cat "$folder/typed" >&2; fail "$machine\$ $command"; }
      ;;
    "poweroff -f") power_off "$machine"; machine=n03; output=${output_of[n03]} ;;
    poweron) power_on "$machine" ;;
    ^C)
      on "$machine" "pkill -INT -o -x artel"
      wait "${terminal[$machine]}" || true
      output=${output_of[$machine]}
      ;;
    *"&")
      output=typed$((++number))
      on "$machine" "exec ${command%&}" >"$output" 2>&1 &
      terminal[$machine]=$!
      output_of[$machine]=$output
      ;;
    *)
      output=typed$((++number))
      on "$machine" "$command" >"$output" 2>&1 || { cat "$output" >&2; fail "$machine\$ $command"; }
      ;;
  esac
}

"test_$case" "${@:3}"
echo "passed"
