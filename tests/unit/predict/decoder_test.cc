// Reading piece by piece must give the same result as reading all at once; generation builds on it.
#include "artel/predict/decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "artel/base/error.h"
#include "artel/nn/layers.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/transformer.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/predict/generate.h"
#include "artel/predict/load_weights.h"
#include "artel/predict/predictor.h"
#include "tests/support/weights.h"

namespace artel {
namespace {

constexpr int64_t kVocabulary = 37, kPositions = 24;

nn::Layer small_gpt() {
  return nn::gpt2({.vocabulary = kVocabulary,
                   .positions = kPositions,
                   .width = 32,
                   .depth = 2,
                   .heads = 4,
                   .dropout = 0.1});
}

nn::Layer small_llama() {
  return nn::llama({.vocabulary = kVocabulary,
                    .positions = kPositions,
                    .width = 64,
                    .depth = 2,
                    .heads = 4,
                    .key_heads = 2,
                    .hidden = 96});
}

std::vector<int32_t> some_tokens(int64_t count) {
  std::vector<int32_t> tokens;
  Random random{3};
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(random.below(kVocabulary)));
  return tokens;
}

// Scores after each of the tokens, without a cache.
Tensor scores_at_once(const Model& model, const std::vector<int32_t>& tokens, uint64_t seed) {
  const TensorType sample = {DType::i32, {static_cast<int64_t>(tokens.size())}};
  Tensor x({1, sample.shape[0]}, DType::i32);
  std::copy(tokens.begin(), tokens.end(), x.values<int32_t>().begin());
  return Predictor(model, sample, tests::initial_weights(model, sample, seed))(x);
}

void expect_same_piece_by_piece(const Model& model) {
  const std::vector<int32_t> tokens = some_tokens(kPositions);
  const Tensor expected = scores_at_once(model, tokens, 5);
  Decoder decoder(model, 5, 2);
  EXPECT_EQ(decoder.positions(), kPositions);
  size_t at = 0;
  for (const size_t count : {5, 1, 1, 7, 1, 9}) {
    const Tensor scores = decoder.read(std::span(tokens).subspan(at, count));
    at += count;
    for (int64_t i = 0; i < kVocabulary; ++i)
      ASSERT_NEAR(scores.values<float>()[i],
                  expected.values<float>()[(static_cast<int64_t>(at) - 1) * kVocabulary + i], 1e-5)
          << "after " << at << " tokens";
  }
  EXPECT_EQ(decoder.size(), kPositions);
}

TEST(Decoder, ReadsPieceByPieceWhatIsReadAtOnce) {
  expect_same_piece_by_piece(small_gpt());
  expect_same_piece_by_piece(small_llama());
}

TEST(Decoder, GivesTheSameBitsOnAnyNumberOfThreadsAndAfterForgetting) {
  const std::vector<int32_t> tokens = some_tokens(9);
  Decoder one(small_gpt(), 5, 1), three(small_gpt(), 5, 3);
  one.read(tokens);
  one.forget();
  const Tensor a = one.read(tokens), b = three.read(tokens);
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
}

// Networks of text layers; these have to read all of the text again for each token.
TEST(Decoder, NetworksWithoutACacheReadAgain) {
  constexpr int64_t kWindow = 12;
  const std::vector<int32_t> tokens = some_tokens(kWindow);
  for (const char* look_back : {"lstm 16", "gru 8 layers 2", "attention 2 causal", "dense 16"}) {
    const Model model = nn::parse_layers({"embedding 37 16", look_back, "dense 37"});
    const TensorType sample = {DType::i32, {kWindow}};
    const NamedTensors weights = tests::initial_weights(model, sample, 5);
    Tensor x({1, kWindow}, DType::i32);
    std::copy(tokens.begin(), tokens.end(), x.values<int32_t>().begin());
    const Tensor expected = Predictor(model, sample, weights)(x);
    Decoder decoder(model, weights, 2, kWindow);
    EXPECT_EQ(decoder.positions(), kWindow);
    size_t at = 0;
    for (const size_t count : {3, 1, 8}) {
      const Tensor scores = decoder.read(std::span(tokens).subspan(at, count));
      at += count;
      EXPECT_EQ(std::memcmp(scores.raw(), expected.values<float>().data() + (at - 1) * kVocabulary,
                            scores.bytes()),
                0)
          << look_back << " after " << at << " tokens";
    }
    EXPECT_THROW(Decoder(model, weights, 1), Error);  // no window is given
  }
}

TEST(Decoder, GivesTheScoresOfTheLastTokenOfAPiece) {
  constexpr int64_t kWindow = 8;
  const std::vector<int32_t> tokens = some_tokens(kWindow);
  const Model model = nn::Layer("network", [](nn::Build& build, Value x) {
    x = nn::named("embedding", nn::embedding(kVocabulary, 16))(build, x);
    x = nn::named("qkv", nn::dense(48))(build, x);
    x = nn::causal_attention(build, x, 2, kWindow, 0);
    return nn::named("head", nn::dense(kVocabulary))(build, x);
  });
  const TensorType sample = {DType::i32, {kWindow}};
  const NamedTensors weights = tests::initial_weights(model, sample, 5);
  Tensor x({1, kWindow}, DType::i32);
  std::copy(tokens.begin(), tokens.end(), x.values<int32_t>().begin());
  const Tensor expected = Predictor(model, sample, weights)(x);
  Decoder decoder(model, weights, 1, kWindow);
  size_t at = 0;
  for (const size_t count : {5, 1, 2}) {
    const Tensor scores = decoder.read(std::span(tokens).subspan(at, count));
    at += count;
    for (int64_t i = 0; i < kVocabulary; ++i)
      ASSERT_NEAR(scores.values<float>()[i],
                  expected.values<float>()[(static_cast<int64_t>(at) - 1) * kVocabulary + i], 1e-5)
          << "after " << at << " tokens";
  }
}

TEST(Decoder, ReadsWithTheWeightsOfSomebodyElse) {
  const TensorType sample = {DType::i32, {1, kPositions}};
  const NamedTensors weights = tests::initial_weights(small_gpt(), {DType::i32, {kPositions}}, 5);
  KernelChoices choices;
  const Program program(inference_graph(small_gpt(), sample).graph, {}, choices);
  Parameters lender(program.parameter_entries());
  load_weights(lender, weights);
  Decoder own(small_gpt(), weights, 1), borrowed(small_gpt(), lender, 1);
  EXPECT_EQ(borrowed.weight_bytes(), own.weight_bytes());
  const std::vector<int32_t> tokens = some_tokens(7);
  const auto same = [&] {
    own.forget();
    borrowed.forget();
    const Tensor a = own.read(tokens), b = borrowed.read(tokens);
    return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  };
  EXPECT_TRUE(same());
  lender.values(lender.entry("ln_f.bias"))[0] += 1;  // it has no copy of that
  EXPECT_FALSE(same());
}

TEST(Decoder, RefusesNetworksThatLookAhead) {
  const Model model = nn::parse_layers({"embedding 37 16", "lstm 16 bidirectional", "dense 37"});
  const NamedTensors weights = tests::initial_weights(model, {DType::i32, {6}}, 5);
  try {
    Decoder(model, weights, 1, 6);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("sees the tokens that it should predict"),
              std::string::npos)
        << error.what();
  }
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  Decoder decoder(small_gpt(), 5, 1);
  EXPECT_THROW(decoder.read({}), Error);
  EXPECT_THROW(decoder.read(some_tokens(kPositions + 1)), Error);
  EXPECT_THROW(decoder.read(std::vector<int32_t>{kVocabulary}), Error);
  EXPECT_THROW(decoder.read(std::vector<int32_t>{-1}), Error);
  EXPECT_THROW(Decoder(nn::bert({.vocabulary = 9, .width = 8, .depth = 1, .heads = 1}), 1, 1),
               Error);
  const Model other = nn::gpt2({.vocabulary = kVocabulary + 1,
                                .positions = kPositions,
                                .width = 32,
                                .depth = 2,
                                .heads = 4});
  try {
    Decoder(small_gpt(), tests::initial_weights(other, {DType::i32, {4}}, 0), 1);
    FAIL() << "weights of another vocabulary were accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wte.weight"), std::string::npos) << error.what();
  }
}

TEST(Sampling, FollowsItsOptions) {
  const std::vector<float> scores = {0, std::log(6.f), std::log(3.f),
                                     -INFINITY};  // 0.1, 0.6, 0.3, 0
  const auto frequencies = [&](const SamplingOptions& options) {
    std::map<int32_t, double> counts;
    Random random{1};
    for (int i = 0; i < 10000; ++i) counts[sample_token(scores, options, random)] += 1e-4;
    return counts;
  };
  const auto all = frequencies({});
  EXPECT_NEAR(all.at(0), 0.1, 0.02);
  EXPECT_NEAR(all.at(1), 0.6, 0.02);
  EXPECT_NEAR(all.at(2), 0.3, 0.02);
  EXPECT_FALSE(all.contains(3));
  EXPECT_EQ(frequencies({.temperature = 0}).size(), 1u);
  EXPECT_EQ(frequencies({.top_k = 1}).begin()->first, 1);
  EXPECT_NEAR(frequencies({.top_k = 2}).at(1), 2.0 / 3, 0.02);
  EXPECT_EQ(frequencies({.top_p = 0.6}).size(), 1u);
  EXPECT_EQ(frequencies({.top_p = 0.61}).size(), 2u);
  EXPECT_NEAR(frequencies({.temperature = 0.5}).at(1), 36.0 / 46, 0.02);
  for (const SamplingOptions& wrong :
       {SamplingOptions{.temperature = -1}, {.top_k = -1}, {.top_p = 0}, {.top_p = 1.5}})
    EXPECT_THROW(frequencies(wrong), Error);
  Random random{1};
  EXPECT_THROW(sample_token(std::vector<float>{NAN, NAN}, {}, random), Error);
}

std::vector<int32_t> written(uint64_t seed, int64_t tokens, std::vector<int32_t> prompt) {
  Decoder decoder(small_gpt(), 5, 1);
  std::vector<int32_t> text;
  generate(decoder, std::move(prompt), {.tokens = tokens, .seed = seed}, [&](int32_t token) {
    text.push_back(token);
    return true;
  });
  return text;
}

TEST(Generate, GoesOnBeyondTheContextAndRepeatsItselfForASeed) {
  const std::vector<int32_t> text = written(1, 3 * kPositions, {1, 2, 3});
  EXPECT_EQ(text.size(), static_cast<size_t>(3 * kPositions));
  EXPECT_EQ(text, written(1, 3 * kPositions, {1, 2, 3}));
  EXPECT_NE(text, written(2, 3 * kPositions, {1, 2, 3}));
}

TEST(Generate, StartsOverAfterASeparator) {
  Decoder decoder(small_gpt(), 5, 2);
  const auto greedy = [&](std::vector<int32_t> prompt, std::optional<int32_t> separator) {
    std::vector<int32_t> tokens;
    generate(decoder, std::move(prompt),
             {.tokens = 8, .sampling = {.temperature = 0}, .separator = separator},
             [&](int32_t token) {
               tokens.push_back(token);
               return true;
             });
    return tokens;
  };
  const int32_t separator = greedy({1, 2, 3}, {}).front();
  std::vector<int32_t> after = greedy({1, 2, 3}, separator);
  ASSERT_EQ(after.front(), separator);
  std::vector<int32_t> alone = greedy({separator}, separator);
  after.erase(after.begin());
  alone.pop_back();
  EXPECT_EQ(after, alone);
  EXPECT_EQ(greedy({1, 2, separator}, separator), greedy({separator}, separator));
}

TEST(Generate, StopsWhenAskedAndRefusesAWrongPrompt) {
  Decoder decoder(small_gpt(), 5, 1);
  int count = 0;
  generate(decoder, {1}, {.tokens = 100}, [&](int32_t) { return ++count < 4; });
  EXPECT_EQ(count, 4);
  EXPECT_THROW(written(1, 2, {}), Error);
  EXPECT_THROW(written(1, 2, some_tokens(kPositions + 1)), Error);
  EXPECT_EQ(written(1, 2, some_tokens(kPositions)).size(), 2u);
}

}  // namespace
}  // namespace artel
