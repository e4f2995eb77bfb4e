#include "artel/predict/sentence_vectors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/checkpoint/weights.h"
#include "artel/data/fetch.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/names.h"
#include "artel/predict/predictor.h"

namespace artel {
namespace {

// The cosines of texts by a BERT of these sizes and weights.
Tensor cosines_of(const nn::BertOptions& options, const NamedTensors& weights,
                  const data::WordPiece& tokenizer, const std::vector<std::string>& texts) {
  const Tensor tokens = token_rows(tokenizer, texts, options.positions);
  Predictor predictor(nn::bert(options), {DType::i32, {tokens.shape()[1]}},
                      nn::rename_published("bert", weights));
  return cosines(mean_vectors(tokens, predictor(tokens)));
}

// tests/golden/make_sentences.py has computed the same in numpy.
TEST(SentenceVectors, FollowNumpy) {
  const NamedTensors golden =
      checkpoint::load_weights(std::string(ARTEL_GOLDEN_DIR) + "/sentences.safetensors");
  const data::WordPiece tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "tide",
                                   "rises", "fall", "##s", "dog", "barks", "a", "b"},
                                  true, "test");
  const Tensor found =
      cosines_of({.vocabulary = 14, .positions = 12, .width = 16, .depth = 2, .heads = 2}, golden,
                 tokenizer, {"The tide rises", "the tide falls", "Dog barks"});
  for (const NamedTensor& entry : golden) {
    if (entry.name != "cosines") continue;
    for (int64_t i = 0; i < found.elements(); ++i)
      EXPECT_NEAR(found.values<float>()[i], entry.tensor.values<float>()[i], 1e-4) << i;
  }
  EXPECT_THROW(token_rows(tokenizer, {"a b a b a b a b a b a b"}, 12), Error);
}

// The published cosines of the published weights, if `artel data get minilm` has been run.
TEST(SentenceVectors, FollowThePublishedMiniLm) {
  const auto folder = data::find_set(data::find_entry("minilm"));
  if (!folder) GTEST_SKIP() << "the weights are not on this machine; try: artel data get minilm";
  const auto tokenizer = data::read_word_piece(*folder / "tokenizer.json");
  const Tensor found =
      cosines_of({.positions = 512, .width = 384, .depth = 6},
                 checkpoint::load_weights(*folder / "model.safetensors"), *tokenizer,
                 {"That is a happy person", "That is a happy dog", "That is a very happy person",
                  "Today is a sunny day"});
  EXPECT_NEAR(found.values<float>()[1], 0.6946, 0.002);
  EXPECT_NEAR(found.values<float>()[2], 0.9429, 0.002);
  EXPECT_NEAR(found.values<float>()[3], 0.2568, 0.002);
}

TEST(SentenceVectors, LeavePaddingOut) {
  const Tensor tokens = Tensor::from<int32_t>({1, 3}, {2, 3, 0});
  const Tensor hidden = Tensor::from<float>({1, 3, 2}, {1, 0, 5, 8, 100, 100});
  const Tensor vector = mean_vectors(tokens, hidden);
  EXPECT_FLOAT_EQ(vector.values<float>()[0], 0.6f);
  EXPECT_FLOAT_EQ(vector.values<float>()[1], 0.8f);
}

}  // namespace
}  // namespace artel
