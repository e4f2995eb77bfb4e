#!/usr/bin/env bash
# run.sh ARTEL ROOT CASE: runs one case (a function test_CASE below) in an empty folder: features, small models,
# fine-tuning and advice, from a network trained on drawn pictures.
set -euo pipefail
artel=$1 root=$2 case=$3
source "$(dirname "$0")/../support.sh"

# draw FOLDER CLASS...: 40 PNG pictures of 20 x 16 pixels for each class: a bright disc, square or bar.
draw() {
  python3 - "$@" <<'PY'
import os, random, struct, sys, zlib
def png(path, pixels):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(c for pixel in row for c in pixel) for row in pixels)
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
random.seed(1)
for kind in sys.argv[2:]:
    os.makedirs(f"{sys.argv[1]}/{kind}", exist_ok=True)
    for i in range(40):
        x, y, r = random.randint(6, 13), random.randint(5, 10), random.randint(3, 5)
        back, front = random.randint(0, 60), random.randint(150, 255)
        inside = {"disc": lambda u, v: (u - x) ** 2 + (v - y) ** 2 <= r * r,
                  "square": lambda u, v: max(abs(u - x), abs(v - y)) <= r,
                  "bar": lambda u, v: abs(u - x) <= 1,
                  "line": lambda u, v: abs(v - y) <= 1}[kind]
        png(f"{sys.argv[1]}/{kind}/{i}.png", [[([front] * 3 if inside(u, v) else [back] * 3) for u in range(20)] for v in range(16)])
PY
}

# A network that tells discs from squares.
make_base() {
  draw shapes disc square
  cat >base.toml <<'TOML'
[data]
set = "folder"
path = "shapes"
image_size = 16
augment = ["normalise 0.3 0.3"]
[model]
layers = ["conv 8 3x3", "batch_norm", "relu", "max_pool 2", "conv 16 3x3", "relu", "adaptive_average_pool 4", "flatten", "dense 2"]
[train]
batch_size = 8
epochs = 2
optimizer = "adam lr=0.01"
[cluster]
lanes = 2
TOML
  expect 0 "$artel" train base.toml --out base
}

test_features() {
  make_base
  draw lines bar line
  expect 0 "$artel" features base --list
  grep -qE "^ *4 +\[16, 5, 5\]" out || { cat out; fail "layer 4"; }
  expect 0 "$artel" features base lines --layer 2 --layer "before 8" -o one.npz
  contains out "before 8  [256]"
  # In shards the file is the same, byte for byte.
  expect 0 "$artel" features base lines --layer 2 --layer "before 8" -o two.npz -n 2
  cmp one.npz two.npz || fail "two workers give another file"
  # A configuration that says nothing about the preparation of pictures gets that of the base.
  printf '[data]\nset = "folder"\npath = "lines"\n' >lines.toml
  expect 0 "$artel" features base lines.toml --layer 2 --layer "before 8" -o toml.npz
  cmp one.npz toml.npz || fail "a configuration gives another file"
  printf 'augment = ["normalise 0.5 0.25"]\nimage_size = 16\n' >>lines.toml
  expect 1 "$artel" features base lines.toml --size 20
  contains err "--size: got 20, but [lines.toml] says itself how pictures are prepared"
  for model in linear knn centroid; do
    expect 0 "$artel" fit $model one.npz -o models/$model
    awk '/^test/ { if ($3 < 0.8) exit 1; found = 1 } END { exit !found }' out || { cat out; fail "$model"; }
  done
  expect 0 "$artel" predict models/linear lines/bar/0.png lines/line/1.png --top 1
  grep -q "lines/bar/0.png: bar" out || { cat out; fail "prediction"; }
  expect 0 "$artel" predict models/knn lines -o predictions.csv
  [[ $(wc -l <predictions.csv) -eq 81 ]] || fail "$(wc -l <predictions.csv) lines"
  # Columns of a table.
  { echo "file,size"; for kind in bar line; do for i in {0..39}; do echo "$kind/$i.png,$i"; done; done; } >sizes.csv
  expect 0 "$artel" features base lines --join sizes.csv --on file -o joined.npz
  contains out "sizes.csv  [1]"
  expect 0 "$artel" fit linear joined.npz -o models/joined
  expect 1 "$artel" predict models/joined lines/bar/0.png
  contains err "was fitted with columns of a table, too (size)"
  # Another program's arrays, and ours in `artel train`.
  printf '[data]\nset = "npz"\npath = "one.npz"\n[model]\nlayers = ["dense 2"]\n' >npz.toml
  expect 0 "$artel" data show npz.toml
}

test_finetune() {
  make_base
  draw lines bar line
  printf 'not a picture' >lines/bar/broken.jpg
  head -c 60 lines/line/0.png >lines/line/cut.png
  expect 0 "$artel" finetune base --data lines --train head --epochs 6 --out tuned --set cluster.lanes=2
  contains err "2 of 82 pictures cannot be read and are left out"
  contains out "before"
  contains out "test accuracy"
  expect 0 "$artel" predict tuned --best lines/bar/3.png --top 1
  # The same as TOML, and on two workers.
  "$artel" finetune base --data lines --train head --epochs 6 --set cluster.lanes=2 --print >plan.toml 2>err || fail "$(cat err)"
  expect 0 "$artel" train plan.toml --out from_toml
  expect 0 "$artel" verify tuned from_toml
  expect 0 "$artel" finetune base --data lines --train head --epochs 6 --out two --set cluster.lanes=2 -n 2
  contains out "test accuracy"
  expect 0 "$artel" verify tuned two
  # Step by step; and what has been trained is a base again, whose head fits.
  expect 0 "$artel" finetune base --data lines --train all --gradually 1 --epochs 1 --out slowly
  contains out "stage 2 of 3"
  expect 0 "$artel" finetune tuned --data lines --train head --epochs 1 --out again
  contains out "the head of the base has the same classes and is kept"
}

# Frozen layers that are computed once give the weights of those that are computed in each epoch.
test_cache() {
  make_base
  draw lines bar line
  export ARTEL_DATA=$folder/data
  for train in head "last 1"; do
    settings=(--data lines --train "$train" --epochs 3 --set data.augment='["normalise 0.3 0.3"]' --set cluster.lanes=2)
    expect 0 "$artel" finetune base "${settings[@]}" --set train.cache=true --out "kept $train"
    contains err "are computed once"
    expect 0 "$artel" finetune base "${settings[@]}" --set train.cache=false --out "each $train"
    expect 0 "$artel" verify "kept $train" "each $train"
    expect 0 "$artel" finetune base "${settings[@]}" --set train.cache=true --out "two $train" -n 2
    expect 0 "$artel" verify "kept $train" "two $train"
  done
  [[ $(ls data/features | wc -l) -gt 0 ]] || fail "no file was kept"
  expect 0 "$artel" evaluate "kept head" --best
  # It can be resumed.
  "$artel" finetune base "${settings[@]}" --set train.cache=true --print >plan.toml
  expect 0 "$artel" train plan.toml --out "kept last 1" --resume --set train.epochs=4
  expect 0 "$artel" train plan.toml --out "each last 1" --resume --set train.epochs=4 --set train.cache=false
  expect 0 "$artel" verify "kept last 1" "each last 1"
}

test_pretrain() {
  draw shapes disc square bar
  cat >views.toml <<'TOML'
[data]
set = "folder"
path = "shapes"
image_size = 16
augment = ["crop 16 2", "flip", "jitter 0.3 0.3"]
[model]
layers = ["conv 8 3x3", "relu", "max_pool 2", "conv 8 3x3", "relu", "flatten", "dense 16"]
[train]
batch_size = 48
epochs = 3
optimizer = "adam lr=0.003"
[cluster]
lanes = 4
TOML
  for method in simclr moco; do
    expect 0 "$artel" pretrain views.toml --method $method --out $method
    expect 0 "$artel" pretrain views.toml --method $method --out $method-2 -n 2
    expect 0 "$artel" verify $method $method-2
  done
  expect 0 "$artel" probe simclr shapes --labels 0.5,1 --scratch 1
  contains out "from scratch"
  # A network that hides patches is an autoencoder like others.
  printf '[data]\nset = "folder"\npath = "shapes"\nimage_size = 16\ntask = "reconstruct"\n[model]\nlayers = ["mask_patches 4", "conv 8 3x3 padding 1", "relu", "conv 3 3x3 padding 1"]\n[train]\nloss = "mse"\n' >masked.toml
  expect 0 "$artel" train masked.toml --out masked
  expect 0 "$artel" probe masked shapes --layer 2 --pool whole --labels 1
}

# Both stages of a BERT on one's own texts, and a GPT-2.
test_text() {
  for i in {1..80}; do
    echo "the quick brown fox number $((i % 7)) jumps over the lazy dog . it runs away from place $((i % 5)) ."
  done >plain.txt
  { echo "text,kind"; for i in {1..60}; do echo "the fox number $i runs,animal"; echo "the price is $i coins,money"; done; } >kinds.csv
  cat >bert.toml <<'TOML'
[data]
set = "text"
path = "plain.txt"
task = "masked"
tokenizer = "wordpiece 200"
context = 16
[model]
name = "bert_pretraining"
depth = 2
heads = 2
width = 16
positions = 32
[train]
batch_size = 8
optimizer = "adam lr=0.003"
TOML
  expect 0 "$artel" train bert.toml --out first
  expect 0 "$artel" finetune first --data plain.txt --epochs 1 --out second
  expect 0 "$artel" finetune second --data kinds.csv --train all --epochs 3 --out kinds
  contains out "test accuracy"
  expect 0 "$artel" predict kinds --best --text "the fox runs" --top 1
  # Adapters of frozen layers, merged or separate.
  expect 0 "$artel" finetune second --data kinds.csv --lora 2 --epochs 2 --out adapted
  contains out "training adapters (lora 2)"
  expect 0 "$artel" predict adapted --text "the fox runs"
  expect 0 "$artel" adapters adapted -o merged.safetensors
  expect 0 "$artel" adapters adapted --apart -o apart.safetensors
  [[ $(stat -c %s apart.safetensors) -lt $(stat -c %s merged.safetensors) ]] || fail "what is apart is not smaller"
  sed -e 's/task = "masked"//; s/wordpiece 200/character/; s/bert_pretraining/gpt2/' bert.toml >gpt.toml
  expect 0 "$artel" train gpt.toml --out gpt
  expect 0 "$artel" finetune gpt --data plain.txt --epochs 1 --lora 2 --out own
  expect 0 "$artel" generate own --prompt "the " --tokens 5
}

test_advise() {
  make_base
  draw lines bar line
  expect 0 "$artel" advise base lines
  contains out "LogME"
  contains out "advised"
  contains out "to do so: artel"
  expect 0 "$artel" advise base lines --size 20 --check --budget 5
  contains out "measured"
  contains out "--size 20"
}

test_refused() {
  make_base
  mkdir -p empty one/disc few/disc few/square
  cp shapes/disc/*.png one/disc
  cp shapes/disc/*.png few/disc
  cp shapes/square/0.png few/square
  expect 1 "$artel" finetune base --data empty
  contains err "[$folder/empty] holds no pictures in sub-folders"
  expect 1 "$artel" finetune base --data one
  contains err "[one] has one class ('disc'), expected two or more"
  expect 1 "$artel" finetune base --data few
  contains err "[few] class 'square' has"
  expect 1 "$artel" finetune base --data shapes --train "last 9"
  contains err 'expected "last N" with N from 0 to 2'
  expect 1 "$artel" finetune base --data shapes --train haed
  contains err "did you mean 'head'?"
  expect 1 "$artel" features base shapes --layer 44
  contains err "[layer '44'] the network has no such layer"
  expect 1 "$artel" features lenet5 shapes
  contains err "is a network without weights; give a file of them with --weights"
  expect 1 "$artel" features basse shapes
  contains err "[basse] no such base"
  expect 1 "$artel" features base shapse
  contains err "[shapse] no such folder, file or data set"
  expect 1 "$artel" fit tree features.npz
  expect 1 "$artel" advise base one
  contains err "got one class"
}

test_search() {
  make_base
  head -c 60 shapes/disc/1.png >shapes/broken.png
  expect 0 "$artel" search shapes --like shapes/disc/0.png --base base --most 5 --html page.html
  contains out "0.000  disc/0.png"
  contains out "of 80 are nearer than 0.60"
  contains err "left out, since they cannot be read: 1 picture"
  grep -q "data:image/png;base64," page.html || fail "no thumbnails"
  expect 0 "$artel" search shapes --group --base base --threshold 0.3
  contains out "group"
  mkdir empty
  expect 1 "$artel" search empty --group --base base
  contains err "[empty] holds no pictures"
  expect 1 "$artel" search shapes --base base
  contains err "give either --like PICTURE or --group"
  expect 1 "$artel" search shapes --group --base fases
  contains err "did you mean 'faces'?"
  expect 0 "$artel" models list
  contains out "resnet50_keras"
  expect 0 "$artel" models info faces
  contains out "SHA-256"
  expect 1 "$artel" models get fases
  contains err "unknown base 'fases'; did you mean 'faces'?"
}

"test_$case"
