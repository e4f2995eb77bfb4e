#include "tests/model_fuzz/network_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/graph/op.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/summary.h"
#include "artel/predict/batches.h"
#include "artel/run/config.h"
#include "artel/tensor/npy.h"

namespace artel::model_fuzz {
namespace {

constexpr std::string_view kSamples = "# samples ";

std::string extents_text(const Shape& shape) {
  return shape.rank() == 0 ? "scalar" : fmt::format("{}", fmt::join(shape.extents(), "x"));
}

Shape parse_extents(const std::string& text) {
  if (text == "scalar") return {};
  std::vector<int64_t> extents;
  for (const std::string& word : split(text, 'x')) extents.push_back(std::stoll(word));
  return Shape(extents);
}

// What the network gives for two samples, without the batch's axis.
Shape output_of(const NetworkCase& network) {
  ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 2));
  const Shape& shape = graph.graph.output("prediction").shape();
  require(shape.rank() >= 1 && shape[0] == 2, ErrorKind::shape,
          "the network's output {} has lost the batch", to_string(shape));
  return Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
}

bool has_labels(const NetworkCase& network) { return network.loss == "cross_entropy"; }

}  // namespace

Model NetworkCase::model() const { return nn::parse_layers(layers); }

TensorType NetworkCase::x() const { return {tokens > 0 ? DType::i32 : DType::f32, sample}; }

TensorType NetworkCase::y() const {
  Shape output = output_of(*this);
  if (has_labels(*this)) {
    require(output.rank() >= 1, ErrorKind::shape, "cross_entropy needs classes");
    return {DType::i32,
            Shape(std::vector<int64_t>(output.extents().begin(), output.extents().end() - 1))};
  }
  return {DType::f32, flat_target && output == Shape{1} ? Shape{} : output};
}

Tensor NetworkCase::inputs(int64_t step) const {
  Random random{seed, 1, static_cast<uint64_t>(step)};
  const TensorType type = batch_of(x(), batch);
  Tensor result(type.shape, type.dtype);
  if (tokens > 0)
    for (int32_t& value : result.values<int32_t>())
      value = static_cast<int32_t>(random.below(static_cast<uint64_t>(tokens)));
  else
    for (float& value : result.values<float>()) value = random.normal();
  return result;
}

Tensor NetworkCase::targets(int64_t step) const {
  Random random{seed, 2, static_cast<uint64_t>(step)};
  const TensorType type = batch_of(y(), batch);
  Tensor result(type.shape, type.dtype);
  if (has_labels(*this)) {
    const auto classes = static_cast<uint64_t>(output_of(*this).back());
    for (int32_t& value : result.values<int32_t>())
      value = static_cast<int32_t>(random.below(classes));
    return result;
  }
  for (float& value : result.values<float>())
    value = loss == "kl" || loss == "binary_cross_entropy" ? random.uniform() : random.normal();
  return result;
}

std::string to_toml(const NetworkCase& network) {
  std::vector<std::string> layers, optimizer;
  for (const std::string& layer : network.layers) layers.push_back(fmt::format("\"{}\"", layer));
  for (const auto& [key, value] : network.optimizer)
    optimizer.push_back(key == "name" ? fmt::format("name = \"{}\"", value)
                                      : fmt::format("{} = {}", key, value));
  std::string text = fmt::format(
      "{}{} {}{}\n", kSamples, extents_text(network.sample),
      network.tokens > 0 ? fmt::format("below {}", network.tokens) : std::string("normal"),
      network.flat_target ? " flat" : "");
  text += fmt::format("[data]\nset = \"npz\"\npath = \"samples.npz\"\n[model]\nlayers = [{}]\n",
                      join(layers, ", "));
  text += fmt::format("[train]\nloss = \"{}\"\nbatch_size = {}\nsteps = {}\nseed = {}\n",
                      network.loss, network.batch, network.steps, network.seed);
  text += fmt::format("optimizer = {{ {} }}\n", join(optimizer, ", "));
  if (network.label_smoothing > 0)
    text += fmt::format("label_smoothing = {}\n", network.label_smoothing);
  if (network.limit_memory) text += "memory_limit = 1\n";
  if (network.tune) text += "tune = true\n";
  if (network.exact_convolutions) text += "exact_convolutions = true\n";
  text += fmt::format("[cluster]\nlanes = {}\nthreads = {}\nworkers = {}\n", network.lanes,
                      network.threads, network.workers);
  return text;
}

NetworkCase parse_case(std::string_view text, std::string_view name) {
  const RunConfig config = parse_config(text, name);
  NetworkCase network;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(kSamples)) continue;
    const std::vector<std::string> words = split(line.substr(kSamples.size()), ' ');
    network.sample = parse_extents(words[0]);
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "below") network.tokens = std::stoll(words.at(i + 1));
      if (words[i] == "flat") network.flat_target = true;
    }
  }
  network.layers = config.model.layers;
  network.loss = config.train.loss;
  network.label_smoothing = config.train.label_smoothing;
  network.optimizer = config.train.optimizer;
  network.batch = config.train.batch_size;
  network.steps = config.train.steps;
  network.lanes = config.cluster.lanes;
  network.threads = config.cluster.threads;
  network.workers = config.cluster.workers;
  network.limit_memory = config.train.memory_limit.bytes > 0;
  network.tune = config.train.tune;
  network.exact_convolutions = config.train.exact_convolutions;
  network.seed = static_cast<uint64_t>(config.train.seed);
  return network;
}

void write_files(const NetworkCase& network, const std::string& folder, const std::string& name) {
  std::string text = to_toml(network);
  const std::string samples = "samples.npz";
  text.replace(text.find(samples), samples.size(), name + ".npz");
  write_file_atomically(std::filesystem::path(folder) / (name + ".toml"), text);
  write_npz(std::filesystem::path(folder) / (name + ".npz"),
            {{"x", network.inputs(1)}, {"y", network.targets(1)}});
}

bool is_small(const NetworkCase& network) {
  constexpr int64_t kMostElements = 1 << 14;
  const ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), network.batch));
  double flops = 0;
  for (const Node& node : graph.graph.nodes()) flops += node_flops(graph.graph, node);
  return flops < 4e6 && std::all_of(graph.graph.values().begin(), graph.graph.values().end(),
                                    [](const ValueData& value) {
                                      return value.type.shape.elements() <= kMostElements;
                                    });
}

}  // namespace artel::model_fuzz
