#include "artel/train/loop/state_source.h"

#include <algorithm>
#include <tuple>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cluster/worker_name.h"
#include "artel/train/loop/kept_states.h"

namespace artel {

StateSource most_advanced(const TrainerState& state, comm::Group& group, int64_t steps_per_epoch,
                          bool has_copies) {
  struct Place {
    int64_t begun;      // it had the common state before
    int64_t regrouped;  // it trained in another membership
    int64_t step;
    int64_t ended;    // the actions at the end of the epoch are done
    int64_t in_step;  // workers with the same number of steps have the same weights
    int64_t alone;    // it ran apart from the others
    int64_t parts;    // it has parts of a state that no worker has as a whole
    auto rank() const { return std::tuple(begun, step, -ended); }
  };
  const bool begun = state.generation >= 0;
  const Place own = {
      begun,         begun && state.generation != state.cluster.membership().generation,
      state.step,    state.step % steps_per_epoch == 0 && state.epoch.samples == 0,
      state.in_step, begun && state.alone,
      has_copies};
  std::vector<Place> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "finished steps"});
  if (std::any_of(all.begin(), all.end(), [](const Place& p) { return p.parts != 0; }))
    return {.in_parts = true};
  if (std::none_of(all.begin(), all.end(), [](const Place& p) { return p.regrouped != 0; }))
    return {.rank0_current = true, .is_fresh = true};
  const auto by_rank = [](const Place& a, const Place& b) { return a.rank() < b.rank(); };
  const auto root = std::max_element(all.begin(), all.end(), by_rank);
  // Where workers run apart, those that have begun continue from their own step.
  const auto has_it = [&](const Place& p) {
    return root->alone ? p.alone != 0 : p.in_step && p.begun && p.step == root->step;
  };
  StateSource source = {.rank = static_cast<int>(root - all.begin()),
                        .self_current = has_it(own),
                        .rank0_current = root == all.begin() || has_it(all.front()),
                        .all_current = std::all_of(all.begin(), all.end(), has_it),
                        .continues_apart = root->alone && own.alone};
  // A worker that is one step behind has lanes and gets the state at once.
  if (!source.all_current &&
      std::all_of(all.begin(), all.end(), [&](const Place& p) { return has_it(p) || !p.begun; }))
    for (const Place& place : all) source.newcomers.push_back(!place.begun);
  return source;
}

void check_first_worker(const TrainerState& state, const comm::control::Participant& first) {
  const auto& members = state.cluster.membership().members;
  if (state.generation >= 0 || members.empty() || members[0].number == first.number) return;
  require(first.number >= 0, ErrorKind::cancelled,
          "the other workers ended before sending their state to this one; resume the run from its "
          "last checkpoint with --resume");
  throw NotBegun(
      ErrorKind::cancelled,
      fmt::format("{} ended before the first step and before the others had received its state",
                  worker_name(first)));
}

void continue_after_own_step(TrainerState& state, const std::string& strategy,
                             int64_t steps_per_epoch, int64_t batch_size) {
  const auto kept = state.kept.find(strategy);
  if (kept == state.kept.end()) return;
  const std::optional<OwnSteps> steps = own_steps(kept->second);
  if (!steps || steps->step != state.step) return;  // another strategy was used since
  const bool differ =
      std::ranges::any_of(steps->finished, [&](auto& each) { return each.second != state.step; });
  if (differ && std::ssize(steps->finished) != state.cluster.size() && state.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: {} workers had finished different numbers of steps when the run was saved, and "
        "it continues with {}: some steps are repeated or skipped",
        state.step, steps->finished.size(), state.cluster.size());
  const auto own = steps->finished.find(state.cluster.membership().number_of(state.cluster.rank()));
  if (own == steps->finished.end() || own->second == state.step) return;
  state.extra_updates += state.step - own->second;
  state.step = own->second;
  state.position = {state.step / steps_per_epoch, state.step % steps_per_epoch * batch_size};
  state.epoch = {};
}

}  // namespace artel
