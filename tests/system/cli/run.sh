#!/usr/bin/env bash
# run.sh ARTEL ROOT CASE: runs one case (a function test_CASE below) of the program in an empty folder.
set -euo pipefail
artel=$1 root=$2 case=$3
source "$(dirname "$0")/../support.sh"

test_help() {
  expect 0 "$artel" --help
  contains out "artel train examples/fashion_mnist.toml"
  local command
  for command in train evaluate predict generate embed info plan data config verify sweep bench comm "comm schedule" "comm bench" "data get" "data list" "data show" "bench train" "bench generate"; do
    # shellcheck disable=SC2086
    expect 0 "$artel" $command --help
    contains out Example
  done
  expect 0 "$artel" --version
  grep -qE '^artel [0-9]+\.[0-9]+\.[0-9]+$' out || fail "version: $(cat out)"
}

test_documentation() {
  "$artel" config --markdown | diff - "$root/docs/configuration.md" ||
    fail "docs/configuration.md differs; run: artel config --markdown > docs/configuration.md"
  # What the page shows is what its example compiles.
  local line
  while IFS= read -r line; do
    grep -qxF -- "$line" "$root/examples/own_parts.cc" || fail "docs/extending.md shows '$line', which examples/own_parts.cc does not have"
  done < <(awk '/^## / { example = /a loss, a metric, and a layer/ } /^```/ { inside = $0 == "```cpp"; next } example && inside && NF' \
    "$root/docs/extending.md")
  local file
  for file in "$root"/examples/*.toml; do expect 0 "$artel" config "$file"; done
}

test_train() {
  make_data
  expect 0 "$artel" train run.toml --out run
  contains err "epoch 4/4"
  contains out "test accuracy"
  local name
  for name in config.toml samples.json metrics.jsonl curves.svg choices.txt checkpoints; do
    [[ -e run/$name ]] || fail "no run/$name"
  done
  compgen -G 'run/events.out.tfevents.*' >/dev/null || fail "no event file"
  [[ $(grep -c train/loss run/metrics.jsonl) -eq 60 ]] || fail "expected 60 steps in metrics.jsonl"
  [[ $(grep -c test/accuracy run/metrics.jsonl) -eq 4 ]] || fail "expected 4 epochs in metrics.jsonl"
  expect 0 "$artel" config run/config.toml
  diff out run/config.toml || fail "the resolved configuration does not resolve to itself"
  expect 0 "$artel" evaluate run --json
  grep -qE '"accuracy":(0\.[89]|1)' out || fail "accuracy: $(cat out)"
  expect 0 "$artel" evaluate run/checkpoints/step-000000060
  contains out "of 100"
  expect 0 "$artel" evaluate run/checkpoints/step-000000060/model.safetensors --config run.toml
  expect 0 "$artel" info run
  contains out "checkpoint run/checkpoints/step-000000060"
  expect 0 "$artel" train run.toml --out half --set train.epochs=1 --set model.weights=run
  contains err "test accuracy"
}

test_averages() {
  make_run
  local mean=(--set train.optimizer.average=0.9 --set train.optimizer.average_from=5 --set "train.optimizer.rates=0.: 0.5")
  expect 0 "$artel" train run.toml --out whole "${mean[@]}"
  expect 0 "$artel" train run.toml --out parts "${mean[@]}" --set train.epochs=2
  expect 0 "$artel" train run.toml --out parts "${mean[@]}" --resume -n 3
  expect 0 "$artel" verify whole parts
  expect 0 "$artel" evaluate whole --trained --json
  cp out trained
  expect 0 "$artel" evaluate whole --json
  cp out averaged
  if cmp -s trained averaged; then fail "the average is what was trained: $(cat out)"; fi
  expect 0 "$artel" evaluate parts --json
  cmp out averaged || fail "another average after a resume on three workers: $(cat out averaged)"
  # What the run itself says of its tests.
  loss_in() { grep -oE "\"$2\": ?[-+.0-9e]+" "$1" | head -1 | grep -oE '[-+.0-9e]+$'; }
  [[ $(loss_in averaged loss) == "$(loss_in whole/summary.json test_loss)" ]] ||
    fail "the test of the run is not that of its averages: $(cat averaged whole/summary.json)"
  grep -q '"tested_weights": "averaged"' whole/summary.json || fail "$(cat whole/summary.json)"
  [[ $(loss_in whole/summary.json test_loss) == "$(loss_in parts/summary.json test_loss)" ]] ||
    fail "another test after a resume: $(cat parts/summary.json)"
  expect 0 "$artel" train run.toml --out plain --set train.epochs=1
  expect 0 "$artel" evaluate plain --trained --json
  cp out trained
  expect 0 "$artel" evaluate plain --json
  cmp out trained || fail "a run without averages has other weights: $(cat out trained)"
  expect 1 "$artel" train run.toml --out wrong --set "train.optimizer.rates=head: 2"
  contains err "no parameter's name begins with 'head'"
}

# The noise of gradients is the same on any number of workers, and measuring it changes nothing.
test_noise() {
  make_run
  expect 0 "$artel" train run.toml --out silent
  expect 0 "$artel" train run.toml --out one --set train.noise_every=5
  expect 0 "$artel" verify silent one
  expect 0 "$artel" train run.toml --out three --set train.noise_every=5 -n 3
  numbers() { grep -oE '"train/(gradient_variance|gradient_square|noise_scale)":[^,}]*' "$1/metrics.jsonl"; }
  [[ $(numbers one | grep -c variance) -eq 12 ]] || fail "expected 12 measurements: $(numbers one)"
  diff <(numbers one) <(numbers three) || fail "other noise on three workers"
  expect 0 "$artel" train run.toml --out apart --set train.noise_every=5 -n 2 --set cluster.local_steps=2
  contains err "train.noise_every has no effect with parameter servers, pipelines"
}

test_folds() {
  make_data
  expect 0 "$artel" train run.toml --out cv --folds 3 --set train.epochs=2
  contains out "+-"
  [[ $(grep -cE '^ *[012] ' out) -eq 3 ]] || fail "expected three folds: $(cat out)"
  # Every training sample is held out once.
  local held
  held=$(for i in 0 1 2; do "$artel" evaluate cv/fold-$i --on validation --json | grep -oE '"samples":[0-9]+' | head -1; done | cut -d: -f2 | paste -sd+)
  [[ $((held)) -eq 300 ]] || fail "held out $held samples, expected 300"
  expect 0 "$artel" train run.toml --out cv --folds 3 --set train.epochs=2 --resume
  expect 1 "$artel" train run.toml --out other --folds 3 --set data.validation=0.1
}

test_sweep() {
  make_data
  local search=(sweep run.toml --out search --trials 9 --set "train.optimizer.lr=0.0001..1 log" --set "model.layers=[\"dense 4\", \"relu\", \"dense 2\"]" --set train.epochs=9)
  expect 0 "$artel" "${search[@]}"
  contains out "train.optimizer.lr"
  contains out "search/trial-00"
  [[ -s search/sweep.svg ]] || fail "no search/sweep.svg"
  [[ $(grep -c '"rung":0' search/trials.jsonl) -eq 9 ]] || fail "expected 9 trials: $(cat search/trials.jsonl)"
  [[ $(grep -c '"rung":2' search/trials.jsonl) -ge 1 ]] || fail "no trial was trained to the end"
  expect 1 "$artel" "${search[@]}"
  contains err "--resume"
  # A trial is a run like any other, with the bits of one trained to the end at once.
  local best rate
  expect 0 "$artel" "${search[@]}" --resume
  best=$(sed -n 's/^best *//p' out)
  rate=$(sed -n 's/.*lr = \([0-9.e-]*\).*/\1/p' "$best/config.toml" | head -1)
  expect 0 "$artel" train run.toml --out once --threads 1 --set train.optimizer.lr="$rate" --set 'model.layers=["dense 4", "relu", "dense 2"]' --set train.epochs=9
  expect 0 "$artel" verify "$best" once
  # What fails costs only itself.
  expect 0 "$artel" sweep run.toml --out failing --trials 4 --keep-one-in 1 --set "train.loss=cross_entropy|mse" --set train.epochs=1
  contains out "failed"
  expect 1 "$artel" sweep run.toml --out none --set train.epochs=1
  contains err "nothing to vary"
}

# Killed in the middle, with all its children, and resumed: results stay, and trials go on.
test_sweep_killed() {
  make_data
  local search=(sweep run.toml --out search --trials 4 --keep-one-in 1 --set "train.optimizer.lr=0.001..1 log" --set train.epochs=120)
  "$artel" "${search[@]}" >out 2>err &
  local process=$! tries=0
  until [[ -s search/trials.jsonl ]]; do
    sleep 0.05
    ((++tries < 1200)) || { cat err >&2; fail "no result within 60 s"; }
  done
  kill -KILL $process
  wait $process || true
  local before
  before=$(wc -l <search/trials.jsonl)
  printf '{"trial":3,"ru' >>search/trials.jsonl
  expect 0 "$artel" "${search[@]}" --resume
  [[ $(grep -c '"value"' search/trials.jsonl) -eq 4 ]] || fail "expected 4 results, $before before the kill: $(cat search/trials.jsonl)"
  expect 0 "$artel" sweep run.toml --out short --trials 50 --budget 1s --set "train.optimizer.lr=0.001..1 log" --set train.epochs=2000
}

test_resume() {
  make_data
  expect 0 "$artel" train run.toml --out whole --set train.steps=40
  expect 0 "$artel" train run.toml --out parts --set train.steps=17
  expect 0 "$artel" train run.toml --out parts --resume --set train.steps=29
  contains err "resuming parts after step 17"
  expect 0 "$artel" train run.toml --out parts --resume --set train.steps=40
  expect 0 "$artel" verify whole parts
  [[ $(cat out) == identical ]] || fail "verify said $(cat out)"
  [[ $(grep -c train/loss parts/metrics.jsonl) -eq 40 ]] || fail "expected 40 steps in metrics.jsonl"
  # A damaged newest checkpoint is refused with the reason; the one before it is used.
  truncate -s -1 parts/checkpoints/step-000000040/model.safetensors
  expect 0 "$artel" evaluate parts
  contains err "step-000000030 is used instead"
  expect 0 "$artel" train run.toml --out parts --resume --set train.steps=40
  contains err "step-000000040"
  contains err "resuming parts after step 30"  # the end of an epoch
  expect 0 "$artel" verify whole parts
}

test_lanes() {
  make_data
  expect 0 "$artel" train run.toml --out one --threads 1 --lanes 4
  expect 0 "$artel" train run.toml --out two --threads 2 --lanes 4
  expect 0 "$artel" verify one two
  expect 0 "$artel" train run.toml --out workers -n 2 --lanes 4
  expect 0 "$artel" verify one workers
  # The number of lanes is part of the result, also where nobody has asked for one.
  expect 0 "$artel" train run.toml --out default --threads 2
  contains err "2 lanes"
  contains default/config.toml "lanes = 2"
  contains default/summary.json '"lanes": 2'
  expect 0 "$artel" train default/config.toml --out again --threads 1
  expect 0 "$artel" verify default again
  expect 1 "$artel" verify one default
  contains out "the runs have 4 and 2 lanes, so their sums were rounded differently; repeat one of them with cluster.lanes = 4"
  # A new run has a lane for each worker. A run that is resumed keeps its lanes, and workers without any stand by.
  expect 0 "$artel" train run.toml --out raised -n 3 --lanes 2 --set train.steps=4
  contains err "3 lanes instead of 2: each worker has at least one"
  expect 0 "$artel" train run.toml --out raised --resume --lanes 2
  expect 0 "$artel" train run.toml --out three --lanes 3
  expect 0 "$artel" verify raised three
  expect 0 "$artel" train run.toml --out few --lanes 2 --set train.steps=4
  expect 0 "$artel" train run.toml --out few --resume -n 3 --lanes 2
  contains err "3 workers for 2 lanes: 1 stand by until others leave"
  expect 0 "$artel" train run.toml --out two_lanes --lanes 2
  expect 0 "$artel" verify few two_lanes
}

test_interrupt() {
  make_data
  "$artel" train run.toml --out run --set train.steps=100000000 >out 2>err &
  local process=$! tries=0 code=0
  until [[ -s run/metrics.jsonl ]]; do
    sleep 0.1
    ((++tries < 300)) || fail "no steps within 30 s: $(cat err)"
  done
  kill -INT $process
  wait $process || code=$?
  [[ $code -eq 130 ]] || fail "exit code $code, expected 130"
  contains out "to resume: artel train run.toml --out run --resume --set train.steps=100000000"
  local step
  step=$(ls run/checkpoints | sed -n 's/^step-0*//p' | tail -1)
  expect 0 "$artel" train run.toml --out run --resume --set train.steps=$((step + 5))
  contains err "resuming run after step $step"

  "$artel" train run.toml --out twice --set train.steps=100000000 >out 2>err &
  process=$! code=0
  until [[ -s twice/metrics.jsonl ]]; do sleep 0.1; done
  kill -INT $process
  kill -INT $process 2>/dev/null || true
  wait $process || code=$?
  [[ $code -eq 130 ]] || fail "exit code $code after two signals, expected 130"
}

# What info predicts, in MiB, is what a run takes that saves and tests; the program itself takes some more.
test_memory() {
  if sanitized; then exit 77; fi
  make_data
  sed -i 's/^layers = .*/layers = ["dense 4096", "relu", "dense 4096", "dense 2"]/; s/^optimizer.*/optimizer = "adamw lr=1e-4"/' run.toml
  local lanes sharding predicted taken
  for lanes in 1 2; do
    local options=(--set train.steps=2 --set train.save_every=1 --set cluster.threads=2 --set cluster.lanes=$lanes)
    expect 0 "$artel" info run.toml "${options[@]}"
    predicted=$(sed -nE 's/^total +([0-9]+) MiB .*/\1/p' out)
    expect 0 "$artel" train run.toml --out run$lanes "${options[@]}"
    taken=$(($(sed -nE 's/.*"peak_memory_bytes": ([0-9]+).*/\1/p' run$lanes/summary.json) >> 20))
    ((taken >= predicted && taken <= predicted * 11 / 10 + 60)) ||
      fail "$lanes lanes took $taken MiB, predicted were $predicted"
  done
  # Of a worker that keeps parts, what it takes at most.
  sed -i 's/^layers = .*/layers = ["dense 2048", "relu", "dense 2048", "dense 2048", "dense 2048", "dense 2048", "dense 2"]/' run.toml
  for sharding in none optimizer weights; do
    local options=(--set train.steps=2 --set train.save_every=1 --set cluster.threads=1 --set cluster.lanes=2 --set cluster.sharding=$sharding --set cluster.mirror_every=0)
    expect 0 "$artel" info run.toml "${options[@]}" --set cluster.workers=2
    predicted=$(sed -nE 's/^total +([0-9]+) MiB .*/\1/p' out)
    expect 0 "$artel" train run.toml -n 2 --out $sharding "${options[@]}"
    taken=$(($(sed -nE 's/.*"peak_memory_bytes": ([0-9]+).*/\1/p' $sharding/summary.json) >> 20))
    ((taken >= predicted * 8 / 10 && taken <= predicted * 11 / 10 + 60)) ||
      fail "a worker with sharding = $sharding took $taken MiB, predicted were $predicted"
  done
}

test_folders() {
  make_data
  expect 0 "$artel" train run.toml --set train.steps=2
  expect 0 "$artel" train run.toml --set train.steps=2
  [[ -d runs/run && -d runs/run-2 ]] || fail "expected runs/run and runs/run-2: $(ls runs)"
  expect 0 "$artel" train run.toml --name other --set train.steps=2
  expect 1 "$artel" train run.toml --name other --set train.steps=2
  contains err "artel: error: [runs/other] there already is a run here; continue it with --resume"
  expect 0 "$artel" train run.toml --resume --set train.steps=4
  contains err "resuming runs/run-2 after step 2"
}

# idx FILE TYPE EXTENT... <bytes: an idx file of bytes.
idx() {
  local file=$1 extent
  shift
  printf "\\x00\\x00\\x08\\x$(printf %02x $#)" >"$file"
  for extent; do
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((extent >> 24)) $((extent >> 16 & 255)) $((extent >> 8 & 255)) $((extent & 255)))" >>"$file"
  done
  cat >>"$file"
}

# Images whose class is the one of four bright rows.
make_images() {
  mkdir images
  local part count
  for part in train t10k; do
    count=$([[ $part == train ]] && echo 200 || echo 40)
    for ((i = 0; i < count; ++i)); do printf "\\x0$((i % 4))"; done | idx images/$part-labels-idx1-ubyte $count
    for ((i = 0; i < count; ++i)); do
      for ((row = 0; row < 4; ++row)); do
        if ((row == i % 4)); then printf '\xff\xf0\xff\xf0'; else printf '\x10\x00\x20\x00'; fi
      done
    done | idx images/$part-images-idx3-ubyte $count 4 4
  done
}

test_predict() {
  make_images
  cat >images.toml <<'TOML'
[data]
set = "fashion_mnist"
path = "images"
augment = ["crop 4 1", "normalise 0.3 0.4"]
[model]
layers = ["flatten", "dense 10"]
[train]
batch_size = 20
epochs = 20
optimizer = "sgd lr=0.3"
TOML
  expect 0 "$artel" train images.toml --out run
  # One image as NPY: the third row is bright, so it is the third class.
  {
    printf '\x93NUMPY\x01\x00\x76\x00'
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 4, 4), }"
    printf '\x10\x00\x20\x00\x10\x00\x20\x00\xff\xf0\xff\xf0\x10\x00\x20\x00'
  } >image.npy
  expect 0 "$artel" predict run image.npy --top 2
  grep -qE '^image.npy: Pullover 0\.[0-9]{4}, ' out || fail "prediction: $(cat out)"
  printf 'not a picture' >wrong.png
  expect 1 "$artel" predict run wrong.png
  contains err "artel: error: "
  contains err wrong.png
}

# Two inputs of tokens, as NumPy saves them (int64): the class is whether the first ones are equal.
make_pairs() {
  python3 - <<'PYTHON'
import random, struct, zipfile

def array(file, name, rows):
    shape = (len(rows), len(rows[0])) if isinstance(rows[0], list) else (len(rows),)
    numbers = [n for row in rows for n in row] if len(shape) == 2 else rows
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }" % (shape,)
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n"
    file.writestr(name + ".npy", data + struct.pack("<%dq" % len(numbers), *numbers))

random.seed(3)
x = [[random.randrange(4) for _ in range(3)] for _ in range(200)]
x2 = [[a[0] if random.random() < 0.5 else random.randrange(4), random.randrange(4)] for a in x]
y = [int(a[0] == b[0]) for a, b in zip(x, x2)]
with zipfile.ZipFile("pairs.npz", "w") as file:
    for name, rows in (("x", x), ("x2", x2), ("y", y)): array(file, name, rows)
with zipfile.ZipFile("two.npz", "w") as file:
    array(file, "x", [[2, 0, 1], [2, 0, 1]])
    array(file, "x2", [[2, 3], [1, 3]])
PYTHON
  cat >pairs.toml <<'TOML'
[data]
set = "npz"
path = "pairs.npz"
[model]
layers = ["tower: sequential { embedding 4 8 | take 0 | dense 16 | tanh }", "as left", "from x2", "same tower", "multiply left", "dense 2"]
[train]
batch_size = 20
epochs = 30
optimizer = "adam lr=0.02"
TOML
}

test_inputs() {
  make_pairs
  expect 0 "$artel" train pairs.toml --out run
  expect 0 "$artel" evaluate run --json
  grep -qE '"accuracy":(0\.9|1)' out || fail "accuracy: $(cat out)"
  expect 0 "$artel" info pairs.toml
  contains out "tower.0"
  expect 0 "$artel" info run
  contains out "tower.0"
  expect 0 "$artel" bench --profile pairs.toml --seconds 0
  contains out "tower.0"
  expect 0 "$artel" plan pairs.toml --pipeline 2 --lanes 4 --estimate
  contains out "2 workers"
  expect 0 "$artel" predict run two.npz
  grep -qE '^two.npz\[0\]: 1 ' out && grep -qE '^two.npz\[1\]: 0 ' out || fail "prediction: $(cat out)"
  # Another output of the network than the last.
  expect 0 "$artel" train pairs.toml --out several --set train.steps=1 --set 'model.layers=["embedding 8 3", "flatten", "output seen", "dense 2"]'
  expect 0 "$artel" predict several two.npz --output seen
  grep -qE '^two.npz\[0\]:( [-0-9.e]+){6,}$' out || fail "output: $(cat out)"
  expect 1 "$artel" predict several two.npz --output unseen
  contains err "unseen"
  mistake 1 "augmentation 'flip' needs images [channels, height, width], got samples of [5]" info pairs.toml --set data.augment='["flip"]'
}

test_tables() {
  awk 'BEGIN { srand(3); print "id,rooms,area,city,price"
    for (i = 0; i < 600; ++i) { r = int(1 + 6 * rand()); a = 50 + 100 * rand(); c = substr("BRO", 1 + int(3 * rand()), 1)
      p = 20000 * r + 1500 * a + (c == "O" ? 50000 : 0)
      printf "%d,%d,%s,%s,%s\n", i, r, i % 10 ? a : "", c, i % 50 ? p : "" } }' >houses.csv
  cat >houses.toml <<'TOML'
[data]
set = "csv"
path = "houses.csv"
ignore = ["id"]
[model]
layers = ["dense 16", "relu", "dense 1"]
[train]
batch_size = 20
epochs = 20
loss = "mse"
metrics = ["mean absolute error", "r2"]
optimizer = "adam lr=0.01"
TOML
  expect 0 "$artel" data show houses.toml
  contains out "left out"
  contains out "12 rows left out"
  expect 0 "$artel" train houses.toml --out run
  contains err "12 of 600 rows are left out: their target 'price' is missing"
  [[ -s run/table.json ]] || fail "no run/table.json"
  # The error has the unit of the price, of which the deviation is about 57,000.
  expect 0 "$artel" evaluate run --json
  awk -F'"mean absolute error":' '{ split($2, n, ","); exit !(n[1] > 100 && n[1] < 25000) }' out || fail "$(cat out)"
  # New rows, in another order of columns, without target.
  printf 'city,area,rooms\nO,100,3\nB,,3\n"R",60.5,1\nnew,100,3\n' >new.csv
  expect 0 "$artel" predict run new.csv -o out.csv
  [[ $(wc -l <out.csv) -eq 5 && $(head -1 out.csv) == prediction ]] || fail "$(cat out.csv)"
  awk 'NR == 2 { exit !($1 > 200000 && $1 < 320000) }' out.csv || fail "$(cat out.csv)"
  expect 0 "$artel" predict run new.csv --json
  [[ $(grep -c '^{"sample":"new.csv\[[0-3]\]","prediction":[0-9.]*}$' out) -eq 4 ]] || fail "$(cat out)"
  # The data of the run may be gone, and many rows are the same as few.
  mv houses.csv elsewhere.csv
  { cat new.csv; for ((i = 0; i < 5000; ++i)); do echo O,100,3; done; } >many.csv
  expect 0 "$artel" predict run many.csv -o many_out.csv
  [[ $(wc -l <many_out.csv) -eq 5005 && $(tail -1 many_out.csv) == "$(sed -n 2p out.csv)" ]] || fail "$(tail -1 many_out.csv)"
  expect 0 "$artel" predict run many.csv -o shared_out.csv -n 3
  cmp many_out.csv shared_out.csv || fail "other predictions by three workers"
  # The predictions may replace what they were made of; if they fail, all stays as it was.
  cp many.csv itself.csv
  expect 0 "$artel" predict run itself.csv -o itself.csv
  cmp many_out.csv itself.csv || fail "$(head -3 itself.csv)"
  { cat many.csv; echo O,100,many; } >almost.csv
  expect 1 "$artel" predict run almost.csv -o itself.csv
  cmp many_out.csv itself.csv || fail "a failed prediction changed its output"
  printf 'city,area,rooms\nO,100,many\n' >wrong.csv
  mistake 1 "[wrong.csv] line 2: column 'rooms' is 'many', expected a number, or nothing if it is missing" predict run wrong.csv
  printf 'city,rooms\nO,3\n' >short.csv
  mistake 1 "[short.csv] has no column 'area', which the network was trained with" predict run short.csv
  # Classes: yes or no, with a probability; of one output, too.
  make_data
  expect 0 "$artel" train run.toml --out two
  expect 0 "$artel" predict two data.csv -o classes.csv
  [[ $(head -1 classes.csv) == prediction,probability ]] || fail "$(head -2 classes.csv)"
  paste -d, data.csv classes.csv | awk -F, 'NR > 1 { right += $4 == $5 } END { exit !(right > 320) }' || fail "$(head classes.csv)"
  expect 0 "$artel" train run.toml --out one --set train.loss=binary_cross_entropy --set 'model.layers=["dense 1"]'
  expect 0 "$artel" predict one data.csv -o classes.csv
  paste -d, data.csv classes.csv | awk -F, 'NR > 1 { right += $4 == $5 } END { exit !(right > 320) }' || fail "$(head classes.csv)"
  # Numbers with decimal commas, when told so; the same samples, bits and predictions as with points.
  sed 's/,/;/g; s/\./,/g' elsewhere.csv >commas.csv
  expect 0 "$artel" data show houses.toml --set data.path=commas.csv --set data.target=city
  contains out "set data.decimal_comma = true"
  cp elsewhere.csv houses.csv
  expect 0 "$artel" train houses.toml --out commas --set data.path=commas.csv --set data.decimal_comma=true
  expect 0 "$artel" verify run commas
  sed 's/,/;/g; s/\./,/g' new.csv >new_commas.csv
  expect 0 "$artel" predict commas new_commas.csv -o commas_out.csv
  cmp out.csv commas_out.csv || fail "$(cat commas_out.csv)"
  # Sparse rows.
  awk 'BEGIN { srand(5); for (i = 0; i < 200; ++i) { a = rand() - 0.5; printf "%d 1:%.3f 3:1\n", (a > 0 ? 1 : -1), a } }' >rows.libsvm
  printf '[data]\nset = "libsvm"\npath = "rows.libsvm"\n[model]\nlayers = ["dense 2"]\n[train]\nbatch_size = 20\nepochs = 30\noptimizer = "sgd lr=1"\n' >sparse.toml
  expect 0 "$artel" train sparse.toml --out sparse
  printf '0 1:0.4 3:1\n0 1:-0.4 3:1\n' >new.libsvm
  expect 0 "$artel" predict sparse new.libsvm --top 1
  [[ $(cut -d' ' -f2 out | tr '\n' ' ') == "1 -1 " ]] || fail "$(cat out)"
}

# mistake CODE MESSAGE COMMAND...: the message is the whole of standard error.
mistake() {
  local code=$1 message="artel: error: $2"
  shift 2
  expect "$code" "$artel" "$@"
  [[ $(cat err) == "$message" ]] || fail "artel $*: got '$(cat err)', expected '$message'"
}

test_mistakes() {
  make_data
  expect 2 "$artel" trian run.toml
  contains err "artel: error: unknown command 'trian'; did you mean 'train'?; the commands are init, train, evaluate, predict, "
  [[ $(wc -l <err) -eq 1 ]] || fail "$(cat err)"
  mistake 2 "FILE is required; try 'artel train --help'" train
  mistake 2 "The following argument was not expected: --outt=x; try 'artel train --help'" train run.toml --outt=x
  mistake 1 "[no.toml] cannot open: No such file or directory" train no.toml
  mistake 1 "[--set train.epoch=3] unknown key 'train.epoch'; did you mean 'train.epochs'?" train run.toml --set train.epoch=3
  mistake 1 "[--set train.epochs=x] train.epochs: got \"x\", expected a whole number" train run.toml --set train.epochs=x
  mistake 1 "unknown model 'resnet81'; did you mean 'resnet18'?; known: $("$artel" info | awk 'NR > 2 { printf "%s%s", sep, $1; sep = ", " }')" train run.toml --set model.name=resnet81 --set 'model.layers=[]'
  mistake 1 "model: got both name and layers, expected one of model.name and model.layers" train run.toml --set model.name=mlp
  expect 1 "$artel" train run.toml --set data.set=minst
  contains err "unknown data set 'minst'; did you mean 'mnist'?; known: mnist, "
  mistake 1 "[nowhere] neither a model nor a file" info nowhere
  mistake 1 "[nowhere] no such file or folder, expected a run or weights" evaluate nowhere
  mistake 1 "[schedule 1f1b] stages: got 8 for 4 workers, expected one for each; try interleaved" plan --schedule 1f1b --stages 8 --workers 4
  mistake 1 "--stages: got 6 for 4 workers, expected a multiple; try 4" plan --stages 6 --workers 4
  mistake 1 "[schedule auto] none of 1f1b, gpipe, zero_bubble, zero_bubble_h2 fits into the memory of 4 workers with 8 lanes; try more stages, or more lanes of fewer samples" plan --stages 4 --keep 3
  if grep -q avx512_bf16 /proc/cpuinfo; then
    expect 0 "$artel" train run.toml --out bf16 --set train.precision=bf16
  else
    expect 1 "$artel" train run.toml --set train.precision=bf16
    contains err 'train.precision: got "bf16", but this processor does not'
  fi
  expect 1 "$artel" train run.toml --set train.loss=mes
  contains err "unknown loss 'mes'; did you mean 'mse'?"
  expect 1 "$artel" train run.toml --set 'model.layers=["dense 16", "conv 3 3x3"]'
  expect 1 "$artel" train run.toml --set 'model.layers=["dens 16"]'
  printf 'a,b\n1,2\n3\n' >broken.csv
  expect 1 "$artel" train run.toml --set data.path=broken.csv
  contains err "broken.csv"
  expect 1 "$artel" train run.toml --set train.memory_limit=1B
  contains err "memory_limit: got 1 B for the activations, expected at least"
  expect 1 "$artel" train run.toml --set cluster.lanes=20
  contains err "[layer '1'] batch_norm: got [1, 16] in training, one value for each channel, expected more; the batch of a lane is 1"
  [[ ! -d runs || -z $(ls runs) ]] || fail "a refused run left a folder: $(ls -R runs)"
}

# number FILE KEY: of a JSON object.
number() { grep -oE "\"$2\": ?[-0-9.e]+" "$1" | head -1 | sed 's/.*: *//'; }

test_parts() {
  make_data
  expect 0 "$artel" train run.toml --out run --set data.validation=0.2 --set train.best_by=accuracy
  contains err "csv: 240 training, 60 validation and 100 test samples [3]"
  contains err ", validation loss "
  contains out "best validation accuracy"
  ! grep -q "test loss\|test accuracy" out err || fail "the test part was used: $(cat out err)"
  [[ $(grep -c validation/accuracy run/metrics.jsonl) -eq 4 ]] || fail "$(tail -1 run/metrics.jsonl)"
  ! grep -q test/ run/metrics.jsonl || fail "test metrics of a run with a validation part"
  contains run/summary.json '"by": "accuracy"'
  contains run/summary.json '"on": "validation"'
  local last best
  last=$(number run/summary.json validation_loss)
  expect 0 "$artel" evaluate run --on validation --json
  contains out '"on":"validation"'
  contains out '"samples":60,'
  [[ $(number out loss) == "$last" ]] || fail "got $(cat out), expected the loss $last"
  expect 0 "$artel" evaluate run --on train --json
  contains out '"samples":240,'
  expect 0 "$artel" evaluate run
  contains out "test: accuracy"
  contains out "of 100"
  # The best by accuracy, by whatever name it is called.
  best=$(grep -A3 '"by"' run/summary.json | sed -n 's/.*"value": \([0-9.]*\),.*/\1/p')
  expect 0 "$artel" evaluate run --best --on validation --json
  [[ $(number out accuracy) == "$best" ]] || fail "got $(cat out), expected the accuracy $best"
  cp out by_flag
  expect 0 "$artel" evaluate run/checkpoints/best --on validation --json
  diff out by_flag || fail "checkpoints/best is not what --best is"
  ln -s "$PWD/run/checkpoints/$(cat run/checkpoints/best)" link
  expect 0 "$artel" evaluate link --on validation --json
  diff out by_flag || fail "a link to the best checkpoint is not what --best is"
  expect 0 "$artel" train run.toml --out plain --set train.epochs=1
  mistake 1 "the data has no validation part, because data.validation is 0; try another one" evaluate plain --on validation
  expect 1 "$artel" train run.toml --out f1 --set train.best_by=f1
  contains err 'best_by: got "f1", expected a metric of one number that this run measures: loss, accuracy; train.metrics adds others'
}

# advice MESSAGE SETTING...: of a run with these settings.
advice() {
  local message=$1 settings=() setting
  shift
  for setting; do settings+=(--set "$setting"); done
  expect 1 "$artel" train run.toml --out refused "${settings[@]}"
  contains err "artel: error: $message"
  ! grep -q "step 1" err || fail "only after the first step: $(cat err)"
  [[ ! -e refused ]] || fail "a refused run left a folder"
}

test_advice() {
  make_data
  { echo a,b,price; for ((i = 0; i < 64; ++i)); do echo "$((i % 7)),$((i % 5)),$((i * 3)).5"; done; } >values.csv
  { echo a,b,kind; for ((i = 0; i < 64; ++i)); do echo "$((i % 7)),$((i % 5)),k$((i % 3))"; done; } >three.csv
  advice 'train.loss: got "cross_entropy" for a target of values, expected a loss for values; try train.loss = "mse"' data.path=values.csv
  advice '[model] the network has 2 outputs for a target of 1 value; try "dense 1" as the last layer' data.path=values.csv train.loss=mse
  advice 'train.loss: got "mse" for a target of 2 classes, expected a loss for classes; try train.loss = "cross_entropy"' train.loss=mse
  advice 'train.loss: got "binary_cross_entropy" for a target of 3 classes, expected two; try train.loss = "cross_entropy"' train.loss=binary_cross_entropy data.path=three.csv
  advice '[model] the network has 2 outputs for the loss "binary_cross_entropy" of two classes, expected one; try "dense 1"' train.loss=binary_cross_entropy
  advice '[model] the network has 2 outputs, but the data has 3 classes; try "dense 3" as the last layer' data.path=three.csv
  advice '[model] the network has 1 output, but the data has 2 classes; try "dense 2" as the last layer, or train.loss = "binary_cross_entropy"' 'model.layers=["dense 1"]'
  make_images
  advice '[model] the network'"'"'s output for one sample is [1, 4, 10], expected one row; try a layer "flatten" before the last "dense"' data.set=fashion_mnist data.path=images 'model.layers=["dense 10"]'
  advice "augmentation 'normalise 0.1 0.2 0.3 1 1 1': got 3 means for images of [1, 4, 4], expected 1" data.set=fashion_mnist data.path=images 'model.layers=["flatten", "dense 10"]' 'data.augment=["normalise 0.1 0.2 0.3 1 1 1"]'
  for ((i = 0; i < 40; ++i)); do echo "abcdefghij klm"; done >letters.txt
  advice '[model] '"'"'0.weight'"'"' has 4 rows, but the vocabulary has 15 tokens; try "embedding 15 8"' data.set=text data.path=letters.txt data.context=8 'model.layers=["embedding 4 8", "dense 15"]'
  advice '[model] the network has 3 outputs for each token, but the vocabulary has 15 tokens; try "dense 15" as the last layer' data.set=text data.path=letters.txt data.context=8 'model.layers=["embedding 15 8", "dense 3"]'
  expect 0 "$artel" train run.toml --out more --set 'model.layers=["dense 5"]' --set train.steps=2
  contains err "warning: the network has 5 outputs, but the data has 2 classes"
  advice "[$folder"'/more] the weights do not fit the model: 0.weight is [5, 3], expected [2, 3] (and 1 more); to train it anew, set model.new_layers = ["0."]' 'model.layers=["dense 2"]' model.weights=more
  printf x >file
  mistake 1 "[file] is a file, expected a folder for the run" train run.toml --out file
}

# warned TEXT SETTING...: exactly once.
warned() {
  local text=$1 settings=() setting
  shift
  for setting; do settings+=(--set "$setting"); done
  rm -rf run
  expect 0 "$artel" train run.toml --out run --set train.steps=2 "${settings[@]}"
  [[ $(grep -cF "artel: warning: $text" err) -eq 1 && $(grep -c warning err) -eq 1 ]] || fail "$*: $(cat err)"
}

# Workers and servers that fail for the same reason print one line.
test_one_error_for_all() {
  make_data
  expect 1 "$artel" train run.toml -n 2 --servers 1 --out run --set 'model.layers=["dens 3"]'
  [[ $(grep -c "artel: error:.*unknown layer 'dens'" err) -eq 1 && $(grep -c error: err) -eq 1 ]] || fail "$(cat err)"
}

test_unused() {
  make_data
  warned "model.depth has no effect with model.layers" model.depth=3
  warned "cluster.compress has no effect on 1 worker" cluster.compress=sign
  warned 'train.l2 has no effect with the strategy "auto" on 1 worker' train.l2=0.1
  warned "train.freeze holds all parameters: nothing is trained" 'train.freeze=["0", "1", "4"]'
  warned "train.save_every has no effect: it is 50, and there are 2 steps" train.save_every=50
  warned "data.fold has no effect without data.folds" data.fold=2
  warned "cluster.servers_inside has no effect without parameter servers" cluster.servers_inside=true
  warned "data.image_size has no effect on the set 'csv'" data.image_size=32
  warned "model.new_layers has no effect without model.weights" 'model.new_layers=["0."]'
  rm -rf run
  expect 0 "$artel" train run.toml --out run --set train.steps=2
  ! grep -q warning err || fail "$(cat err)"
  # Without anything to train, a profile has no backward pass.
  expect 0 "$artel" bench --profile run.toml --threads 1 --seconds 0 --set 'train.freeze=["0", "1", "4"]'
  ! grep -q matmul out || [[ $(grep -c matmul out) -le 2 ]] || fail "the gradients of frozen layers: $(cat out)"
}

test_output() {
  make_data
  mistake 1 "[nowhere/trace.json] cannot create a temporary file beside it: No such file or directory" train run.toml --out run --trace nowhere/trace.json
  [[ ! -e run ]] || fail "a refused run left a folder"
  expect 0 "$artel" train run.toml --out run --set train.steps=2 --trace trace.json
  contains trace.json traceEvents
  local command
  for command in "evaluate run" "evaluate run --json" "info run" --help "config run.toml"; do
    # shellcheck disable=SC2086
    "$artel" $command >/dev/full 2>err && fail "artel $command: exit code 0 although nothing was written"
    contains err "artel: error: "
  done
  # A log that cannot be written is no reason to stop.
  "$artel" train run.toml --out logless --set train.steps=2 >out 2>/dev/full || fail "exit code $? without a log: $(cat out)"
  contains out "stopped by"
}

test_untested() {
  { echo a,b,label; for ((i = 0; i < 64; ++i)); do echo "$((i % 7)),$((i % 5)),$((i % 2))"; done; } >table.csv
  printf '[data]\nset = "csv"\npath = "table.csv"\ntest_fraction = 0.0\n[model]\nlayers = ["dense 2"]\n[train]\nbatch_size = 16\nepochs = 2\n' >run.toml
  expect 0 "$artel" train run.toml --out run
  contains err "64 training and 0 test samples"
  contains err "epoch 2/2: loss"
  ! grep -q "test loss" out err || fail "a test of nothing: $(cat out err)"
  ! grep -q "test_loss" run/summary.json || fail "a test of nothing: $(cat run/summary.json)"
  mistake 1 "the data has no test part; try another one" evaluate run
  expect 0 "$artel" evaluate run --on train
}

test_verify() {
  make_data
  expect 0 "$artel" train run.toml --out a --set train.steps=3
  expect 0 "$artel" train run.toml --out b --set train.steps=3 --set train.seed=1
  expect 0 "$artel" verify a a
  [[ $(cat out) == identical ]] || fail "verify said $(cat out)"
  expect 1 "$artel" verify a b
  grep -qE '^different: [a-z0-9.]+\[[0-9]+\]: [-0-9.e]+ \(0x[0-9a-f]{8}\) and [-0-9.e]+ \(0x[0-9a-f]{8}\)$' out ||
    fail "verify said $(cat out)"
  expect 2 "$artel" verify a nowhere
  contains err "artel: error: [nowhere]"
}

test_bench() {
  printf 'go 0\ngo 0.1\n' | "$artel" bench train lenet5 --threads 1 --interactive >out
  [[ $(grep -cE '^\{"model":"lenet5","batch":64,"threads":1,"lanes":1,"samples_per_second":[0-9.e+]+,"cpu_seconds_per_step":[0-9.e-]+,"peak_rss_mb":[0-9.]+\}$' out) -eq 2 ]] ||
    fail "answers: $(cat out)"
  make_data
  expect 0 "$artel" bench --profile run.toml --threads 1 --seconds 0.1
  contains out "% of peak"
  contains out "dense"
  # Each model's own memory, whatever came before it.
  expect 0 "$artel" bench train vgg11_bn mlp --threads 1 --seconds 0 --json
  [[ $(wc -l <out) -eq 2 ]] || fail "expected one object a line: $(cat out)"
  sanitized || awk -F'"peak_rss_mb":' '{ split($2, n, "}"); mb[NR] = n[1] } END { exit !(mb[2] < mb[1] / 2) }' out || fail "memory: $(cat out)"
  mistake 1 "unknown benchmark 'lenet'; did you mean 'lenet5'?; known: mlp, lenet5, vgg11_bn, resnet18, resnet20, resnet50, gpt, gpt_2048, gpt2, vit, lstm, gru, resnet18_all, resnet18_end, resnet18_head" bench train lenet
}

test_comm() {
  export ARTEL_DATA=$folder/cache
  expect 0 "$artel" comm schedule --algorithm ring --workers 3
  contains out "data in 3 chunks"
  [[ $(grep -c 'add it' out) -eq 6 && $(grep -c 'put it in place' out) -eq 6 ]] || fail "$(cat out)"
  expect 0 "$artel" comm bench --workers 3 --sizes 4KiB,1MiB --algorithm ring --algorithm direct --seconds 0.05 --plot plot.svg
  contains out "worker 2 on host"
  contains out "calibration measured now, kept in $ARTEL_DATA/calibration"
  [[ $(grep -cE '^(ring|direct) +(4 KiB|1 MiB) ' out) -eq 4 && -s plot.svg ]] || fail "$(cat out)"
  expect 0 "$artel" comm bench --workers 3 --sizes 4KiB --seconds 0.01
  contains out "calibration remembered in $ARTEL_DATA/calibration"
  expect 0 "$artel" comm bench --workers 3 --sizes 4KiB --seconds 0.01 --calibrate
  contains out "calibration measured now"
  expect 0 "$artel" comm bench --workers 2 --sizes 4KiB,8KiB --seconds 0.01 --json
  [[ $(grep -c '^{"algorithm":"automatic","workers":2,"bytes":[48]' out) -eq 2 && $(wc -l <out) -eq 2 ]] || fail "$(cat out)"
  expect 1 "$artel" comm schedule --algorithm rink
  contains err rink
}

test_plan() {
  expect 0 "$artel" plan --schedule 1f1b --stages 4 --lanes 8 --svg plan.svg
  contains out "workers idle for 27.3 % of it"
  contains out "F0 F1 F2 F3"
  [[ -s plan.svg ]] || fail "no plan.svg"
  expect 0 "$artel" plan --stages 4 --lanes 8 --keep 4
  contains out "zero_bubble: "
  make_data
  export ARTEL_DATA=$folder/cache
  expect 0 "$artel" plan run.toml --pipeline 2 --schedule 1f1b --lanes 4
  contains out "2 workers, schedule 1f1b, 4 lanes of "
  contains out "equally many parameters"
  local measured
  measured=$(cat out)
  [[ $(ls cache/costs | wc -l) -eq 1 ]] || fail "times were not kept: $(ls cache/costs)"
  expect 0 "$artel" plan run.toml --pipeline 2 --schedule 1f1b --lanes 4
  [[ $(cat out) == "$measured" ]] || fail "measured again: $(cat out)"
  expect 0 "$artel" plan lenet5 --pipeline 3 --estimate --speeds 1,0.5,1 --bandwidth 125MB
  contains out "workers idle for"
  mistake 1 "[pipeline] got 99 stages for a network of 9 ops, expected at most one for each; try 9 or fewer" plan lenet5 --pipeline 99 --lanes 99 --estimate --set train.batch_size=99
  mistake 1 "[pipeline] speeds: got 1 numbers, expected one for each of the 2 workers" plan lenet5 --pipeline 2 --estimate --speeds 1
  mistake 1 "lanes: got 2 for a pipeline of 3 workers, expected at least one for each; try --lanes 6" plan lenet5 --pipeline 3 --lanes 2 --estimate
  mistake 1 "train.batch_size: got 4, expected at least one sample for each of the 8 lanes" plan lenet5 --pipeline 4 --estimate --set train.batch_size=4
  expect 1 "$artel" plan lenet5 --pipeline 2 --estimate --memory 10KB
  contains err "[pipeline] memory: got 10 KiB for each of 2 workers, expected at least"
}

"test_$case"
