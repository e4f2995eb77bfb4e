#!/usr/bin/env bash
# run.sh ARTEL CASE: runs one case (a function test_CASE below) in an empty folder.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"
export ARTEL_DATA=$folder/cache

# A teacher, and the configuration of a smaller student.
make_teacher() {
  make_run
  expect 0 "$artel" train run.toml --out teacher
  sed 's/dense 16/dense 6/; s/, "dropout 0.1"//' run.toml >student.toml
}

test_distil() {
  make_teacher
  expect 0 "$artel" train student.toml --out alone
  expect 0 "$artel" distil teacher student.toml --out one --temperature 2 --weight 0.5
  expect 1 "$artel" verify alone one
  contains one/config.toml "temperature = 2"
  for workers in 2 3; do
    expect 0 "$artel" distil teacher student.toml --out with$workers --temperature 2 --weight 0.5 -n $workers
    expect 0 "$artel" verify one with$workers
  done
  # Stopped after two epochs and resumed; teachers that answer each batch.
  expect 0 "$artel" distil teacher student.toml --out parts --temperature 2 --weight 0.5 --set train.epochs=2
  expect 0 "$artel" distil teacher student.toml --out parts --temperature 2 --weight 0.5 --resume -n 2
  expect 0 "$artel" verify one parts
  expect 0 "$artel" distil teacher student.toml --out each --set distil.cache=false
  contains err "computed for each batch, because distil.cache is false"
  expect 0 "$artel" distil teacher student.toml --out each2 --set distil.cache=false -n 2
  expect 0 "$artel" verify each each2
  expect 1 "$artel" distil teacher student.toml --out parts --resume --set train.epochs=5
  contains err "distil.temperature"
  expect 0 "$artel" evaluate one

  # An ensemble to one.
  expect 0 "$artel" train run.toml --out second --set train.seed=1
  expect 0 "$artel" distil teacher second student.toml --out both
  expect 1 "$artel" verify one both

  # A student that is larger, and bad requests.
  sed 's/dense 16/dense 64/' run.toml >large.toml
  expect 0 "$artel" distil teacher large.toml --out large --set train.epochs=1
  contains err "the student has"
  expect 1 "$artel" distil teacher
  contains err "expected one or more teachers"
  expect 1 "$artel" distil nowhere student.toml --out x
  contains err "nowhere"
  expect 1 "$artel" distil student.toml teacher --out x
  contains err "is a folder"
  expect 1 "$artel" distil run.toml student.toml --out x
  contains err "model.weights"
  sed 's/"dense 2"/"dense 3"/' run.toml >three.toml
  expect 0 "$artel" train three.toml --out three --set train.epochs=1
  expect 1 "$artel" distil three student.toml --out x
  contains err "both need the same classes"
  expect 1 "$artel" distil teacher student.toml --out x --set train.class_weights=balanced
  contains err "class_weights"
}

test_prune() {
  make_run
  sed -i 's/"dropout 0.1", //' run.toml
  expect 0 "$artel" train run.toml --out run
  expect 0 "$artel" prune run --channels 50%
  contains out "kept: it is the output"
  contains out "lost:"
  expect 0 "$artel" prune run --channels 50% -o half
  contains half/config.toml '"0 8"'
  expect 0 "$artel" evaluate half
  expect 1 "$artel" prune run --channels 50% -o half
  contains err "exists already"
  [[ ! -s out ]] || fail "evaluated first"
  expect 0 "$artel" prune run --channels 50% --finetune 2 -o tuned
  contains out "fine-tuned:"
  ! grep -q "no effect" err || fail "$(cat err)"
  expect 0 "$artel" prune run --channels 50% --finetune 2 -o tuned2 -n 2
  expect 0 "$artel" verify tuned tuned2
  # A run that has moved is resumed without the file that it began with.
  mv tuned2 moved
  rm moved/pruned.safetensors
  expect 0 "$artel" train moved/config.toml --out moved --resume --set train.epochs=3
  expect 0 "$artel" prune run --weights 80% --finetune 2 -o sparse
  expect 0 "$artel" prune run --weights 80% --finetune 2 -o sparse3 -n 3
  expect 0 "$artel" verify sparse sparse3
  expect 0 "$artel" prune run --weights 80% --per-layer --keep 0
  # Gradually, stopped and resumed, on several workers.
  expect 0 "$artel" train run.toml --out gradual --set prune.weights=0.7 --set prune.every=5
  expect 0 "$artel" train run.toml --out gradual2 --set prune.weights=0.7 --set prune.every=5 --set prune.end=30 --set train.epochs=2
  expect 1 "$artel" train run.toml --out gradual2 --resume --set prune.weights=0.6 --set prune.every=5
  contains err "prune.weights"
  expect 0 "$artel" train run.toml --out gradual2 --resume -n 2 --set prune.weights=0.7 --set prune.every=5 --set prune.end=30
  expect 0 "$artel" verify gradual gradual2
  expect 1 "$artel" train run.toml --out x -n 2 --set prune.weights=0.7 --set cluster.pipeline=2
  contains err "do not see all weights"

  expect 2 "$artel" prune run --channels 100%
  contains err "got '100%', expected a share"
  expect 1 "$artel" prune run
  contains err "neither --channels nor --weights"
  expect 1 "$artel" prune run --channels 50% --keep 0
  contains err "no layer has removable units"
  expect 1 "$artel" prune run --channels 50% --finetune 1
  contains err "expected -o FOLDER"
  expect 1 "$artel" train run.toml --out x --set 'model.units=["9 4"]'
  contains err "model.units"
}

test_quantise() {
  make_run
  sed -i 's/"dropout 0.1", //; s/"dense 16"/"dense 64", "relu", "dense 64"/' run.toml
  expect 0 "$artel" train run.toml --out run
  expect 0 "$artel" quantise run --max-loss 2 -o small
  contains out "its row length is not a multiple of 32"
  contains out "float layers were chosen by the loss of quality on 300 training samples"
  contains out "all weights:"
  after=$(sed -n 's/^after: *loss \([0-9.]*\).*/\1/p' out)
  expect 0 "$artel" evaluate small
  contains out "loss $after"
  for workers in 1 2; do
    expect 0 "$artel" predict small data.csv -o with$workers.csv -n $workers
  done
  cmp with1.csv with2.csv
  expect 0 "$artel" train run.toml --out judged --set data.validation=0.2
  expect 0 "$artel" quantise judged --max-loss 2
  contains out "validation samples"

  # Requests that cannot be met, before any evaluation.
  expect 1 "$artel" quantise run -o small
  contains err "exists already"
  [[ ! -s out ]] || fail "evaluated first"
  find run/checkpoints -name model.safetensors -exec cp {} weights.safetensors \;
  expect 1 "$artel" quantise weights.safetensors --config run.toml -o x
  contains err "is not the folder of a run"
  [[ ! -s out ]] || fail "evaluated first"
}

test_target() {
  make_run
  sed -i 's/"dropout 0.1", //; s/dense 16/dense 64/' run.toml
  expect 0 "$artel" train run.toml --out run
  expect 0 "$artel" shrink run --target "1.5x smaller, at most 50 points worse" --epochs 1 -o small
  contains out "75 % of the units removed"
  contains out "kept:"
  [[ -s small/tradeoff.svg && ! -e small/candidates ]] || fail "$(ls small)"
  expect 0 "$artel" evaluate small
  expect 1 "$artel" shrink run --target "1000x smaller" --epochs 1 -o none
  contains err 'no combination meets "1000x smaller"'
  [[ -d none/candidates/units-50 ]] || fail "$(ls none)"
  expect 0 "$artel" shrink run --target "at most 50 points worse" --epochs 1 -o same
  expect 1 "$artel" shrink run --target "smaller" -o x
  contains err "expected '4x smaller'"
  expect 1 "$artel" shrink run --target "2x smaller" -o small
  contains err "exists already"
}

"test_$case"
echo "passed"
