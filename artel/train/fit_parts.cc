// What workers do when a group has broken in which each had only a part of the state: they put it
// together from copies, and divide it anew.
#include <algorithm>
#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/train/divided_state.h"
#include "artel/train/fit_loop.h"

namespace artel {
namespace {

// Of a tensor by its name in checkpoints: a parameter, or what the optimizer remembers of one.
size_t elements_of(const Parameters& parameters, const std::string& name) {
  const std::string parameter = parameters.contains(name) ? name : name.substr(name.find('/') + 1);
  return static_cast<size_t>(parameters.entry(parameter).shape.elements());
}

// All that copies have of a step, by the name of the tensor.
using RangesByName = std::map<std::string, std::vector<const CopiedRange*>>;
RangesByName ranges_after(int64_t step, const std::vector<const StateCopy*>& copies) {
  RangesByName ranges;
  for (const StateCopy* copy : copies)
    if (copy->step == step)
      for (const CopiedRange& range : copy->ranges) ranges[range.name].push_back(&range);
  return ranges;
}

std::span<const float> find_range(const RangesByName& ranges, const Restoration::Source& wanted) {
  if (const auto found = ranges.find(wanted.name); found != ranges.end())
    for (const CopiedRange* range : found->second)
      if (range->first <= wanted.first &&
          wanted.first + wanted.count <= range->first + range->values.size())
        return std::span(range->values).subspan(wanted.first - range->first, wanted.count);
  fail(ErrorKind::internal, "[mirrors] there is no copy of '{}'", wanted.name);
}

}  // namespace

// Before this worker's part is divided anew: as it is now it may be newer than all copies.
void FitLoop::keep_parts() {
  mirrors_.end();
  restoration_.reset();
  if (!strategy_ || !divides_ || s_.generation < 0) return;
  const int64_t step = strategy_->updated_step();
  if (step < 0) return;
  // If the group broke after the update, the others know what else belongs to the step.
  mirrors_.add_own(step, step == s_.step ? s_.state_text() : "", strategy_->updated_parts());
}

// Finds the newest step of which the workers together have everything. Returns the text of it.
std::string FitLoop::find_parts(comm::Group* group) {
  const std::vector<const StateCopy*> own = mirrors_.copies();
  std::vector<std::string> all = {inventory_text(own)};
  if (group) all = gather_text(*group, all.front());
  std::string plan;
  if (s_.cluster.rank() == 0) {
    std::vector<Inventory> workers;
    for (const std::string& text : all) workers.push_back(inventory_in(text));
    plan = to_text(plan_restoration(
        workers, [this](const std::string& name) { return elements_of(s_.parameters, name); }));
  }
  restoration_ = restoration_in(group ? broadcast_text(*group, plan) : plan);
  require(restoration_->step >= 0, ErrorKind::cancelled,
          "a part of the network is lost: whoever had it and whoever had a copy of it are gone, or "
          "it was not copied yet; resume from the last checkpoint");
  std::string text;
  for (const StateCopy* copy : own)
    if (copy->step == restoration_->step && !copy->text.empty()) text = copy->text;
  return group ? broadcast_text(*group, text, restoration_->text_from) : text;
}

// What going back to a copy costs.
void FitLoop::tell_repeated(int64_t steps) {
  if (steps <= 0) return;
  if (s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "what only the lost worker kept is there as it was after step {}: {} repeated", s_.step,
        steps == 1 ? "1 step is" : fmt::format("{} steps are", steps));
  if (!result_.changes.empty()) result_.changes.back().repeated = steps;
}

// Each worker gets what it keeps from now on, from those who have copies of it.
void FitLoop::put_together(comm::Group* group, DividedState* divided) {
  std::map<std::string, std::span<float>> memory;
  for (const ParameterEntry& entry : s_.parameters.entries())
    memory[entry.name] = s_.parameters.values(entry);
  for (const auto& [name, entry, values] : workload_->stepper()->update().remembered())
    memory[name] = values;
  const RangesByName copies = ranges_after(restoration_->step, mirrors_.copies());
  constexpr size_t kFloats = kPieceBytes / sizeof(float);
  const int rank = s_.cluster.rank();
  std::set<std::string> changing;
  std::vector<float> piece;
  for (const Restoration::Source& source : restoration_->sources) {
    changing.insert(source.name);
    std::span<const float> own;
    if (source.worker == rank) own = find_range(copies, source);
    for (size_t at = 0; at < source.count; at += kFloats) {
      piece.resize(std::min(kFloats, source.count - at));
      if (source.worker == rank)
        std::copy_n(own.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), piece.begin());
      if (group)
        group->broadcast(std::as_writable_bytes(std::span(piece)), source.worker,
                         {.label = "parts of the state"});
      if (divided && divided->take(source.name, source.first + at, piece)) continue;
      std::copy(piece.begin(), piece.end(),
                memory.at(source.name).subspan(source.first + at).begin());
    }
  }
  // All had the rest from the beginning, except newcomers.
  for (const ParameterEntry& entry : s_.parameters.entries())
    if (group && !changing.contains(entry.name))
      group->broadcast(std::as_writable_bytes(s_.parameters.values(entry)), restoration_->text_from,
                       {.label = "parameters"});
  if (divided) divided->forget_others();
  s_.first_values.drop();
  s_.pending_optimizer.clear();
}

}  // namespace artel
