#include "artel/train/strategies/averaging.h"

#include <algorithm>

#include "artel/train/step/stepper.h"
#include "artel/train/step/worker_sum.h"

namespace artel {
namespace {

// Names in a worker's own state.
constexpr const char *kResiduals = "changes", *kOwn = "own weights", *kCommon = "common weights",
                     *kVelocity = "velocity";

}  // namespace

Averaging::Averaging(const Membership& membership, Parameters& parameters, Parameters& velocity,
                     const std::function<bool(const std::string&)>& moving,
                     const AveragingOptions& options)
    : membership_(membership), parameters_(parameters), velocity_(velocity), options_(options) {
  if (!options.compress.empty()) codec_ = comm::make_codec(options.compress);
  size_t floats = 0;
  for (const bool weights : {true, false}) {
    for (const ParameterEntry& entry : parameters.entries()) {
      if (entry.is_state == weights || !moving(entry.name)) continue;
      const auto size = static_cast<size_t>(entry.shape.elements());
      parts_.push_back({entry.offset / sizeof(float), size, weights});
      if (weights) feedback_.matrices.push_back(matrix_of(entry.shape));
      floats += size;
    }
    if (weights) weight_floats_ = floats;
  }
  memory_ = membership.group->allocate(floats * sizeof(float));
  changes_ = {reinterpret_cast<float*>(memory_.get()), floats};
  const std::span<const float> block = parameters.block();
  common_.assign(block.begin(), block.end());
}

void Averaging::meet(float share, int64_t step) {
  const std::span<float> own = parameters_.block();
  size_t at = 0;
  for (const Part& part : parts_)
    for (size_t i = part.offset; i < part.offset + part.floats; ++i)
      changes_[at++] = share * (own[i] - common_[i]);

  comm::Group& group = *membership_.group;
  const size_t packed = codec_ ? weight_floats_ : 0;
  if (codec_)
    codec_->all_reduce(group, {.seed = options_.seed, .step = step}, feedback_,
                       changes_.first(packed), false);
  add_over_workers(group, std::as_writable_bytes(changes_.subspan(packed)), comm::ElementType::f32,
                   "average of weights");

  const auto momentum = static_cast<float>(options_.momentum);
  const auto rate = static_cast<float>(options_.learning_rate);
  const std::span<float> velocities = momentum > 0 ? velocity_.block() : std::span<float>();
  at = 0;
  for (const Part& part : parts_)
    for (size_t i = part.offset; i < part.offset + part.floats; ++i) {
      float change = changes_[at++];
      if (part.weight && momentum > 0) {
        float& velocity = velocities[i];
        velocity = momentum * velocity + change;
        change += momentum * velocity;
      }
      own[i] = common_[i] += part.weight ? rate * change : change;
    }
}

OwnState Averaging::state(bool between) const {
  OwnState state;
  if (codec_) keep_residuals(feedback_, kResiduals, state);
  if (!between) return state;
  const auto keep = [&](const char* name, std::span<const float> block) {
    state[name].assign(block.begin(), block.end());
  };
  keep(kOwn, parameters_.block());
  keep(kCommon, common_);
  keep(kVelocity, velocity_.block());
  return state;
}

void Averaging::set_state(const OwnState& state) {
  restore_residuals(state, kResiduals, feedback_);
  const auto restore = [&](const char* name, std::span<float> block) {
    const auto found = state.find(name);
    if (found != state.end() && found->second.size() == block.size())
      std::copy(found->second.begin(), found->second.end(), block.begin());
  };
  restore(kOwn, parameters_.block());
  restore(kCommon, common_);
  restore(kVelocity, velocity_.block());
}

}  // namespace artel
