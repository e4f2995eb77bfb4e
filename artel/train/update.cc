#include "artel/train/update.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/optim/clipping.h"
#include "artel/optim/running_average.h"

namespace artel {

Update::Update(const optim::OptimizerConfig& config, Parameters& parameters, ThreadPool& pool,
               const std::function<bool(const std::string&)>& trained)
    : config_(config),
      optimizer_(optim::make_optimizer(config)),
      parameters_(parameters),
      pool_(pool) {
  for (const ParameterEntry& entry : parameters.entries()) {
    if (!entry.trained || (trained && !trained(entry.name))) continue;
    places_.push_back({entry, floats_});
    floats_ += (static_cast<size_t>(entry.shape.elements()) + 15) / 16 * 16;
  }
  for (size_t slot = 0; slot < optimizer_->slots().size(); ++slot)
    memory_.push_back(allocate(floats_ * sizeof(float)));
}

void Update::bind(const SummedRegion& region) {
  targets_.clear();
  for (const SummedRegion::Part& part : region.parts()) {
    const ParameterEntry& entry = parameters_.entry(part.name);
    Target target = {part, optim::decays(config_, entry.shape), parameters_.values(entry)};
    for (const Place& place : places_)
      for (size_t slot = 0; slot < memory_.size() && place.entry.name == part.name; ++slot)
        target.memory.emplace_back(reinterpret_cast<float*>(at(slot, place)), target.values.size());
    targets_.push_back(std::move(target));
  }
}

void Update::apply(const Bucket& bucket, const std::byte* total, const Options& options) {
  for (const Target& target : targets_) {
    if (!bucket.contains(target.offset)) continue;
    const std::span<const float> sums = SummedRegion::values(total, target);
    if (target.is_state)  // moves towards the mean over lanes of what they observed
      optim::follow(target.values, sums, target.momentum, options.lanes, options.lanes);
    else
      optimizer_->update(pool_, {target.name, target.decays}, options.step, options.learning_rate,
                         options.gradient_scale, target.values, sums, target.memory);
  }
}

float Update::clip_scale(const std::byte* total, float scale) {
  double squares = 0;
  for (const Target& target : targets_)
    if (!target.is_state)
      squares += optim::sum_of_squares(pool_, SummedRegion::values(total, target));
  return clip_scale(squares, scale);
}

float Update::clip_scale(double squares, float scale) const {
  return optim::clip_scale(scale * std::sqrt(squares), config_.clip_norm);
}

std::byte* Update::at(size_t slot, const Place& place) const {
  return memory_[slot].get() + place.offset * sizeof(float);
}

std::string Update::name_of(size_t slot, const Place& place) const {
  return optimizer_->slots()[slot] + "/" + place.entry.name;
}

NamedTensors Update::state() const {
  NamedTensors tensors;
  ThreadPool here(1);
  for (size_t slot = 0; slot < memory_.size(); ++slot)
    for (const Place& place : places_) {
      Tensor tensor(place.entry.shape);
      convert_layout(here, place.entry.shape, DType::f32, at(slot, place), place.entry.layout,
                     tensor.raw(), Layout::row_major());
      tensors.push_back({name_of(slot, place), std::move(tensor)});
    }
  return tensors;
}

void Update::set_state(const NamedTensors& state) {
  ThreadPool here(1);
  for (size_t slot = 0; slot < memory_.size(); ++slot)
    for (const Place& place : places_) {
      const std::string name = name_of(slot, place);
      const auto found = std::find_if(state.begin(), state.end(),
                                      [&](const NamedTensor& t) { return t.name == name; });
      if (found == state.end()) continue;  // it was frozen then, and begins now
      require(found->tensor.shape() == place.entry.shape, ErrorKind::corrupt,
              "[optimizer state] '{}' has the shape {}, expected {}", name,
              to_string(found->tensor.shape()), to_string(place.entry.shape));
      convert_layout(here, place.entry.shape, DType::f32, found->tensor.raw(), Layout::row_major(),
                     at(slot, place), place.entry.layout);
    }
}

std::vector<std::span<float>> Update::memory() {
  std::vector<std::span<float>> blocks;
  for (const auto& memory : memory_)
    blocks.emplace_back(reinterpret_cast<float*>(memory.get()), floats_);
  return blocks;
}

}  // namespace artel
