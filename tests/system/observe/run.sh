#!/usr/bin/env bash
# run.sh ARTEL CASE: looks at running and ended runs from outside (a function test_CASE below).
set -euo pipefail
artel=$1 case=$2
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../support.sh"
# Workers end when their launcher has.
trap 'kill -KILL $(jobs -p) "${workers[@]}" 2>/dev/null || true; wait; sleep 0.2; rm -rf "$folder"' EXIT

# waits_for EXPRESSION: until it is true in Python of what `artel top --json` says: `run`, and its `workers` by name.
waits_for() {
  local tries=0
  until "$artel" top run --json >top.json 2>top.err && python3 - "$1" <<'PYTHON'
import json, sys
run = json.load(open("top.json"))
workers = {worker["name"]: worker for worker in run.get("live", {}).get("workers", [])}
sys.exit(0 if workers and eval(sys.argv[1]) else 1)
PYTHON
  do
    sleep 0.2
    ((++tries < 200)) || { cat top.json top.err >&2; fail "never: $1"; }
  done
}

all_known='all("computing" in w and w["memory_bytes"] > 0 and w["step"] > 0 for w in workers.values())'

test_top() {
  start_endless_run 2
  waits_for "set(workers) == {'worker 0', 'worker 1'} and $all_known"
  waits_for "run['status'] == 'running' and all(abs(w['computing'] + w['waiting_for_data'] + w['waiting_for_workers'] - 1) < 0.01 for w in workers.values())"
  expect 0 "$artel" top run
  contains out "samples/s"
  contains out "worker 1"
  [[ $(head -c 1 out) != $'\e' ]] || fail "a pipe got an escape sequence"
  expect 0 "$artel" top --folder . --once
  contains out "running"
  interrupt
  expect 0 "$artel" top run --once
  contains out "run was stopped (interrupted)"
}

# Whoever becomes worker 0 goes on telling.
test_takes_over() {
  start_endless_run 3
  waits_for "len(workers) == 3 and $all_known"
  kill -KILL "${workers[0]}"
  waits_for "set(workers) == {'worker 1', 'worker 2'} and run['live']['process'] == ${workers[1]} and $all_known"
  interrupt
}

test_servers() {
  make_run
  "$artel" train run.toml --out run -n 2 --servers 1 --set train.steps=100000000 --set cluster.delay=2 >out 2>err &
  launcher=$!
  waits_for "set(workers) == {'worker 0', 'worker 1', 'server 0'} and workers['server 0']['step'] > 0 and 'staleness' in workers['server 0']"
}

test_gloo() {
  start_endless_run 2 --set cluster.transport=gloo
  waits_for "len(workers) == 2 and $all_known and workers['worker 1']['sent_per_second'] > 0"
  interrupt
}

test_mpi() {
  command -v mpirun >/dev/null || { echo "skipped: no mpirun" >&2; exit 77; }
  make_run
  mpirun --allow-run-as-root --oversubscribe -n 2 "$artel" train run.toml --out run --set train.steps=100000000 >out 2>err &
  launcher=$!
  waits_for "len(workers) == 2 and $all_known"
  kill -INT $launcher
  wait $launcher || true
}

test_ended() {
  make_run
  expect 1 "$artel" top
  contains err "artel: error: [runs] is not a folder"
  expect 1 "$artel" top nothing
  contains err "is not the folder of a run"
  expect 0 "$artel" train run.toml --out run
  expect 0 "$artel" top run
  contains out "run has finished (epochs)"
  "$artel" train run.toml --out killed --set train.steps=100000000 >out 2>err &
  until [[ -e killed/live.json ]]; do sleep 0.1; done
  kill -KILL $!
  wait $! || true
  expect 0 "$artel" top killed
  contains out "killed is dead: its process ended without a word"
}

# Training goes on; the command learns of it once.
test_alerts() {
  make_run
  printf '#!/bin/sh\nprintf "%%s|" "$@" >>"$(dirname "$0")/told"; echo >>"$(dirname "$0")/told"\n' >notify.sh
  chmod +x notify.sh
  expect 0 "$artel" train run.toml --out still -n 2 --set train.optimizer.lr=1e-12 --set train.epochs=90 --set observe.on_event="$PWD/notify.sh extra"
  contains err "the loss has stood still"
  contains still/metrics.jsonl '"event":"loss"'
  [[ $(grep -c '^extra|loss|' told) -eq 1 ]] || fail "expected one line: $(cat told)"
  contains told "$PWD/still|"
  expect 1 "$artel" train run.toml --out fails --set train.optimizer.lr=1e30 --set observe.on_event="$PWD/notify.sh"
  contains told "failed|1|[step 2] the loss is nan"
  contains fails/metrics.jsonl '"event":"failed"'
  # One that hangs or is not there does not keep the run.
  expect 1 "$artel" train run.toml --out hangs --set train.optimizer.lr=1e30 --set observe.on_event="sleep 100 #"
  contains err "observe.on_event: 'sleep 100 #'"
  expect 1 "$artel" train run.toml --out missing --set train.optimizer.lr=1e30 --set observe.on_event="no-such-program"
  contains err "there is no such program"
  start_endless_run 3 --set observe.on_event="$PWD/notify.sh"
  waits_for "len(workers) == 3 and $all_known"
  kill -KILL "${workers[0]}"
  waits_for "any('worker 0 on host' in e['text'] and e['text'].endswith('has gone') for e in run['live']['events'])"
  interrupt
}

# start_with_dashboard: a run of two workers whose loss stands still, with a dashboard at $address.
start_with_dashboard() {
  make_run
  "$artel" train run.toml --out runs/run -n 2 --dashboard --set train.epochs=1000000 --set train.optimizer.lr=1e-12 >out 2>err &
  launcher=$!
  local tries=0
  until address=$(sed -n 's/^dashboard: //p' out) && [[ -n $address && -e runs/run/live.json ]]; do
    sleep 0.1
    ((++tries < 300)) || { cat out err >&2; fail "no dashboard within 30 s"; }
  done
}

# It belongs to the run, cannot hurt it, and ends with it.
test_dashboard() {
  start_with_dashboard
  [[ $(grep -c '^dashboard: ' out) -eq 1 ]] || fail "every worker has a dashboard"
  local place=${address#http://} dashboard
  place=${place%/}
  dashboard=$(pgrep -P $launcher -f "dashboard runs")
  expect 0 "$artel" top "$place" --once
  contains out "worker 1"
  python3 - "$place" <<'PYTHON'
import socket, sys
host, port = sys.argv[1].split(":")
for request in (b"\0" * 100_000, b"GET / HTTP/1.1\r\n" * 1000, b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
                b"POST /api/notes?run=run HTTP/1.1\r\nHost: localhost\r\nX-Artel: notes\r\nContent-Length: 99999999999\r\n\r\n"):
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            connection.sendall(request)
        except OSError:
            pass
PYTHON
  expect 0 "$artel" top "$place" --json
  kill -KILL "$dashboard"
  local step
  step=$(python3 -c 'import json; print(json.load(open("runs/run/live.json"))["step"])')
  artel_step() { python3 -c 'import json; print(json.load(open("runs/run/live.json"))["step"])'; }
  until (($(artel_step) > step)); do sleep 0.2; done
  interrupt
  expect 1 "$artel" top 127.0.0.1:1
  contains err "no dashboard answers there"
  expect 1 "$artel" dashboard nothing
  contains err "is not a folder of runs"
}

test_browser() {
  python3 -c "import sys; sys.path.insert(0, '$here'); import browser; sys.exit(not browser.program())" ||
    { echo "skipped: no Chromium; 'tools/setup browser' installs chromium-headless-shell" >&2; exit 77; }
  make_run
  expect 0 "$artel" train run.toml --out runs/done --set 'train.metrics=["accuracy", "confusion matrix"]'
  start_with_dashboard
  python3 "$here/page.py" "$address" || { cat err >&2; fail "the page"; }
  contains runs/done/notes.txt "worth a second look"
  interrupt
}

"test_$case"
