#!/usr/bin/env bash
# run.sh ARTEL EXAMPLE LANES STEPS: some steps of a synchronous example with its default settings, on small data of the same
# shape. It has that many lanes, and the same bits with 1, 2, 3, and that many workers, with one thread and with two.
# With ARTEL_ALL_WORKERS=1: 20 steps at the example's own batch size, on every number of workers up to the lanes.
set -euo pipefail
artel=$1 example=$2 lanes=$3 steps=$4
counts=(1 2 3 $lanes)
if [[ ${ARTEL_ALL_WORKERS:-} ]]; then steps=20 counts=($(seq $lanes)); fi
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
source "$here/../support.sh"

command=train
options=(--set train.steps=$steps --set cluster.transport=shm)

# pictures SHAPE: random ones of ten classes, enough for a batch.
pictures() {
  python3 "$here/pictures.py" pictures.npz 300 "$@"
  options+=(--set data.set=npz --set data.path=pictures.npz --set data.test_fraction=0.1)
}

text() {
  for i in {1..600}; do echo "the quick brown fox jumps over the lazy dog and runs away $((i * 7919 % 101))."; done >text.txt
  options+=(--set data.set=text --set data.path=text.txt --set data.test_fraction=0.1)
}

# Texts of two classes, and networks without the weights of another run.
labelled_texts() {
  { echo "text,kind"; for i in {1..60}; do echo "the quick brown fox jumps over $i dogs,$((i % 2))"; done; } >texts.csv
  options+=(--set data.set=labelled_text --set data.path=texts.csv --set data.test_fraction=0.1 --set data.context=32 --set 'data.tokenizer="wordpiece 120"'
    --set 'model.weights=""' --set 'model.new_layers=[]')
}

case $example in
  mnist | fashion_mnist | autoencoder | masked_fashion) pictures 1 28 28 ;;
  simclr_fashion) pictures 1 28 28 && command=pretrain ;;
  simclr_cifar) pictures 3 32 32 && command=pretrain ;;
  cifar_resnet20) pictures 3 32 32 ;;
  vit_cifar) pictures 3 32 32 && [[ ${ARTEL_ALL_WORKERS:-} ]] || options+=(--set train.batch_size=12) ;;  # slow
  char_gpt) text ;;
  bert_pretrain) text && options+=(--set 'data.tokenizer="wordpiece 120"') ;;
  bert_classify) labelled_texts ;;
esac

for count in $(printf '%s\n' "${counts[@]}" | sort -nu | awk -v most=$lanes '$1 <= most'); do
  for threads in 1 2; do
    out=workers$count-threads$threads
    expect 0 "$artel" $command "$root/examples/$example.toml" --out $out -n $count --set cluster.threads=$threads "${options[@]}"
    contains $out/config.toml "lanes = $lanes"
    expect 0 "$artel" verify workers1-threads1 $out
  done
done
