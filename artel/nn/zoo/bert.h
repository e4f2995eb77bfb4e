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
  // The same, but position 0 ([CLS], which is never masked) holds the two scores of "the second
  // sentence follows the first", padded with large negative numbers. So one cross entropy over all
  // positions, with the label 0 (it follows) or 1 at position 0, learns both tasks.
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
  int64_t hidden = 0;  // of feed-forward networks; 0: four times the width
  std::string activation = "gelu";
  double epsilon = 1e-12;    // of layer norms
  bool untied_head = false;  // token scores have their own table: cls.predictions.decoder
  int64_t classes = 2;
  BertHead head = BertHead::none;
  double dropout = 0;
};

// Input: tokens i32 [batch, positions], where 0 is padding that nothing attends to; or [batch, 2,
// positions], where the second row is the type of each token (0: first sentence, 1: second).
Layer bert(const BertOptions& options = {});

// Other names of these weights in published files.
NameRules bert_names();

}  // namespace artel::nn
