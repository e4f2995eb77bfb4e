// How workers who are left put together the state of a run from copies that they have of its parts
// (train/mirrors.h): which step, and who gives which elements of what. Pure functions, and texts to
// send. Internal to train.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artel/train/mirrors.h"

namespace artel {

// What a worker has.
struct Inventory {
  struct Entry {
    int64_t step = 0;
    bool has_text = false;
    size_t first = 0, count = 0;
    std::string name;
  };
  std::vector<Entry> entries;
};
// A line for each range.
std::string inventory_text(const std::vector<const StateCopy*>& copies);
Inventory inventory_in(const std::string& text);

struct Restoration {
  struct Source {
    int worker = 0;
    size_t first = 0, count = 0;
    std::string name;
  };
  int64_t step = -1;  // -1: of no step is everything there
  int text_from = 0;  // a worker that knows the text of that step
  std::vector<Source> sources = {};
};
std::string to_text(const Restoration& restoration);
Restoration restoration_in(const std::string& text);

// The newest step of which the workers together have all elements of all tensors that any of them
// names, and one its text.
Restoration plan_restoration(const std::vector<Inventory>& workers,
                             const std::function<size_t(const std::string& name)>& elements);

}  // namespace artel
