// Collects the test samples with the most confident wrong answers. Internal to train.
#pragma once

#include "artel/comm/group.h"
#include "artel/data/loader.h"
#include "artel/train/trainer.h"

namespace artel {

class MistakeCollector {
 public:
  // For samples with one class each. `most` >= 0 is the number to keep.
  MistakeCollector(int64_t most, const data::SampleLayout& layout);

  bool wants_any() const { return most_ > 0; }
  // Takes the network's scores for a batch: [samples, classes], or [samples, 1] for class 1 against
  // class 0. Ignores other shapes.
  void add(const data::Batch& batch, const Tensor& scores);

  // The mistakes of all workers, most certain first; ties in the order of samples. Collective in
  // `group`; null for this worker alone.
  std::vector<Mistake> gather(comm::Group* group) const;

 private:
  size_t most_;
  std::vector<Mistake> mistakes_;  // most certain first
};

}  // namespace artel
