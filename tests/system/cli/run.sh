#!/usr/bin/env bash
# run.sh ARTEL ROOT CASE: runs one case (a function test_CASE below) of the program in an empty folder.
set -euo pipefail
artel=$1 root=$2 case=$3
source "$(dirname "$0")/../support.sh"

test_help() {
  expect 0 "$artel" --help
  contains out "artel train examples/fashion_mnist.toml"
  local command
  for command in train evaluate predict generate embed info data config verify bench comm "comm schedule" "comm bench" "data get" "data list" "data show" "bench train" "bench generate"; do
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
  local file
  for file in "$root"/examples/*.toml; do expect 0 "$artel" config "$file"; done
}

test_train() {
  make_data
  expect 0 "$artel" train run.toml --out run
  contains err "epoch 4/4"
  contains out "test accuracy"
  local name
  for name in config.toml samples.json metrics.jsonl curves.svg plan.txt checkpoints; do
    [[ -e run/$name ]] || fail "no run/$name"
  done
  compgen -G 'run/events.out.tfevents.*' >/dev/null || fail "no event file"
  [[ $(grep -c train/loss run/metrics.jsonl) -eq 60 ]] || fail "expected 60 steps in metrics.jsonl"
  [[ $(grep -c test/accuracy run/metrics.jsonl) -eq 4 ]] || fail "expected 4 epochs in metrics.jsonl"
  expect 0 "$artel" config run/config.toml
  diff out run/config.toml || fail "the resolved configuration does not resolve to itself"
  expect 0 "$artel" evaluate run --json
  grep -qE '"accuracy":(0\.9|1)' out || fail "accuracy: $(cat out)"
  expect 0 "$artel" evaluate run/checkpoints/step-000000060
  contains out "of 100"
  expect 0 "$artel" evaluate run/checkpoints/step-000000060/model.safetensors --config run.toml
  expect 0 "$artel" info run
  contains out "checkpoint run/checkpoints/step-000000060"
  expect 0 "$artel" train run.toml --out half --set train.epochs=1 --set model.weights=run
  contains err "test accuracy"
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
  contains out "to go on: artel train run.toml --out run --resume --set train.steps=100000000"
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

test_folders() {
  make_data
  expect 0 "$artel" train run.toml --set train.steps=2
  expect 0 "$artel" train run.toml --set train.steps=2
  [[ -d runs/run && -d runs/run-2 ]] || fail "expected runs/run and runs/run-2: $(ls runs)"
  expect 0 "$artel" train run.toml --name other --set train.steps=2
  expect 1 "$artel" train run.toml --name other --set train.steps=2
  contains err "artel: error: [runs/other] there is a run already; continue it with --resume"
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

# mistake CODE MESSAGE COMMAND...: the message is the whole of standard error.
mistake() {
  local code=$1 message="artel: error: $2"
  shift 2
  expect "$code" "$artel" "$@"
  [[ $(cat err) == "$message" ]] || fail "artel $*: got '$(cat err)', expected '$message'"
}

test_mistakes() {
  make_data
  mistake 2 "unknown command 'trian'; did you mean 'train'?; the commands are train, evaluate, predict, generate, embed, info, data, comm, bench, config, verify, compare, launch, serve" trian run.toml
  mistake 2 "FILE is required; try 'artel train --help'" train
  mistake 2 "The following argument was not expected: --outt=x; try 'artel train --help'" train run.toml --outt=x
  mistake 1 "[no.toml] cannot open: No such file or directory" train no.toml
  mistake 1 "[--set train.epoch=3] unknown key 'train.epoch'; did you mean 'train.epochs'?" train run.toml --set train.epoch=3
  mistake 1 "[--set train.epochs=x] train.epochs: got \"x\", expected a whole number" train run.toml --set train.epochs=x
  mistake 1 "unknown model 'resnet81'; did you mean 'resnet18'?; known: $("$artel" info | awk 'NR > 2 { printf "%s%s", sep, $1; sep = ", " }')" train run.toml --set model.name=resnet81 --set 'model.layers=[]'
  mistake 1 "model: got both name and layers, expected one of model.name and model.layers" train run.toml --set model.name=mlp
  mistake 1 "no data set is called 'minst'; did you mean 'mnist'?" train run.toml --set data.set=minst
  mistake 1 "[nowhere] neither a model nor a file" info nowhere
  mistake 1 "[nowhere] no such file or folder, expected a run or weights" evaluate nowhere
  if grep -q avx512_bf16 /proc/cpuinfo; then
    expect 0 "$artel" train run.toml --set train.precision=bf16
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
  contains err "memory_limit: got 1 B for the activations of a lane, expected at least"
  expect 1 "$artel" train run.toml --set cluster.lanes=20
  contains err "[layer '1'] batch_norm: got [1, 16] in training, one value for each channel, expected more; the batch of a lane is 1"
  [[ ! -d runs || -z $(ls runs) ]] || fail "a refused run left a folder: $(ls -R runs)"
}

test_untested() {
  { echo a,b,label; for ((i = 0; i < 64; ++i)); do echo "$((i % 7)),$((i % 5)),$((i % 2))"; done; } >table.csv
  printf '[data]\nset = "csv"\npath = "table.csv"\ntest_fraction = 0.0\n[model]\nlayers = ["dense 2"]\n[train]\nbatch_size = 16\nepochs = 2\n' >run.toml
  expect 0 "$artel" train run.toml --out run
  contains err "64 training and 0 test samples"
  contains err "epoch 2/2: loss"
  ! grep -q "test loss" out err || fail "a test of nothing: $(cat out err)"
  ! grep -q "test_loss" run/summary.json || fail "a test of nothing: $(cat run/summary.json)"
  mistake 1 "evaluate: the data set has no samples, expected 1 or more" evaluate run
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
  [[ $(grep -cE '^\{"model":"lenet5","batch":64,"threads":1,"lanes":1,"samples_per_second":[0-9.e+]+,"peak_rss_mb":[0-9.]+\}$' out) -eq 2 ]] ||
    fail "answers: $(cat out)"
  make_data
  expect 0 "$artel" bench --profile run.toml --threads 1 --seconds 0.1
  contains out "% of peak"
  contains out "dense"
  mistake 1 "no benchmark is called 'lenet'; did you mean 'lenet5'?; there are mlp, lenet5, vgg11_bn, resnet18, resnet20, gpt, gpt_2048, vit" bench train lenet
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
  expect 1 "$artel" comm schedule --algorithm rink
  contains err rink
}

"test_$case"
