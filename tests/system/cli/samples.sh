# Pictures, arrays, and tables: trained on and predicted. Cases of run.sh.
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

# trains_well DATA KEY LEAST: `artel init DATA` writes a configuration that trains without warnings and then reaches a metric of tests.
trains_well() {
  local name
  name=$(basename "$1")
  name=${name%%.*}
  expect 0 "$artel" init "$1"
  cp out found
  expect 0 "$artel" train "$name.toml" --out "run_of_$name"
  ! grep -q warning err || fail "$1: $(grep warning err)"
  expect 0 "$artel" evaluate "run_of_$name" --best --on test --json
  awk -v got="$(number out "$2")" -v least="$3" 'BEGIN { exit !(got >= least) }' || fail "$1: $2 of $(cat out), expected $3 in $(cat "$name.toml")"
}

# Mails of two kinds, over several lines, and 24 pictures of three colours.
make_mails_and_pictures() {
  python3 - <<'PYTHON'
import os, random, struct, zlib
random.seed(4)
spam, ham, both = (words.split() for words in ("winner prize money free click offer deal cash", "meeting report project lunch team review notes plan",
    "the a of to and we you for on with this that from please"))
with open("mails.csv", "w") as file:
    file.write("id,text,kind\n")
    for i in range(300):
        kind = i % 3 == 0
        words = [random.choice((spam if kind else ham) if random.random() < 0.2 else both) for _ in range(random.randint(20, 60))]
        words[len(words) // 2] += "\n\nsaid \"\"me\"\","
        file.write("%d,\"%s\",%s\n" % (i, " ".join(words), "spam" if kind else "ham"))

def png(path, pixels):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(c for pixel in row for c in pixel) for row in pixels)
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

for c, name in enumerate(("red", "green", "blue")):
    os.makedirs("photos/" + name)
    for i in range(8):
        png("photos/%s/%d.png" % (name, i), [[tuple(random.randint(120, 250) if k == c else random.randint(0, 110) for k in range(3)) for _ in range(20)]
            for _ in range(18)])
PYTHON
}

# Arrays of numbers around 100 with classes, of tokens with values, and of numbers without targets.
make_arrays() {
  python3 - <<'PYTHON'
import random, struct, zipfile
random.seed(6)

def array(kind, shape, numbers):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n" + struct.pack("<%d%s" % (len(numbers), {"<f4": "f", "<i8": "q"}[kind]), *numbers)

x = [[random.gauss(100, 20) for _ in range(4)] for _ in range(400)]
with zipfile.ZipFile("numbers.npz", "w") as file:
    file.writestr("x.npy", array("<f4", (400, 4), sum(x, [])))
    file.writestr("y.npy", array("<i8", (400,), [int(r[0] > r[1]) for r in x]))
tokens = [[random.randrange(6) for _ in range(3)] for _ in range(400)]
with zipfile.ZipFile("tokens.npz", "w") as file:
    file.writestr("x.npy", array("<i8", (400, 3), sum(tokens, [])))
    file.writestr("y.npy", array("<f4", (400, 2), sum(([r[0] / 3, r[1] / 3 - r[2] / 3] for r in tokens), [])))
open("plain.npy", "wb").write(array("<f4", (300, 2, 3), sum(([a, b, a, b, a, b] for a, b in ((random.gauss(0, 1), random.gauss(0, 1)) for _ in range(300))), [])))
PYTHON
}

# First configurations for data of each kind: they train well and without warnings, and nothing is overwritten.
test_init() {
  { echo "id,size,colour,price"; for ((i = 0; i < 80; ++i)); do echo "$i,$((i * 7 % 13)),$((i % 3 ? 1 : 2))x,$((i * 7 % 13 * 2)).5"; done; } >table.csv
  trains_well table.csv r2 0.8
  contains found "column 'id': each value occurs once, in order, like an id"
  contains table.toml 'target = "price"'
  expect 1 "$artel" init table.csv
  contains err "table.toml"
  # Decimal commas, of which the file says nothing.
  awk 'BEGIN { srand(2); print "area;cold;rent"
    for (i = 0; i < 300; ++i) { a = 20 + 80 * rand(); s = sprintf("%.2f;%.1f;%.2f", a, rand(), 9 * a + 30 * rand()); gsub(/\./, ",", s); print s } }' >rents.csv
  trains_well rents.csv r2 0.9
  contains rents.toml "decimal_comma = true"
  contains found "numbers have decimal commas"
  # Twelve rows: whole prices are values, although there are few, and the only other column may be sorted.
  { echo "rooms,price"; for ((i = 1; i <= 12; ++i)); do echo "$i,$((i * 50 + 20))"; done; } >tiny.csv
  trains_well tiny.csv r2 0.5
  contains tiny.toml 'task = "values"'
  head -6 tiny.csv >fewer.csv
  mistake 1 "[fewer.csv] got 5 rows, expected 10 or more to train and to test with" init fewer.csv
  # The only columns besides the class are an id and a text.
  make_mails_and_pictures
  trains_well mails.csv accuracy 0.9
  contains mails.toml 'set = "labelled_text"'
  contains mails.toml 'ignore = ["id"]'
  { echo "id,name"; for ((i = 0; i < 40; ++i)); do echo "$((1000 + i)),n$i"; done; } >ids.csv
  expect 1 "$artel" init ids.csv --target id
  contains err "[ids.csv] no column helps to predict 'id' in new rows: column 'name': each value occurs once, like an id"
  expect 1 "$artel" train table.toml --out nothing --set 'data.ignore=["id", "size", "colour"]'
  contains err "no column is left to learn 'price' from; shorten data.ignore"
  trains_well photos accuracy 0.7
  mkdir divided
  cp -r photos divided/train
  cp -r photos divided/test
  trains_well divided accuracy 0.7
  ! grep -q test_fraction divided.toml || fail "$(cat divided.toml)"
  make_arrays
  trains_well numbers.npz accuracy 0.85
  trains_well tokens.npz r2 0.8
  expect 0 "$artel" init plain.npy
  expect 0 "$artel" train plain.toml --out run_of_plain
  ! grep -q warning err || fail "plain.npy: $(cat err)"
  expect 0 "$artel" evaluate run_of_plain --json
  awk -v loss="$(number out loss)" 'BEGIN { exit !(loss < 0.1) }' || fail "plain.npy: $(cat out)"
  for ((i = 0; i < 300; ++i)); do echo "the quick brown fox jumps over the lazy dog $i"; done >text.txt
  expect 0 "$artel" init text.txt
  expect 0 "$artel" train text.toml --out run_of_text --set train.steps=2
  ! grep -q warning err || fail "text.txt: $(cat err)"
  expect 1 "$artel" init nowhere
  contains err "nowhere"
}
