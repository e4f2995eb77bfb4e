#include "artel/nn/parse_layers.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/nn/model.h"

namespace artel::nn {
namespace {

using Lines = std::vector<std::string>;

Graph graph_of(const Lines& lines, TensorType x) {
  return std::move(inference_graph(parse_layers(lines), x).graph);
}

Shape output_of(const Lines& lines, Shape x, DType type = DType::f32) {
  return graph_of(lines, {type, std::move(x)}).output("prediction").shape();
}

std::vector<std::string> parameters_of(const Lines& lines, Shape x) {
  const Graph graph = graph_of(lines, {DType::f32, std::move(x)});
  std::vector<std::string> names;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    names.push_back(graph.value(id).name);
  return names;
}

std::string error_of(const Lines& lines) {
  try {
    parse_layers(lines);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ParseLayers, BuildsANetwork) {
  const Lines lines = {"conv 64 3x3", "batch_norm", "relu", "max_pool 2", "flatten", "dense 10"};
  EXPECT_EQ(output_of(lines, {2, 3, 32, 32}), (Shape{2, 10}));
  EXPECT_EQ(parameters_of(lines, {2, 3, 32, 32}),
            (Lines{"0.weight", "0.bias", "1.weight", "1.bias", "5.weight", "5.bias"}));
}

TEST(ParseLayers, BuildsTransformers) {
  EXPECT_EQ(
      output_of({"embedding 65 16", "learned_positions 12",
                 "residual { rms_norm | attention 4 causal rotary no_bias dropout 0.1 } no_relu",
                 "residual { rms_norm | swiglu 44 } no_relu", "dense 65 no_bias"},
                {2, 10}, DType::i32),
      (Shape{2, 10, 65}));
  const Lines vision = {"patches 16 4",
                        "class_token",
                        "sinusoidal_positions",
                        "residual { layer_norm | attention 2 } no_relu",
                        "residual { layer_norm | feed_forward 32 relu } no_relu",
                        "take 0",
                        "dense 10"};
  EXPECT_EQ(output_of(vision, {2, 3, 8, 8}), (Shape{2, 10}));
  const Lines names = parameters_of(vision, {2, 3, 8, 8});
  EXPECT_EQ(Lines(names.begin(), names.begin() + 6),
            (Lines{"0.proj.weight", "0.proj.bias", "1.weight", "3.body.0.weight", "3.body.0.bias",
                   "3.body.1.query.weight"}));
  EXPECT_NE(error_of({"attention 4 sparse"}).find("causal"), std::string::npos);
  EXPECT_EQ(output_of({"feed_forward 8 tanh"}, {2, 4, 6}), (Shape{2, 4, 6}));
  EXPECT_THROW(output_of({"attention 3"}, {2, 5, 16}), Error);
  EXPECT_THROW(output_of({"learned_positions 4"}, {2, 5, 16}), Error);
  EXPECT_THROW(output_of({"take 5"}, {2, 5, 16}), Error);
}

TEST(ParseLayers, BuildsNetworksForSequences) {
  EXPECT_EQ(output_of({"lstm 5"}, {2, 7, 3}), (Shape{2, 7, 5}));
  EXPECT_EQ(output_of({"gru 5 bidirectional layers 2"}, {2, 7, 3}), (Shape{2, 7, 10}));
  EXPECT_EQ(output_of({"lstm 5 bidirectional last"}, {2, 7, 3}), (Shape{2, 10}));
  EXPECT_EQ(parameters_of({"gru 5 layers 2 bidirectional no_bias"}, {2, 7, 3}),
            (Lines{"0.weight_ih_l0", "0.weight_hh_l0", "0.weight_ih_l0_reverse",
                   "0.weight_hh_l0_reverse", "0.weight_ih_l1", "0.weight_hh_l1",
                   "0.weight_ih_l1_reverse", "0.weight_hh_l1_reverse"}));
  EXPECT_THROW(output_of({"lstm 5"}, {2, 7}), Error);
  EXPECT_THROW(output_of({"lstm 5 mask x"}, {2, 7, 3}), Error);
  EXPECT_EQ(output_of({"embedding 9 4", "lstm 5 last mask x"}, {2, 7}, DType::i32), (Shape{2, 5}));
  EXPECT_EQ(output_of({"conv1d 6 3 stride 2 padding 1"}, {2, 4, 9}), (Shape{2, 6, 5}));
  EXPECT_EQ(output_of({"conv1d 6 5 padding same groups 2"}, {2, 4, 9}), (Shape{2, 6, 9}));
  EXPECT_THROW(output_of({"conv1d 6 3"}, {2, 4, 9, 9}), Error);
  EXPECT_EQ(output_of({"embedding_bag 9 4 sum ignore_padding"}, {2, 7}, DType::i32), (Shape{2, 4}));
}

// Names decide the first values, so equal graphs have equal bits.
TEST(ParseLayers, BidirectionalIsTheOptionOfTheLayersInIt) {
  const auto text = [](const Lines& lines) {
    return to_string(graph_of(lines, {DType::f32, {2, 7, 3}}));
  };
  EXPECT_EQ(text({"bidirectional { lstm 5 last }", "dense 2"}),
            text({"lstm 5 last bidirectional", "dense 2"}));
  EXPECT_EQ(text({"bidirectional { gru 5 layers 2 bidirectional }"}),
            text({"gru 5 layers 2 bidirectional"}));
  EXPECT_EQ(
      text({"bidirectional { lstm 5 | dropout 0.1 | a: gru 4 no_bias }", "lstm 3"}),
      text({"sequential { lstm 5 bidirectional | dropout 0.1 | a: gru 4 bidirectional no_bias }",
            "lstm 3"}));
  EXPECT_NE(error_of({"bidirectional lstm 5"}).find("{"), std::string::npos);
  try {
    text({"bidirectional { dense 5 }"});
    ADD_FAILURE() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("got dense, expected a recurrent layer"),
              std::string::npos)
        << error.what();
  }
}

TEST(ParseLayers, KnowsTheOptionsOfEveryLayer) {
  const auto conv = [](const std::string& text) { return output_of({text}, {1, 4, 9, 7}); };
  EXPECT_EQ(conv("conv 6 3x3"), (Shape{1, 6, 7, 5}));
  EXPECT_EQ(conv("conv 6 3x1 stride 2x1 padding 1x0"), (Shape{1, 6, 5, 7}));
  EXPECT_EQ(conv("conv 6 3 padding same dilation 2 groups 2"), (Shape{1, 6, 9, 7}));
  EXPECT_EQ(conv("conv_transpose 6 3 stride 2 padding 1 output_padding 1"), (Shape{1, 6, 18, 14}));
  EXPECT_EQ(conv("max_pool 3 stride 2 padding 1"), (Shape{1, 4, 5, 4}));
  EXPECT_EQ(conv("average_pool 3x2"), (Shape{1, 4, 3, 3}));
  EXPECT_EQ(conv("adaptive_average_pool 2x3"), (Shape{1, 4, 2, 3}));
  EXPECT_EQ(conv("adaptive_max_pool 1"), (Shape{1, 4, 1, 1}));
  EXPECT_EQ(conv("reshape 2x-1x7"), (Shape{1, 2, 18, 7}));
  EXPECT_EQ(conv("flatten"), (Shape{1, 252}));
  for (const char* text :
       {"relu", "leaky_relu", "leaky_relu 0.2", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh",
        "softplus", "softmax", "log_softmax", "dropout", "dropout 0.1", "layer_norm",
        "layer_norm epsilon 1e-6", "rms_norm", "batch_norm epsilon 1e-3 momentum 0.01"})
    EXPECT_EQ(conv(text), (Shape{1, 4, 9, 7})) << text;
  EXPECT_EQ(output_of({"embedding 100 16"}, {2, 5}, DType::i32), (Shape{2, 5, 16}));
  EXPECT_EQ(parameters_of({"conv 6 1 no_bias", "flatten", "dense 3 no_bias"}, {1, 4, 2, 2}),
            (Lines{"0.weight", "2.weight"}));
}

TEST(ParseLayers, BuildsResidualBlocks) {
  const Lines plain = {
      "residual { conv 4 3x3 padding 1 | batch_norm | relu | conv 4 3x3 padding 1 | batch_norm }"};
  EXPECT_EQ(output_of(plain, {2, 4, 8, 8}), (Shape{2, 4, 8, 8}));
  EXPECT_EQ(parameters_of(plain, {2, 4, 8, 8}).front(), "0.body.0.weight");
  EXPECT_EQ(
      parameters_of({"residual{conv 8 3 stride 2 padding 1}shortcut{conv 8 1 stride 2} no_relu"},
                    {2, 4, 8, 8}),
      (Lines{"0.body.0.weight", "0.body.0.bias", "0.shortcut.0.weight", "0.shortcut.0.bias"}));
}

TEST(ParseLayers, GivesNamesThatWeightFilesHave) {
  EXPECT_EQ(parameters_of({"conv1: conv 2 3", "relu", "flatten",
                           "stage.0: sequential { fc: dense 5 "
                           "no_bias | dense 3 no_bias }"},
                          {1, 1, 4, 4}),
            (Lines{"conv1.weight", "conv1.bias", "stage.0.fc.weight", "stage.0.1.weight"}));
}

TEST(ParseLayers, NamesTheLayerThatIsWrong) {
  EXPECT_EQ(error_of({"relu", "conv 64 3by3"}),
            "[layer 1 'conv 64 3by3'] kernel: got '3by3', expected a whole number from 1 to 1024");
  EXPECT_EQ(error_of({"conv 64"}), "[layer 0 'conv 64'] got the end of the text, expected kernel");
  EXPECT_EQ(error_of({"conv 8 3 strid 2"}),
            "[layer 0 'conv 8 3 strid 2'] unknown option 'strid' of conv; did you mean 'stride'?; "
            "known: stride, padding, dilation, groups, no_bias");
  EXPECT_EQ(
      error_of({"conv 8 2 padding same"}),
      "[layer 0 'conv 8 2 padding same'] padding same: got a kernel of 2, expected an odd one");
  EXPECT_EQ(error_of({"desne 10"}).substr(0, 63),
            "[layer 0 'desne 10'] unknown layer 'desne'; did you mean 'dense");
  EXPECT_EQ(error_of({"relu 3"}), "[layer 0 'relu 3'] got an extra '3', expected: relu");
  EXPECT_EQ(error_of({"residual { relu | }"}).substr(0, 44),
            "[layer 0 'residual { relu | }'] unknown laye");
  EXPECT_EQ(error_of({"residual { relu"}),
            "[layer 0 'residual { relu'] got the end of the text, expected '}'");
  EXPECT_EQ(error_of({"relu | relu"}), "[layer 0 'relu | relu'] got '|' without a '{'");
  EXPECT_EQ(error_of({"dropout 1.5"}),
            "[layer 0 'dropout 1.5'] probability: got '1.5', expected a number from 0 to 0.99");
  EXPECT_EQ(error_of({"a/b: relu"}),
            "[layer 0 'a/b: relu'] got the name 'a/b', expected letters, digits, '_' and '.'");
  EXPECT_EQ(error_of({""}),
            "[layer 0 ''] got the end of the text, expected a layer such as 'dense 10'");
  EXPECT_EQ(error_of({}), "[layers] got 0 layers, expected 1 to 65536");
}

TEST(ParseLayers, BoundsSizesAndDepth) {
  EXPECT_NE(error_of({"dense 99999999999999999999"}).find("expected a whole number from 1"),
            std::string::npos);
  EXPECT_NE(error_of({"dense -1"}).find("expected a whole number from 1"), std::string::npos);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "residual { ";
  EXPECT_NE(error_of({deep}).find("nested deeper than 16"), std::string::npos);
  EXPECT_NE(error_of({std::string(1 << 20, 'x')}).find("characters"), std::string::npos);
}

// Words in random order are parsed or refused, and what is parsed is built or refused.
TEST(ParseLayers, SurvivesRandomText) {
  const Lines words = {"conv",    "dense", "residual", "{",        "}",          "|",
                       "3x3",     "64",    "-1",       "0",        "x",          "stride",
                       "same",    "relu",  "shortcut", "padding",  "no_bias",    "flatten",
                       "a:",      ":",     "max_pool", "1e-300",   "batch_norm", "groups",
                       "reshape", "nan",   "dropout",  "9x9x9x9x", "embedding",  "softmax"};
  Random random{7};
  int built = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const uint64_t count = 1 + random.below(8);
    for (uint64_t k = 0; k < count; ++k) text += words[random.below(words.size())] + " ";
    try {
      output_of({text}, {2, 4, 6, 6});
      ++built;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(built, 100);
}

TEST(ParseLayers, IsDocumented) {
  std::ifstream file(std::string(ARTEL_GOLDEN_DIR) + "/../../docs/models.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const std::string& line : layer_syntax())
    EXPECT_NE(page.str().find(line), std::string::npos) << "docs/models.md lacks: " << line;
}

}  // namespace
}  // namespace artel::nn
