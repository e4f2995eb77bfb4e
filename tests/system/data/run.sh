#!/bin/bash
# From one's own data to a judged network: run.sh ARTEL SOURCE CASE.
set -euo pipefail
artel=$1 source=$2 case=$3
. "$source/tests/system/support.sh"

# A configuration's paths lead to the same files from anywhere, before and after training.
test_paths() {
  mkdir project elsewhere
  make_data
  mv data.csv run.toml project
  cd elsewhere
  expect 0 "$artel" train ../project/run.toml --out run
  [[ ! -s err ]] || ! grep -q "working folder" err || fail "$(cat err)"
  grep -q "^path = \"$folder/project/data.csv\"" run/config.toml || fail "$(grep path run/config.toml)"
  cd "$folder"
  expect 0 "$artel" evaluate elsewhere/run
  expect 0 "$artel" train elsewhere/run/config.toml --out again
  # An override is relative to the working folder, and so is what only that has.
  cp project/data.csv other.csv
  expect 0 "$artel" train project/run.toml --out override --set data.path=other.csv
  grep -q "^path = \"$folder/other.csv\"" override/config.toml || fail "$(grep path override/config.toml)"
  mv project/data.csv .
  expect 0 "$artel" train project/run.toml --out fallback
  contains err "[project/run.toml] data.path: no 'data.csv' next to this file; using the one in the working folder: $folder/data.csv"
  "$artel" verify override fallback >out || fail "$(cat out)"
  rm data.csv
  expect 1 "$artel" train project/run.toml --out missing
  contains err "[$folder/project/data.csv] cannot open"
  # Data that has moved is the same data to a run that is resumed.
  mkdir moved && cp other.csv moved/data.csv && cp project/run.toml moved
  expect 0 "$artel" train moved/run.toml --out override --resume --set train.epochs=5
}

# A run knows whether the data is what it was trained on.
test_changed() {
  make_data
  expect 0 "$artel" train run.toml --out run
  expect 0 "$artel" evaluate run
  ! grep -q warning err || fail "$(cat err)"
  contains err "the newest checkpoint of run"
  sed -i '200s/^[^,]*/0.123456/' data.csv
  expect 0 "$artel" evaluate run
  contains err "the data at $folder/data.csv differs from the training data"
  expect 1 "$artel" train run.toml --out run --resume --set train.epochs=5
  contains err "other samples in the data"
  expect 0 "$artel" evaluate run --set data.path=data.csv
  ! grep -q warning err || fail "$(cat err)"
}

# bytes NUMBER...: as they are.
bytes() { for number in "$@"; do printf "\\x$(printf %02x "$number")"; done; }

# idx_part NAME COUNT: images 2 x 2 of two classes, which their first pixel tells, with labels 1 and 2.
idx_part() {
  { bytes 0 0 8 3 0 0 0 "$2" 0 0 0 2 0 0 0 2
    for ((i = 0; i < $2; ++i)); do bytes $((i % 2 * 200)) 10 $((i % 7)) 0; done; } >"digits/$1-images.idx"
  { bytes 0 0 8 1 0 0 0 "$2"; for ((i = 0; i < $2; ++i)); do bytes $((1 + i % 2)); done; } | gzip >"digits/$1-labels.gz"
}

test_idx() {
  mkdir digits
  idx_part train 60
  printf '[data]\nset = "idx"\npath = "digits"\n[model]\nlayers = ["flatten", "dense 3"]\n[train]\nbatch_size = 6\nepochs = 20\noptimizer = "sgd lr=0.5"\n' >digits.toml
  expect 0 "$artel" data show digits.toml
  contains out "54 training and 6 test samples, inputs f32 [1, 2, 2]"
  idx_part test 20
  expect 0 "$artel" data show digits.toml
  contains out "60 training and 20 test samples"
  expect 0 "$artel" train digits.toml --out run
  expect 0 "$artel" evaluate run
  contains out "correct 20 of 20"
  expect 0 "$artel" predict run digits/test-images.idx --top 1
  [[ $(cut -d' ' -f2 out | head -3 | tr '\n' ' ') == "1 2 1 " ]] || fail "$(head -3 out)"
  idx_part training2 10
  expect 1 "$artel" data show digits.toml
  contains err "holds both train-images.idx and training2-images.idx"
}

# A table of which one row in about thirty is "ill", for networks that would rather say "well" always.
make_rare() {
  awk 'BEGIN { srand(11); print "a,b,kind"
    for (i = 0; i < 3000; ++i) { ill = i % 31 == 3; a = rand() + rand() + rand() + (ill ? 0.9 : 0)
      printf "%.4f,%.4f,%s\n", a, rand(), ill ? "ill" : "well" } }' >rare.csv
  cat >rare.toml <<'TOML'
[data]
set = "csv"
path = "rare.csv"
test_fraction = 0.3
[model]
layers = ["dense 8", "relu", "dense 2"]
[train]
batch_size = 64
epochs = 6
optimizer = "adam lr=0.01"
metrics = ["accuracy", "recall", "auc", "per class", "confusion matrix"]
best_by = "auc"
[cluster]
lanes = 4
threads = 1
TOML
}

# recall_of FILE CLASS: from the JSON of an evaluation.
recall_of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["per class"][sys.argv[2]]["recall"])' "$1" "$2"; }

test_rare() {
  make_rare
  expect 0 "$artel" train rare.toml --out plain
  contains out "test auc"
  contains out "best test auc"
  contains out "label \\ answer"
  grep -q "<svg" plain/confusion.svg || fail "no plain/confusion.svg"
  grep -q '"recall"' plain/summary.json || fail "$(cat plain/summary.json)"
  expect 0 "$artel" evaluate plain --json
  cp out plain.json
  # Weights, and repeated samples: the rare class is found, with the same bits on three workers as on one.
  local way
  for way in 'train.class_weights=balanced' 'data.balanced=true' 'train.class_weights=[16, 0.5]'; do
    rm -rf one three
    expect 0 "$artel" train rare.toml --out one --set "$way"
    expect 0 "$artel" train rare.toml --out three --set "$way" -n 3
    expect 0 "$artel" verify one three
    expect 0 "$artel" evaluate one --json
    awk -v now="$(recall_of out ill)" -v before="$(recall_of plain.json ill)" 'BEGIN { exit !(now > before + 0.3) }' ||
      fail "$way: recall $(recall_of out ill) after $(recall_of plain.json ill)"
  done
  expect 0 "$artel" evaluate one --confusion --svg matrix.svg
  contains out "class  precision  recall"
  contains out "label \\ answer"
  grep -q ">ill</text>" matrix.svg || fail "no class in matrix.svg"
  expect 1 "$artel" train rare.toml --out wrong --set 'train.class_weights=[1, 2, 3]'
  contains err "train.class_weights: got 3 numbers, expected one for each of the 2 classes"
  expect 1 "$artel" train rare.toml --out wrong --set train.loss=mse --set train.class_weights=balanced --set 'model.layers=["dense 1"]' --set 'train.metrics=["mean absolute error"]' --set train.best_by=loss
  contains err "class_weights"
}

# A table of 18 MB in two files is parsed once, kept, and mapped by all workers; one that has changed is another.
test_large() {
  export ARTEL_DATA=$folder/kept
  awk 'BEGIN { srand(5); print "a,b,c,kind" >"part1.csv"; print "kind,c,b,a" >"part2.csv"
    for (i = 0; i < 500000; ++i) { a = rand(); b = rand(); k = a > b ? "up" : "down"
      if (i % 2) printf "%.8f,%.8f,%.8f,%s\n", a, b, rand(), k >"part1.csv"
      else printf "%s,%.8f,%.8f,%.8f\n", k, rand(), b, a >"part2.csv" } }'
  printf '[data]\nset = "csv"\npath = "part?.csv"\ntarget = "kind"\n[model]\nlayers = ["dense 2"]\n[train]\nbatch_size = 500\nsteps = 20\ntest_batches = 4\n[cluster]\nlanes = 4\nthreads = 1\n' >run.toml
  expect 0 "$artel" train run.toml --out three -n 3
  [[ $(grep -c "parsing the table once" err) -eq 1 ]] || fail "$(cat err)"
  contains err "450,000 training and 50,000 test samples"
  expect 0 "$artel" train run.toml --out one
  ! grep -q "parsing the table" err || fail "$(cat err)"
  expect 0 "$artel" verify one three
  # An incomplete kept table is parsed again, and one without use for a month is deleted.
  mkdir kept/tables/forgotten
  touch -d "40 days ago" kept/tables/forgotten
  printf 'x' | dd of="$(echo kept/tables/*/train_inputs.npy)" bs=1 seek=5000000 conv=notrunc 2>dd.txt
  expect 0 "$artel" train run.toml --out again
  contains err "parsing the table once"
  expect 0 "$artel" verify one again
  [[ ! -e kept/tables/forgotten ]] || fail "$(ls kept/tables)"
  # Those that were not used for the longest time make room for others.
  { cat part1.csv; tail -n +2 part1.csv; tail -n +2 part1.csv; } >other.csv
  kept=$(ls kept/tables | grep -v lock)
  ARTEL_TABLES_GB=0.001 expect 0 "$artel" train run.toml --out other --set data.path=other.csv
  contains err "$kept to make room"
  [[ $(ls kept/tables | grep -vc lock) -eq 1 && ! -e kept/tables/$kept ]] || fail "$(ls kept/tables)"
  ARTEL_TABLES_GB=many expect 1 "$artel" train run.toml --out wrong
  contains err "ARTEL_TABLES_GB: got 'many', expected a number of gigabytes"
  # The test after an epoch is of 4 batches, the evaluation of all.
  expect 0 "$artel" evaluate one
  contains out "of 50,000"
  # As samples of a run without the kept ones.
  ARTEL_DATA=$folder/other expect 0 "$artel" train run.toml --out anew
  contains err "parsing the table once"
  expect 0 "$artel" verify one anew
  # Predictions of many rows, read in pieces, are those of few.
  expect 0 "$artel" predict one part1.csv -o all.csv
  [[ $(wc -l <all.csv) -eq 250001 ]] || fail "$(wc -l all.csv)"
  { head -1 part1.csv; tail -1000 part1.csv; } >last.csv
  expect 0 "$artel" predict one last.csv -o last_out.csv
  diff <(tail -1000 all.csv) <(tail -1000 last_out.csv) >/dev/null || fail "predictions of the last rows differ"
  { cat part1.csv; echo "1,2,wrong,up"; } >broken.csv
  expect 1 "$artel" predict one broken.csv -o broken_out.csv
  contains err "[broken.csv] line 250002: column 'c' is 'wrong'"
}

# A resumed run keeps what it learnt of its table, even if the table has changed.
test_own_table() {
  make_data
  expect 0 "$artel" train run.toml --out run
  cp run/table.json before.json
  awk -F, 'NR > 1 { $1 *= 3 } { print }' OFS=, data.csv >changed.csv && mv changed.csv data.csv
  expect 0 "$artel" train run.toml --out run --resume --force --set train.epochs=6
  diff before.json run/table.json || fail "the table was learnt again"
  # pandas' index.
  awk -F, '{ print (NR == 1 ? "" : NR - 2) "," $0 }' data.csv >indexed.csv
  expect 0 "$artel" train run.toml --out indexed --set data.path=indexed.csv
  contains err "the first column has no name and numbers the rows: it is left out"
}

# Texts with a class learn their own vocabulary, and lines of a text are samples.
test_texts() {
  { echo "text,kind"; for i in {1..40}; do echo "the tide was low number $i,sea"; echo "and slow today $i,land"; done; } >texts.csv
  printf '[data]\nset = "labelled_text"\npath = "texts.csv"\ntokenizer = "wordpiece 60"\ncontext = 12\n[model]\nname = "bert_classifier"\ndepth = 1\nheads = 2\nwidth = 16\npositions = 12\n[train]\nbatch_size = 8\nepochs = 6\noptimizer = "adam lr=0.01"\n' >texts.toml
  expect 0 "$artel" train texts.toml --out texts
  [[ -e texts/tokenizer/vocab.txt || -e texts/tokenizer ]] || fail "no vocabulary"
  expect 0 "$artel" evaluate texts --json
  grep -q '"correct":8' out || fail "$(cat out)"
  printf 'the tide was high\nslow and slow\n' >new.txt
  expect 0 "$artel" predict texts new.txt --top 1
  [[ $(sed 's/.*: //; s/ .*//' out | tr '\n' ' ') == "sea land " ]] || fail "$(cat out)"
  expect 0 "$artel" predict texts - --json <new.txt
  [[ $(grep -c '"prediction":"sea"' out) -eq 1 ]] || fail "$(cat out)"
  # A table as training takes it, with or without the classes, by any number of workers.
  { echo "text,kind"; echo '"the tide was high, and low",sea'; echo "slow and slow,land"; } >new.csv
  expect 0 "$artel" predict texts new.csv --top 1
  [[ $(sed 's/.*: //; s/ .*//' out | tr '\n' ' ') == "sea land " ]] || fail "$(cat out)"
  cut -d, -f1 new.csv | sed 's/^"//' >alone.csv
  for i in {1..200}; do sed -n 2p alone.csv >>alone.csv; done
  expect 0 "$artel" predict texts alone.csv -o one.csv
  [[ $(grep -c '^the tide was high,sea,' one.csv) -eq 201 ]] || fail "$(head -4 one.csv)"
  expect 0 "$artel" predict texts alone.csv -o two.csv -n 2
  cmp one.csv two.csv || fail "other predictions by two workers"
  # Other columns are left out, rows without a text or a class are counted, and a second file is the test part.
  { echo "id,text,kind"; for i in {1..40}; do echo "$i,the tide was low number $i,sea"; echo "$i,and slow today $i,land"; done; echo "81,,sea"; echo "82,the tide,"; } >more.csv
  printf 'id,text,kind\n1,the tide was high,sea\n' >test.csv
  expect 1 "$artel" train texts.toml --out more --set data.path=more.csv
  contains err "data.ignore"
  expect 0 "$artel" train texts.toml --out more --set data.path=more.csv --set 'data.ignore=["id"]' --set data.test_path=test.csv
  contains err "2 of 82 rows are left out: their text or class is missing"
  contains err "80 training and 1 test sample "
  expect 0 "$artel" evaluate more --json
  grep -q '"correct":1' out || fail "$(cat out)"
  printf 'id,text,kind\n1,the tide was high,sky\n' >test.csv
  expect 1 "$artel" train texts.toml --out wrong --set data.path=more.csv --set 'data.ignore=["id"]' --set data.test_path=test.csv
  contains err "the class 'sky' does not occur among the texts for training"
  # Names: the network learns where they end.
  for i in {1..60}; do printf 'anna\nbob\n\n'; done >names.txt
  printf '[data]\nset = "text"\npath = "names.txt"\nlines = true\ncontext = 8\n[model]\nname = "gpt2"\ndepth = 1\nheads = 2\nwidth = 16\npositions = 8\n[train]\nbatch_size = 12\nepochs = 20\noptimizer = "adam lr=0.01"\n[cluster]\nlanes = 2\nthreads = 1\n' >names.toml
  expect 0 "$artel" train names.toml --out names
  contains err "108 training and 12 test samples [8]"
  contains out "tokens/s"
  expect 0 "$artel" train names.toml --out names2 -n 2
  expect 0 "$artel" verify names names2
  expect 0 "$artel" generate names --prompt $'\nb' --tokens 2 --temperature 0
  contains out "bob"
  expect 1 "$artel" predict names new.txt
  contains err "try artel generate RUN --prompt TEXT"
}

# picture FILE RED: a PNG of 8 x 8 pixels.
picture() {
  python3 - "$1" "$2" <<'PYTHON'
import struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
red = int(sys.argv[2])
rows = b"".join(b"\0" + bytes([red, 60, 255 - red]) * 8 for _ in range(8))
open(sys.argv[1], "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PYTHON
}

test_pictures() {
  mkdir -p pictures/red pictures/blue new
  for i in {0..9}; do picture pictures/red/$i.png $((150 + i * 10)); picture pictures/blue/$i.png $((i * 10)); done
  picture new/a.png 230
  picture new/b.png 20
  printf '[data]\nset = "folder"\npath = "pictures"\nbalanced = true\n[model]\nlayers = ["flatten", "dense 2"]\n[train]\nbatch_size = 4\nepochs = 10\noptimizer = "sgd lr=0.05"\n' >pictures.toml
  expect 0 "$artel" train pictures.toml --out run
  expect 0 "$artel" predict run new --top 1
  [[ $(cut -d' ' -f1,2 out | tr '\n' ' ') == "new/a.png: red new/b.png: blue " ]] || fail "$(cat out)"
  expect 0 "$artel" predict run new --json -o out.jsonl
  [[ $(grep -c '"top":\[' out.jsonl) -eq 2 ]] || fail "$(cat out.jsonl)"
  # More than a batch of them, by one worker and by three; files by name are as good as their folder.
  for i in {0..149}; do ln pictures/red/$((i % 10)).png new/$i.png; done
  expect 0 "$artel" predict run new --top 1 -o one.csv
  [[ $(wc -l <one.csv) -eq 153 && $(head -1 one.csv) == sample,prediction,probability && $(grep -c '^new/.*png,red,' one.csv) -eq 151 ]] || fail "$(head one.csv)"
  expect 0 "$artel" predict run new --top 1 -o three.csv -n 3
  cmp one.csv three.csv || fail "other predictions by three workers"
  expect 0 "$artel" predict run new --json -n 2
  cp out folder.jsonl
  expect 0 "$artel" predict run $(ls -d new/* | LC_ALL=C sort) --json
  cmp out folder.jsonl || fail "other predictions of the files of a folder"
  # A picture that is not one is left out of a folder, and named; by itself it is an error, and no output looks complete.
  rm new/0.png
  printf 'no picture' >new/0.png
  for workers in 1 3; do
    expect 0 "$artel" predict run new --top 1 -o broken.csv -n $workers
    contains err "new/0.png"
    contains err "skipped"
    grep -v '^new/0.png,' one.csv | cmp - broken.csv || fail "$(head broken.csv)"
    rm broken.csv
    expect 1 "$artel" predict run new/1.png new/0.png -o broken.csv -n $workers
    contains err "new/0.png"
    [[ ! -e broken.csv ]] || fail "broken.csv is there"
  done
  mkdir only && printf 'no picture' >only/a.png
  expect 0 "$artel" predict run only --top 1
  [[ ! -s out ]] || fail "$(cat out)"
  expect 1 "$artel" predict run - -n 2 </dev/null
}

"test_$case"
