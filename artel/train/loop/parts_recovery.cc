#include "artel/train/loop/parts_recovery.h"

#include <algorithm>
#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/parts/divided_state.h"

namespace artel {
namespace {

// Elements of a tensor by its checkpoint name: a parameter or its optimizer state.
size_t elements_of(const Parameters& parameters, const std::string& name) {
  const std::string parameter = parameters.contains(name) ? name : name.substr(name.find('/') + 1);
  return static_cast<size_t>(parameters.entry(parameter).shape.elements());
}

// All copied ranges of a step, by tensor name.
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
  fail(ErrorKind::internal, "[mirrors] no copy of '{}'", wanted.name);
}

}  // namespace

void PartsRecovery::forget() {
  mirrors_.end();
  mirrors_.keep_only(-1);
}

void PartsRecovery::end_membership() {
  mirrors_.end();
  restoration_.reset();
}

void PartsRecovery::keep_own(Strategy& strategy) {
  const int64_t step = strategy.divided()->updated_step();
  if (step < 0) return;
  // If the group broke after the update, the others have the text that belongs to the step.
  mirrors_.add_own(step, step == s_.step ? s_.state_text() : "",
                   strategy.divided()->updated_parts());
}

void PartsRecovery::end(bool divided) {
  mirrors_.keep_only(restoration_ && divided ? restoration_->step : -1);
  restoration_.reset();
}

std::string PartsRecovery::select_state(comm::Group* group) {
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
          "cannot recover a part of the network: its worker and the worker with its copy are gone, "
          "or it "
          "was not copied yet; resume from the last checkpoint");
  std::string text;
  for (const StateCopy* copy : own)
    if (copy->step == restoration_->step && !copy->text.empty()) text = copy->text;
  return group ? broadcast_text(*group, text, restoration_->text_from) : text;
}

void PartsRecovery::assemble(comm::Group* group, DividedStateTransfer* divided, Update& update) {
  std::map<std::string, std::span<float>> memory;
  for (const ParameterEntry& entry : s_.parameters.entries())
    memory[entry.name] = s_.parameters.values(entry);
  for (const auto& [name, entry, values] : update.remembered()) memory[name] = values;
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
  // All workers except newcomers have had the other tensors from the beginning.
  for (const ParameterEntry& entry : s_.parameters.entries())
    if (group && !changing.contains(entry.name))
      group->broadcast(std::as_writable_bytes(s_.parameters.values(entry)), restoration_->text_from,
                       {.label = "parameters"});
  if (divided) divided->forget_others();
  s_.first_values.drop();
  s_.pending_optimizer.clear();
}

}  // namespace artel
