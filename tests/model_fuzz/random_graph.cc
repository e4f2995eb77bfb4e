#include "tests/model_fuzz/random_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/graph/op.h"
#include "artel/graph/passes/lower.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/compare.h"
#include "tests/model_fuzz/graph_maker.h"
#include "tests/reference/interpreter.h"

namespace artel::model_fuzz {
namespace {

reference::Leaves leaves_of(const Graph& graph, uint64_t seed) {
  reference::Leaves leaves;
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : graph.of_kind(kind)) {
      const ValueData& value = graph.value(id);
      Random random{seed, hash_name(value.name)};
      reference::Array array = {value.type.shape, {}};
      for (int64_t i = 0; i < value.type.shape.elements(); ++i)
        array.data.push_back(random.normal());
      leaves[value.name] = std::move(array);
    }
  return leaves;
}

// In one graph of four, some parameters are frozen.
bool is_trained(const std::string& parameter, uint64_t seed) {
  return seed % 4 != 0 || Random{seed, hash_name(parameter), 1}.below(4) != 0;
}

// Those that have a gradient.
std::vector<ValueId> trained_of(const Graph& graph, uint64_t seed) {
  std::vector<ValueId> trained = graph.of_kind(ValueKind::parameter);
  std::erase_if(trained, [&](ValueId id) { return !is_trained(graph.value(id).name, seed); });
  return trained;
}

struct Result {
  double loss = 0;
  std::vector<reference::Array> gradients;  // of the trained parameters, in their order
};

Result expected_result(const Graph& graph, uint64_t seed, const reference::Noise& noise = {}) {
  const std::vector<reference::Array> values =
      reference::run(graph, leaves_of(graph, seed), {seed, 1, 0}, noise);
  const ValueId loss = graph.output_id("loss");
  return {values[loss].data[0],
          reference::gradients(graph, values, loss, trained_of(graph, seed), {seed, 1, 0}, noise)};
}

struct Computed {
  Result result;
  std::vector<float> bits;
};

struct GraphSetting {
  int threads = 1;
  double memory_share = 0;  // of what it takes; 0: no limit
};

Computed computed_result(const Graph& plain, uint64_t seed, const GraphSetting& setting) {
  const int threads = setting.threads;
  KernelChoices choices;
  const auto compiled = [&](size_t limit) {
    return Program(lower(plain, Differentiation{.trained =
                                                    [&](const std::string& name) {
                                                      return is_trained(name, seed);
                                                    }}),
                   {.threads = threads, .memory_limit = limit}, choices);
  };
  const size_t needed = setting.memory_share > 0 ? compiled(0).plan().activation_bytes : size_t{0};
  const Program program =
      compiled(static_cast<size_t>(setting.memory_share * static_cast<double>(needed)));
  check_plan(program.graph(), program.plan());
  Parameters memory(program.parameter_entries());
  const reference::Leaves leaves = leaves_of(plain, seed);
  for (const ParameterEntry& entry : memory.entries())
    memory.set(entry.name, reference::to_tensor(leaves.at(entry.name)));
  Frame frame(program, memory);
  ThreadPool pool(threads, limit_library_threads);
  program.run(frame, pool, {.context = {seed, 1, 0}, .check_memory = true});
  Computed computed;
  computed.result.loss = frame.scalar("loss");
  computed.bits.push_back(frame.scalar("loss"));
  for (const ValueId id : trained_of(plain, seed)) {
    const ParameterEntry& entry = memory.entry(plain.value(id).name);
    Tensor gradient(entry.shape);
    for (const GradientSlot& slot : program.plan().gradients)
      if (program.graph().value(slot.value).name == entry.name && !slot.is_state)
        convert_layout(pool, entry.shape, DType::f32,
                       reinterpret_cast<const std::byte*>(frame.gradients().data()) + slot.offset,
                       entry.layout, gradient.raw(), Layout::row_major());
    computed.bits.insert(computed.bits.end(), gradient.values<float>().begin(),
                         gradient.values<float>().end());
    computed.result.gradients.push_back(reference::from_tensor(gradient));
  }
  return computed;
}

std::optional<std::string> compare(const Graph& graph, uint64_t seed) {
  const Result expected = expected_result(graph, seed);
  double scale = 0;
  for (const reference::Array& gradient : expected.gradients) {
    scale = std::max(scale, largest(gradient));
    for (const double value : gradient.data)
      if (!std::isfinite(value)) return std::nullopt;
  }
  if (!std::isfinite(expected.loss)) return std::nullopt;
  const Computed found = computed_result(graph, seed, {});
  const std::vector<ValueId> parameters = trained_of(graph, seed);
  std::vector<Result> noisy;
  const auto sway = [&](auto&& difference) {
    while (noisy.size() < kNoisyRuns)
      noisy.push_back(expected_result(graph, seed, {kNoise, seed + noisy.size()}));
    double most = 0;
    for (const Result& result : noisy) most = std::max(most, difference(result));
    return most;
  };
  const double loss_off = std::abs(found.result.loss - expected.loss);
  const double loss_allowed = kRounding * std::max(1e-3, std::abs(expected.loss));
  const auto loss_sway = [&](const Result& noisy) { return std::abs(noisy.loss - expected.loss); };
  if (!(loss_off <= loss_allowed) && !(loss_off <= loss_allowed + kSway * sway(loss_sway)))
    return fmt::format("the loss is {:.7g}, expected {:.7g}", found.result.loss, expected.loss);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const reference::Array& gradient = expected.gradients[i];
    const double off = distance(found.result.gradients[i], gradient);
    const double allowed = kRounding * std::max(largest(gradient), 1e-2 * scale) + kCancelled;
    const auto own_sway = [&](const Result& noisy) {
      return distance(noisy.gradients[i], gradient);
    };
    if (off <= allowed || off <= allowed + kSway * sway(own_sway)) continue;
    if (sway(own_sway) > kLost * largest(gradient) + kCancelled) continue;
    return fmt::format("the gradient of {} is off by {:.3g} of {:.3g}",
                       graph.value(parameters[i]).name, off, largest(gradient));
  }
  const auto differs = [&](const GraphSetting& setting) {
    const Computed other = computed_result(graph, seed, setting);
    return std::memcmp(other.bits.data(), found.bits.data(), found.bits.size() * sizeof(float)) !=
           0;
  };
  for (const int threads : {2, 3})
    if (differs({.threads = threads}))
      return fmt::format("{} threads give other bits than one", threads);
  if (seed % 3 != 0) return std::nullopt;
  try {
    if (differs({.threads = 2, .memory_share = 0.7})) return "with less memory the bits are others";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
  }
  return std::nullopt;
}

}  // namespace

GraphCase random_graph(uint64_t seed) {
  Random random{seed, hash_name("graph")};
  GraphCase result = {seed, std::vector<uint64_t>(1 + random.below(10), 0), random.below(50) == 0};
  for (uint64_t& recipe : result.recipes) recipe = random.next_u64();
  return result;
}

std::optional<std::string> what_is_wrong(const GraphCase& graph) {
  try {
    const Graph made = make_graph(graph.recipes, graph.large);
    return made.has_output("loss") ? compare(made, graph.seed) : std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  }
}

GraphCase reduce(GraphCase graph, const std::string& wrong, const FindInGraph& find) {
  const auto still = [&](const GraphCase& next) {
    const std::optional<std::string> found = find(next);
    return found && same_fault(*found, wrong);
  };
  if (graph.large)
    if (const GraphCase small = {graph.seed, graph.recipes, false}; still(small)) graph = small;
  for (size_t i = 0; i < graph.recipes.size();) {
    GraphCase fewer = graph;
    fewer.recipes.erase(fewer.recipes.begin() + static_cast<long>(i));
    if (still(fewer))
      graph = fewer;
    else
      ++i;
  }
  return graph;
}

std::string to_text(const GraphCase& graph) {
  std::string text = fmt::format("# {}\n", to_string(make_graph(graph.recipes, graph.large)));
  for (size_t at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1))
    text.insert(at + 1, "# ");
  return fmt::format("{}graph {}{} {}\n", text, graph.seed, graph.large ? " large" : "",
                     fmt::join(graph.recipes, " "));
}

GraphCase parse_graph(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words[0] != "graph" || words.size() < 2) continue;
    GraphCase graph = {std::stoull(words[1]), {}, words.size() > 2 && words[2] == "large"};
    for (size_t i = graph.large ? 3 : 2; i < words.size(); ++i)
      graph.recipes.push_back(std::stoull(words[i]));
    return graph;
  }
  fail(ErrorKind::invalid_argument, "[{}] got no line 'graph SEED RECIPES ...', expected one",
       name);
}

}  // namespace artel::model_fuzz
