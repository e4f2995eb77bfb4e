#include "artel/exec/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/exec/memory_marks.h"
#include "artel/exec/plan/memory_plan.h"
#include "artel/graph/passes/recompute.h"

namespace artel {

void check_finite(const Graph& graph, const Plan& plan, const PlannedKernel& planned,
                  const std::vector<std::byte*>& pointers, int64_t step) {
  for (const int id : planned.outputs) {
    const Buffer& buffer = plan.buffers[id];
    if (graph.type(buffer.value).dtype != DType::f32) continue;
    const auto* values = reinterpret_cast<const float*>(pointers[id]);
    const size_t n = buffer.bytes / sizeof(float);
    std::vector<float> copy;
    if (buffer.device != &cpu()) {
      copy.resize(n);
      buffer.device->read(pointers[id], reinterpret_cast<std::byte*>(copy.data()), buffer.bytes);
      values = copy.data();
    }
    const size_t bad = static_cast<size_t>(
        std::find_if(values, values + n, [](float x) { return !std::isfinite(x); }) - values);
    if (bad == n) continue;
    fail(ErrorKind::numeric,
         "[step {}] {} of layer '{}' produced {} at element {} of {}; look at its inputs: "
         "the data, and weights that have grown too large",
         step, planned.op, planned.layer, values[bad], bad,
         to_string(graph.type(buffer.value).shape));
  }
}

MemoryLimitError::MemoryLimitError(size_t limit, size_t needed)
    : Error(ErrorKind::memory,
            fmt::format("memory_limit: got {} for the activations, expected at least {} KiB; "
                        "raise it, use more lanes or a smaller batch",
                        format_bytes(static_cast<double>(limit)), (needed + 1023) / 1024)),
      needed_(needed) {}

Program::Program(Graph graph, const CompileOptions& options, KernelChoices& choices)
    : graph_(std::move(graph)),
      device_(options.device   ? options.device
              : choices.device ? choices.device
                               : &cpu()),
      plan_(make_plan(graph_, options.threads, choices, *device_, options.lanes)) {
  if (options.memory_limit > 0 &&
      (options.recompute || plan_.activation_bytes > options.memory_limit))
    fit_into(options, choices);
  if (options.lanes.together > 1) without_workspaces_ = place_without_workspaces(plan_);
  place_constants();
}

// Constants have the same offsets on all devices that read some.
void Program::place_constants() {
  constant_offsets_.resize(plan_.buffers.size());
  size_t bytes = 0;
  for (const ValueId id : graph_.of_kind(ValueKind::constant)) {
    constant_offsets_[plan_.buffer_of[id]] = bytes;
    bytes += aligned(plan_.buffers[plan_.buffer_of[id]].bytes);
  }
  const Memory here = cpu().allocate(bytes);
  constants_[&cpu()] = here;
  ThreadPool serial(1);
  for (const ValueId id : graph_.of_kind(ValueKind::constant)) {
    const int buffer = plan_.buffer_of[id];
    const Tensor& value = graph_.constant_data(id);
    convert_layout(serial, value.shape(), value.dtype(), value.raw(), Layout::row_major(),
                   here.address() + constant_offsets_[buffer], plan_.buffers[buffer].layout);
  }
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const Buffer& buffer = plan_.buffers[i];
    if (buffer.region != Region::constants || buffer.device == &cpu() || buffer.view_of >= 0)
      continue;
    constant_offsets_[i] = constant_offsets_[plan_.buffer_of[buffer.value]];
    Memory& there = constants_[buffer.device];
    if (there) continue;
    there = buffer.device->allocate(bytes);
    buffer.device->write(there.address(), here.address(), bytes);
  }
}

// Tries the given choice, then the others, the cheapest first, until a plan fits.
void Program::fit_into(const CompileOptions& options, KernelChoices& choices) {
  size_t least = plan_.activation_bytes;
  const auto fits = [&](const RecomputeChoice& choice) {
    Graph graph = recompute(graph_, choice);
    Plan plan = make_plan(graph, options.threads, choices, *device_, options.lanes);
    least = std::min(least, plan.activation_bytes);
    if (plan.activation_bytes > options.memory_limit) return false;
    recomputed_ = std::make_shared<const RecomputeChoice>(choice);
    graph_ = std::move(graph);
    plan_ = std::move(plan);
    return true;
  };
  if (options.recompute && options.recompute->segments.back().end == graph_.forward_end() &&
      fits(*options.recompute))
    return;
  if (plan_.activation_bytes <= options.memory_limit) return;
  for (const RecomputeChoice& choice : recompute_choices(graph_))
    if (fits(choice)) return;
  throw MemoryLimitError(options.memory_limit, least);
}

void Program::restrict_to(const Excerpt& excerpt) {
  plan_ = excerpt_of(graph_, std::move(plan_), excerpt);
  without_workspaces_ = {};
}

bool Program::computes(std::string_view output) const {
  if (plan_.pieces.empty()) return true;
  const int buffer = viewed(plan_, plan_.buffer_of[graph_.output_id(output)]);
  return std::ranges::any_of(plan_.kernels, [&](const PlannedKernel& kernel) {
    return std::ranges::find(kernel.outputs, buffer) != kernel.outputs.end();
  });
}

std::vector<ParameterEntry> Program::parameter_entries() const {
  std::vector<ParameterEntry> entries;
  std::vector<bool> listed(graph_.values().size(), false);
  std::set<std::string> wholes;  // of the shards that are listed
  const auto list = [&](ValueId id) {
    if (listed[id]) return;
    listed[id] = true;
    const ValueData& value = graph_.value(id);
    ParameterEntry entry = {value.whole_name(),
                            value.type.shape,
                            plan_.buffers[plan_.buffer_of[id]].layout,
                            value.kind == ValueKind::state,
                            /*offset=*/0,
                            value.type.dtype};
    if (value.shard_of) {
      if (!wholes.insert(entry.name).second) return;
      entry.shape = value.shard_of->shape;
      entry.layout.split = value.shard_of->split;
    }
    entries.push_back(std::move(entry));
  };
  for (const GradientSlot& slot : plan_.gradients) list(slot.value);
  for (const ValueId id : graph_.of_kind(ValueKind::parameter)) list(id);
  for (const ValueId id : graph_.of_kind(ValueKind::state)) list(id);
  return entries;
}

void Program::run(Frame& frame, ThreadPool& pool, const RunOptions& options) const {
  if (device_ == &cpu()) return run_kernels(frame, pool, options);
  try {
    run_kernels(frame, pool, options);
    Device& home = *plan_.gradient_device;
    if (&home != &cpu() && !options.leaves_gradients &&
        frame.next_ == static_cast<int>(plan_.kernels.size()))
      home.read_later(frame.device_gradients_.address(), frame.gradients_.address(),
                      plan_.gradient_bytes);
    device_->finish();
  } catch (...) {
    // Copies to the frame must not be in flight when it is destroyed.
    try {
      device_->finish();
    } catch (const Error&) {  // the first error is the cause
    }
    throw;
  }
}

void Program::run_kernels(Frame& frame, ThreadPool& pool, const RunOptions& options) const {
  const int first = options.part.first;
  const int last = std::min(options.part.last, static_cast<int>(plan_.kernels.size()));
  require(first == 0 || first == frame.next_, ErrorKind::internal,
          "[program] a part from kernel {} to {}: got a frame that was run up to {}", first, last,
          frame.next_);
  std::optional<MemoryMarks> marks;
  if (options.check_memory) {
    marks.emplace(graph_, plan_, frame.pointers_, frame.memory());
    if (first == 0) marks->begin(frame.activations_.at(&cpu()).host());
  }
  require(frame.has_workspaces_, ErrorKind::internal, "[program] a frame without workspaces");
  for (const Parameters* parameters : frame.resident_) parameters->refresh(*device_);
  frame.next_ = 0;  // if a kernel throws
  for (int i = first; i < last; ++i) {
    const PlannedKernel& planned = plan_.kernels[i];
    if (marks) marks->before(i);
    const std::span<std::byte* const> arguments = frame.arguments_[i];
    std::byte* workspace = planned.workspace >= 0 ? frame.pointers_[planned.workspace] : nullptr;
    const KernelRun run = {pool,
                           arguments.first(planned.inputs.size()),
                           arguments.subspan(planned.inputs.size()),
                           workspace,
                           options.context,
                           planned.kernel.rows};
    if (options.timing) {
      const Clock::time_point begin = Clock::now();
      planned.kernel.run(run);
      device_->finish();
      options.timing({i, seconds_between(begin, Clock::now())});
    } else {
      planned.kernel.run(run);
    }
    // Outputs may still be on their way from the device.
    if (device_ != &cpu() && (marks || options.check_numbers)) device_->finish();
    if (marks) marks->after(i);
    if (options.check_numbers)
      check_finite(graph_, plan_, planned, frame.pointers_, options.context.step);
    if (marks) marks->release(i);
    if (options.after_kernel) options.after_kernel(i);
  }
  frame.next_ = last;
}

Frame::Frame(const Program& program, Parameters& parameters, Memory gradients, Parameters* lender,
             Workspaces workspaces)
    : program_(program), gradients_(std::move(gradients)) {
  const Plan& plan = program.plan_;
  const bool borrows = workspaces == Workspaces::borrowed;
  has_workspaces_ = !borrows;
  const std::vector<size_t>& lean = program.without_workspaces_.offsets;
  require(!borrows || !lean.empty(), ErrorKind::internal,
          "[program] a frame without workspaces: the program runs single lanes only");
  for (const auto& [device, bytes] : borrows ? program.without_workspaces_.bytes : plan.activations)
    activations_[device] = device->allocate(bytes + kTail);
  if (!gradients_) gradients_ = cpu().allocate(plan.gradient_bytes);
  if (plan.gradient_device != &cpu() && plan.gradient_bytes > 0)
    device_gradients_ = plan.gradient_device->allocate(plan.gradient_bytes);
  pointers_.resize(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& root = plan.buffers[plan.buffers[i].root];
    switch (root.region) {
      case Region::absent:
        break;
      case Region::activations:
        if (borrows && root.value < 0) break;  // a workspace
        pointers_[i] = activations_.at(root.device).address() + (borrows ? lean[i] : root.offset);
        break;
      case Region::gradients:
        pointers_[i] = gradient_memory(*root.device) + root.offset;
        break;
      case Region::constants:
        pointers_[i] = program.constants_.at(root.device).address() +
                       program.constant_offsets_[plan.buffers[i].root];
        break;
      case Region::parameters:
        break;
    }
  }
  bind_leaves(parameters, lender);
  bind_arguments();
}

void Frame::bind_leaves(Parameters& parameters, Parameters* lender) {
  const Plan& plan = program_.plan_;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& root = plan.buffers[plan.buffers[i].root];
    if (root.region != Region::parameters) continue;
    const ValueData& value = program_.graph_.value(root.value);
    const std::string name = value.whole_name();
    Parameters& owner = lender && !parameters.contains(name) ? *lender : parameters;
    const ParameterEntry& entry = owner.entry(name);
    Layout layout = root.layout;
    if (value.shard_of) layout.split = value.shard_of->split;
    require(entry.shape == (value.shard_of ? value.shard_of->shape : value.type.shape) &&
                entry.type == value.type.dtype && same_memory(entry.shape, entry.layout, layout),
            ErrorKind::internal,
            "parameter '{}' does not have the type, shape and layout that the program expects",
            value.name);
    const bool here = root.device == &cpu();
    const Memory memory = here ? owner.memory(entry) : owner.memory_on(*root.device, entry);
    pointers_[i] = memory.address() + shard_offset(value) * size_of(entry.type);
    if (!here && std::ranges::find(resident_, &owner) == resident_.end())
      resident_.push_back(&owner);
  }
}

std::vector<std::span<std::byte>> Frame::memory() const {
  std::vector<std::span<std::byte>> all = {activations_.at(&cpu()).host(), gradients_.host(),
                                           program_.constants_.at(&cpu()).host()};
  // Not states: an op may write to its cache.
  for (const ValueId id : program_.graph_.of_kind(ValueKind::parameter)) {
    const int buffer = program_.plan_.buffer_of[id];
    if (buffer >= 0 && pointers_[buffer])
      all.emplace_back(pointers_[buffer], program_.plan_.buffers[buffer].bytes);
  }
  return all;
}

void Frame::bind_arguments() {
  arguments_.clear();
  for (const PlannedKernel& planned : program_.plan_.kernels) {
    std::vector<std::byte*>& arguments = arguments_.emplace_back();
    for (const int input : planned.inputs) arguments.push_back(pointers_[input]);
    for (const int output : planned.outputs) arguments.push_back(pointers_[output]);
  }
}

std::byte* Frame::gradient_memory(const Device& device) const {
  return &device == &cpu() ? gradients_.host().data() : device_gradients_.address();
}

void Frame::bind_gradients(const Memory& gradients) {
  Memory& bound = &gradients.device() == &cpu() ? gradients_ : device_gradients_;
  if (gradients.address() == bound.address()) return;
  bound = gradients;
  const Plan& plan = program_.plan_;
  if (plan.gradient_device != &gradients.device()) return;
  const auto is_gradient = [&](int id) { return plan.buffers[id].region == Region::gradients; };
  for (int i = 0; i < next_; ++i)
    if (std::any_of(plan.kernels[i].outputs.begin(), plan.kernels[i].outputs.end(), is_gradient))
      next_ = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& root = plan.buffers[plan.buffers[i].root];
    if (root.region == Region::gradients)
      pointers_[i] = gradient_memory(*root.device) + root.offset;
  }
  bind_arguments();
}

void Frame::set_input(std::string_view name, const Tensor& value) {
  std::vector<std::string> names;
  for (const ValueId id : program_.graph_.of_kind(ValueKind::input)) {
    const ValueData& input = program_.graph_.value(id);
    names.push_back(input.name);
    if (input.name != name) continue;
    require(value.shape() == input.type.shape && value.dtype() == input.type.dtype,
            ErrorKind::shape, "input '{}': got {}, expected {}", name,
            to_string(TensorType{value.dtype(), value.shape()}), to_string(input.type));
    const int buffer = program_.plan_.buffer_of[id];
    if (!pointers_[buffer]) return;  // read by other parts only
    ThreadPool here(1);
    convert_layout(here, value.shape(), value.dtype(), value.raw(), Layout::row_major(),
                   pointers_[buffer], program_.plan_.buffers[buffer].layout);
    return;
  }
  fail(ErrorKind::not_found, "the model has no input '{}'{}", name, did_you_mean(name, names));
}

const std::byte* Frame::output_memory(std::string_view name, ValueId& value) const {
  value = program_.graph_.output_id(name);
  return pointers_[program_.plan_.buffer_of[value]];
}

Tensor Frame::output(std::string_view name) const {
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

float Frame::scalar(std::string_view name) const {
  ValueId id = -1;
  float value;
  std::memcpy(&value, output_memory(name, id), sizeof value);
  return value;
}

std::span<std::byte> Frame::buffer(int id) const {
  return {pointers_[id], program_.plan_.buffers[id].bytes};
}

std::span<float> Frame::gradients() {
  return gradients_.floats().first(program_.plan_.gradient_bytes / sizeof(float));
}

}  // namespace artel
