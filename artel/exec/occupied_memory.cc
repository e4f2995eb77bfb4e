#include "artel/exec/occupied_memory.h"

#include <algorithm>

namespace artel {

OccupiedMemory::OccupiedMemory(int times) {
  while (times_ < times) times_ *= 2;
  parts_.resize(2 * static_cast<size_t>(times_));
}

void OccupiedMemory::add(Runs& runs, Run run) {
  const auto first = std::partition_point(runs.begin(), runs.end(),
                                          [&](const Run& r) { return r.end < run.begin; });
  auto last = first;
  for (; last != runs.end() && last->begin <= run.end; ++last) {
    run.begin = std::min(run.begin, last->begin);
    run.end = std::max(run.end, last->end);
  }
  if (first == last) {
    runs.insert(first, run);
  } else {
    *first = run;
    runs.erase(first + 1, last);
  }
}

void OccupiedMemory::take(int first, int last, size_t begin, size_t end) {
  if (begin < end) take(1, 0, times_, first, last, {begin, end});
}

void OccupiedMemory::take(size_t part, int begin, int end, int first, int last, Run run) {
  if (end <= first || last < begin) return;
  add(parts_[part].sometimes, run);
  if (first <= begin && end - 1 <= last) {
    add(parts_[part].always, run);
    return;
  }
  const int middle = (begin + end) / 2;
  take(2 * part, begin, middle, first, last, run);
  take(2 * part + 1, middle, end, first, last, run);
}

// Memory is occupied in [first, last] if it is marked in a part of the interval, or in an enclosing
// interval as a whole.
void OccupiedMemory::collect(size_t part, int begin, int end, int first, int last,
                             std::vector<const Runs*>& taken) const {
  if (end <= first || last < begin) return;
  const bool inside = first <= begin && end - 1 <= last;
  const Runs& runs = inside ? parts_[part].sometimes : parts_[part].always;
  if (!runs.empty()) taken.push_back(&runs);
  if (inside) return;
  const int middle = (begin + end) / 2;
  collect(2 * part, begin, middle, first, last, taken);
  collect(2 * part + 1, middle, end, first, last, taken);
}

size_t OccupiedMemory::lowest_free(int first, int last, size_t bytes) const {
  if (bytes == 0) return 0;
  std::vector<const Runs*> taken;
  collect(1, 0, times_, first, last, taken);
  size_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Runs* runs : taken) {
      const auto run = std::partition_point(runs->begin(), runs->end(),
                                            [&](const Run& r) { return r.end <= offset; });
      if (run == runs->end() || run->begin >= offset + bytes) continue;
      offset = run->end;
      moved = true;
    }
  }
  return offset;
}

}  // namespace artel
