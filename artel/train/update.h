// The update: from the sums of all lanes to new parameters and states, bucket by bucket, and what
// the optimizer remembers between steps.
//
// Only parameters that are trained have optimizer memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "artel/exec/parameters.h"
#include "artel/optim/optimizer.h"
#include "artel/tensor/named_tensor.h"
#include "artel/train/summed_region.h"

namespace artel {

class Update {
 public:
  // `parameters` and `pool` are borrowed. `trained` says which parameters are; absent: all.
  Update(const optim::OptimizerConfig& config, Parameters& parameters, ThreadPool& pool,
         const std::function<bool(const std::string&)>& trained);

  // Before the first update: what the sums are of. Names are looked up here, once.
  void bind(const SummedRegion& region);

  // A part of the region with what it moves.
  struct Target : SummedRegion::Part {
    bool decays = true;                         // of a parameter
    std::span<float> values = {};               // in the layout of the region
    std::vector<std::span<float>> memory = {};  // the optimizer's, of a parameter
  };
  const std::vector<Target>& targets() const { return targets_; }

  struct Options {
    int64_t step = 0;
    float learning_rate = 0;
    float gradient_scale = 1;
    int lanes = 1;  // that were summed
  };
  // `total` is the region summed over lanes.
  void apply(const Bucket& bucket, const std::byte* total, const Options& options);

  bool clips() const { return config_.clip_norm > 0; }
  // What clipping the norm of the whole gradient, `scale` times the sum, multiplies it by.
  float clip_scale(const std::byte* total, float scale = 1);
  // The same where the squares of the sum, added up parameter by parameter, are known.
  float clip_scale(double squares, float scale = 1) const;

  // What the optimizer remembers, one row-major tensor for each slot and trained parameter, for
  // checkpoints; and as raw memory, one block for each slot.
  NamedTensors state() const;
  // Parameters of which there is nothing, because they were frozen, begin with zeros.
  void set_state(const NamedTensors& state);
  std::vector<std::span<float>> memory();

 private:
  // A trained parameter and its place in each block of memory.
  struct Place {
    ParameterEntry entry;
    size_t offset = 0;  // floats
  };
  std::byte* at(size_t slot, const Place& place) const;
  std::string name_of(size_t slot, const Place& place) const;

  optim::OptimizerConfig config_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Parameters& parameters_;
  ThreadPool& pool_;
  std::vector<Place> places_;
  size_t floats_ = 0;
  std::vector<std::shared_ptr<std::byte>> memory_;  // by slot of the optimizer
  std::vector<Target> targets_;
};

}  // namespace artel
