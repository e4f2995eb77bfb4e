#include "artel/train/strategies/own_state_store.h"

#include <fmt/format.h>

#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/train/loop/kept_states.h"

namespace artel {
namespace {

constexpr const char* kPurpose = "purpose";

}  // namespace

// Identifies the exchange that the states fit: the same kind, number of workers, and layout of
// values, continued from the same weights.
std::string OwnStateStore::purpose() const {
  std::string places;
  for (const SummedRegion::Part& part : fit_.stepper->region().parts())
    places += fmt::format("{} {} {},", part.name, part.offset, part.bytes);
  for (const ParameterEntry& entry : fit_.parameters.entries())
    places +=
        fmt::format("{} {} [{}],", entry.name, entry.offset, fmt::join(entry.layout.order, " "));
  const auto weights = std::as_bytes(fit_.parameters.block());
  return fmt::format("{} workers, {}, places {:x}, weights {:x}", fit_.cluster.size(), kind_,
                     hash_name(places),
                     hash_name({reinterpret_cast<const char*>(weights.data()), weights.size()}));
}

void OwnStateStore::keep(int64_t step, const std::function<OwnState()>& state) {
  if (kept_ == step) return;
  own_ = state();
  kept_ = step;
}

void OwnStateStore::gather(int64_t step) {
  if (gathered_ == step) return;
  all_ = {};
  std::vector<OwnState> states = gather_states(*fit_.group(), own_);
  all_ = {.values = {{kPurpose, purpose()}}};
  for (size_t worker = 0; worker < states.size(); ++worker)
    for (auto& [name, values] : states[worker]) {
      all_.tensors.push_back({name_of_worker(worker, name),
                              Tensor::from({static_cast<int64_t>(values.size())}, values)});
      values = {};  // not twice in memory
    }
  gathered_ = step;
}

void OwnStateStore::add_to(StrategyState& state) const {
  if (gathered_ != fit_.step || fit_.cluster.rank() != 0) return;
  state.values.insert(all_.values.begin(), all_.values.end());
  state.tensors.insert(state.tensors.end(), all_.tensors.begin(), all_.tensors.end());
}

std::optional<OwnState> OwnStateStore::restore(const StrategyState& kept) {
  const auto found = kept.values.find(kPurpose);
  const std::string before = found == kept.values.end() ? "" : found->second;
  OwnState own;
  for (const NamedTensor& tensor : kept.tensors) {
    const std::optional<size_t> worker = worker_of(tensor.name);
    if (!worker) continue;
    all_.tensors.push_back(tensor);
    if (*worker != static_cast<size_t>(fit_.cluster.rank())) continue;
    const std::span<const float> values = tensor.tensor.values<float>();
    own[tensor.name.substr(tensor.name.find('/') + 1)].assign(values.begin(), values.end());
  }
  if (!before.empty()) all_.values = {{kPurpose, before}};
  gathered_ = fit_.step;
  if (fit_.step == 0 || fit_.step >= fit_.last_step) return std::nullopt;
  fit_.stepper->buckets(fit_.batch_size);
  if (before == purpose()) return own;
  if (fit_.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: the saved worker states are for {}, but this run has {}; continuing without "
        "them, "
        "so the bits differ from those of an uninterrupted run",
        fit_.step, before.empty() ? "nothing" : before, purpose());
  return std::nullopt;
}

}  // namespace artel
