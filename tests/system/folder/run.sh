#!/usr/bin/env bash
# run.sh ARTEL ROOT CASE: runs one case (a function test_CASE below) in an empty folder: what happens to the folder of a
# run when disks fail, when several processes want it, and when a run is resumed.
set -euo pipefail
artel=$1 root=$2 case=$3
source "$(dirname "$0")/../support.sh"

# on_small_disk COMMAND...: in a namespace of its own, in which the folder disk is a file system of 64 MiB: enough for
# the metrics of a small network, which writes up to 1 MiB a second.
on_small_disk() {
  mkdir -p disk
  unshare --user --map-root-user --mount bash -c 'mount -t tmpfs -o size=64m tmpfs disk' 2>/dev/null ||
    { echo "skipped: file systems cannot be mounted here"; exit 77; }
  unshare --user --map-root-user --mount bash -euc '
    mount -t tmpfs -o size=64m tmpfs disk
    source "$0"
    '"$*" "$folder/functions"
}

# The environment for a script in another namespace.
export_functions() {
  { declare -f fail contains expect; printf 'artel=%q\n' "$artel"; } >functions
}

# The disk is full for a while: the run continues, and saves again when there is space.
test_full_disk() {
  make_data
  export_functions
  cat >case.sh <<'SH'
    "$artel" train run.toml --out disk/run --set train.save_every=20 --set train.epochs=100000 >out 2>err &
    process=$!
    until compgen -G "disk/run/checkpoints/step-*/model.safetensors" >/dev/null; do sleep 0.05; done
    head -c 128m /dev/zero >disk/filling 2>/dev/null || true
    until grep -q "was not saved" err; do sleep 0.05; done
    kill -0 $process || fail "the run ended: $(cat err)"
    grep -qE "artel: .*step [0-9]+ was not saved: .*No space left on device.*free in disk/run/checkpoints" err || fail "$(cat err)"
    rm disk/filling
    old=$(ls disk/run/checkpoints | grep step- | tail -1)
    until [[ $(ls disk/run/checkpoints | grep step- | tail -1) != "$old" ]]; do sleep 0.05; done
    kill -INT $process
    code=0; wait $process || code=$?
    [[ $code -eq 130 ]] || fail "exit code $code: $(cat err)"
    ! ls -A disk/run/checkpoints | grep -q '^\.' || fail "left behind: $(ls -A disk/run/checkpoints)"
    expect 0 "$artel" evaluate disk/run
    # Each step has its line, although some could not be written at their time.
    awk -F'[:,]' '/train\/loss/ { if ($2 != ++n) { print "line of step " $2 " in place of " n; exit 1 } }' disk/run/metrics.jsonl ||
      fail "a hole in metrics.jsonl"
    # And if it stays full, the last state cannot be saved.
    mkdir disk/other
    "$artel" train run.toml --out disk/other/run --set train.epochs=100000 >out 2>err &
    process=$!
    until compgen -G "disk/other/run/checkpoints/step-*/model.safetensors" >/dev/null; do sleep 0.05; done
    head -c 128m /dev/zero >disk/filling 2>/dev/null || true
    until grep -q "was not saved" err; do sleep 0.05; done
    kill -INT $process
    code=0; wait $process || code=$?
    [[ $code -eq 1 ]] || fail "exit code $code, expected 1: $(cat err)"
    contains err "the last checkpoint was not saved"
SH
  on_small_disk "$(cat case.sh)"
}

test_read_only() {
  make_data
  export_functions
  cat >case.sh <<'SH'
    read_only() { mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"; }
    expect 0 "$artel" train run.toml --out disk/run --set train.steps=2
    "$artel" train run.toml --out disk/run --resume --set train.steps=100000000 >out 2>err &
    process=$!
    until [[ $(ls disk/run/checkpoints | grep -c step-) -ge 2 ]]; do sleep 0.05; done
    read_only disk/run/checkpoints
    until grep -q "was not saved" err; do sleep 0.05; done
    contains err "Read-only file system"
    umount disk/run/checkpoints
    old=$(ls disk/run/checkpoints | grep step- | tail -1)
    until [[ $(ls disk/run/checkpoints | grep step- | tail -1) != "$old" ]]; do sleep 0.05; done
    kill -INT $process
    wait $process || true
    read_only "$PWD/disk"
    expect 1 "$artel" train run.toml --out disk/run --resume
    contains err "artel: error: [disk/run/lock] cannot open: Read-only file system"
    expect 1 "$artel" train run.toml --out disk/new
    contains err "artel: error: [disk/new] cannot be read or written: Read-only file system"
SH
  on_small_disk "$(cat case.sh)"
}

# In the background: the process is the program itself.
endless() { exec "$artel" train run.toml --set train.steps=100000000 "$@"; }

test_two_starts() {
  make_data
  endless --out run >out1 2>err1 &
  local first=$!
  endless --out run >out2 2>err2 &
  local second=$! code=0 loser=err1
  wait -n || code=$?
  [[ $code -eq 1 ]] || fail "exit code $code: $(cat err1 err2)"
  kill -0 $first 2>/dev/null && loser=err2
  grep -qE "^artel: error: \[run(/lock\] process [0-9]+ on host .* holds the lock; two processes cannot write to one run|\] the folder already contains a run)" $loser ||
    fail "$(cat $loser)"
  [[ ! -e run/config.toml || -e run/lock ]] || fail "the other one's folder was removed"
  kill -INT $first $second 2>/dev/null || true
  wait
  # Without a name each gets its own.
  "$artel" train run.toml --set train.steps=50 >/dev/null 2>&1 &
  "$artel" train run.toml --set train.steps=50 >/dev/null 2>&1 &
  "$artel" train run.toml --set train.steps=50 >/dev/null 2>&1 &
  wait
  [[ $(ls runs | tr '\n' ' ') == "run run-2 run-3 " ]] || fail "$(ls runs)"
  local name
  for name in run-2 run-3; do expect 0 "$artel" verify runs/run runs/$name; done
}

# The view of runs from outside, in all their states.
test_overview() {
  make_data
  expect 0 "$artel" train run.toml
  expect 0 "$artel" train run.toml --set train.optimizer.lr=0.2
  expect 1 "$artel" train run.toml --set train.optimizer.lr=1e30
  "$artel" train run.toml --set train.epochs=1000000 --set train.save_every=20 >/dev/null 2>&1 &
  local process=$!
  wait_for_checkpoint runs/run-4
  expect 0 "$artel" runs
  grep -qE "^runs/run +finished +60 .*test accuracy 0\.[0-9]+ .*epochs$" out || fail "$(cat out)"
  grep -qE "^runs/run-3 +failed .*the loss is nan" out || fail "$(cat out)"
  grep -qE "^runs/run-4 +running .*process $process on host" out || fail "$(cat out)"
  expect 1 "$artel" runs clean run-4 --yes
  contains err "[runs/run-4] is being trained by process $process on host"
  kill -9 $process
  wait $process || true
  expect 0 "$artel" runs --status dead --json
  [[ $(wc -l <out) -eq 1 ]] && grep -q '"run":"runs/run-4","status":"dead"' out || fail "$(cat out)"
  expect 0 "$artel" runs compare run run-2 -o curves.svg
  grep -qE "^train.optimizer.lr +0.1 +0.2$" out || fail "$(cat out)"
  [[ $(grep -c "^train\." out) -eq 1 && -s curves.svg ]] || fail "$(cat out)"
  # Of long lists of layers, only those that differ.
  local many='"dense 8", "tanh", "dense 8", "tanh", "dense 8", "tanh", "dense 8", "tanh"'
  expect 0 "$artel" train run.toml --out lists/a --set "model.layers=[\"dense 4\", $many, \"dense 2\"]"
  expect 0 "$artel" train run.toml --out lists/b --set "model.layers=[$many, \"relu\", $many, \"dense 2\"]"
  expect 0 "$artel" runs compare lists/a lists/b
  grep -qE '^model.layers +"dense 4", \.\.\. +\.\.\., "relu", "dense 8", ' out || fail "$(cat out)"
  [[ $(awk '{ if (length > longest) longest = length } END { print longest }' out) -le 130 ]] || fail "$(cat out)"
  # A resumed run is no longer a failed one.
  expect 0 "$artel" train run.toml --out runs/run-3 --resume --force
  expect 0 "$artel" runs --status failed
  contains out "no runs"
  expect 1 "$artel" runs clean
  contains err "standard input is not a terminal; add --yes"
  expect 0 "$artel" runs clean --yes
  [[ $(ls runs | tr '\n' ' ') == "run run-2 run-3 " ]] || fail "$(ls runs)"
  expect 1 "$artel" runs compare run other
  contains err "[runs/other] is not the folder of a run"
  expect 1 "$artel" runs --status odd
  contains err "status: got 'odd', expected running, finished"
}

test_two_resumes() {
  make_data
  expect 0 "$artel" train run.toml --out run --set train.steps=5
  endless --out run --resume >out1 2>err1 &
  local process=$!
  until [[ $(ls run/checkpoints | grep -c step-) -ge 2 ]]; do sleep 0.05; done
  cp run/config.toml before.toml
  expect 1 "$artel" train run.toml --out run --resume --set train.steps=70
  contains err "artel: error: [run/lock] process $process on host $(hostname) holds the lock"
  cmp before.toml run/config.toml || fail "the refused resume changed the configuration"
  kill -INT $process
  wait $process || true
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume --set train.steps=$((step + 2))
}

test_not_finite() {
  make_data
  expect 1 "$artel" train run.toml --out high --set train.optimizer.lr=1e30 --set train.optimizer.momentum=0 --set train.steps=1 --set 'model.layers=["dense 16", "dense 2"]'
  contains err "the last checkpoint was not saved: "
  ! compgen -G "high/checkpoints/step-*" >/dev/null || fail "saved: $(ls high/checkpoints)"
  # The weights of a good run survive.
  expect 0 "$artel" train run.toml --out run --set train.steps=5 --set train.save_every=1 --set train.keep_checkpoints=1
  expect 1 "$artel" train run.toml --out run --resume --force --set train.optimizer.lr=1e38 --set train.save_every=1 --set train.keep_checkpoints=1
  "$artel" evaluate run --json >out
  ! grep -q null out || fail "poisoned: $(cat out)"
}

# Nothing changes before the new configuration has been checked.
test_refused() {
  make_data
  expect 0 "$artel" train run.toml --out run
  cp -r run before
  expect 1 "$artel" train run.toml --out run --resume --force --set 'model.layers=["dense 7", "dense 2"]'
  expect 1 "$artel" train run.toml --out run --resume --set train.epochs=8 --set cluster.lanes=7
  rm run/lock before/lock
  diff -r before run || fail "a refused resume changed the folder"
  expect 0 "$artel" evaluate run
  expect 1 "$artel" train run.toml --out nowhere --resume
  contains err "artel: error: [nowhere] no run to resume; try without --resume"
  expect 1 "$artel" train run.toml --resume
  contains err "artel: error: [runs/run] no run to resume"
  [[ ! -e nowhere && ! -e runs/run ]] || fail "a refused resume left a folder"
}

test_finished() {
  make_data
  expect 0 "$artel" train run.toml --out run
  cp -r run before
  expect 0 "$artel" train run.toml --out run --resume
  contains err "nothing is left to do after step 60"
  diff before/summary.json run/summary.json || fail "the summary changed"
  diff before/metrics.jsonl run/metrics.jsonl || fail "the metrics changed"
  expect 0 "$artel" verify before run
}

test_changed() {
  make_data
  expect 0 "$artel" train run.toml --out run --set train.steps=5
  local change
  for change in train.batch_size=10 train.seed=3 train.optimizer.lr=0.2 data.test_fraction=0.5 train.label_smoothing=0.1; do
    expect 1 "$artel" train run.toml --out run --resume --set $change
    contains err "artel: error: [run] --resume with $(sed 's/\.lr=.*//; s/=.*//' <<<"$change") = "
    contains err "continue anyway with --force, or start another run"
  done
  # Settings that only determine duration, frequency, or number of workers may change.
  expect 0 "$artel" train run.toml --out run --resume --set train.epochs=1 --set train.save_every=3 --set train.patience=9 -n 2
  expect 0 "$artel" train run.toml --out run --resume --force --set train.epochs=2 --set train.optimizer.lr=0.2
  contains err "run continues with train.optimizer = "
  # From then on that is the run's.
  expect 0 "$artel" train run.toml --out run --resume --set train.epochs=3 --set train.optimizer.lr=0.2
  sed -i 's/no$/yes/' data.csv
  sed -i '2s/yes$/no/' data.csv
  expect 1 "$artel" train run.toml --out run --resume --set train.epochs=4 --set train.optimizer.lr=0.2
  contains err "artel: error: [run] --resume with other samples in the data"
}

# Up to the checkpoint that a killed run is resumed from, no line of metrics is missing.
test_killed() {
  make_data
  endless --out run --set train.save_every=100 >out 2>err &
  local process=$!
  until [[ $(ls run/checkpoints 2>/dev/null | grep -c step-) -ge 3 ]]; do sleep 0.02; done
  kill -KILL $process
  wait $process || true
  mkdir run/checkpoints/.step-000000001.new
  printf 'garbage\n' >>run/metrics.jsonl
  local step
  step=$(newest_step)
  expect 0 "$artel" train run.toml --out run --resume --set train.steps=$((step + 3))
  contains err "resuming run after step $step"
  ! ls -A run/checkpoints | grep -q '^\.' || fail "left behind: $(ls -A run/checkpoints)"
  [[ $(grep -c train/loss run/metrics.jsonl) -eq $((step + 3)) ]] ||
    fail "$(grep -c train/loss run/metrics.jsonl) lines, expected $((step + 3))"
}

# A folder that is gone is told, and the run can still be stopped.
test_removed() {
  start_endless_run 2
  mv run elsewhere
  until grep -q "was not saved: .run. the folder of this run was removed" err; do sleep 0.1; done
  kill -INT $launcher
  local code=0
  wait $launcher || code=$?
  [[ $code -eq 1 ]] || fail "exit code $code"
  contains err "the last checkpoint was not saved: [run] the folder of this run was removed, or is out of reach"
}

# A worker that has lost its folder to another process stops, and the others do not wait for it.
test_stolen() {
  start_endless_run 2
  rm run/lock && : >run/lock
  local code=0
  wait $launcher || code=$?
  [[ $code -eq 1 ]] || fail "exit code $code"
  contains err "artel: error: [run] another process has taken over this run"
}

"test_$case"
