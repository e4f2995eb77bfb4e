#include "artel/plan/measure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/exec/libraries.h"
#include "artel/graph/passes/rewrite.h"

namespace artel::plan {
namespace {

namespace fs = std::filesystem;

constexpr int kRuns = 5;

Graph copy_of(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

// Classes and tokens are 0, which always exists.
Tensor random_input(const TensorType& type, Random& random) {
  Tensor tensor(type.shape, type.dtype);
  if (type.dtype == DType::f32)
    for (float& value : tensor.values<float>()) value = random.uniform(-1, 1);
  return tensor;
}

std::vector<double> measure(const Graph& graph, KernelChoices choices) {
  choices.tune = false;
  const Program program(copy_of(graph), {.threads = 1}, choices);
  Parameters parameters(program.parameter_entries());
  Random random({1});
  for (float& value : parameters.block()) value = random.uniform(-0.1F, 0.1F);
  for (const ParameterEntry& entry : parameters.entries())
    if (entry.is_state)  // such as variances, which are not negative
      std::fill_n(parameters.values(entry).begin(), parameters.values(entry).size(), 1.0F);
  Frame frame(program, parameters);
  ThreadPool pool(1, limit_library_threads);
  const Plan& plan = program.plan();
  std::vector<double> least(plan.kernels.size(), std::numeric_limits<double>::max());
  Program::RunOptions options;
  options.timing = [&](const KernelTiming& timing) {
    least[timing.kernel] = std::min(least[timing.kernel], timing.seconds);
  };
  for (int run = 0; run < kRuns; ++run) {
    for (const ValueId id : program.graph().of_kind(ValueKind::input))
      frame.set_input(program.graph().value(id).name,
                      random_input(program.graph().type(id), random));
    program.run(frame, pool, options);
  }
  std::vector<double> seconds(graph.nodes().size());
  for (size_t i = 0; i < least.size(); ++i)
    for (const NodeId node : plan.kernels[i].nodes)
      seconds[node] += least[i] / static_cast<double>(plan.kernels[i].nodes.size());
  return seconds;
}

// One number a line. Nothing if the file is not there, or not of so many nodes.
std::optional<std::vector<double>> read(const fs::path& path, size_t nodes) {
  if (!fs::is_regular_file(path)) return std::nullopt;
  std::vector<double> seconds;
  for (const std::string& line : split(read_file(path), '\n')) {
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (line.empty()) continue;
    if (error != std::errc{} || end != line.data() + line.size() || !(value >= 0) ||
        !std::isfinite(value))
      return std::nullopt;
    seconds.push_back(value);
  }
  if (seconds.size() != nodes) return std::nullopt;
  return seconds;
}

}  // namespace

std::vector<double> measured_node_seconds(const Graph& graph, const KernelChoices& choices,
                                          const fs::path& folder) {
  if (folder.empty()) return measure(graph, choices);
  const std::string about = to_string(graph) + to_string(choices) + instruction_sets(choices);
  const fs::path path = folder / fmt::format("{:016x}", hash_name(about));
  if (auto known = read(path, graph.nodes().size())) return *known;
  std::vector<double> seconds = measure(graph, choices);
  std::string text;
  for (const double value : seconds) text += fmt::format("{:.9g}\n", value);
  fs::create_directories(folder);
  write_file_atomically(path, text);
  return seconds;
}

}  // namespace artel::plan
