// What each worker of a fit keeps for itself where exchanges are lossy, so that a run that is
// stopped goes on with the bits of one that never was.
#include <fmt/format.h>

#include <algorithm>

#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/train/fit_loop.h"

namespace artel {

// What the own states of workers fit: an exchange of the same kind, by as many, of the same values
// in the same places, that goes on from the same weights.
std::string Trainer::FitLoop::purpose() {
  std::string places;
  for (const Stepper::Summed& part : stepper_->summed_parts())
    places += fmt::format("{} {} {},", part.name, part.offset, part.values.size());
  for (const ParameterEntry& entry : s_.parameters.entries())
    places +=
        fmt::format("{} {} [{}],", entry.name, entry.offset, fmt::join(entry.layout.order, " "));
  const auto weights = std::as_bytes(s_.parameters.block());
  return fmt::format("{} workers, compress \"{}\", {} local steps, places {:x}, weights {:x}",
                     s_.cluster.size(), s_.saving.any() ? s_.saving.compress : s_.options.compress,
                     local_steps_, hash_name(places),
                     hash_name({reinterpret_cast<const char*>(weights.data()), weights.size()}));
}

// Keeps what this worker alone has, where exchanges are lossy, once a step: before anything that
// only happens because the run ends (`between`), or after what would have happened anyway.
void Trainer::FitLoop::keep_own(bool between) {
  comm::Group* const group = s_.cluster.group();
  const bool lossy = averaging_ || exchange_.lossy();
  if (!group || remote_ || !lossy || now_.samples == 0) return;
  if (kept_ != s_.step) {
    own_ = averaging_ ? averaging_->state(between) : exchange_.state();
    if (averaging_ && between) {
      const std::vector<std::span<float>> blocks = stepper_->optimizer_memory();
      for (size_t i = 0; i < blocks.size(); ++i)
        own_[fmt::format("optimizer {}", i)].assign(blocks[i].begin(), blocks[i].end());
    }
    kept_ = s_.step;
  }
  const bool ends = !result_.stopped_by.empty();
  if (between || gathered_ == s_.step || !(saves_ || ends)) return;
  s_.own_states = gather_states(*group, own_);
  s_.own_purpose = purpose();
  gathered_ = s_.step;
}

// The inverse, when a run goes on.
void Trainer::FitLoop::restore_own(comm::Group& group) {
  saves_ = !broadcast_text(group, options_.checkpoints.empty() ? "" : "yes").empty();
  const bool goes_on = s_.step > 0 && s_.step < now_.steps && s_.cluster.servers() == 0;
  if (!(averaging_ || exchange_.lossy())) return s_.own_states.clear();  // of another exchange
  if (!goes_on) return;
  stepper_->buckets(options_.batch_size);
  const bool fits =
      static_cast<int>(s_.own_states.size()) == group.size() && s_.own_purpose == purpose();
  if (broadcast_text(group, fits ? "yes" : "").empty()) {
    if (group.rank() == 0)
      log(LogLevel::warning,
          "step {}: what the workers had kept for themselves does not fit this run, which goes on "
          "without: not with the bits of one that was never stopped (was for {}; is {})",
          s_.step, s_.own_purpose.empty() ? "nothing" : s_.own_purpose, purpose());
    return;
  }
  const OwnState own = scatter_states(group, s_.own_states);
  if (averaging_)
    averaging_->set_state(own);
  else
    exchange_.set_state(own, stepper_->buckets(options_.batch_size));
  const std::vector<std::span<float>> blocks = stepper_->optimizer_memory();
  for (size_t i = 0; i < blocks.size(); ++i)
    if (const auto found = own.find(fmt::format("optimizer {}", i)); found != own.end())
      std::copy(found->second.begin(), found->second.end(), blocks[i].begin());
}

}  // namespace artel
