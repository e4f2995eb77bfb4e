#!/usr/bin/env bash
# run.sh ARTEL LIBRARY CC SOURCE: examples/predict.c in an empty folder.
set -euo pipefail
artel=$1 library=$2 cc=$3 source=$4
source "$(dirname "$0")/../support.sh"

"$cc" -std=c99 -Wall -Wextra -Werror -pedantic "$source/examples/predict.c" -I "$source" "$library" \
  -Wl,-rpath,"$(dirname "$library")" -o predict

# Arrays reach the network as they are.
python3 - "$(dirname "$0")/.." <<'PYTHON'
import random, struct, sys, zipfile
sys.path.insert(0, sys.argv[1])
from npz import npy
random.seed(3)
rows = [[random.uniform(-1, 1) for _ in range(4)] for _ in range(200)]
with zipfile.ZipFile("data.npz", "w") as archive:
    flat = [value for row in rows for value in row]
    archive.writestr("x.npy", npy("<f4", (200, 4), struct.pack("<800f", *flat)))
    targets = [1 if row[0] + row[1] > row[2] else 0 for row in rows]
    archive.writestr("y.npy", npy("<i4", (200,), struct.pack("<200i", *targets)))
with open("rows.txt", "w") as file:
    for row in rows:
        print(*row, file=file)
PYTHON
cat >run.toml <<'TOML'
[data]
set = "npz"
path = "data.npz"
test_fraction = 0.2
[model]
layers = ["dense 64", "relu", "dense 32", "relu", "dense 2"]
[train]
batch_size = 20
epochs = 30
optimizer = { name = "adam", lr = 0.01 }
TOML
expect 0 "$artel" train run.toml --out run
expect 0 "$artel" quantise run -o small
# The scores of the C program give the probabilities of `artel predict`, also with quantised weights.
for run in run small; do
  ./predict $run <rows.txt >scores.txt
  expect 0 "$artel" predict $run data.npz --json
  python3 - <<'PYTHON' || fail "$run: other predictions"
import json, math
scores = [[float(x) for x in line.split()] for line in open("scores.txt")]
answers = [json.loads(line) for line in open("out")]
assert len(scores) == len(answers) == 200
for (a, b), answer in zip(scores, answers):
    assert abs(1 / (1 + math.exp(-abs(a - b))) - answer["probability"]) < 1e-4, (a, b, answer)
    assert answer["prediction"] == str(int(b > a)), (a, b, answer)
PYTHON
done
# Failures have messages.
expect 1 ./predict nowhere </dev/null
contains err "[nowhere] no such file or folder"
echo "passed"
