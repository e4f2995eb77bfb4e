#include "artel/train/strategies/own_keeper.h"

#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/train/agreement.h"
#include "artel/train/trainer_state.h"

namespace artel {

// What own states fit: an exchange of the same kind, by as many workers, of the same values in the
// same places, that goes on from the same weights.
std::string OwnKeeper::purpose() const {
  TrainerState& s = fit_.state;
  std::string places;
  for (const SummedRegion::Part& part : fit_.stepper.region().parts())
    places += fmt::format("{} {} {},", part.name, part.offset, part.bytes);
  for (const ParameterEntry& entry : s.parameters.entries())
    places +=
        fmt::format("{} {} [{}],", entry.name, entry.offset, fmt::join(entry.layout.order, " "));
  const auto weights = std::as_bytes(s.parameters.block());
  return fmt::format("{} workers, {}, places {:x}, weights {:x}", s.cluster.size(), kind_,
                     hash_name(places),
                     hash_name({reinterpret_cast<const char*>(weights.data()), weights.size()}));
}

void OwnKeeper::keep(int64_t step, const std::function<OwnState()>& state) {
  if (kept_ == step) return;
  own_ = state();
  kept_ = step;
}

void OwnKeeper::gather(int64_t step) {
  if (gathered_ == step) return;
  fit_.state.own_states = gather_states(*fit_.state.cluster.group(), own_);
  fit_.state.own_purpose = purpose();
  gathered_ = step;
}

std::optional<OwnState> OwnKeeper::restore() {
  TrainerState& s = fit_.state;
  if (s.step == 0 || s.step >= fit_.last_step) return std::nullopt;
  comm::Group& group = *s.cluster.group();
  fit_.stepper.buckets(fit_.batch_size);
  const bool fits =
      static_cast<int>(s.own_states.size()) == group.size() && s.own_purpose == purpose();
  if (!broadcast_text(group, fits ? "yes" : "").empty()) return scatter_states(group, s.own_states);
  if (group.rank() == 0)
    log(LogLevel::warning,
        "step {}: what the workers had kept for themselves does not fit this run, which goes on "
        "without: not with the bits of one that was never stopped (was for {}; is {})",
        s.step, s.own_purpose.empty() ? "nothing" : s.own_purpose, purpose());
  return std::nullopt;
}

}  // namespace artel
