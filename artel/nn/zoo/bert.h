// BERT (Devlin et al., 2018) with the names of its published checkpoints: bert.embeddings,
// bert.encoder.layer.0, bert.pooler, cls.predictions, cls.seq_relationship, classifier.
//
//   const artel::Model bert = artel::nn::bert(
//       {.classes = 3, .head = artel::nn::BertHead::classification, .dropout = 0.1});
#pragma once

#include "artel/nn/layer.h"
#include "artel/nn/zoo/names.h"

namespace artel::nn {

enum class BertHead {
  none,             // [batch, positions, width]: the last hidden states
  masked_language,  // [batch, positions, vocabulary]
  // Like masked_language, but position 0 ([CLS], which is never masked) holds the two next-sentence
  // scores, padded with large negative numbers. One cross entropy over all positions, with the
  // label 0 (next sentence) or 1 at position 0, learns both tasks.
  pretraining,
  next_sentence,   // [batch, 2]
  classification,  // [batch, classes]
};

struct BertOptions {
  int64_t vocabulary = 30522;
  int64_t positions = 512;
  int64_t width = 768;
  int64_t depth = 12;
  int64_t heads = 12;
  int64_t hidden = 0;  // units of feed-forward networks; 0 means 4 * width
  std::string activation = "gelu";
  double epsilon = 1e-12;    // of layer norms
  bool untied_head = false;  // token scores have their own weights: cls.predictions.decoder
  int64_t classes = 2;
  BertHead head = BertHead::none;
  double dropout = 0;
};

// Input: tokens i32 [batch, positions], where 0 is padding and masked in attention; or [batch, 2,
// positions], where the second row is the type of each token (0 for the first sentence, 1 for the
// second).
Layer bert(const BertOptions& options = {});

// Other names of these weights in published files.
NameRules bert_names();

}  // namespace artel::nn
