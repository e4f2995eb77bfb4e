#include "artel/ps/cut.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"

namespace artel::ps {

void Frozen::merge(const Frozen& other) {
  updates = std::max(updates, other.updates);
  finished.resize(std::max(finished.size(), other.finished.size()), kLost);
  for (size_t i = 0; i < other.finished.size(); ++i)
    finished[i] = std::max(finished[i], other.finished[i]);
  shares.insert(other.shares.begin(), other.shares.end());
}

std::string to_text(const Frozen& frozen) {
  return nlohmann::json({{"updates", frozen.updates},
                         {"finished", frozen.finished},
                         {"shares", frozen.shares}})
      .dump();
}

Frozen frozen_from_text(std::string_view text) {
  try {
    const nlohmann::json json = parse_json(text, "ps cut");
    return {json.at("updates"), json.at("finished"),
            json.at("shares").get<std::map<int64_t, std::vector<int>>>()};
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[ps] cut: not readable: {}", error.what());
  }
}

void Cut::contribute(int worker, int64_t iteration) {
  int64_t& begun = begun_[static_cast<size_t>(worker)];
  begun = std::max(begun, iteration);
}

bool Cut::admits(int worker, int64_t iteration) const {
  return !cut_ || iteration <= (*cut_)[static_cast<size_t>(worker)];
}

void Cut::set(std::span<const int64_t> least) {
  require(least.empty() || least.size() == begun_.size(), ErrorKind::invalid_argument,
          "[ps] freeze: got iterations of {} workers, expected {}", least.size(), begun_.size());
  if (!cut_) cut_ = begun_;
  for (size_t i = 0; i < least.size(); ++i) (*cut_)[i] = std::max((*cut_)[i], least[i]);
}

bool Cut::reached(const DelayClock& clock) const {
  for (size_t i = 0; i < iterations().size(); ++i) {
    const auto worker = static_cast<int>(i);
    if (clock.present(worker) && clock.finished(worker) < iterations()[i]) return false;
  }
  return true;
}

}  // namespace artel::ps
