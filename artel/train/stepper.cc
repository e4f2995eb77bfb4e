#include "artel/train/stepper.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/exec/kernels/copy.h"
#include "artel/exec/libraries.h"
#include "artel/optim/clipping.h"
#include "artel/train/batches.h"

namespace artel {
namespace {

// Behind the gradients: the weighted loss and the number of right answers of the lanes.
struct Tail {
  float loss, correct;
};

constexpr size_t kTailBytes = 64;

}  // namespace

// The memory in which one lane at a time runs, and the sums it has collected.
struct Stepper::Slot {
  ThreadPool serial{1, limit_library_threads};
  std::map<int64_t, std::unique_ptr<Lane>> lanes;  // by samples
  std::vector<PartialSum> sums;
  std::vector<std::byte*> spare;
};

Stepper::Stepper(const Model& model, const TensorType& x, const TensorType& y, const Loss& loss,
                 const optim::OptimizerConfig& optimizer, Parameters& parameters,
                 KernelChoices& choices, StepperOptions options)
    : model_(model),
      x_(x),
      y_(y),
      loss_(loss),
      parameters_(parameters),
      choices_(choices),
      options_(std::move(options)),
      pool_(std::make_unique<ThreadPool>(options_.threads, limit_library_threads)),
      optimizer_(optim::make_optimizer(optimizer)),
      clip_norm_(optimizer.clip_norm),
      config_(optimizer) {
  size_t floats = 0;
  for (const ParameterEntry& entry : parameters.entries())
    floats = std::max(floats, entry.offset + static_cast<size_t>(entry.shape.elements()));
  for (size_t i = 0; i < optimizer_->slots().size(); ++i)
    optimizer_memory_.push_back(allocate(floats * sizeof(float)));
}

Stepper::~Stepper() = default;

const Program& Stepper::program(int64_t lane_batch) {
  std::unique_ptr<Program>& found = programs_[lane_batch];
  if (!found) {
    ModelGraph model = training_graph(model_, batch_of(x_, lane_batch), batch_of(y_, lane_batch),
                                      loss_, options_.trained);
    const bool side_by_side = options_.lanes >= options_.threads;
    found = std::make_unique<Program>(std::move(model.graph),
                                      CompileOptions{.threads = side_by_side ? 1 : options_.threads,
                                                     .memory_limit = options_.memory_limit},
                                      choices_);
  }
  return *found;
}

size_t Stepper::sum_bytes() const {
  return programs_.begin()->second->plan().gradient_bytes + kTailBytes;
}

std::byte* Stepper::take_buffer(std::vector<std::byte*>& spare) {
  if (spare.empty()) {
    const std::lock_guard lock(buffers_mutex_);
    buffers_.push_back(allocate(sum_bytes()));
    return buffers_.back().get();
  }
  std::byte* buffer = spare.back();
  spare.pop_back();
  return buffer;
}

// Adds neighbours that are the two halves of one node of the tree, until none are left.
void Stepper::collapse(ThreadPool& pool, std::vector<PartialSum>& sums,
                       std::vector<std::byte*>& spare) {
  for (size_t i = 1; i < sums.size();) {
    const comm::LaneRange both = {sums[i - 1].lanes.first, sums[i].lanes.last};
    const bool halves = comm::lane_subtrees(options_.lanes, both).size() == 1 &&
                        comm::lane_split(both) == sums[i].lanes.first;
    if (!halves) {
      ++i;
      continue;
    }
    kernels::add_into(pool, static_cast<int64_t>(sum_bytes() / sizeof(float)),
                      reinterpret_cast<const float*>(sums[i].data),
                      reinterpret_cast<float*>(sums[i - 1].data));
    sums[i - 1].lanes = both;
    spare.push_back(sums[i].data);
    sums.erase(sums.begin() + static_cast<std::ptrdiff_t>(i));
    i = std::max<size_t>(1, i - 1);
  }
}

void Stepper::run_lane(Slot& slot, ThreadPool& pool, int lane, const Tensor& x, const Tensor& y,
                       int64_t batch, int64_t step) {
  const int64_t samples = x.shape()[0];
  std::byte* buffer = take_buffer(slot.spare);
  if (samples == 0) {
    std::memset(buffer, 0, sum_bytes());
  } else {
    const Program& compiled = *programs_.at(samples);
    std::unique_ptr<Lane>& memory = slot.lanes[samples];
    if (!memory) memory = std::make_unique<Lane>(compiled, parameters_, buffer);
    memory->bind_gradients(buffer);
    const float weight = static_cast<float>(samples) / static_cast<float>(batch);
    memory->set_input("x", x);
    memory->set_input("y", y);
    memory->set_input("weight", Tensor::from<float>({}, {weight}));
    Program::RunOptions run;
    run.context = {options_.seed, step, lane};
    run.check_numbers = options_.check_numbers;
    if (timing_) run.timing = [&](const StepTiming& timing) { timing_(lane, timing); };
    compiled.run(*memory, pool, run);
    const Tail tail = {memory->scalar("loss") * weight,
                       static_cast<float>(count_correct(memory->output("prediction"), y))};
    std::memcpy(buffer + sum_bytes() - kTailBytes, &tail, sizeof tail);
  }
  slot.sums.push_back({{lane, lane + 1}, buffer});
  collapse(pool, slot.sums, slot.spare);
}

std::vector<PartialSum> Stepper::compute(comm::LaneRange range, const Tensor& x, const Tensor& y,
                                         int64_t batch, int64_t step) {
  const bool side_by_side = options_.lanes >= options_.threads;
  const int running = side_by_side ? std::min(options_.threads, range.size()) : 1;
  const int64_t first_row = rows_of_lane(batch, options_.lanes, range.first).first;
  for (int lane = range.first; lane < range.last; ++lane) {
    const auto [begin, end] = rows_of_lane(batch, options_.lanes, lane);
    if (end > begin) program(end - begin);
  }
  while (static_cast<int>(slots_.size()) < running) slots_.push_back(std::make_unique<Slot>());
  const auto run_slot = [&](int64_t index) {
    Slot& slot = *slots_[index];
    for (const PartialSum& sum : slot.sums) slot.spare.push_back(sum.data);
    slot.sums.clear();
    const comm::LaneRange own = comm::even_lanes(range.size(), running, static_cast<int>(index));
    for (int lane = range.first + own.first; lane < range.first + own.last; ++lane) {
      const auto [begin, end] = rows_of_lane(batch, options_.lanes, lane);
      run_lane(slot, side_by_side ? slot.serial : *pool_, lane,
               x.rows(begin - first_row, end - first_row),
               y.rows(begin - first_row, end - first_row), batch, step);
    }
  };
  if (side_by_side)
    pool_->run(running, run_slot);
  else
    run_slot(0);

  std::vector<PartialSum>& all = slots_[0]->sums;
  for (int i = 1; i < running; ++i) {
    all.insert(all.end(), slots_[i]->sums.begin(), slots_[i]->sums.end());
    slots_[i]->sums.clear();
  }
  collapse(*pool_, all, slots_[0]->spare);
  return all;
}

StepStatistics Stepper::apply(std::byte* total, int64_t step, float learning_rate) {
  const Plan& plan = programs_.begin()->second->plan();
  const Graph& graph = programs_.begin()->second->graph();
  Tail tail;
  std::memcpy(&tail, total + sum_bytes() - kTailBytes, sizeof tail);
  require(std::isfinite(tail.loss), ErrorKind::numeric,
          "[step {}] the loss is {}; lower the learning rate, or set check_numbers = true to find "
          "the first op that produced it",
          step, tail.loss);
  const auto sum_of = [&](const GradientSlot& slot) {
    return std::span(reinterpret_cast<const float*>(total + slot.offset),
                     slot.bytes / sizeof(float));
  };
  float scale = 1;
  if (clip_norm_ > 0) {
    double squares = 0;
    for (const GradientSlot& slot : plan.gradients)
      if (!slot.is_state) squares += optim::sum_of_squares(*pool_, sum_of(slot));
    scale = optim::clip_scale(std::sqrt(squares), clip_norm_);
  }
  std::vector<std::span<float>> state(optimizer_memory_.size());
  for (const GradientSlot& slot : plan.gradients) {
    const ParameterEntry& entry = parameters_.entry(graph.value(slot.value).name);
    const std::span<float> values = parameters_.values(entry);
    if (slot.is_state) continue;
    for (size_t i = 0; i < state.size(); ++i)
      state[i] = {reinterpret_cast<float*>(optimizer_memory_[i].get()) + entry.offset,
                  values.size()};
    optimizer_->update(*pool_, {entry.name, optim::decays(config_, entry.shape)}, step,
                       learning_rate, scale, values, sum_of(slot), state);
  }
  size_t next = plan.gradients.size() - graph.state_updates().size();
  for (const StateUpdate& update : graph.state_updates()) {
    const std::span<const float> observed = sum_of(plan.gradients[next++]);
    const std::span<float> values =
        parameters_.values(parameters_.entry(graph.value(update.state).name));
    const auto momentum = static_cast<float>(update.momentum);
    const float share = momentum / static_cast<float>(options_.lanes);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = (1 - momentum) * values[i] + share * observed[i];
  }
  return {tail.loss, static_cast<int64_t>(tail.correct)};
}

StepStatistics Stepper::step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate) {
  const std::vector<PartialSum> sums = compute({0, options_.lanes}, x, y, x.shape()[0], step);
  return apply(sums.front().data, step, learning_rate);
}

NamedTensors Stepper::optimizer_state() const {
  NamedTensors tensors;
  ThreadPool here(1);
  for (size_t i = 0; i < optimizer_memory_.size(); ++i)
    for (const ParameterEntry& entry : parameters_.entries()) {
      if (!entry.trained) continue;
      Tensor tensor(entry.shape);
      const float* memory = reinterpret_cast<const float*>(optimizer_memory_[i].get());
      convert_layout(here, entry.shape, DType::f32,
                     reinterpret_cast<const std::byte*>(memory + entry.offset), entry.layout,
                     tensor.raw(), Layout::row_major());
      tensors.push_back({optimizer_->slots()[i] + "/" + entry.name, std::move(tensor)});
    }
  return tensors;
}

void Stepper::set_optimizer_state(const NamedTensors& state) {
  ThreadPool here(1);
  for (size_t i = 0; i < optimizer_memory_.size(); ++i)
    for (const ParameterEntry& entry : parameters_.entries()) {
      if (!entry.trained) continue;
      const std::string name = optimizer_->slots()[i] + "/" + entry.name;
      const auto found = std::find_if(state.begin(), state.end(),
                                      [&](const NamedTensor& t) { return t.name == name; });
      require(found != state.end() && found->tensor.shape() == entry.shape, ErrorKind::corrupt,
              "[optimizer state] '{}' is missing or has another shape than {}", name,
              to_string(entry.shape));
      float* memory = reinterpret_cast<float*>(optimizer_memory_[i].get());
      convert_layout(here, entry.shape, DType::f32, found->tensor.raw(), Layout::row_major(),
                     reinterpret_cast<std::byte*>(memory + entry.offset), entry.layout);
    }
}

}  // namespace artel
