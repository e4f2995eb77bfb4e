# Sourced by the run.sh of a folder of system tests: an empty folder to run in, checks, and data.
folder=$(mktemp -d)
# Workers whose launcher was killed write into it until they have ended, too.
remove_folder() {
  for _ in {1..50}; do ! rm -rf "$folder" 2>/dev/null || return 0; sleep 0.2; done
}
trap remove_folder EXIT
cd "$folder"
export LC_ALL=C
export XDG_CONFIG_HOME=$folder/config  # of the keys that tokens are derived from
port=$((10000 + $$ * 7 % 22000))  # below those that the kernel gives away, and far from those of a test next to this one

# True if the program was built with sanitizers, which take memory of their own.
sanitized() { [[ -n ${ARTEL_SANITIZED:-} ]]; }
fail() { echo "FAILED: $*" >&2; exit 1; }
contains() { grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "no '$2' in $1"; }; }

# Before mpirun. Open MPI unloads its modules before leaks are looked for: what they have kept cannot be told from leaks of ours.
ignore_leaks() { export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"; }

# expect CODE COMMAND...: the exit code; standard output and error go to the files out and err.
expect() {
  local wanted=$1 got=0
  shift
  "$@" >out 2>err || got=$?
  [[ $got -eq $wanted ]] || { cat out err >&2; fail "$* gave $got, expected $wanted"; }
}

# same_with_workers FILE WORKERS OPTIONS...: trains FILE.toml, with its standard error in err.train, and compares with the
# run FILE.
runs=0
same_with_workers() {
  local out=$1-$((++runs))
  expect 0 "$artel" train "$1.toml" --out "$out" -n "$2" "${@:3}"
  cp err err.train
  expect 0 "$artel" verify "$1" "$out"
}

# A table of two classes that a small network learns, and a configuration for it.
make_data() {
  awk 'BEGIN { srand(7); print "a,b,c,kind"
    for (i = 0; i < 400; ++i) { a = rand() - 0.5; b = rand() - 0.5
      printf "%.4f,%.4f,%.4f,%s\n", a, b, rand(), (a + b > 0) ? "yes" : "no" } }' >data.csv
  cat >run.toml <<'TOML'
[data]
set = "csv"
path = "data.csv"
test_fraction = 0.25
[model]
layers = ["dense 16", "batch_norm", "relu", "dropout 0.1", "dense 2"]
[train]
batch_size = 20
epochs = 4
optimizer = { name = "sgd", lr = 0.1, momentum = 0.9 }
TOML
}

# The same in eight lanes, for several workers of one thread.
make_run() {
  make_data
  printf '[cluster]\nlanes = 8\nthreads = 1\n' >>run.toml
}

# A small language model with tied weights, dropout and clipping.
make_text() {
  for i in {1..60}; do echo "the quick brown fox jumps over the lazy dog and runs away $((i * 7919 % 101))"; done >text.txt
  cat >text.toml <<'TOML'
[data]
set = "text"
path = "text.txt"
context = 16
[model]
name = "gpt2"
width = 16
depth = 3
heads = 2
positions = 16
dropout = 0.1
[train]
batch_size = 16
steps = 6
clip_norm = 0.5
optimizer = { name = "adamw", lr = 0.01 }
[cluster]
lanes = 8
threads = 1
TOML
}

# Old checkpoints are removed, so only that there is one can be awaited, not which one.
wait_for_checkpoint() {
  local tries=0
  until compgen -G "$1/checkpoints/step-*/model.safetensors" >/dev/null; do
    sleep 0.05
    ((++tries < 600)) || { cat err >&2; fail "no checkpoint in $1 within 30 s"; }
  done
}

# For a run in the folder run whose first process is $launcher:
newest_step() { ls run/checkpoints | sed -n 's/^step-0*//p' | tail -1; }

# start_endless_run COUNT OPTIONS...: a run that saves often and starts no worker again; its processes are $launcher and
# ${workers[@]}, by rank.
workers=()
start_endless_run() {
  make_run
  "$artel" train run.toml --out run -n "$1" --set train.steps=100000000 --set train.save_every=50 --set cluster.restarts=0 "${@:2}" >out 2>err &
  launcher=$!
  wait_for_checkpoint run
  local process
  for process in $(pgrep -P $launcher); do
    workers[$(tr '\0' '\n' </proc/$process/environ | sed -n 's/^ARTEL_RANK=//p')]=$process
  done
  [[ ${#workers[@]} -eq ${1#*..} ]] || fail "expected $1 workers: ${workers[*]}"
}

# Waits until the log of the run has the text so often.
awaits() { awaits_in err "$@"; }

# awaits_in FILE TEXT [N]
awaits_in() {
  local tries=0 found
  until found=$(grep -cF -- "$2" "$1" 2>/dev/null || true); ((${found:-0} >= ${3:-1})); do
    sleep 0.05
    ((++tries < 1200)) || { tail -n 40 "$1" out err >&2 || true; fail "no '$2' in $1 within 60 s"; }
  done
}

# Ctrl-C ends the run, which says so by its exit code.
interrupt() {
  kill -INT $launcher
  ends_interrupted
}
ends_interrupted() {
  local code=0
  wait $launcher || code=$?
  [[ $code -eq 130 ]] || fail "exit code $code, expected 130: $(cat err)"
}

# kill_one PROCESS: the others end within five seconds, and not as if all were well.
kill_one() {
  local begin=$SECONDS code=0 most=5
  if sanitized; then most=30; fi
  kill -KILL "$1"
  wait $launcher || code=$?
  ((SECONDS - begin <= most)) || fail "the run ended $((SECONDS - begin)) s after the kill"
  [[ $code -ne 0 ]] || fail "exit code 0"
}
