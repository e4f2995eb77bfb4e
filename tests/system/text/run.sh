#!/usr/bin/env bash
# run.sh ARTEL CASE: runs one case (a function test_CASE below) of language models in an empty folder.
set -euo pipefail
artel=$1 case=$2
source "$(dirname "$0")/../support.sh"

# A text of a few words, and a small GPT that learns it letter by letter.
make_gpt() {
  awk 'BEGIN { srand(3); split("the tide was low and slow today", word, " ")
    for (i = 0; i < 1500; ++i) printf "%s%s", word[1 + int(rand() * 7)], (i % 9 == 8) ? ".\n" : " " }' >text.txt
  cat >gpt.toml <<'TOML'
[data]
set = "text"
path = "text.txt"
context = 16
stride = 5
[model]
name = "gpt2"
depth = 2
heads = 2
width = 16
positions = 16
dropout = 0.2
[train]
batch_size = 12
steps = 40
clip_norm = 1
optimizer = { name = "adamw", lr = 5e-3 }
[cluster]
lanes = 3
TOML
}

# Weights of few bits: a run again, smaller, which computes nearly the same; and an ONNX model.
test_quantise() {
  make_gpt
  expect 0 "$artel" train gpt.toml --out runs/gpt --set model.name=llama --set model.width=64 --set model.heads=4 \
    --set model.key_heads=2
  expect 0 "$artel" quantise runs/gpt -o runs/int8
  contains out "model.layers.0.self_attn.q_proj.weight"
  contains out "times smaller"
  contains out "% of the perplexity"
  expect 0 "$artel" evaluate runs/int8
  contains out "loss"
  expect 0 "$artel" generate runs/int8 --prompt "the " --tokens 20 --seed 1
  [[ $(head -c 4 out) == "the " ]] || fail "the prompt is not in front: $(cat out)"
  expect 0 "$artel" quantise runs/gpt --weights int4 --group 64 --keep-float model.layers.1 --max-loss 1000 -o runs/int4
  contains out "float: asked for"
  contains out "lost alone"
  expect 0 "$artel" generate runs/int4 --prompt "the " --tokens 20 --seed 1 --threads 1
  (($(du -s runs/int8/checkpoints | cut -f1) < $(du -s runs/gpt/checkpoints | cut -f1))) || fail "int8 is no smaller"
  expect 1 "$artel" quantise runs/gpt -o runs/int8
  contains err "[runs/int8] exists already"
  expect 1 "$artel" quantise runs/gpt --group 48
  contains err "groups of a multiple of 32"
  expect 2 "$artel" quantise runs/gpt --weights int3
  expect 1 "$artel" quantise runs/nothing
  contains err "[runs/nothing] no such file or folder"
  expect 1 "$artel" generate runs/gpt --chat --prompt "the"
  contains err "this is not a ChatML model"
  expect 0 "$artel" export runs/int8 --onnx gpt.onnx --batch 2
  contains out "input x i32[2, 16]"
  expect 1 "$artel" export runs/int8 --onnx gpt.onnx -o other.onnx
  contains err "--out: got other.onnx, but --onnx gpt.onnx names the file already; leave out one of them"
  [[ -s gpt.onnx ]] || fail "no ONNX model"
  head -c 1000 gpt.onnx >broken.gguf
  expect 1 "$artel" generate broken.gguf
  contains err "[broken.gguf]"
}

test_generate() {
  make_gpt
  expect 0 "$artel" train gpt.toml --out runs/gpt
  contains out "test loss"
  expect 0 "$artel" generate runs/gpt --prompt "the " --tokens 50 --seed 1
  cp out first
  [[ $(head -c 4 first) == "the " ]] || fail "the prompt is not in front: $(cat first)"
  [[ $(wc -c <first) -eq 55 ]] || fail "got $(wc -c <first) characters, expected prompt, 50 and a new line"
  expect 0 "$artel" generate runs/gpt --prompt "the " --tokens 50 --seed 1 --threads 1
  cmp out first || fail "the same seed gave another text"
  expect 0 "$artel" generate runs/gpt --prompt "the " --tokens 50 --seed 2
  ! cmp -s out first || fail "another seed gave the same text"
  expect 0 "$artel" generate runs/gpt/checkpoints/step-000000040 --temperature 0 --tokens 3 --speed
  contains err "tokens/s"
  ! grep -q "positions" err || fail "a warning without reason: $(cat err)"
  expect 0 "$artel" train gpt.toml --out runs/long --set model.positions=24 --set train.steps=2
  expect 0 "$artel" generate runs/long --prompt "the " --tokens 13
  ! grep -q "positions" err || fail "a warning without reason: $(cat err)"
  expect 0 "$artel" generate runs/long --prompt "the " --tokens 14
  contains err "[runs/long] the text takes 17 positions, but training had data.context = 16"
  expect 0 "$artel" generate runs/long --prompt "the " --tokens 100
  contains err "the text takes 24 positions"
  expect 1 "$artel" generate runs/gpt --prompt "ZZ"
  contains err "the character 'Z' is not among"
  expect 1 "$artel" generate runs/gpt --prompt "the tide was low and slow"
  contains err "expected at most the network's 16 positions"
  expect 1 "$artel" generate runs/gpt --top-p 2
  contains err "top_p: got 2"
  expect 2 "$artel" generate runs/gpt --temperature -1
  contains err "--temperature: got '-1', expected a number of at least 0"
  expect 2 "$artel" generate runs/gpt --tokens many
  contains err "--tokens: got 'many', expected a number of at least 1"
  expect 1 "$artel" generate runs/nothing
  contains err "[runs/nothing] no such file or folder"
  cp -r runs/gpt runs/other
  echo '["a", "b"]' >runs/other/tokenizer/characters.json
  expect 1 "$artel" generate runs/other --prompt "a"
  contains err "the tokenizer has 2 tokens, but the network was trained with"
  expect 1 "$artel" embed runs/gpt "the tide"
  contains err "expected one of the BERT family"
}

# The same bits on one, two and three workers, with dropout everywhere.
test_workers() {
  make_gpt
  local workers
  for workers in 1 2 3; do expect 0 "$artel" train gpt.toml --out runs/w$workers -n $workers; done
  expect 0 "$artel" verify runs/w1 runs/w2
  expect 0 "$artel" verify runs/w1 runs/w3
  expect 0 "$artel" train gpt.toml --out runs/no_dropout --set model.dropout=0
  expect 1 "$artel" verify runs/w1 runs/no_dropout
}

# All ways to train together that promise the bits of one worker.
test_strategies() {
  make_gpt
  sed -i 's/^clip_norm.*/clip_norm = 0.1/; s/^steps.*/steps = 6/' gpt.toml
  expect 0 "$artel" train gpt.toml --out runs/one
  local strategy
  for strategy in allreduce hierarchical coordinator ps; do
    expect 0 "$artel" train gpt.toml --out runs/$strategy -n 3 --set cluster.strategy=$strategy --set cluster.reduction=exact
    expect 0 "$artel" verify runs/one runs/$strategy
  done
  # The others are taken at their word, and say so.
  for strategy in ring tree halving; do
    expect 0 "$artel" train gpt.toml --out runs/$strategy -n 3 --set cluster.strategy=$strategy
    contains err "$strategy, fast; bits depend on the number of workers"
    contains runs/$strategy/summary.json '"reduction": "fast"'
    expect 1 "$artel" train gpt.toml --out runs/no -n 3 --set cluster.strategy=$strategy --set cluster.reduction=exact
    contains err "cluster.reduction: got \"exact\" with cluster.strategy = \"$strategy\""
  done
}

make_bert() {
  make_gpt
  cat >pretrain.toml <<'TOML'
[data]
set = "text"
path = "text.txt"
task = "masked"
tokenizer = "wordpiece 50"
context = 16
[model]
name = "bert_pretraining"
depth = 2
heads = 2
width = 16
positions = 16
dropout = 0.1
[train]
batch_size = 12
steps = 20
optimizer = { name = "adamw", lr = 5e-3 }
[cluster]
lanes = 2
TOML
  { echo "text,kind"
    for i in {1..40}; do echo "the tide was low,sea"; echo "and slow today,land"; done; } >texts.csv
  sed -e 's/set = "text"/set = "labelled_text"/' -e 's/text\.txt/texts.csv/' -e '/^task/d' \
    -e 's|"wordpiece 50"|"runs/pretrain/tokenizer"|' -e 's/bert_pretraining/bert_classifier/' \
    -e 's|^depth|weights = "runs/pretrain"\nnew_layers = ["bert.pooler", "classifier"]\n&|' pretrain.toml >classify.toml
}

test_bert() {
  make_bert
  expect 0 "$artel" train pretrain.toml --out runs/pretrain
  expect 0 "$artel" train pretrain.toml --out runs/pretrain2 -n 2
  expect 0 "$artel" verify runs/pretrain runs/pretrain2
  expect 0 "$artel" train classify.toml --out runs/classify
  contains err "tensors are not in the model and are skipped: cls.predictions"
  expect 0 "$artel" predict runs/classify --text "the tide was low" --text "and slow today"
  [[ $(grep -c 'sea' out) -eq 2 ]] || fail "no classes in $(cat out)"
  { echo "first,second,follows"
    for i in {1..20}; do echo "the tide,was low,0"; echo "the tide,slow today,1"; done; } >pairs.csv
  expect 0 "$artel" train classify.toml --out runs/follows --set data.path=pairs.csv --set model.name=bert_next_sentence \
    --set model.new_layers=[]
  contains err "[2, 16]"
  expect 0 "$artel" predict runs/follows --text "the tide" --second "was low"
  contains out "the tide | was low: "
  expect 1 "$artel" predict runs/pretrain --text "the tide" --second "was low"
  contains err "expected one that classifies"
  expect 1 "$artel" predict runs/follows --text "the tide"
  contains err "expected pairs of texts"
  expect 0 "$artel" embed runs/pretrain "the tide" "the tide" "slow" --out vectors.npy
  contains out "3 vectors of 16 numbers"
  expect 0 "$artel" embed runs/pretrain "the tide" "the tide"
  contains out "1.0000  1.0000"
  expect 1 "$artel" embed runs/pretrain "the tide was low and slow today and the tide was low and slow"
  contains err "expected at most the network's 16 positions"
  expect 1 "$artel" train classify.toml --out runs/wrong --set model.width=24
  contains err "[$folder/runs/pretrain] the weights do not fit the model"
  expect 1 "$artel" train classify.toml --out runs/wrong --set 'model.new_layers=["nonsense"]'
  contains err "model.new_layers: no parameter's name begins with 'nonsense'"
  expect 1 "$artel" train classify.toml --out runs/wrong --set 'train.freeze=["bert.encoder.layer.9"]'
  contains err "train.freeze: no parameter's name begins with 'bert.encoder.layer.9'"
  expect 1 "$artel" train pretrain.toml --out runs/wrong --set data.task=automatic
  contains err 'got "bert_pretraining" for the next tokens of a text, expected "gpt2"'
  expect 1 "$artel" train classify.toml --out runs/wrong --set model.name=bert_masked
  contains err 'for texts, each with a class, expected "bert_classifier"'
  expect 1 "$artel" train classify.toml --out runs/wrong --set model.vocabulary=10
  contains err "model.vocabulary: got 10, but the tokenizer has"
  expect 1 "$artel" train classify.toml --out runs/wrong --set data.tokenizer=byte
  contains err "data.tokenizer: got 'byte', expected WordPiece tokens for the network"
  expect 1 "$artel" train pretrain.toml --out runs/wrong --set data.tokenizer=byte
  contains err "expected a WordPiece tokenizer"
  echo "text,kind" >texts.csv
  expect 1 "$artel" train classify.toml --out runs/wrong
  contains err "texts.csv] has no rows"
}

# A network that continued texts learns classes of texts (Radford et al., 2018).
test_gpt_classifier() {
  make_bert
  make_gpt
  expect 0 "$artel" train gpt.toml --out runs/gpt --set data.tokenizer="bpe 280" --set cluster.lanes=2
  expect 0 "$artel" finetune runs/gpt --data texts.csv --train all --epochs 6 --out runs/kinds --set cluster.lanes=2
  expect 0 "$artel" predict runs/kinds --best --text "the tide was low" "and slow today"
  [[ $(head -1 out) == *sea* && $(sed -n 2p out) == *land* ]] || fail "other classes than it learnt: $(cat out)"
  expect 0 "$artel" finetune runs/gpt --data texts.csv --train all --epochs 6 --out runs/kinds2 --set cluster.lanes=2 -n 2
  expect 0 "$artel" verify runs/kinds runs/kinds2
  expect 0 "$artel" finetune runs/gpt --data texts.csv --lora 2 --epochs 1 --out runs/adapted
  expect 0 "$artel" predict runs/adapted --text "the tide was low"
  expect 0 "$artel" finetune runs/kinds --data texts.csv --epochs 1 --out runs/again
  expect 1 "$artel" generate runs/kinds --prompt "the tide"
  contains err "does not predict next tokens"
  { echo "first,second,follows"
    for i in {1..20}; do echo "the tide,was low,0"; echo "the tide,slow today,1"; done; } >pairs.csv
  expect 1 "$artel" finetune runs/gpt --data pairs.csv --epochs 1 --out runs/wrong
  contains err "pairs of texts, which need WordPiece tokens"
  # From scratch, with the small Llama.
  sed -e 's/"bert_pretraining"/"llama_classifier"/' -e 's/set = "text"/set = "labelled_text"/' -e 's/text\.txt/texts.csv/' \
    -e '/^task/d' -e 's/"wordpiece 50"/"bpe 280"/' pretrain.toml >llama.toml
  expect 0 "$artel" train llama.toml --out runs/llama
  expect 0 "$artel" predict runs/llama --text "the tide was low"
}

# A folder as published models have it, made from a run: its sizes under other names.
test_published() {
  make_gpt
  expect 0 "$artel" train gpt.toml --out runs/gpt --set data.tokenizer="bpe 280" --set model.dropout=0
  mkdir model
  cp runs/gpt/tokenizer/* runs/gpt/checkpoints/step-000000040/model.safetensors model
  echo '{"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 16, "vocab_size": 280}' >model/config.json
  expect 0 "$artel" generate model --prompt "the tide" --tokens 20
  cp out first
  expect 0 "$artel" generate runs/gpt --prompt "the tide" --tokens 20
  cmp out first || fail "a published folder and a run differ"
  expect 0 "$artel" train gpt.toml --out runs/more --set data.tokenizer=model --set model.weights=model --set train.steps=1
  expect 0 "$artel" train gpt.toml --out runs/padded --set data.tokenizer=model --set model.vocabulary=320 --set train.steps=1
  expect 0 "$artel" generate runs/padded --prompt "the tide" --tokens 20
  # Weights in pieces, and a configuration that is not GPT-2's.
  cp -r model pieces
  mv pieces/model.safetensors pieces/model-1.safetensors
  "$artel" info model/model.safetensors | awk '$2 == "f32" { printf "%s\"%s\": \"model-1.safetensors\"", n++ ? ", " : "", $1 }' |
    sed 's/.*/{"weight_map": {&}}/' >pieces/model.safetensors.index.json
  expect 0 "$artel" generate pieces --prompt "the tide" --tokens 20
  cmp out first || fail "weights in pieces give another text"
  mv pieces/model-1.safetensors pieces/moved
  expect 1 "$artel" generate pieces --prompt "the tide"
  contains err "pieces/model.safetensors.index.json] 'model-1.safetensors' is missing"
  cp -r model other
  sed -i 's/{/{"activation_function": "relu", /' other/config.json
  expect 0 "$artel" generate other --prompt "the tide" --tokens 20
  ! cmp -s out first || fail "another activation gave the same text"
  expect 1 "$artel" train gpt.toml --out runs/other --set data.tokenizer=model --set model.weights=other
  contains err 'other/config.json] model.activation: got "gelu_tanh", but the published model has "relu"'
  expect 0 "$artel" train gpt.toml --out runs/other --set data.tokenizer=model --set model.weights=other \
    --set model.activation=relu --set train.steps=1
  sed -i 's/{/{"scale_attn_weights": false, /' other/config.json
  expect 1 "$artel" generate other --prompt "the tide"
  contains err "other/config.json] scale_attn_weights: got false"
  # A head of its own, which the network must be told of.
  expect 0 "$artel" train gpt.toml --out runs/untied --set data.tokenizer=model --set model.untied_head=true --set train.steps=1
  expect 1 "$artel" train gpt.toml --out runs/tied --set data.tokenizer=model --set model.weights=runs/untied
  contains err "lm_head.weight differs from wte.weight"
  sed -i '$d' model/merges.txt
  expect 1 "$artel" generate model --prompt "the tide"
  contains err "no merge produces it; the file may be truncated"
  cp runs/gpt/tokenizer/merges.txt model
  sed -i 's/280/270/' model/config.json
  expect 1 "$artel" generate model --prompt "the tide"
  contains err "the tokenizer has 280 tokens, but the network has a vocabulary of 270"
  sed -i 's/270/290/' model/config.json
  expect 1 "$artel" generate model --prompt "the tide"
  contains err "[model] the weights do not fit"
  contains err "wte.weight"
  sed -i 's/gpt2/mamba/' model/config.json
  expect 1 "$artel" generate model --prompt "the tide"
  contains err 'expected "gpt2", "llama" or "bert"'
}

# A text that is not kept in memory: tokenised by the first start only, even if workers are killed meanwhile.
test_large() {
  make_gpt
  export ARTEL_DATA=$PWD/data
  local i
  for i in {1..700}; do cat text.txt; done >large.txt
  [[ $(wc -c <large.txt) -gt 4500000 ]] || fail "the text is too small to be kept in a file"
  local train=("$artel" train gpt.toml --set data.path=large.txt --set data.test_fraction=0.001 --set train.steps=2)
  timeout -s KILL 0.1 "${train[@]}" --out runs/killed || true
  expect 0 "${train[@]}" --out runs/first
  contains err "large.txt: tokenising"
  expect 0 "${train[@]}" --out runs/second -n 2
  ! grep -q tokenising err || fail "tokenised twice"
  expect 0 "$artel" verify runs/first runs/second
  echo "the tide" >>large.txt
  expect 0 "${train[@]}" --out runs/third
  contains err "large.txt: tokenising"
  expect 1 env ARTEL_DATA=/dev/null "${train[@]}" --out runs/nowhere
  contains err "set ARTEL_DATA to a folder with free space"
  [[ $(find data/tokens -mindepth 1 -type d | wc -l) -eq 2 ]] || fail "unfinished work is left: $(ls data/tokens)"
}

test_mistakes() {
  make_gpt
  expect 1 "$artel" train gpt.toml --set model.patch=8
  contains err "this network has no patches"
  expect 1 "$artel" train gpt.toml --set model.positions=8
  contains err "got 16 positions, expected at most 8"
  expect 1 "$artel" train gpt.toml --set data.tokenizer=nonsense
  contains err "expected character, byte, 'bpe N', 'wordpiece N' or a path"
  expect 0 "$artel" train gpt.toml --out runs/bpe --set data.tokenizer="bpe 280" --set train.steps=1
  cp -r runs/bpe/tokenizer broken
  sed -i '3s/.*/only_one_part/' broken/merges.txt
  expect 1 "$artel" train gpt.toml --set data.tokenizer=broken
  contains err "merges.txt:3"
  expect 0 "$artel" train gpt.toml --out runs/untested --set data.test_fraction=0 --set train.steps=1
  : >empty.txt
  expect 1 "$artel" train gpt.toml --set data.path=empty.txt
  contains err "empty.txt] the text is empty"
  printf 'a\xff' >binary.txt
  expect 1 "$artel" train gpt.toml --set data.path=binary.txt
  contains err "binary.txt] [tokenizer] offset 1: not UTF-8"
  expect 1 "$artel" train gpt.toml --set data.test_fraction=0.001
  contains err "text.txt, test part"
  expect 1 "$artel" train gpt.toml --set data.context=100000
  contains err "not enough for a context of 100000"
}

"test_$case"
