#include "artel/train/step/lane_sums.h"

#include "artel/base/pages.h"
#include "artel/exec/sums.h"

namespace artel {

void LaneSums::clear() {
  for (auto& [first, sum] : sums_) spare_.push_back(std::move(sum.memory));
  sums_.clear();
}

void LaneSums::release_memory() {
  clear();
  for (const Memory& memory : spare_) forget(memory.host());
}

Memory LaneSums::take() {
  if (spare_.empty()) return allocate_();
  Memory memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void LaneSums::add(int lane, Memory memory, ThreadPool& pool) {
  auto now = sums_.emplace(lane, Sum{{lane, lane + 1}, std::move(memory)}).first;
  while (true) {
    const auto next = std::next(now);
    const bool has_left = now != sums_.begin();
    if (has_left && comm::are_halves(lanes_, std::prev(now)->second.lanes, now->second.lanes))
      --now;
    else if (next == sums_.end() ||
             !comm::are_halves(lanes_, now->second.lanes, next->second.lanes))
      return;
    const auto right = std::next(now);
    add_into(pool, right->second.memory, now->second.memory);
    now->second.lanes.last = right->second.lanes.last;
    spare_.push_back(std::move(right->second.memory));
    sums_.erase(right);
  }
}

std::vector<Memory> LaneSums::partials() const {
  std::vector<Memory> result;
  for (const auto& [first, sum] : sums_) result.push_back(sum.memory);
  return result;
}

}  // namespace artel
