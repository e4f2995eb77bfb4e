#!/usr/bin/env bash
# run.sh ARTEL EXAMPLE: 20 steps of a synchronous example on small data of the same shape. They give the same bits on any
# number of workers, up to one for each lane, with one thread and with two.
set -euo pipefail
artel=$1 example=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
source "$here/../support.sh"

lanes=3
options=(--set train.steps=20 --set train.batch_size=6 --set cluster.lanes=$lanes --set cluster.transport=shm)

# pictures SHAPE: a few, of ten classes.
pictures() {
  python3 "$here/pictures.py" pictures.npz "$@"
  options+=(--set data.set=npz --set data.path=pictures.npz --set data.test_fraction=0.25)
}

text() {
  for i in {1..60}; do echo "the quick brown fox jumps over the lazy dog and runs away $((i * 7919 % 101))."; done >text.txt
  options+=(--set data.set=text --set data.path=text.txt --set data.test_fraction=0.25)
}

# Texts of two classes, and networks without the weights of another run.
labelled_texts() {
  { echo "text,kind"; for i in {1..40}; do echo "the quick brown fox jumps over $i dogs,$((i % 2))"; done; } >texts.csv
  options+=(--set data.set=labelled_text --set data.path=texts.csv --set data.test_fraction=0.1 --set data.context=32 --set 'data.tokenizer="wordpiece 120"'
    --set 'model.weights=""' --set 'model.new_layers=[]')
}

case $example in
  mnist | fashion_mnist | autoencoder | masked_fashion) pictures 1 28 28 ;;
  cifar_resnet20) pictures 3 32 32 ;;
  vit_cifar) pictures 3 32 32 && options+=(--set train.batch_size=3) ;;
  char_gpt) text ;;
  bert_pretrain) text && options+=(--set 'data.tokenizer="wordpiece 120"') ;;
  bert_classify) labelled_texts ;;
esac

for workers in $(seq $lanes); do
  for threads in 1 2; do
    out=workers$workers-threads$threads
    expect 0 "$artel" train "$root/examples/$example.toml" --out $out -n $workers --set cluster.threads=$threads "${options[@]}"
    expect 0 "$artel" verify workers1-threads1 $out
  done
done
