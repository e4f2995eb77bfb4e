// Weights and optimizer memory of which each worker keeps only a part: how they are saved and
// handed out, though nobody ever has all of them.
//
// Worker 0 writes a checkpoint tensor by tensor, as one worker would, so its bytes do not depend on
// who keeps what. What others keep it asks for, and gets in pieces of a few MiB, on a group of its
// own: so it can do so while the workers compute.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/exec/layout.h"
#include "artel/train/update.h"

namespace artel {

// Elements of a tensor, as they lie in memory.
struct KeptRange {
  size_t first = 0, count = 0;
};

// A tensor of which a worker keeps some elements.
struct DividedPart {
  std::string name;  // in checkpoints
  Shape shape;
  Layout layout;
  std::span<float> values;      // all of it; what this worker does not keep is only address space
  std::vector<KeptRange> kept;  // by this worker, in order
  bool is_weight = false;       // else what the optimizer remembers
};

class DividedState {
 public:
  using Range = KeptRange;
  using Part = DividedPart;
  // All workers name the same tensors in the same order, and each element is kept by at least one;
  // where several keep it, it is the same. A collective call.
  DividedState(comm::Group& group, std::vector<Part> parts);

  // On worker 0: sources that also give what others keep. They are used one after another, while
  // the others serve.
  void complete(std::vector<TensorSource>& sources);
  // On the others: gives worker 0 what it asks for, until it needs nothing more.
  void serve();
  // On worker 0: it needs nothing more. Never throws.
  void release();

  // Whether the parameter or state of this name lies in parts.
  bool divides(const std::string& name) const;
  // A collective call: each worker gets what it keeps. `values` gives all values of a part on
  // worker 0, valid until it is called again; or none if each worker makes its own, which `make`
  // does.
  void hand_out(const std::function<std::span<const float>(const Part&)>& values,
                const std::function<void(const Part&)>& make);
  // The same one by one, whoever has the values: of some elements of a tensor, this worker takes
  // those that it keeps; false: it does not lie in parts. After the last, `forget_others`.
  bool take(const std::string& name, size_t first, std::span<const float> values);
  void forget_others();
  // A collective call: worker 0 gets all that the optimizer remembers.
  void gather_optimizer();
  // Gives back the memory of weights that only others keep.
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
  // On worker 0, of each part: who has to get it; and who gives each element, in order.
  std::vector<std::vector<Holder>> holders_, givers_;
};

// What this worker keeps of each tensor that is divided, by the name of the parameter or state: all
// workers have the same names.
using KeptRanges = std::map<std::string, std::vector<DividedState::Range>>;
// With the ranges of each in order.
KeptRanges in_order(KeptRanges ranges);
// The parts of the values themselves, and of what the optimizer remembers of them.
std::vector<DividedState::Part> divided_parts(Parameters& parameters, Update& update,
                                              const KeptRanges& weights,
                                              const KeptRanges& optimizer);

}  // namespace artel
