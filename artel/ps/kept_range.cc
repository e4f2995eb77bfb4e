#include "artel/ps/kept_range.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::ps {
namespace {

using Json = nlohmann::json;

}  // namespace

KeptRange::KeptRange(const Setup& setup, const UserRules& rules, const Shard::Allocate& allocate)
    : setup_(setup),
      shard_(std::make_unique<Shard>(setup, make_rule(setup.rule, rules), allocate)),
      updates_(setup.updates) {}

void KeptRange::move_to(const UserRules& rules, const Shard::Allocate& allocate) {
  auto next = std::make_unique<Shard>(setup_, make_rule(setup_.rule, rules), allocate);
  const KeyRange all = shard_->keys();
  std::ranges::copy(shard_->values(all), next->values(all).begin());
  for (int state = 0; state < shard_->states(); ++state)
    std::ranges::copy(shard_->state(state, all), next->state(state, all).begin());
  shard_ = std::move(next);
}

void KeptRange::make(const Change& change, const KeyRange& part, std::span<const float> values) {
  switch (change.kind) {
    case Change::Kind::assign:
      std::ranges::copy(
          values,
          (change.state < 0 ? shard_->values(part) : shard_->state(change.state, part)).begin());
      break;
    case Change::Kind::update:
      shard_->apply(part, values, change.step, change.lanes, change.own);
      break;
    case Change::Kind::add_to_state: {
      const std::span<float> state = shard_->state(0, part);
      for (size_t i = 0; i < values.size(); ++i) state[i] += values[i];
      break;
    }
  }
}

void KeptRange::note(const Change& change, std::string squares) {
  ++changes_;
  if (change.kind == Change::Kind::assign) return;
  begun_ = true;
  made_[{change.worker, change.keys.first, change.keys.last}] = {change.iteration,
                                                                 std::move(squares)};
  if (change.kind != Change::Kind::update || change.keys.empty()) return;
  updates_ = std::max(updates_, change.step.number);
  updated_[change.worker] = {change.iteration, change.step.number};
}

int64_t KeptRange::update_number(int worker, int64_t iteration) const {
  const auto last = updated_.find(worker);
  return last != updated_.end() && last->second.iteration == iteration ? last->second.number
                                                                       : updates_ + 1;
}

const std::string* KeptRange::find(int worker, const KeyRange& keys, int64_t iteration) const {
  const auto found = made_.find({worker, keys.first, keys.last});
  return found != made_.end() && found->second.iteration >= iteration ? &found->second.squares
                                                                      : nullptr;
}

int64_t KeptRange::latest() const {
  int64_t latest = 0;
  for (const auto& [key, each] : made_) latest = std::max(latest, each.iteration);
  return latest;
}

std::string KeptRange::log_text() const {
  Json made = Json::array();
  for (const auto& [key, each] : made_)
    made.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), each.iteration, each.squares});
  Json updated = Json::array();
  for (const auto& [worker, each] : updated_)
    updated.push_back({worker, each.iteration, each.number});
  Json counts = Json::array();
  for (const auto& [updates, count] : staleness) counts.push_back({updates, count});
  return Json({{"changes", changes_},
               {"updates", updates_},
               {"updated", updated},
               {"begun", begun_},
               {"pushes", pushes},
               {"staleness", counts},
               {"made", made}})
      .dump();
}

void KeptRange::restore_log(std::string_view text) {
  try {
    const Json json = parse_json(text, "ps range");
    changes_ = json.at("changes");
    updates_ = json.at("updates");
    updated_.clear();
    for (const Json& item : json.at("updated")) updated_[item.at(0)] = {item.at(1), item.at(2)};
    begun_ = json.at("begun");
    pushes = json.at("pushes");
    staleness.clear();
    for (const Json& item : json.at("staleness")) staleness[item.at(0)] = item.at(1);
    made_.clear();
    for (const Json& item : json.at("made"))
      made_[{item.at(0), item.at(1), item.at(2)}] = {item.at(3), item.at(4)};
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[ps] range: not readable: {}", error.what());
  }
}

}  // namespace artel::ps
