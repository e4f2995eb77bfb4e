// Recovery of divided state from mirrors (train/parts/mirrors.h): selects the step, and the worker
// that provides each element. Pure functions and their messages. Internal to train.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artel/train/parts/mirrors.h"

namespace artel {

// The copies that a worker holds.
struct Inventory {
  struct Entry {
    int64_t step = 0;
    bool has_text = false;
    size_t first = 0, count = 0;
    std::string name;
  };
  std::vector<Entry> entries;
};
// One line per range.
std::string inventory_text(const std::vector<const StateCopy*>& copies);
Inventory inventory_in(const std::string& text);

struct Restoration {
  struct Source {
    int worker = 0;
    size_t first = 0, count = 0;
    std::string name;
  };
  int64_t step = -1;  // -1 if no step is complete
  int text_from = 0;  // a worker that has the text of that step
  std::vector<Source> sources = {};
};
std::string to_text(const Restoration& restoration);
Restoration restoration_in(const std::string& text);

// The newest step for which the workers together have all elements of all known tensors, and at
// least one has its text.
Restoration plan_restoration(const std::vector<Inventory>& workers,
                             const std::function<size_t(const std::string& name)>& elements);

}  // namespace artel
