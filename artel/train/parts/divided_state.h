// Saving and distribution of weights and optimizer state that are divided among workers. No worker
// ever holds all of them.
//
// Worker 0 writes a checkpoint tensor by tensor, like a single worker, so its bytes do not depend
// on the division. It requests the parts of other workers in pieces of a few MiB, on a separate
// group, so this can overlap with computation.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/exec/plan/layout.h"
#include "artel/train/step/update.h"

namespace artel {

// A range of elements of a tensor, in memory order.
struct KeptRange {
  size_t first = 0, count = 0;
};

// A tensor of which a worker holds some elements.
struct DividedPart {
  std::string name;  // in checkpoints
  Shape shape;
  Layout layout;
  std::span<float> values;  // the whole tensor; elements of other workers are only address space
  std::vector<KeptRange> kept;  // elements of this worker, in order
  bool is_weight = false;       // false for optimizer state
};

class DividedStateTransfer {
 public:
  using Range = KeptRange;
  using Part = DividedPart;
  // Collective. All workers must pass the same tensors in the same order. Each element is held by
  // at least one worker; copies are equal.
  DividedStateTransfer(comm::Group& group, std::vector<Part> parts);

  // On worker 0: makes the sources also deliver the elements of other workers. Use them one after
  // another, while the others call `serve`.
  void complete(std::vector<TensorSource>& sources);
  // On the other workers: answers worker 0's requests until it calls `release`.
  void serve();
  // On worker 0: ends `serve` on the other workers. Never throws.
  void release();

  // True if the parameter or state of this name is divided.
  bool divides(const std::string& name) const;
  // Collective: distributes the values to the workers that hold them. On worker 0, `values` returns
  // all values of a part, valid until its next call, or none if each worker creates its own by
  // `make`.
  void hand_out(const std::function<std::span<const float>(const Part&)>& values,
                const std::function<void(const Part&)>& make);
  // Takes this worker's elements from a range of a tensor. Returns false if the tensor is not
  // divided. Call `forget_others` after the last range.
  bool take(const std::string& name, size_t first, std::span<const float> values);
  void forget_others();
  // Collective: gathers the optimizer state on worker 0.
  void gather_optimizer();
  // Releases the memory of weights that only other workers hold.
  void forget_weights();

 private:
  struct Holder {
    int worker = 0;
    Range range;
  };
  using Use = std::function<void(std::span<const float> values, size_t first)>;
  // On worker 0: calls `use` for all elements of a part, in order.
  void read(size_t part, const Use& use);
  void ask(size_t part, const Holder& holder, const Use& use);
  void give(size_t part, const TensorSource::Write& write);
  void hand(const Part& part, const Holder& holder, std::span<const float> all);
  void send(const Holder& holder, std::span<const float> all);
  void receive(const Part& part);

  comm::Group group_;
  std::vector<Part> parts_;
  std::map<std::string, size_t> part_of_;  // by name
  // On worker 0, for each part: the workers that receive it, and the workers that provide each
  // element, in order.
  std::vector<std::vector<Holder>> holders_, givers_;
};

// This worker's ranges of each divided tensor, by name of the parameter or state. All workers have
// the same names.
using KeptRanges = std::map<std::string, std::vector<DividedStateTransfer::Range>>;
// Sorts the ranges of each tensor.
KeptRanges in_order(KeptRanges ranges);
// The parts of the parameters and of their optimizer state.
std::vector<DividedStateTransfer::Part> divided_parts(Parameters& parameters, Update& update,
                                                      const KeptRanges& weights,
                                                      const KeptRanges& optimizer);

}  // namespace artel
