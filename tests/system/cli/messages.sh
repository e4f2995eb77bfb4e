# Messages about mistakes and about settings without effect. Cases of run.sh.
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
  mistake 1 "--join: got 'nowhere', expected an existing folder of a running training, or HOST:PORT such as 10.0.0.1:29500" train run.toml --join nowhere
  mistake 1 "-n: got 4096 workers for the $(nproc) cores of this machine, expected at most $((32 * $(nproc))); try -n $(nproc)" train run.toml -n 4096
  mistake 1 "[--set train.lr=0.1] unknown key 'train.lr'; did you mean 'train.optimizer.lr'?" train run.toml --set train.lr=0.1
  expect 1 "$artel" train run.toml --set 'model.layers=["linear 4"]'
  contains err "unknown layer 'linear'; did you mean 'dense'?"
  expect 1 "$artel" train run.toml --set train.best_by=acc
  contains err 'best_by: got "acc", expected a metric of one number that this run measures: loss, accuracy; did you mean '"'accuracy'?"
  printf '[data]\nset = csv\n' >unquoted.toml
  expect 1 "$artel" train unquoted.toml
  contains err "[unquoted.toml:2]"
  contains err 'text needs quotes: set = "csv"'
  [[ ! -d runs || -z $(ls runs) ]] || fail "a refused run left a folder: $(ls -R runs)"
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
  advice "[$folder"'/more] the weights do not fit the model: 0.weight is [5, 3], expected [2, 3] (and 1 more); to start it from random weights, set model.new_layers = ["0."]' 'model.layers=["dense 2"]' model.weights=more
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
