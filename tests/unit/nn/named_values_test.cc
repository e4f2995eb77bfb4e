#include "artel/nn/named_values.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/layers.h"
#include "artel/nn/model.h"
#include "artel/nn/parse_layers.h"
#include "tests/support/error_of.h"

namespace artel::nn {
namespace {

std::vector<std::string> parameters_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    names.push_back(graph.value(id).name);
  return names;
}

Graph built(const std::vector<std::string>& lines, const Shape& x) {
  return inference_graph(parse_layers(lines), {DType::f32, x}).graph;
}

std::string mistake_in(const std::vector<std::string>& lines, const Shape& x) {
  return artel::error_of([&] { built(lines, x); });
}

// The text builds what C++ does, node for node.
TEST(NamedValues, SkipBlocks) {
  const Graph text =
      built({"dense 4", "as skip", "sequential { relu | dense 4 | as inner }", "add skip",
             "concat inner", "multiply x", "subtract x", "concat x axis -1", "dense 2"},
            {3, 8});
  const Layer model =
      sequential({dense(4), keep_as("skip"), sequential({relu(), dense(4), keep_as("inner")}),
                  add_kept("skip"), concat_kept("inner"), multiply_kept("x"), subtract_kept("x"),
                  concat_kept("x", -1), dense(2)});
  Graph code = inference_graph(model, {DType::f32, {3, 8}}).graph;
  EXPECT_EQ(to_string(text), to_string(code));
  EXPECT_EQ(code.output("prediction").shape(), (Shape{3, 2}));
  EXPECT_EQ(parameters_of(code), (std::vector<std::string>{"0.weight", "0.bias", "2.1.weight",
                                                           "2.1.bias", "8.weight", "8.bias"}));
}

// Two towers that are one function: the layer is there once, and learns from both.
TEST(NamedValues, TowersShareTheirParameters) {
  const std::vector<std::string> lines = {"tower: sequential { dense 5 | relu }",
                                          "as left",
                                          "from x2",
                                          "same tower",
                                          "output right",
                                          "concat left",
                                          "dense 2"};
  const Layer model = split_inputs({{"x", {3}}, {"x2", {3}}}, parse_layers(lines));
  const auto loss = [](Value prediction, Value target) {
    return mean(
        mul(mean_squared_error(prediction, target), mean(prediction.graph().output("right"))));
  };
  ModelGraph made = training_graph(model, {DType::f32, {4, 6}}, {DType::f32, {4, 2}}, loss);
  EXPECT_EQ(parameters_of(made.graph),
            (std::vector<std::string>{"tower.0.weight", "tower.0.bias", "6.weight", "6.bias"}));
  EXPECT_EQ(made.graph.gradients().size(), 4u);
  EXPECT_EQ(made.graph.output("right").shape(), (Shape{4, 5}));
}

TEST(NamedValues, LayersAreFunctionsOfValues) {
  const Layer towers("towers", [](Build& build, Value x) {
    const Value left = named("left", dense(4))(build, x);
    const Value right = named("right", dense(4))(build, build.kept("age"));
    return mul(left, right);
  });
  Graph graph = inference_graph(split_inputs({{"picture", {2, 3}}, {"age", {1}}},
                                             sequential({flatten(), towers, dense(2)})),
                                {DType::f32, {5, 7}})
                    .graph;
  EXPECT_EQ(parameters_of(graph),
            (std::vector<std::string>{"1.left.weight", "1.left.bias", "1.right.weight",
                                      "1.right.bias", "2.weight", "2.bias"}));
}

TEST(NamedValues, TokensStayWholeNumbers) {
  const Layer model =
      split_inputs({{"x", {4}}, {"x2", {2}}},
                   parse_layers({"words: embedding 10 3", "flatten", "as first", "from x2",
                                 "same words", "flatten", "concat first", "dense 2"}));
  Graph graph = inference_graph(model, {DType::i32, {5, 6}}).graph;
  EXPECT_EQ(graph.output("prediction").shape(), (Shape{5, 2}));
}

TEST(NamedValues, MistakesAreNamed) {
  EXPECT_EQ(mistake_in({"dense 4", "as skip", "add skpi"}, {3, 8}),
            "[layer '2'] unknown value 'skpi'; did you mean 'skip'?; known: skip, x");
  EXPECT_EQ(mistake_in({"as skip", "dense 4", "add skip"}, {3, 8}),
            "[layer '2'] add skip: got [3, 4] and [3, 8], expected equal shapes");
  EXPECT_EQ(mistake_in({"as a", "dense 4", "as a"}, {3, 8}),
            "[layer '2'] the name 'a' of a value is taken already; try another one");
  EXPECT_EQ(mistake_in({"as x"}, {3, 8}),
            "[layer '0'] the name 'x' of a value is taken already; try another one");
  EXPECT_EQ(mistake_in({"tower: dense 8", "same towr"}, {3, 8}),
            "[layer 1 'same towr'] unknown layer 'towr'; did you mean 'tower'?; layers with names "
            "before it: tower");
  EXPECT_EQ(mistake_in({"tower: dense 4", "same tower"}, {3, 8}),
            "[layer 'tower'] weight: got the shape [4, 4] where it is shared, expected [4, 8] as "
            "at its first use");
  EXPECT_EQ(mistake_in({"norm: batch_norm", "same norm"}, {3, 8}),
            "[layer 'norm'] a layer with states, such as batch_norm, cannot be shared; try "
            "layer_norm");
  for (const char* axis : {"0", "-2"})
    EXPECT_EQ(mistake_in({"as a", std::string("concat a axis ") + axis}, {3, 8}),
              std::string("[layer '1'] concat a: got axis ") + axis +
                  ", which counts samples; expected another");
  EXPECT_EQ(mistake_in({"output prediction"}, {3, 8}),
            "[layer '0'] output prediction: this name is already in use; try another one");
  EXPECT_EQ(mistake_in({"as a b"}, {3, 8}),
            "[layer 0 'as a b'] got an extra 'b', expected: as NAME");
  EXPECT_EQ(mistake_in({"as a/b"}, {3, 8}),
            "[layer 0 'as a/b'] got the name 'a/b', expected letters, digits, '_' and '.'");
}

}  // namespace
}  // namespace artel::nn
