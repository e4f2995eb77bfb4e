#include "artel/train/step/update.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"
#include "artel/optim/clipping.h"
#include "artel/optim/running_average.h"
#include "artel/train/step/touched_rows.h"

namespace artel {
namespace {

optim::ParameterInfo info_of(const Update::Target& target) {
  return {target.whole, target.decays, target.keeps_zeros};
}

}  // namespace

Update::Update(const optim::OptimizerConfig& config, Parameters& parameters, ThreadPool& pool,
               const std::function<bool(const std::string&)>& trained)
    : config_(config),
      optimizer_(optim::make_optimizer(config)),
      parameters_(parameters),
      pool_(pool) {
  for (const ParameterEntry& entry : parameters.entries()) {
    if (entry.is_state || (trained && !trained(entry.name))) continue;
    place_of_.emplace(entry.name, places_.size());
    places_.push_back({entry, floats_});
    floats_ += (static_cast<size_t>(entry.shape.elements()) + 15) / 16 * 16;
  }
  for (size_t slot = 0; slot < optimizer_->slots().size(); ++slot)
    memory_.push_back(cpu().allocate(floats_ * sizeof(float)));
}

void Update::bind(const SummedRegion& region) {
  targets_.clear();
  for (const SummedRegion::Part& part : region.parts()) {
    const ParameterEntry& entry = parameters_.entry(part.whole);
    const size_t count = part.bytes / sizeof(float);
    Target target = {part, optim::decays(config_, entry.shape), keep_zeros_.contains(part.whole),
                     parameters_.values(entry).subspan(part.first, count)};
    for (const std::span<float> slot : memory_of(part.whole))
      target.memory.push_back(slot.subspan(part.first, count));
    targets_.push_back(std::move(target));
  }
}

void Update::apply(const Memory& total, const Options& options) {
  parameters_.touch();  // targets keep spans of them
  const bool in_halves =
      scope() == optim::Optimizer::Scope::norms &&
      (norm_exchange_ ||
       std::any_of(targets_.begin(), targets_.end(), [](const Target& t) { return t.shard >= 0; }));
  const auto all_of = [&](size_t i) { return Slice{i, 0, targets_[i].bytes / sizeof(float)}; };
  std::vector<optim::Norms> norms(targets_.size());
  for (size_t i = 0; in_halves && i < targets_.size(); ++i)
    for (const optim::Norms& term : begin(all_of(i), total, options)) norms[i] += term;
  if (in_halves) make_whole(norms);
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    if (touches_rows(target))
      apply_to_rows(i, total, options);
    else if (target.is_state || in_halves)
      finish(all_of(i), total, options, norms[i]);
    else
      optimizer_->update(pool_, info_of(target), options.step, options.learning_rate,
                         options.gradient_scale, target.values, SummedRegion::values(total, target),
                         target.memory);
  }
}

// Rows without a gradient are left out if they keep their bits, or if that is asked for.
bool Update::touches_rows(const Target& target) const {
  return config_.lazy_rows ? target.is_table : target.by_rows && optim::leaves_zeros_alone(config_);
}

void Update::apply_to_rows(size_t target, const Memory& total, const Options& options) {
  const size_t columns = targets_[target].columns();
  const TouchedRows rows =
      touched_rows(SummedRegion::values(total, targets_[target]), columns, pool_);
  constexpr size_t kGrainFloats = 16384;
  const auto grain = static_cast<int64_t>(std::max<size_t>(1, kGrainFloats / columns));
  parallel_for(pool_, static_cast<int64_t>(rows.size()), grain, [&](int64_t begin, int64_t end) {
    const auto part =
        std::span(rows).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    for (const RowRun& run : runs_of(part)) {
      const Moved moving = moved({target, run.first * columns, run.count * columns}, total);
      optimizer_->finish(pool_, part_of(moving, options), {});
    }
  });
}

void Update::make_whole(std::vector<optim::Norms>& of_targets) const {
  if (norm_exchange_)
    norm_exchange_(of_targets);
  else
    add_over_shards(targets_, of_targets);
}

Update::Moved Update::moved(const Slice& slice, const Memory& total) const {
  const Target& target = targets_[slice.part];
  Moved result = {target,
                  target.values.subspan(slice.first, slice.count),
                  SummedRegion::values(total, target).subspan(slice.first, slice.count),
                  {},
                  info_of(target)};
  for (const std::span<float> slot : target.memory)
    result.memory.push_back(slot.subspan(slice.first, slice.count));
  return result;
}

optim::Optimizer::Part Update::part_of(const Moved& moved, const Options& options) {
  return {moved.info,   options.step, options.learning_rate, options.gradient_scale,
          moved.values, moved.sums,   moved.memory};
}

std::vector<optim::Norms> Update::begin(const Slice& slice, const Memory& total,
                                        const Options& options) {
  const Moved moving = moved(slice, total);
  if (moving.target.is_state) return {};
  return optimizer_->begin(pool_, part_of(moving, options));
}

void Update::finish(const Slice& slice, const Memory& total, const Options& options,
                    const optim::Norms& norms) {
  parameters_.touch();
  const Moved moving = moved(slice, total);
  if (moving.target.is_state)
    optim::follow(moving.values, moving.sums, moving.target.momentum, options.lanes, options.lanes);
  else
    optimizer_->finish(pool_, part_of(moving, options), norms);
}

std::vector<double> Update::squares(const Slice& slice, const Memory& total) {
  const Moved moving = moved(slice, total);
  if (moving.target.is_state) return {};
  return optim::squares_of_chunks(pool_, moving.sums);
}

std::vector<double> Update::squares(const Memory& total) {
  std::vector<double> sums;
  for (const Target& target : targets_)
    sums.push_back(
        target.is_state ? 0 : optim::sum_of_squares(pool_, SummedRegion::values(total, target)));
  return sums;
}

double Update::measure_norm(double squares, float scale) {
  norm_ = scale * std::sqrt(squares);
  return *norm_;
}

float Update::clip_scale(double squares, float scale) {
  return optim::clip_scale(measure_norm(squares, scale), config_.clip_norm);
}

float Update::clip_scale(const Memory& total, float scale) {
  const std::vector<double> sums = squares(total);
  return clip_scale(std::accumulate(sums.begin(), sums.end(), 0.0), scale);
}

std::span<float> Update::at(size_t slot, const Place& place) const {
  return memory_[slot].floats().subspan(place.offset,
                                        static_cast<size_t>(place.entry.shape.elements()));
}

std::vector<Update::Remembered> Update::remembered() const {
  std::vector<Remembered> all;
  for (size_t slot = 0; slot < memory_.size(); ++slot)
    for (const Place& place : places_)
      all.push_back(
          {optimizer_->slots()[slot] + "/" + place.entry.name, place.entry, at(slot, place)});
  return all;
}

std::vector<TensorSource> Update::sources() const {
  std::vector<TensorSource> all;
  for (const auto& [name, parameter, values] : remembered())
    all.push_back(source_of(name, parameter.shape, parameter.layout, values));
  return all;
}

NamedTensors Update::state() const { return tensors_of(sources()); }

void Update::set_state(NamedTensors state) {
  ThreadPool here(1);
  std::map<std::string_view, Tensor*> by_name;
  for (NamedTensor& each : state) by_name.emplace(each.name, &each.tensor);
  for (const auto& [name, parameter, values] : remembered()) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) continue;  // it was frozen then and starts now
    Tensor& tensor = *found->second;
    require(tensor.shape() == parameter.shape, ErrorKind::corrupt,
            "[optimizer state] '{}' has the shape {}, expected {}", name, to_string(tensor.shape()),
            to_string(parameter.shape));
    convert_layout(here, parameter.shape, DType::f32, tensor.raw(), Layout::row_major(),
                   std::as_writable_bytes(values).data(), parameter.layout);
    tensor = {};
  }
}

std::vector<Update::Averaged> Update::averages() {
  std::vector<Averaged> all;
  const std::vector<std::string> slots = optimizer_->slots();
  const auto slot = std::find(slots.begin(), slots.end(), optim::kAverageSlot);
  if (slot == slots.end()) return all;
  for (const Place& place : places_)
    all.push_back({place.entry.name, parameters_.values(place.entry),
                   at(static_cast<size_t>(slot - slots.begin()), place)});
  return all;
}

std::vector<std::span<float>> Update::memory() {
  std::vector<std::span<float>> blocks;
  for (const Memory& memory : memory_) blocks.push_back(memory.floats());
  return blocks;
}

std::vector<std::span<float>> Update::memory_of(const std::string& parameter) {
  std::vector<std::span<float>> slots;
  const auto found = place_of_.find(parameter);
  if (found == place_of_.end()) return slots;
  for (size_t slot = 0; slot < memory_.size(); ++slot)
    slots.push_back(at(slot, places_[found->second]));
  return slots;
}

}  // namespace artel
