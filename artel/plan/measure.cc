#include "artel/plan/measure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
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

Graph copy_of(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) rewriter.copy(node);
  return rewriter.finish();
}

// Integer inputs are 0, a valid class and token.
Tensor random_input(const TensorType& type, Random& random) {
  Tensor tensor(type.shape, type.dtype);
  if (type.dtype == DType::f32)
    for (float& value : tensor.values<float>()) value = random.uniform(-1, 1);
  return tensor;
}

// Processor time of this thread, which excludes other programs.
double thread_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_to_read_clock() {
  constexpr int kReads = 100;
  double least = 1;
  for (int i = 0; i < kReads; ++i) {
    const double begin = thread_seconds();
    least = std::min(least, thread_seconds() - begin);
  }
  return least;
}

// The time of a kernel is divided among its nodes.
std::vector<double> measure(const Graph& graph, const KernelChoices& choices) {
  std::vector<double> seconds(graph.nodes().size());
  for (const KernelTime& kernel : measured_kernels(graph, choices))
    for (const NodeId node : kernel.nodes)
      seconds[node] += kernel.seconds / static_cast<double>(kernel.nodes.size());
  return seconds;
}

// Reads one number per line. Empty if the file is missing or has a different number of nodes.
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

std::vector<KernelTime> measured_kernels(const Graph& graph, const KernelChoices& given, int runs) {
  KernelChoices choices = given;
  choices.tune = false;
  const Program program(copy_of(graph), {.threads = 1}, choices);
  Parameters parameters(program.parameter_entries());
  Random random({1});
  for (float& value : parameters.block()) value = random.uniform(-0.1F, 0.1F);
  for (const ParameterEntry& entry : parameters.entries())
    if (entry.is_state)  // must be nonnegative, like variances
      std::fill_n(parameters.values(entry).begin(), parameters.values(entry).size(), 1.0F);
  Frame frame(program, parameters);
  ThreadPool pool(1, limit_library_threads);
  const Plan& plan = program.plan();
  std::vector<std::vector<double>> seconds(plan.kernels.size());
  const double reading = seconds_to_read_clock();
  for (int run = 0; run <= runs; ++run) {
    for (const ValueId id : program.graph().of_kind(ValueKind::input))
      frame.set_input(program.graph().value(id).name,
                      random_input(program.graph().type(id), random));
    Program::RunOptions options;
    double before = thread_seconds();
    // The first run touches memory for the first time.
    options.after_kernel = [&](int kernel) {
      if (run > 0) seconds[kernel].push_back(std::max(0.0, thread_seconds() - before - reading));
      before = thread_seconds();
    };
    program.run(frame, pool, options);
  }
  std::vector<KernelTime> kernels;
  for (size_t i = 0; i < seconds.size(); ++i) {
    std::vector<double>& times = seconds[i];
    const auto quartile = times.begin() + std::ssize(times) / 4;
    std::nth_element(times.begin(), quartile, times.end());
    const PlannedKernel& kernel = plan.kernels[i];
    kernels.push_back({kernel.nodes, work_of(program.graph(), plan, kernel), *quartile});
  }
  return kernels;
}

std::vector<double> measured_node_seconds(const Graph& graph, const KernelChoices& choices,
                                          const fs::path& folder) {
  if (folder.empty()) return measure(graph, choices);
  const std::string about = to_string(graph) + to_string(choices) + instruction_sets(choices);
  const fs::path path = folder / fmt::format("{:016x}", hash_name(about));
  if (auto known = read(path, graph.nodes().size())) return *known;
  std::vector<double> seconds = measure(graph, choices);
  std::string text;
  // The shortest text that reads back as the same number, so that cached times give the same plan.
  for (const double value : seconds) text += fmt::format("{}\n", value);
  fs::create_directories(folder);
  write_file_atomically(path, text);
  return seconds;
}

}  // namespace artel::plan
