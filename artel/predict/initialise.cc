#include "artel/predict/initialise.h"

#include <algorithm>
#include <vector>

namespace artel {

void initialise(ThreadPool& pool, uint64_t seed,
                const std::map<std::string, nn::Initialiser>& initialisers,
                Parameters& parameters) {
  std::vector<const ParameterEntry*> order;
  for (const ParameterEntry& entry : parameters.entries())
    if (initialisers.contains(entry.name)) order.push_back(&entry);
  // Largest first, to balance the threads.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->shape.elements() > b->shape.elements();
  });
  pool.run(static_cast<int64_t>(order.size()), [&](int64_t i) {
    const ParameterEntry& entry = *order[static_cast<size_t>(i)];
    const nn::Initialiser& initialiser = initialisers.at(entry.name);
    if (same_memory(entry.shape, entry.layout, Layout::row_major())) {
      nn::initialise(seed, entry.name, entry.shape, initialiser, parameters.values(entry));
      return;
    }
    Tensor value(entry.shape);
    nn::initialise(seed, entry.name, entry.shape, initialiser, value.values<float>());
    parameters.set(entry.name, value);
  });
}

}  // namespace artel
