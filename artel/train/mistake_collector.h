// The samples of a test that a network was most wrong about. Internal to train.
#pragma once

#include "artel/comm/group.h"
#include "artel/data/loader.h"
#include "artel/train/trainer.h"

namespace artel {

class MistakeCollector {
 public:
  // Of samples with one class each; `most` is 0 or more.
  MistakeCollector(int64_t most, const data::SampleLayout& layout);

  bool wants_any() const { return most_ > 0; }
  // The network's scores for the samples of a batch: [samples, classes], or [samples, 1] for class
  // 1 against class 0. Others have no mistakes.
  void add(const data::Batch& batch, const Tensor& scores);

  // The mistakes of all workers, the most certain ones first and of equals those of earlier
  // samples. A collective call of the group; null: this worker alone.
  std::vector<Mistake> gather(comm::Group* group) const;

 private:
  size_t most_;
  std::vector<Mistake> mistakes_;  // in that order
};

}  // namespace artel
