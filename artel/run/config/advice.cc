#include "artel/run/config/advice.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/checkpoint/weights.h"
#include "artel/data/text/tokenizer.h"
#include "artel/nn/token_tables.h"
#include "artel/predict/batches.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/strategies/registry.h"

namespace artel {
namespace {

bool is_for_values(const std::string& loss) {
  return loss == "mse" || loss == "l1" || loss == "smooth_l1";
}

// Checks that the output has one row of scores per sample.
void check_rows(const Shape& output) {
  require(output.rank() <= 1, ErrorKind::shape,
          "[model] the network's output for one sample is {}, expected one row; try a layer "
          "\"flatten\" before the last \"dense\"",
          to_string(output));
}

void check_values(const RunConfig& config, const data::SampleLayout& layout, const Shape& output) {
  const std::string& loss = config.train.loss;
  require(loss != "cross_entropy", ErrorKind::invalid_argument,
          "train.loss: got \"cross_entropy\" for a target of values, expected a loss for values; "
          "try train.loss = \"mse\", or data.task = \"classes\"");
  check_rows(output);
  const int64_t values = layout.target.elements();
  require(output.elements() == values, ErrorKind::shape,
          "[model] the network has {} for a target of {}; try \"dense {}\" as the last layer",
          counted(output.elements(), "output"), counted(values, "value"), values);
}

std::vector<std::string> check_classes(const RunConfig& config, int64_t classes,
                                       const Shape& output) {
  const std::string& loss = config.train.loss;
  check_rows(output);
  const int64_t outputs = output.elements();
  const std::string network =
      fmt::format("the network has {}, but the data has {}", counted(outputs, "output"),
                  classes == 1 ? "1 class" : fmt::format("{} classes", classes));
  if (is_for_values(loss)) {
    require(outputs == 1, ErrorKind::invalid_argument,
            "train.loss: got \"{}\" for a target of {} classes, expected a loss for classes; try "
            "train.loss = \"cross_entropy\", or data.task = \"values\" for a target of numbers",
            loss, classes);
  } else if (loss == "binary_cross_entropy") {
    require(classes <= 2, ErrorKind::invalid_argument,
            "train.loss: got \"binary_cross_entropy\" for a target of {} classes, expected two; "
            "try train.loss = \"cross_entropy\"",
            classes);
    require(outputs == 1, ErrorKind::shape,
            "[model] the network has {} for the loss \"binary_cross_entropy\" of two classes, "
            "expected one; try \"dense 1\" as the last layer, or train.loss = \"cross_entropy\"",
            counted(outputs, "output"));
  } else if (loss == "cross_entropy") {
    require(outputs >= classes, ErrorKind::shape,
            "[model] {}; try \"dense {}\" as the last layer{}", network, classes,
            outputs == 1 && classes == 2 ? ", or train.loss = \"binary_cross_entropy\"" : "");
    if (outputs > classes && config.model.classes == 0)
      return {fmt::format("{}; the extra outputs will never be used", network)};
  }
  return {};
}

// Language models need one score per token of the vocabulary at each position.
void check_tokens(const RunConfig& config, int64_t tokens, const Shape& output) {
  if (config.train.loss != "cross_entropy" || output.rank() == 0) return;
  require(
      output.back() >= tokens, ErrorKind::shape,
      "[model] the network has {} for each token, but the vocabulary has {} tokens; try \"dense "
      "{}\" as the last layer",
      counted(output.back(), "output"), tokens, tokens);
}

}  // namespace

void check_vocabulary(const data::SampleLayout& layout, const Model& model,
                      const TensorType& sample) {
  if (!layout.tokenizer || sample.dtype != DType::i32) return;
  const int64_t tokens = layout.tokenizer->size();
  const std::optional<nn::TokenTable> table = nn::smallest_token_table(model, sample);
  require(!table || table->rows >= tokens, ErrorKind::shape,
          "[model] '{}' has {}, but the vocabulary has {} tokens; try \"embedding {} {}\"",
          table ? table->name : "", counted(table ? table->rows : 0, "row"), tokens, tokens,
          table ? table->width : 0);
}

std::vector<std::string> check_outputs(const RunConfig& config, const data::SampleLayout& layout,
                                       const Shape& output) {
  if (find_strategy(config.cluster.strategy).workload) return {};  // not a network of layers
  if (layout.target_kind == data::TargetKind::values) {
    if (layout.target.rank() == 0 && layout.classes == 0) check_values(config, layout, output);
  } else if (layout.target_kind == data::TargetKind::classes && layout.target.rank() == 0) {
    return check_classes(config, layout.classes, output);
  } else if (layout.target_kind == data::TargetKind::classes && layout.target.rank() == 1 &&
             layout.tokenizer && layout.classes == layout.tokenizer->size()) {
    check_tokens(config, layout.classes, output);
  }
  return {};
}

Shape output_of(const Model& model, const TensorType& sample) {
  const ModelGraph graph = inference_graph(model, batch_of(sample, 1));
  const Shape& output = graph.graph.type(graph.graph.output_id("prediction")).shape;
  return Shape(std::vector<int64_t>(output.extents().begin() + 1, output.extents().end()));
}

void check_shapes(const NamedTensors& weights, const Parameters& parameters,
                  const std::vector<std::string>& new_layers) {
  std::vector<checkpoint::Expected> expected;
  for (const ParameterEntry& entry : parameters.entries())
    if (!begins_with_any(entry.name, new_layers)) expected.push_back({entry.name, entry.shape});
  const checkpoint::Match match = checkpoint::match(expected, weights);
  if (!match.missing.empty() || match.mismatched.empty()) return;
  std::vector<std::string> layers = new_layers;
  for (const checkpoint::Mismatch& entry : match.mismatched) {
    const std::string layer = entry.name.substr(0, entry.name.rfind('.') + 1);
    const std::string prefix = layer.empty() ? entry.name : layer;
    if (!begins_with_any(prefix, layers)) layers.push_back(prefix);
  }
  const checkpoint::Mismatch& first = match.mismatched.front();
  fail(
      ErrorKind::shape,
      "the weights do not fit the model: {} is {}, expected {}{}; to start it from random weights, "
      "set model.new_layers = {}",
      first.name, to_string(first.found), to_string(first.expected),
      match.mismatched.size() == 1 ? ""
                                   : fmt::format(" (and {} more)", match.mismatched.size() - 1),
      toml_value(layers));
}

}  // namespace artel
