#include "artel/exec/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/exec/memory_marks.h"
#include "artel/exec/memory_plan.h"
#include "artel/graph/passes/recompute.h"

namespace artel {
namespace {

void check_finite(const Graph& graph, const Plan& plan, const PlannedStep& step,
                  const std::vector<std::byte*>& pointers, int64_t number) {
  for (const int id : step.outputs) {
    const Buffer& buffer = plan.buffers[id];
    if (graph.type(buffer.value).dtype != DType::f32) continue;
    const auto* values = reinterpret_cast<const float*>(pointers[id]);
    const size_t n = buffer.bytes / sizeof(float);
    const size_t bad = static_cast<size_t>(
        std::find_if(values, values + n, [](float x) { return !std::isfinite(x); }) - values);
    if (bad == n) continue;
    fail(ErrorKind::numeric,
         "[step {}] {} of layer '{}' produced {} at element {} of {}; lower the learning rate "
         "or look at its inputs",
         number, step.op, step.layer, values[bad], bad, to_string(graph.type(buffer.value).shape));
  }
}

}  // namespace

MemoryLimitError::MemoryLimitError(size_t limit, size_t needed)
    : Error(ErrorKind::memory,
            fmt::format("memory_limit: got {} for the activations of a lane, expected at least {} "
                        "KiB; raise it, use more lanes or a smaller batch",
                        format_bytes(static_cast<double>(limit)), (needed + 1023) / 1024)),
      needed_(needed) {}

Program::Program(Graph graph, const CompileOptions& options, KernelChoices& choices)
    : graph_(std::move(graph)), plan_(make_plan(graph_, options.threads, choices)) {
  if (options.memory_limit > 0 && plan_.activation_bytes > options.memory_limit)
    fit_into(options, choices);
  constant_offsets_.resize(plan_.buffers.size());
  size_t bytes = 0;
  for (const ValueId id : graph_.of_kind(ValueKind::constant)) {
    constant_offsets_[plan_.buffer_of[id]] = bytes;
    bytes += aligned(plan_.buffers[plan_.buffer_of[id]].bytes);
  }
  constants_ = allocate(bytes);
  ThreadPool here(1);
  for (const ValueId id : graph_.of_kind(ValueKind::constant)) {
    const int buffer = plan_.buffer_of[id];
    const Tensor& value = graph_.constant_data(id);
    convert_layout(here, value.shape(), value.dtype(), value.raw(), Layout::row_major(),
                   constants_.get() + constant_offsets_[buffer], plan_.buffers[buffer].layout);
  }
}

// Tries the choices of what to recompute, the cheapest first, until a plan fits.
void Program::fit_into(const CompileOptions& options, KernelChoices& choices) {
  size_t least = plan_.activation_bytes;
  for (const RecomputeChoice& choice : recompute_choices(graph_)) {
    Graph graph = recompute(graph_, choice);
    Plan plan = make_plan(graph, options.threads, choices);
    least = std::min(least, plan.activation_bytes);
    if (plan.activation_bytes > options.memory_limit) continue;
    graph_ = std::move(graph);
    plan_ = std::move(plan);
    return;
  }
  throw MemoryLimitError(options.memory_limit, least);
}

std::vector<ParameterEntry> Program::parameter_entries() const {
  std::vector<ParameterEntry> entries;
  std::vector<bool> listed(graph_.values().size(), false);
  const auto list = [&](ValueId id) {
    if (listed[id]) return;
    listed[id] = true;
    const ValueData& value = graph_.value(id);
    entries.push_back({value.name, value.type.shape, plan_.buffers[plan_.buffer_of[id]].layout,
                       value.kind == ValueKind::parameter});
  };
  for (const GradientSlot& slot : plan_.gradients) list(slot.value);
  for (const ValueId id : graph_.of_kind(ValueKind::parameter)) list(id);
  for (const ValueId id : graph_.of_kind(ValueKind::state)) list(id);
  return entries;
}

void Program::run(Lane& lane, ThreadPool& pool, const RunOptions& options) const {
  std::optional<MemoryMarks> marks;
  if (options.check_memory) marks.emplace(graph_, plan_, lane.pointers_, lane.memory());
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlannedStep& step = plan_.steps[i];
    if (marks) marks->before(static_cast<int>(i));
    const std::span<std::byte* const> arguments = lane.arguments_[i];
    std::byte* workspace = step.workspace >= 0 ? lane.pointers_[step.workspace] : nullptr;
    const KernelRun run = {pool, arguments.first(step.inputs.size()),
                           arguments.subspan(step.inputs.size()), workspace, options.context};
    if (options.timing) {
      const Clock::time_point begin = Clock::now();
      step.kernel.run(run);
      options.timing({static_cast<int>(i), seconds_between(begin, Clock::now())});
    } else {
      step.kernel.run(run);
    }
    if (marks) marks->after(static_cast<int>(i));
    if (options.check_numbers)
      check_finite(graph_, plan_, step, lane.pointers_, options.context.step);
    if (options.after_step) options.after_step(static_cast<int>(i));
  }
}

Lane::Lane(const Program& program, Parameters& parameters, std::byte* gradients)
    : program_(program), activations_(allocate(program.plan_.activation_bytes + kTail)) {
  const Plan& plan = program.plan_;
  if (!gradients) own_gradients_ = allocate(plan.gradient_bytes);
  gradients_ = gradients ? gradients : own_gradients_.get();
  pointers_.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& root = plan.buffers[plan.buffers[i].root];
    switch (root.region) {
      case Region::activations:
        pointers_[i] = activations_.get() + root.offset;
        break;
      case Region::gradients:
        pointers_[i] = gradients_ + root.offset;
        break;
      case Region::constants:
        pointers_[i] = program.constants_.get() + program.constant_offsets_[plan.buffers[i].root];
        break;
      case Region::parameters: {
        const ValueData& value = program.graph_.value(root.value);
        const ParameterEntry& entry = parameters.entry(value.name);
        require(
            entry.shape == value.type.shape && same_memory(entry.shape, entry.layout, root.layout),
            ErrorKind::internal, "parameter '{}' has another shape or layout than the program",
            value.name);
        pointers_[i] = reinterpret_cast<std::byte*>(parameters.values(entry).data());
        break;
      }
    }
  }
  bind_arguments();
}

std::vector<std::span<std::byte>> Lane::memory() const {
  const Plan& plan = program_.plan_;
  return {{activations_.get(), plan.activation_bytes + kTail}, {gradients_, plan.gradient_bytes}};
}

void Lane::bind_arguments() {
  arguments_.clear();
  for (const PlannedStep& step : program_.plan_.steps) {
    std::vector<std::byte*>& arguments = arguments_.emplace_back();
    for (const int input : step.inputs) arguments.push_back(pointers_[input]);
    for (const int output : step.outputs) arguments.push_back(pointers_[output]);
  }
}

void Lane::bind_gradients(std::byte* gradients) {
  if (gradients == gradients_) return;
  const Plan& plan = program_.plan_;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& root = plan.buffers[plan.buffers[i].root];
    if (root.region == Region::gradients) pointers_[i] = gradients + root.offset;
  }
  gradients_ = gradients;
  bind_arguments();
}

void Lane::set_input(std::string_view name, const Tensor& value) {
  std::vector<std::string> names;
  for (const ValueId id : program_.graph_.of_kind(ValueKind::input)) {
    const ValueData& input = program_.graph_.value(id);
    names.push_back(input.name);
    if (input.name != name) continue;
    require(value.shape() == input.type.shape && value.dtype() == input.type.dtype,
            ErrorKind::shape, "input '{}': got {}, expected {}", name,
            to_string(TensorType{value.dtype(), value.shape()}), to_string(input.type));
    const int buffer = program_.plan_.buffer_of[id];
    ThreadPool here(1);
    convert_layout(here, value.shape(), value.dtype(), value.raw(), Layout::row_major(),
                   pointers_[buffer], program_.plan_.buffers[buffer].layout);
    return;
  }
  fail(ErrorKind::not_found, "the model has no input '{}'{}", name, did_you_mean(name, names));
}

const std::byte* Lane::output_memory(std::string_view name, ValueId& value) const {
  value = program_.graph_.output_id(name);
  return pointers_[program_.plan_.buffer_of[value]];
}

Tensor Lane::output(std::string_view name) const {
  ValueId id = -1;
  const std::byte* memory = output_memory(name, id);
  const TensorType& type = program_.graph_.type(id);
  Tensor result(type.shape, type.dtype);
  ThreadPool here(1);
  convert_layout(here, type.shape, type.dtype, memory,
                 program_.plan_.buffers[program_.plan_.buffer_of[id]].layout, result.raw(),
                 Layout::row_major());
  return result;
}

float Lane::scalar(std::string_view name) const {
  ValueId id = -1;
  float value;
  std::memcpy(&value, output_memory(name, id), sizeof value);
  return value;
}

std::span<float> Lane::gradients() {
  return {reinterpret_cast<float*>(gradients_), program_.plan_.gradient_bytes / sizeof(float)};
}

}  // namespace artel
