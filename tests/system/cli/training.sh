# Runs: their settings, and what they leave behind. Cases of run.sh.
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
  # The run's own report of its tests.
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
  # A failing trial costs only itself.
  expect 0 "$artel" sweep run.toml --out failing --trials 4 --keep-one-in 1 --set "train.loss=cross_entropy|mse" --set train.epochs=1
  contains out "failed"
  expect 1 "$artel" sweep run.toml --out none --set train.epochs=1
  contains err "nothing to vary"
}

# Killed in the middle, with all its children, and resumed: results stay, and trials continue.
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
  # The number of lanes is part of the result, also by default. A batch of 20 is too small for batch norm in several lanes.
  expect 0 "$artel" train run.toml --out single --set train.steps=1
  contains single/config.toml "lanes = 1"
  sed -i 's/"batch_norm", //' run.toml
  ! grep -q batch_norm run.toml || fail "batch norm is still there"
  expect 0 "$artel" train run.toml --out four --lanes 4
  expect 0 "$artel" train run.toml --out default --threads 2
  contains err "8 lanes"
  contains default/config.toml "lanes = 8"
  contains default/summary.json '"lanes": 8'
  expect 0 "$artel" train default/config.toml --out again --threads 1
  expect 0 "$artel" verify default again
  expect 0 "$artel" train run.toml --out three_workers -n 3
  expect 0 "$artel" verify default three_workers
  expect 1 "$artel" verify four default
  contains out "the runs have 4 and 8 lanes, so their sums were rounded differently; repeat one of them with cluster.lanes = 4"
  expect 0 "$artel" info run.toml --batch 32
  contains out "a training step of batch 32 in 8 lanes"
  expect 0 "$artel" plan run.toml --pipeline 2 --estimate
  contains out "8 lanes of"
  # A new run has a lane for each worker. A run that is resumed keeps its lanes, and workers without any stand by.
  expect 0 "$artel" train run.toml --out raised -n 3 --lanes 2 --set train.steps=4
  contains err "4 lanes instead of 2, because the run has 3 workers; its bits differ from those of runs with fewer workers"
  expect 0 "$artel" train run.toml --out raised --resume --lanes 2
  expect 0 "$artel" verify raised four
  expect 0 "$artel" train raised/config.toml --out repeated
  expect 0 "$artel" verify repeated four
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

# The memory in MiB predicted by info is that of a run that saves and tests; the program itself takes some more.
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
  # The maximum for a worker that keeps parts.
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
  contains err 'best_by: got "f1", expected a metric of one number that this run measures: loss, accuracy; add "f1" to train.metrics'
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
  # A test part of its own is left for `artel evaluate`, also where workers have parts of the weights.
  for workers in 1 2; do
    expect 0 "$artel" train run.toml --out later$workers --set data.test_fraction=0.25 --set train.test=false \
      --set train.target_accuracy=0.9 -n $workers --set cluster.sharding=$([[ $workers -eq 2 ]] && echo weights || echo none)
    contains err "train.target_accuracy has no effect without a test after each epoch"
    ! grep -q "test loss" out err || fail "a test that was not wanted: $(cat out err)"
    expect 0 "$artel" evaluate later$workers
  done
  expect 0 "$artel" verify later1 later2
  # Exact sums have the same bits with any bucket size.
  expect 0 "$artel" train run.toml --out small -n 2 --set cluster.bucket_size='1 KiB' --set data.test_fraction=0.25
  expect 0 "$artel" verify later1 small
  mistake 1 '[--set cluster.bucket_size=many] cluster.bucket_size: got "many", expected a size such as "512 MiB" or "2 GiB"' train run.toml --out wrong --set cluster.bucket_size=many
}
