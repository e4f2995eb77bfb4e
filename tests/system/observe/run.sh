#!/usr/bin/env bash
# run.sh ARTEL CASE: looks at running and ended runs from outside (a function test_CASE below).
set -euo pipefail
artel=$1 case=$2
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../support.sh"
# Workers end when their launcher has.
trap 'kill -KILL $(jobs -p) "${workers[@]}" 2>/dev/null || true; wait; remove_folder' EXIT

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
  contains out "direct, exact  8 lanes"
  [[ $(head -c 1 out) != $'\e' ]] || fail "a pipe got an escape sequence"
  expect 0 "$artel" top --folder . --once
  contains out "running"
  interrupt
  expect 0 "$artel" top run --once
  contains out "run was stopped (interrupted)"
}

# A machine that was measured has a forecast of each step.
test_forecast() {
  export ARTEL_DATA=$folder/measured
  mkdir measured
  printf '[[machine]]\ncores = 2\nflops = "20 GFLOP/s"\nmemory = "8 GiB"\nmemory_bandwidth = "10 GB/s"\n' >measured/machines.toml
  start_endless_run 2
  waits_for "run['live']['forecast_seconds'] > 0 and run['live']['seconds_per_step'] > 0 and run['live']['seconds_left'] > 0"
  interrupt
  rm measured/machines.toml
  expect 0 "$artel" train run.toml --out unmeasured
  python3 -c 'import json; assert json.load(open("unmeasured/live.json"))["forecast_seconds"] == 0'
}

# The new worker 0 continues to report.
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
  start_endless_run 2 --set cluster.transport=gloo --set cluster.strategy=ring
  contains err "2 workers, 8 lanes: ring, fast; bits depend on the number of workers"
  waits_for "len(workers) == 2 and $all_known and workers['worker 1']['sent_per_second'] > 0"
  waits_for "run['live']['exchange'] == 'ring, fast' and run['live']['lanes'] == 8"
  interrupt
}

test_mpi() {
  command -v mpirun >/dev/null || { echo "skipped: no mpirun" >&2; exit 77; }
  make_run
  ignore_leaks
  mpirun --allow-run-as-root --oversubscribe -n 2 "$artel" train run.toml --out run --set train.steps=100000000 >out 2>err &
  launcher=$!
  waits_for "len(workers) == 2 and $all_known"
  # Under load, mpirun has been seen to miss a signal.
  while kill -INT $launcher 2>/dev/null; do sleep 1; done
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

# fits COLUMNS: no line of out is wider.
fits() {
  python3 - "$1" <<'PYTHON'
import re, sys
wide = [line for line in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", open("out").read()).replace("\r", "\n").split("\n") if len(line) > int(sys.argv[1])]
sys.exit(f"wider than {sys.argv[1]} columns: {wide}" if wide else 0)
PYTHON
}

# In a terminal: colours unless disabled, nothing wider than it is, and no run is removed without confirmation.
test_terminal() {
  make_run
  local shown=(python3 "$here/terminal.py")
  expect 0 "${shown[@]}" 90 "" "$artel" train run.toml --out runs/done
  fits 90
  contains out "test accuracy"
  expect 0 "${shown[@]}" 50 "" "$artel" top runs/done
  fits 50
  contains out $'\e['
  expect 0 env NO_COLOR=1 "${shown[@]}" 50 "" "$artel" top runs/done --once
  fits 50
  ! grep -q $'\e\[[0-9;]*m' out || fail "colours in spite of NO_COLOR"
  expect 0 "${shown[@]}" 60 "" "$artel" runs
  fits 60
  contains out "done"
  expect 0 "${shown[@]}" 80 n "$artel" runs clean done --in runs
  contains out "remove 1 run and free"
  [[ -e runs/done/config.toml ]] || fail "removed, although nobody had agreed"
  expect 0 "${shown[@]}" 80 "" "$artel" runs clean done --in runs
  [[ -e runs/done/config.toml ]] || fail "removed by an empty answer"
  expect 0 "${shown[@]}" 80 y "$artel" runs clean done --in runs
  contains out "removed 1 run"
  [[ ! -e runs/done ]] || fail "still there"
}

# checks_trace FILE SUMMARY: both workers have recorded the same five steps, by one clock, and the summary adds up.
checks_trace() {
  python3 - "$1" "$2" <<'PYTHON'
import json, sys
trace, summary = (json.load(open(path)) for path in sys.argv[1:])
events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
steps = [{e["name"]: e for e in events if e["pid"] == worker and e["cat"] == "step"} for worker in (0, 1)]
assert len(steps[0]) == 5 and set(steps[0]) == set(steps[1]), steps
# A step ends with the sums of both workers, so their steps overlap if their clocks agree.
for name, one in steps[0].items():
    other = steps[1][name]
    error = trace["otherData"]["clock_error_us"]
    assert one["ts"] < other["ts"] + other["dur"] + error and other["ts"] < one["ts"] + one["dur"] + error, (one, other)
for worker in (0, 1):
    assert {e["cat"] for e in events if e["pid"] == worker} >= {"step", "compute", "wait", "wire", "update"}
assert summary["steps"] == 5 and f"step {summary['first_step']}" in steps[0], summary
for shares in [summary["shares"]] + [w["shares"] for w in summary["workers"]]:
    assert abs(sum(shares.values()) - 1) < 0.01, shares
assert all(times >= 1 for times in summary["times_faster"].values()), summary
assert any(op["op"] == "dense" or "matmul" in op["op"] for op in summary["ops"]), summary["ops"]
assert len(summary["timeline"]["workers"]) == 2, summary
PYTHON
}

# Steps of a running training, recorded on request.
test_trace() {
  start_endless_run 2 "$@"
  expect 0 "$artel" trace run --steps 5 --out mine.json --json
  cp out summary.json
  checks_trace mine.json summary.json
  cmp mine.json run/trace.json
  expect 0 "$artel" trace mine.json
  contains out "A step takes"
  contains out "worker 1"
  expect 0 "$artel" trace --folder . --steps 1
  contains out "run/trace.json: open it in ui.perfetto.dev"
  contains out "(1 step from step"
  [[ ! -e run/trace.request && ! -e run/trace.answer ]] || fail "something was left behind"
  interrupt
  expect 1 "$artel" trace run
  contains err "run was stopped (interrupted)"
}

test_trace_gloo() { test_trace --set cluster.transport=gloo; }

# A refused request gets a reason.
test_trace_refused() {
  make_run
  expect 1 "$artel" trace nothing
  contains err "is not the folder of a run"
  expect 2 "$artel" trace run --steps 0
  expect 2 "$artel" trace run --steps many
  echo '{"traceEvents": []}' >empty.json
  expect 1 "$artel" trace empty.json
  contains err "[empty.json] has no step that all workers have made"
  expect 1 "$artel" trace run.toml
  contains err "[run.toml]"
  expect 0 "$artel" train run.toml --out run -n 2 --trace whole.json
  contains out "A step takes"
  [[ -e run/trace_summary.json ]] || fail "no trace_summary.json"
  expect 1 "$artel" trace run
  contains err "run has finished (epochs); only a run that is being trained can be traced"
  rm -rf run
  start_endless_run 2 --trace whole.json
  expect 1 "$artel" trace run
  contains err "all of this run is being traced"
  interrupt
  rm -rf run
  start_endless_run 2
  kill -STOP "${workers[0]}"
  expect 1 "$artel" trace run --timeout 1
  contains err "did not answer within 1 s"
  [[ ! -e run/trace.request ]] || fail "the request was left behind"
  kill -KILL $launcher "${workers[@]}"
  wait $launcher || true
  until "$artel" trace run 2>err; [[ $(cat err) == *"is dead"* ]]; do sleep 0.2; done
}

# kills_while_tracing WORKER REASON: the request gets this reason, unless the trace was finished first; the run continues.
kills_while_tracing() {
  "$artel" trace run --steps 3000 >trace.out 2>trace.err &
  local asker=$! tries=0
  until grep -qs recording run/trace.answer; do
    sleep 0.05
    ((++tries < 1200)) || { cat trace.err >&2; fail "no answer within 60 s"; }
  done
  kill -KILL "${workers[$1]}"
  if ! wait $asker; then contains trace.err "run] cannot be traced now: $2"; fi
}

test_trace_killed() {
  start_endless_run 3
  kills_while_tracing 2 "workers joined or left during the trace"
  waits_for "set(workers) == {'worker 0', 'worker 1'} and $all_known"
  kills_while_tracing 0 "worker 0 has changed during the trace"
  waits_for "set(workers) == {'worker 1'} and $all_known"
  expect 0 "$artel" trace run --steps 2
  interrupt
}

# The same bits with any number of requests.
test_trace_bits() {
  start_endless_run 2
  for steps in 1 2 3; do expect 0 "$artel" trace run --steps $steps; done
  interrupt
  expect 0 "$artel" train run.toml --out plain -n 2 --set train.steps="$(newest_step)"
  expect 0 "$artel" verify plain run
}

test_mesh() {
  make_text
  "$artel" train text.toml --out run -n 2 --set train.steps=100000000 --set cluster.pipeline=2 >out 2>err &
  launcher=$!
  waits_for "[workers[f'worker {i}']['mesh'] for i in range(2)] == ['stage 0', 'stage 1']"
  expect 0 "$artel" top run --once
  contains out "stage 1"
  expect 0 "$artel" trace run --steps 2
  contains out "A step takes"
  interrupt
  rm -rf run
  "$artel" train text.toml --out run -n 2 --set train.steps=100000000 --set cluster.tensor=2 >out 2>err &
  launcher=$!
  waits_for "[workers[f'worker {i}']['mesh'] for i in range(2)] == ['tensor 0', 'tensor 1']"
  expect 0 "$artel" trace run --steps 2 --json
  python3 -c 'import json; assert json.load(open("out"))["shares"]["waiting_for_workers"] > 0'
  interrupt
}

# Training continues; the command learns of it once.
test_alerts() {
  make_run
  printf '#!/bin/sh\nprintf "%%s|" "$@" >>"$(dirname "$0")/told"; echo >>"$(dirname "$0")/told"\n' >notify.sh
  chmod +x notify.sh
  expect 0 "$artel" train run.toml --out still -n 2 --set train.optimizer.lr=1e-12 --set train.epochs=90 --set observe.on_event="$PWD/notify.sh extra"
  contains err "no improvement in training loss"
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
  contains err "no such program"
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
  place=${place%%/*}
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
  # The token is the user's own, not the run's, and another user has another one.
  ARTEL_TOKEN=stolen expect 0 "$artel" top "$place" --once
  XDG_CONFIG_HOME=$folder/theirs expect 1 "$artel" top "$place" --once
  contains err "a token is needed"
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

# Pictures of three classes, some with wrong labels, and a network for them.
make_pictures() {
  python3 "$here/pictures.py" pictures.npz
  cat >pictures.toml <<'TOML'
[data]
set = "npz"
path = "pictures.npz"
augment = ["normalise 0.3 0.4"]
[model]
layers = ["conv 4 3x3", "relu", "max_pool 2x2", "flatten", "dense 16", "relu", "dense 3"]
[train]
batch_size = 24
epochs = 3
metrics = ["accuracy", "confusion matrix"]
optimizer = { name = "sgd", lr = 0.1, momentum = 0.9 }
[cluster]
lanes = 4
threads = 1
TOML
}

# same_mistakes WORKERS OPTIONS...: as the run `pictures` has them.
same_mistakes() {
  same_with_workers pictures "$@"
  cmp "pictures/mistakes.json" "pictures-$runs/mistakes.json" || fail "other mistakes with $*"
  cmp "pictures/mistakes.png" "pictures-$runs/mistakes.png" || fail "other pictures with $*"
}

# The same ones on any mesh, and in the files for others.
test_mistakes() {
  make_pictures
  expect 0 "$artel" train pictures.toml --out pictures
  python3 - <<'PYTHON'
import json
sheet = json.load(open("pictures/mistakes.json"))
mistakes = sheet["mistakes"]
assert sheet["step"] == 30 and sheet["part"] == "test" and 1 <= len(mistakes) <= 24, sheet
assert (sheet["tile_width"], sheet["tile_height"]) == (12, 12), sheet
assert all(m["label"] != m["answer"] and 0 <= m["sample"] < 120 for m in mistakes), sheet
assert [m["probability"] for m in mistakes] == sorted((m["probability"] for m in mistakes), reverse=True), sheet
PYTHON
  same_mistakes 2
  same_mistakes 3 --set cluster.transport=gloo
  same_mistakes 2 --set cluster.pipeline=2
  same_mistakes 2 --set cluster.sharding=weights
  expect 0 python3 "$here/events.py" pictures 'set(histograms) == {"weights/0.weight", "weights/0.bias", "weights/4.weight", "weights/4.bias", "weights/6.weight", "weights/6.bias"}
    and all([step for step, _ in h] == [10, 20, 30] for h in histograms.values()) and histograms["weights/6.weight"][0][1] == 48
    and [step for step, _ in images["test/mistakes"]] == [10, 20, 30] and images["confusion matrix"][2] == (30, (399, 399))
    and "lanes = 4" in texts["configuration"][0][1] and len(scalars["train/loss"]) == 30' 
  expect 0 "$artel" export pictures --html --out pictures.html
  contains pictures.html "<h2>Mistakes</h2>"
  contains pictures.html "data:image/png;base64,iVBOR"
  expect 0 "$artel" evaluate pictures --mistakes again.png
  cmp again.png pictures/mistakes.png || fail "artel evaluate draws other mistakes"
  contains out "probability"
  expect 0 "$artel" evaluate pictures --mistakes again.png --json
  python3 -c 'import json; assert json.load(open("out"))["mistakes"] == json.load(open("pictures/mistakes.json"))["mistakes"]'
  # Only what is asked for.
  same_with_workers pictures 1 --set observe.tensorboard=scalars --set observe.mistakes=0
  [[ ! -e pictures-$runs/mistakes.json && ! -e pictures-$runs/mistakes.png ]] || fail "mistakes that nobody wants"
  expect 0 python3 "$here/events.py" pictures-$runs 'not histograms and not images and not texts and len(scalars["train/loss"]) == 30'
  expect 0 "$artel" export pictures-$runs --html --out none.html
  ! grep -q "Mistakes" none.html || fail "a page with mistakes that are not there"
  # A run that has ended stays as it is.
  cp pictures/mistakes.json before.json
  expect 0 "$artel" train pictures.toml --out pictures --resume
  cmp pictures/mistakes.json before.json || fail "a finished run has changed"
}

# The text of a language model is that of `artel generate`, and training is not affected.
test_texts() {
  make_text
  local options=(--set train.steps=0 --set train.epochs=2 --set 'observe.sample_prompt="the "')
  expect 0 "$artel" train text.toml --out text "${options[@]}"
  python3 - <<'PYTHON' >expected
import json
lines = [json.loads(line) for line in open("text/texts.jsonl")]
assert len(lines) == 2 and lines[0]["step"] * 2 == lines[1]["step"] and lines[1]["epoch"] == 2, lines
assert all(line["prompt"] == "the " and len(line["text"]) == 100 for line in lines), lines
print(lines[1]["prompt"] + lines[1]["text"])
PYTHON
  expect 0 "$artel" generate text --prompt "the " --tokens 100
  cmp out expected || fail "artel generate writes something else"
  expect 0 python3 "$here/events.py" text 'len(texts["texts"]) == 2 and "the " in texts["texts"][1][1]'
  local mesh
  for mesh in "" "--set cluster.pipeline=2" "--set cluster.sharding=weights"; do
    same_with_workers text 2 "${options[@]}" $mesh
    cmp text/texts.jsonl "text-$runs/texts.jsonl" || fail "other texts with $mesh"
  done
  same_with_workers text 1 "${options[@]}" --set observe.sample_tokens=0
  [[ ! -e text-$runs/texts.jsonl ]] || fail "texts that nobody wants"
  expect 0 "$artel" export text --html --out text.html
  contains text.html "<h2>Texts</h2>"
  # A run that continues from an earlier step writes later texts again.
  "$artel" train text.toml --out parts "${options[@]}" --set train.epochs=1 >out 2>err
  echo '{"step":1000,"epoch":9,"prompt":"","text":"never"}' >>parts/texts.jsonl
  expect 0 "$artel" train text.toml --out parts --resume "${options[@]}"
  cmp text/texts.jsonl parts/texts.jsonl || fail "other texts after a pause"
  # Without a test, no worker has all weights of a pipeline.
  expect 0 "$artel" train text.toml --out untested -n 2 "${options[@]}" --set cluster.pipeline=2 --set data.test_fraction=0
  [[ $(grep -c "only a part of the network" err) -eq 1 && ! -e untested/texts.jsonl ]] || fail "expected one warning: $(cat err)"
  expect 1 "$artel" train text.toml --out never --set 'observe.sample_prompt="ÄÖ"'
  contains err "[observe.sample_prompt]"
  contains err "is not among"
  expect 1 "$artel" train text.toml --out never --set 'observe.sample_prompt="the quick brown fox"'
  contains err "[observe.sample_prompt] got 19 tokens, expected at most the 16 of data.context"
}

test_browser() {
  python3 -c "import sys; sys.path.insert(0, '$here'); import browser; sys.exit(not browser.program())" ||
    { echo "skipped: no Chromium; 'tools/setup browser' installs chromium-headless-shell" >&2; exit 77; }
  make_run
  expect 0 "$artel" train run.toml --out runs/done --set 'train.metrics=["accuracy", "confusion matrix"]'
  make_pictures
  make_text
  expect 0 "$artel" train pictures.toml --out runs/pictures
  expect 0 "$artel" train text.toml --out runs/text
  start_with_dashboard
  python3 "$here/page.py" "$address" "$artel" || { cat err >&2; fail "the page"; }
  contains runs/done/notes.txt "worth a second look"
  interrupt
}

"test_$case"
