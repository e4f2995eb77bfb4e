// Weights of few bits: which matrices get them, what networks compute with them, and runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/nn/layers.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/predict/batches.h"
#include "artel/predict/decoder.h"
#include "artel/predict/predictor.h"
#include "artel/run/run.h"
#include "artel/run/samples/text_model.h"
#include "artel/shrink/quantise_run.h"
#include "artel/shrink/weights_of_few_bits.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights.h"

namespace artel::shrink {
namespace {

constexpr int64_t kVocabulary = 37, kPositions = 16;

nn::Layer small_gpt() {
  return nn::gpt2(
      {.vocabulary = kVocabulary, .positions = kPositions, .width = 32, .depth = 2, .heads = 4});
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

const TensorType kSample = {DType::i32, {kPositions}};

Tensor some_tokens() {
  Tensor tokens({1, kPositions}, DType::i32);
  for (int64_t i = 0; i < kPositions; ++i)
    tokens.values<int32_t>()[i] = static_cast<int32_t>(i * i % kVocabulary);
  return tokens;
}

SmallWeights shrunk(const Model& model, const NamedTensors& weights, const WeightOptions& options) {
  return quantise(inference_graph(model, {DType::i32, {1, kPositions}}).graph, weights, options);
}

TEST(QuantiseWeights, MatricesOfProductsAndTablesGetFewBits) {
  const Model model = small_gpt();
  const NamedTensors weights = tests::initial_weights(model, kSample, 1);
  const SmallWeights small =
      shrunk(model, weights,
             {{.bits = 4}, [](const std::string& name) { return name.starts_with("h.1"); }});
  std::map<std::string, std::string> left;
  for (const ShrunkWeight& each : small.matrices) left[each.name] = each.left;
  EXPECT_EQ(left.at("wte.weight"), "");
  EXPECT_EQ(left.at("h.0.attn.c_attn.weight"), "");
  EXPECT_EQ(left.at("h.1.attn.c_attn.weight"), "asked for");
  EXPECT_EQ(left.at("wpe.weight"), "other layers read it");
  EXPECT_FALSE(left.contains("h.0.ln_1.weight"));
  // Stored [in, out] in the network, by rows of outputs in the file.
  const QuantisedMatrix matrix = find_quantised(small.weights, "h.0.attn.c_attn.weight");
  EXPECT_TRUE(matrix.turned);
  EXPECT_EQ(matrix.rows(), 96);
  EXPECT_EQ(expand(matrix).shape(), (Shape{32, 96}));
  NamedTensors fewer = weights;
  fewer.pop_back();
  EXPECT_THROW(shrunk(model, fewer, {}), Error);
}

// The size of a difference compared with that of the values.
double relative_difference(const Tensor& a, const Tensor& b) {
  double change = 0, size = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    change += std::pow(double{a.values<float>()[i]} - b.values<float>()[i], 2);
    size += std::pow(double{b.values<float>()[i]}, 2);
  }
  return std::sqrt(change / size);
}

TEST(QuantiseWeights, ConvolutionsAreNamedAndCounted) {
  const TensorType sample = {DType::f32, {3, 8, 8}};
  const Model model =
      nn::sequential({nn::conv(8, {3, 3}), nn::relu(), nn::flatten(), nn::dense(4)});
  const NamedTensors weights = tests::initial_weights(model, sample, 1);
  const SmallWeights small =
      quantise(inference_graph(model, batch_of(sample, 1)).graph, weights, {});
  ASSERT_EQ(small.matrices.size(), 2U);
  EXPECT_EQ(small.matrices[0].name, "0.weight");
  EXPECT_EQ(small.matrices[0].left, "convolutions stay float");
  EXPECT_EQ(small.matrices[1].left, "");
  const auto bytes = [](const NamedTensors& all) {
    size_t sum = 0;
    for (const NamedTensor& each : all) sum += each.tensor.bytes();
    return sum;
  };
  EXPECT_EQ(small.bytes_before, bytes(weights));
  EXPECT_EQ(small.bytes_after, bytes(small.weights));
}

TEST(QuantiseWeights, PredictionsDependOnNeitherTheBatchNorThreads) {
  const Model model = nn::sequential({nn::dense(96), nn::relu(), nn::dense(64), nn::dense(5)});
  const TensorType sample = {DType::f32, {64}};
  const NamedTensors weights = tests::initial_weights(model, sample, 1);
  const NamedTensors small =
      quantise(inference_graph(model, batch_of(sample, 1)).graph, weights, {}).weights;
  Tensor x({70, 64});
  Random random{2};
  for (float& value : x.values<float>()) value = random.normal();
  Predictor one(model, sample, small), three(model, sample, small, 3);
  const Tensor all = one(x), again = three(x);
  EXPECT_EQ(std::memcmp(all.raw(), again.raw(), all.bytes()), 0);
  for (const int64_t row : {0, 33, 69}) {
    const Tensor alone = one(x.rows(row, row + 1)), expected = all.rows(row, row + 1);
    EXPECT_EQ(std::memcmp(alone.raw(), expected.raw(), expected.bytes()), 0) << row;
  }
  // Activations are rounded to 8 bits, too.
  const double rounding = relative_difference(all, Predictor(model, sample, expand_all(small))(x));
  EXPECT_GT(rounding, 1e-6);
  EXPECT_LT(rounding, 0.03);
}

// Both compute with codes.
TEST(QuantiseWeights, DecodersAndPredictorsAgree) {
  for (const Model& model : {Model(small_gpt()), Model(small_llama())})
    for (const int bits : {8, 4}) {
      const NamedTensors weights = tests::initial_weights(model, kSample, 5);
      const NamedTensors small = shrunk(model, weights, {{.bits = bits}}).weights;
      const Tensor tokens = some_tokens();
      const Tensor expected = Predictor(model, kSample, small)(tokens);
      const Tensor expanded = Predictor(model, kSample, expand_all(small))(tokens);
      EXPECT_LT(relative_difference(expected, expanded), 0.05);
      EXPECT_GT(relative_difference(expected, expanded), 1e-6);
      Decoder one(model, small, 1), three(model, small, 3);
      EXPECT_LT(one.weight_bytes(), Decoder(model, weights, 1).weight_bytes() / 2);
      double change = 0, size = 0;
      for (int64_t at = 0; at + 1 < kPositions; ++at) {
        // All but the first two tokens one by one.
        const auto piece = tokens.values<int32_t>().subspan(at == 0 ? 0 : at + 1, at == 0 ? 2 : 1);
        const Tensor a = one.read(piece), b = three.read(piece);
        EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
        for (int64_t i = 0; i < kVocabulary; ++i) {
          const double e = expected.values<float>()[(at + 1) * kVocabulary + i];
          change += std::pow(a.values<float>()[i] - e, 2);
          size += e * e;
        }
      }
      EXPECT_LT(std::sqrt(change / size), 0.02) << bits;
    }
}

TEST(QuantiseWeights, MatricesThatDoNotFitAreNamed) {
  const Model model = small_llama();
  NamedTensors small = shrunk(model, tests::initial_weights(model, kSample, 5), {}).weights;
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  NamedTensors other;
  append(other, name, quantise_rows(Tensor({64, 96}), {8}));
  for (NamedTensor& each : small)
    for (const NamedTensor& replacement : other)
      if (each.name == replacement.name) each.tensor = replacement.tensor;
  try {
    Decoder(model, small, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(name.substr(0, 20)), std::string::npos)
        << error.what();
  }
}

class QuantiseRunTest : public testing::Test {
 protected:
  QuantiseRunTest() {
    std::string text;
    for (int i = 0; i < 400; ++i) text += fmt::format("the {} of {}.\n", i % 7, i % 5);
    write_file_atomically(folder_ / "text.txt", text);
    write_file_atomically(folder_ / "gpt.toml", fmt::format(R"([data]
set = "text"
path = "{}"
context = 16
[model]
name = "llama"
width = 64
depth = 1
heads = 4
positions = 16
[train]
batch_size = 8
epochs = 1
steps = 20
optimizer = {{ name = "adamw", lr = 0.003 }}
[cluster]
threads = 1
lanes = 1
)",
                                                            (folder_ / "text.txt").string()));
    artel::Run(folder_ / "gpt.toml", RunOptions{.out = run(), .quiet = true}).train();
  }

  std::string run() const { return (folder_ / "run").string(); }

  TemporaryFolder folder_;
};

TEST_F(QuantiseRunTest, LosesLittleAndIsARunAgain) {
  const QuantisedRun small = quantise_run({.source = {.path = run()}, .form = {.bits = 8}});
  EXPECT_GT(small.before.samples, 0);
  EXPECT_LT(std::abs(lost(small.before, small.after)), 2);
  const std::string out = (folder_ / "small").string();
  save_quantised(small, {.path = run()}, out);
  SavedRun opened = open_run({.path = out});
  EXPECT_EQ(opened.evaluate(Part::test).loss, small.after.loss);
  opened.load(expand_all(small.small.weights), out);
  EXPECT_NE(opened.evaluate(Part::test).loss, small.after.loss);  // with activations of 32 bits
  const TextModel model = open_text_model({.path = out});
  Decoder decoder(make_model(model.config, model.classes), model.weights, 1, model.window);
  EXPECT_EQ(decoder.read(model.tokenizer->encode("the ")).elements(), model.tokenizer->size());
  EXPECT_THROW(save_quantised(small, {.path = run()}, out), Error);  // it exists
}

TEST(ShrinkQuality, EachKindOfNetworkHasItsMeasure) {
  const Quality values = {.loss = 2}, worse = {.loss = 3};
  EXPECT_EQ(to_string(values), "loss 2.0000");
  EXPECT_EQ(lost(values, worse), 50);
  EXPECT_EQ(lost_unit(values), "% of the loss");
  const Quality text = {.loss = 2, .of_text = true}, more = {.loss = 2.1, .of_text = true};
  EXPECT_EQ(to_string(text), "loss 2.0000, perplexity 7.389");
  EXPECT_NEAR(lost(text, more), 100 * (std::exp(0.1) - 1), 1e-9);
  const Quality classes = {.loss = 2, .accuracy = 0.5};
  EXPECT_EQ(to_string(classes), "loss 2.0000, accuracy 0.5000");
  EXPECT_NEAR(lost(classes, {.loss = 9, .accuracy = 0.25}), 25, 1e-9);
}

TEST_F(QuantiseRunTest, KeepsTheMostSensitiveLayersFloat) {
  const QuantisedRun all = quantise_run({.source = {.path = run()}, .form = {.bits = 4}});
  const QuantisedRun none =
      quantise_run({.source = {.path = run()}, .form = {.bits = 4}, .max_loss = -50});
  EXPECT_EQ(none.sensitivity.size(), all.small.matrices.size());
  for (const ShrunkWeight& weight : none.small.matrices) EXPECT_EQ(weight.left, "asked for");
  EXPECT_EQ(none.after.loss, none.before.loss);
  EXPECT_NE(none.chosen_by.find("training samples"), std::string::npos) << none.chosen_by;
  EXPECT_TRUE(std::ranges::is_sorted(none.sensitivity, std::ranges::greater(),
                                     &std::pair<std::string, double>::second));
  const QuantisedRun kept = quantise_run(
      {.source = {.path = run()}, .form = {.bits = 4}, .keep_float = {"model.embed_tokens"}});
  EXPECT_EQ(kept.small.matrices.front().left, "asked for");
}

}  // namespace
}  // namespace artel::shrink
