#include "artel/run/report/exhibits.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/data/text/tokenizer.h"
#include "artel/exec/program.h"
#include "artel/nn/layers.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

TEST(Exhibits, OfLongRunsNotAllEpochsHaveThem) {
  const auto count = [](int64_t epochs) {
    int64_t kept = 0;
    for (int64_t epoch = 1; epoch <= epochs; ++epoch) kept += is_exhibited(epoch);
    return kept;
  };
  EXPECT_EQ(count(50), 50);
  EXPECT_EQ(count(100), 75);
  EXPECT_EQ(count(200), 100);
  EXPECT_LT(count(1'000'000), 450);
}

// Tokens [samples, 4], each with the next one.
data::DatasetPtr texts() {
  Tensor x({3, 4}, DType::i32), y({3, 4}, DType::i32);
  for (int32_t i = 0; i < 12; ++i) {
    x.values<int32_t>()[static_cast<size_t>(i)] = i % 3;
    y.values<int32_t>()[static_cast<size_t>(i)] = (i + 1) % 3;
  }
  return data::tensor_dataset(x, y, 3, {}, data::character_tokenizer("abc"));
}

RunConfig text_config() {
  RunConfig config;
  config.data.context = 4;
  config.observe.sample_tokens = 6;
  return config;
}

// Its scores depend on the token before alone: c after b, and so on, nearly always.
Model next_letter() { return nn::sequential({nn::embedding(3, 3)}); }

Parameters weights_of(const Model& model) {
  KernelChoices choices;
  const Program program(inference_graph(model, {DType::i32, {1, 4}}).graph, {}, choices);
  Parameters weights(program.parameter_entries());
  for (const ParameterEntry& entry : weights.entries()) {
    Tensor table({3, 3});
    for (size_t i = 0; i < 9; ++i) table.values<float>()[i] = i % 3 == (i / 3 + 1) % 3 ? 50 : 0;
    weights.set(entry.name, table);
  }
  return weights;
}

TEST(TextSamples, ContinuesTheFirstSample) {
  TextSamples samples(text_config(), *texts());
  ASSERT_TRUE(samples.wanted());
  Parameters weights = weights_of(next_letter());
  const auto text = samples.write(next_letter(), weights, 1);
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->prompt, "abca");
  EXPECT_EQ(text->text, "bcabca");
}

TEST(TextSamples, BeginsAsTheConfigurationSays) {
  RunConfig config = text_config();
  config.observe.sample_prompt = "cb";
  config.observe.sample_tokens = 2;
  TextSamples samples(config, *texts());
  Parameters weights = weights_of(next_letter());
  EXPECT_EQ(samples.write(next_letter(), weights, 1)->text, "ca");
  config.observe.sample_prompt = "xyz";
  try {
    TextSamples(config, *texts());
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("[observe.sample_prompt]")) << error.what();
  }
}

TEST(TextSamples, AreOnlyOfTextsAndIfTheyAreWanted) {
  RunConfig config = text_config();
  EXPECT_FALSE(
      TextSamples(config, *data::tensor_dataset(Tensor({2, 3}), Tensor({2}, DType::i32))).wanted());
  config.observe.sample_tokens = 0;
  config.observe.sample_prompt = "xyz";
  EXPECT_FALSE(TextSamples(config, *texts()).wanted());
}

// A network that sees what follows cannot write: nothing is said, and nothing is tried again.
TEST(TextSamples, ANetworkThatCannotWriteIsLeftAlone) {
  TextSamples samples(text_config(), *texts());
  const Model classifier = nn::sequential({nn::embedding(3, 3), nn::flatten()});
  Parameters weights = weights_of(next_letter());
  EXPECT_FALSE(samples.write(classifier, weights, 1).has_value());
  EXPECT_FALSE(samples.wanted());
}

TEST(TextSamples, AResumedRunDropsWhatItWritesAgain) {
  const TemporaryFolder folder;
  const TextSamples samples(text_config(), *texts());
  samples.begin(folder / "texts.jsonl", 0);
  for (const int64_t step : {10, 20, 30})
    samples.append(folder / "texts.jsonl", step, step / 10, {"a", "\xff\"b\n"});
  samples.begin(folder / "texts.jsonl", 20);
  const std::vector<std::string> lines = split(read_file(folder / "texts.jsonl"), '\n');
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(nlohmann::json::parse(lines[1]),
            nlohmann::json::parse(R"({"step":20,"epoch":2,"prompt":"a","text":"�\"b\n"})"));
}

}  // namespace
}  // namespace artel
