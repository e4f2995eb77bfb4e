#include "tests/model_fuzz/network_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/data/text/text_lines.h"
#include "artel/graph/op.h"
#include "artel/nn/named_values.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/summary.h"
#include "artel/predict/batches.h"
#include "artel/run/config/config.h"
#include "artel/tensor/npy.h"
#include "artel/train/name_prefixes.h"
#include "tests/model_fuzz/training.h"
#include "tests/model_fuzz/weighted_losses.h"

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

std::string input_name(size_t index) { return index == 0 ? "x" : fmt::format("x{}", index + 1); }

// The network's output shape for two samples, without the batch axis. Of the network that was asked
// about last it is known: every batch of targets asks.
Shape output_of(const NetworkCase& network) {
  struct Known {
    std::vector<std::string> layers;
    std::vector<Shape> samples;
    int64_t tokens = 0;
    Shape output;
  };
  static thread_local Known last;
  if (last.layers == network.layers && last.samples == network.samples &&
      last.tokens == network.tokens)
    return last.output;
  const ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 2));
  const Shape& shape = graph.graph.type(graph.graph.output_id("prediction")).shape;
  require(shape.rank() >= 1 && shape[0] == 2, ErrorKind::shape,
          "the network's output {} has lost the batch", to_string(shape));
  Shape output(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
  last = {network.layers, network.samples, network.tokens, output};
  return output;
}

bool has_labels(const NetworkCase& network) {
  return network.loss == "cross_entropy" && !network.shares;
}

// The samples of a step that are lines of text.
data::DatasetPtr lines_of(const NetworkCase& network, int64_t step) {
  Random random{network.seed, 4, static_cast<uint64_t>(step)};
  std::string characters = "\n", text;
  for (int64_t i = 1; i < network.tokens; ++i) characters += static_cast<char>('a' + i - 1);
  const int64_t context = network.samples[0][0];
  for (int64_t line = 0; line < network.samples_of(step); ++line) {
    for (uint64_t n = 1 + random.below(static_cast<uint64_t>(context)); n > 0; --n)
      text += characters[1 + random.below(static_cast<uint64_t>(network.tokens) - 1)];
    text += '\n';
  }
  return data::text_lines(make_bytes(text, "lines"), data::character_tokenizer(characters),
                          context);
}

// All inputs of these lines, or all targets.
Tensor read_lines(const data::Dataset& lines, bool targets) {
  Tensor all(batch_of({DType::i32, lines.layout().input}, lines.size()).shape, DType::i32);
  Tensor others(all.shape(), DType::i32);
  const size_t bytes = all.bytes() / static_cast<size_t>(lines.size());
  for (int64_t i = 0; i < lines.size(); ++i) {
    const auto row = [&](Tensor& of) {
      return std::span(of.raw() + static_cast<size_t>(i) * bytes, bytes);
    };
    lines.read(i, row(targets ? others : all), row(targets ? all : others));
  }
  return all;
}

// Makes the shares of the classes, along the last axis, add up to 1.
void scale_rows(Tensor& shares) {
  const auto classes = static_cast<size_t>(shares.shape().back());
  const std::span<float> all = shares.values<float>();
  for (size_t first = 0; first < all.size(); first += classes) {
    const std::span<float> row = all.subspan(first, classes);
    float sum = 0;
    for (const float share : row) sum += share;
    for (float& share : row) share = sum > 0 ? share / sum : 1 / static_cast<float>(classes);
  }
}

Tensor joined(const NetworkCase& network, const std::function<Tensor(int64_t)>& batch) {
  std::vector<Tensor> parts;
  int64_t rows = 0;
  for (int64_t step = 1; step <= network.steps; ++step) {
    parts.push_back(batch(step));
    rows += parts.back().shape()[0];
  }
  Shape shape = parts[0].shape();
  shape[0] = rows;
  Tensor all(shape, parts[0].dtype());
  std::byte* to = all.raw();
  for (const Tensor& part : parts) to = std::copy_n(part.raw(), part.bytes(), to);
  return all;
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(fmt::format("\"{}\"", text));
  return fmt::format("[{}]", join(quoted, ", "));
}

// A limit at which most networks have to compute something twice.
int64_t usable_limit(const NetworkCase& network) {
  const size_t needed = Training(network, {}).activation_bytes();
  auto limit = static_cast<size_t>(kMemoryShares.front() * static_cast<double>(needed));
  try {
    Training(network, {.memory_limit = limit}).activation_bytes();
  } catch (const MemoryLimitError& error) {
    limit = std::max(needed, error.needed());
  }
  return static_cast<int64_t>(limit);
}

}  // namespace

Model NetworkCase::model() const {
  const nn::Layer network = nn::parse_layers(layers);
  if (samples.size() < 2) return network;
  std::vector<std::pair<std::string, Shape>> named;
  for (size_t i = 0; i < samples.size(); ++i) named.emplace_back(input_name(i), samples[i]);
  return nn::split_inputs(std::move(named), network);
}

Loss NetworkCase::training_loss() const {
  return make_loss(loss, {.label_smoothing = label_smoothing, .class_weights = class_weights});
}

TensorType NetworkCase::x() const {
  const DType dtype = tokens > 0 ? DType::i32 : DType::f32;
  if (samples.size() == 1) return {dtype, samples[0]};
  int64_t elements = 0;
  for (const Shape& shape : samples) elements += shape.elements();
  return {dtype, {elements}};
}

TensorType NetworkCase::y() const {
  Shape output = output_of(*this);
  if (has_labels(*this)) {
    require(output.rank() >= 1, ErrorKind::shape, "cross_entropy needs classes");
    return {DType::i32,
            Shape(std::vector<int64_t>(output.extents().begin(), output.extents().end() - 1))};
  }
  if (is_weighted(loss)) {
    require(output.rank() == 1, ErrorKind::shape, "{} needs rows of numbers", loss);
    return {DType::f32, {output[0] + 1}};
  }
  return {DType::f32, flat_target && output == Shape{1} ? Shape{} : output};
}

Tensor NetworkCase::inputs(int64_t step) const {
  if (lines) return read_lines(*lines_of(*this, step), false);
  Random random{seed, 1, static_cast<uint64_t>(step)};
  const TensorType type = batch_of(x(), samples_of(step));
  Tensor result(type.shape, type.dtype);
  if (tokens > 0)
    for (int32_t& value : result.values<int32_t>())
      value = static_cast<int32_t>(random.below(static_cast<uint64_t>(tokens)));
  else
    for (float& value : result.values<float>()) value = random.normal();
  return result;
}

Tensor NetworkCase::targets(int64_t step) const {
  if (lines) return read_lines(*lines_of(*this, step), true);
  Random random{seed, 2, static_cast<uint64_t>(step)};
  const TensorType type = batch_of(y(), samples_of(step));
  Tensor result(type.shape, type.dtype);
  if (has_labels(*this)) {
    const auto classes = static_cast<uint64_t>(output_of(*this).back());
    for (int32_t& value : result.values<int32_t>()) {
      value = static_cast<int32_t>(random.below(classes));
      if (ignored && random.below(4) == 0) value = -100;
    }
    return result;
  }
  const bool in_unit = shares || loss == "kl" || loss == "binary_cross_entropy";
  for (float& value : result.values<float>())
    value = in_unit ? random.uniform() : random.normal() + static_cast<float>(target_mean);
  if (shares) scale_rows(result);
  if (is_weighted(loss)) {
    const std::span<float> values = result.values<float>();
    const auto columns = static_cast<size_t>(type.shape[1]);
    for (size_t last = columns - 1; last < values.size(); last += columns)
      values[last] = std::array{0.0f, 0.25f, 1.0f, 3.0f}[random.below(4)];
  }
  return result;
}

Tensor NetworkCase::all_inputs() const {
  return joined(*this, [&](int64_t step) { return inputs(step); });
}

Tensor NetworkCase::all_targets() const {
  return joined(*this, [&](int64_t step) { return targets(step); });
}

bool NetworkCase::trained(const std::string& parameter) const {
  return !begins_with_any(parameter, freeze);
}

std::string to_toml(const NetworkCase& network) {
  std::vector<std::string> optimizer, samples;
  for (const auto& [key, value] : network.optimizer)
    optimizer.push_back(key == "name" ? fmt::format("name = \"{}\"", value)
                                      : fmt::format("{} = {}", key, value));
  for (const Shape& shape : network.samples) samples.push_back(extents_text(shape));
  std::string text = fmt::format(
      "{}{} {}", kSamples, join(samples, "+"),
      network.tokens > 0 ? fmt::format("below {}", network.tokens) : std::string("normal"));
  if (network.flat_target) text += " flat";
  if (network.shares) text += " shares";
  if (network.ignored) text += " ignored";
  if (network.lines) text += " lines";
  if (network.target_mean != 0) text += fmt::format(" mean {:g}", network.target_mean);
  if (network.last_batch > 0) text += fmt::format(" last {}", network.last_batch);
  if (network.resumed_workers > 0) text += fmt::format(" resumed_by {}", network.resumed_workers);
  text += fmt::format(
      "\n[data]\nset = \"npz\"\npath = \"samples.npz\"\ntest_fraction = 0\n[model]\nlayers = {}\n",
      quoted_list(network.layers));
  text += fmt::format("[train]\nloss = \"{}\"\nbatch_size = {}\nsteps = {}\nseed = {}\n",
                      network.loss, network.batch, network.steps, network.seed);
  text += fmt::format("optimizer = {{ {} }}\n", join(optimizer, ", "));
  if (network.label_smoothing > 0)
    text += fmt::format("label_smoothing = {}\n", network.label_smoothing);
  if (!network.class_weights.empty())
    text += fmt::format("class_weights = [{}]\n", fmt::join(network.class_weights, ", "));
  if (!network.metrics.empty()) text += fmt::format("metrics = {}\n", quoted_list(network.metrics));
  if (!network.freeze.empty()) text += fmt::format("freeze = {}\n", quoted_list(network.freeze));
  if (network.last_batch > 0) text += "keep_last_batch = true\n";
  if (network.limit_memory) text += fmt::format("memory_limit = {}\n", usable_limit(network));
  if (network.schedule != "constant") text += fmt::format("schedule = \"{}\"\n", network.schedule);
  if (network.tune) text += "tune = true\n";
  if (network.exact_convolutions) text += "exact_convolutions = true\n";
  text += fmt::format("[cluster]\nlanes = {}\nthreads = {}\nworkers = {}\n", network.lanes,
                      network.threads, network.workers);
  return text + to_toml(network.mesh);
}

NetworkCase parse_case(std::string_view text, std::string_view name) {
  const RunConfig config = parse_config(text, name);
  NetworkCase network;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(kSamples)) continue;
    const std::vector<std::string> words = split(line.substr(kSamples.size()), ' ');
    for (const std::string& extents : split(words[0], '+'))
      network.samples.push_back(parse_extents(extents));
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == "below") network.tokens = std::stoll(words.at(i + 1));
      if (words[i] == "flat") network.flat_target = true;
      if (words[i] == "shares") network.shares = true;
      if (words[i] == "ignored") network.ignored = true;
      if (words[i] == "lines") network.lines = true;
      if (words[i] == "mean") network.target_mean = std::stod(words.at(i + 1));
      if (words[i] == "last") network.last_batch = std::stoll(words.at(i + 1));
      if (words[i] == "resumed_by") network.resumed_workers = std::stoll(words.at(i + 1));
    }
  }
  require(!network.samples.empty(), ErrorKind::invalid_argument,
          "[{}] got no line that says what its samples are, expected one such as '{}3x5 normal'",
          name, kSamples);
  network.layers = config.model.layers;
  network.loss = config.train.loss;
  network.label_smoothing = config.train.label_smoothing;
  network.class_weights = config.train.class_weights.numbers;
  network.metrics = config.train.metrics;
  network.freeze = config.train.freeze;
  network.optimizer = config.train.optimizer;
  network.schedule = config.train.schedule.at("name");
  network.batch = config.train.batch_size;
  network.steps = config.train.steps;
  network.lanes = config.cluster.lanes;
  network.threads = config.cluster.threads;
  network.workers = config.cluster.workers.most;
  network.mesh = mesh_of(config.cluster);
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
  const std::filesystem::path path(folder);
  write_file_atomically(path / (name + ".toml"), text);
  const Tensor all = network.all_inputs();
  NamedTensors arrays = {{"y", network.all_targets()}};
  if (network.samples.size() == 1) arrays.push_back({"x", all});
  int64_t first = 0;
  for (size_t i = 0; network.samples.size() > 1 && i < network.samples.size(); ++i) {
    const int64_t rows = all.shape()[0], width = all.shape()[1];
    const int64_t own = network.samples[i].elements();
    Tensor part(batch_of({all.dtype(), network.samples[i]}, rows).shape, all.dtype());
    const auto bytes = static_cast<int64_t>(all.bytes()) / (rows * width);
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(all.raw() + (row * width + first) * bytes, own * bytes,
                  part.raw() + row * own * bytes);
    arrays.push_back({input_name(i), part});
    first += own;
  }
  write_npz(path / (name + ".npz"), arrays);
}

bool is_within(const Budget& budget, const NetworkCase& network) {
  const ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), network.batch));
  double flops = 0;
  for (const Node& node : graph.graph.nodes()) flops += node_flops(graph.graph, node);
  return flops < budget.flops &&
         std::all_of(graph.graph.values().begin(), graph.graph.values().end(),
                     [&](const ValueData& value) {
                       return value.type.shape.elements() <= budget.elements;
                     });
}

}  // namespace artel::model_fuzz
