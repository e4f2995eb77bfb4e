// The update: from the sums of all lanes to new parameters and states, bucket by bucket, and what
// the optimizer remembers between steps.
//
// Only parameters that are trained have optimizer memory.
//
//   // In a strategy: applies all sums of a step.
//   const auto apply = [](artel::Stepper& stepper, const artel::Memory& sums) {
//     stepper.update().apply(sums, {.step = 1, .learning_rate = 0.1f});
//   };
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
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
    int lanes = 1;  // how many were summed
  };
  // `total` is the region summed over lanes.
  void apply(const Memory& total, const Options& options);

  // The same for some elements of a target, in the two halves of optim::Optimizer. States have no
  // norms. In between, the norms of all targets become those of the parameters of which they are
  // shards: here, or, where other workers have other shards, by what was set.
  optim::Optimizer::Scope scope() const { return optimizer_->scope(); }
  using NormExchange = std::function<void(std::vector<optim::Norms>& of_targets)>;
  void set_norm_exchange(NormExchange exchange) { norm_exchange_ = std::move(exchange); }
  void make_whole(std::vector<optim::Norms>& of_targets) const;
  std::vector<optim::Norms> begin(const Slice& slice, const Memory& total, const Options& options);
  void finish(const Slice& slice, const Memory& total, const Options& options,
              const optim::Norms& norms);
  // The terms of the sum of squares of its gradient, chunk by chunk (optim/clipping.h); none for
  // states.
  std::vector<double> squares(const Slice& slice, const Memory& total);

  bool clips() const { return config_.clip_norm > 0; }
  // The sum of the squares of each gradient, in the order of the targets; 0 for states.
  std::vector<double> squares(const Memory& total);
  // The norm of the whole gradient, `scale` times the sum, whose squares, added up parameter by
  // parameter, are given. It is kept until it is taken.
  double measure_norm(double squares, float scale = 1);
  std::optional<double> take_norm() { return std::exchange(norm_, std::nullopt); }
  // Measures the norm, and returns the factor by which clipping scales the gradient.
  float clip_scale(double squares, float scale = 1);
  float clip_scale(const Memory& total, float scale = 1);

  // What the optimizer remembers: one tensor for each slot and trained parameter, under the name
  // that it has in checkpoints, in the layout of the parameter.
  struct Remembered {
    std::string name;
    const ParameterEntry& parameter;
    std::span<float> values;
  };
  std::vector<Remembered> remembered() const;
  // The same row-major, for checkpoints: piece by piece as it is now, or copied. And as raw memory,
  // one block for each slot.
  std::vector<TensorSource> sources() const;
  NamedTensors state() const;
  // Parameters that are missing in it, because they were frozen, start with zeros. Tensors are
  // dropped as they are used.
  void set_state(NamedTensors state);
  std::vector<std::span<float>> memory();
  // The same of one parameter; none if it is not trained.
  std::vector<std::span<float>> memory_of(const std::string& parameter);

  // A trained parameter and its average; none if weights are not averaged.
  struct Averaged {
    const std::string& name;
    std::span<float> weights, average;
  };
  std::vector<Averaged> averages();

 private:
  // A trained parameter and its place in each block of memory.
  struct Place {
    ParameterEntry entry;
    size_t offset = 0;  // floats
  };
  // A slice of a target with the part of the region that moves it, ready for the optimizer.
  struct Moved {
    const Target& target;
    std::span<float> values;
    std::span<const float> sums;
    std::vector<std::span<float>> memory;
    optim::ParameterInfo info;
  };
  Moved moved(const Slice& slice, const Memory& total) const;
  static optim::Optimizer::Part part_of(const Moved& moved, const Options& options);

  std::span<float> at(size_t slot, const Place& place) const;

  optim::OptimizerConfig config_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Parameters& parameters_;
  ThreadPool& pool_;
  std::vector<Place> places_;
  std::map<std::string, size_t> place_of_;  // by the name of a parameter
  size_t floats_ = 0;
  std::vector<Memory> memory_;  // by slot of the optimizer
  std::vector<Target> targets_;
  NormExchange norm_exchange_;
  std::optional<double> norm_;
};

// Each shard gets the sum of the norms of all shards of its parameter, in their order.
template <typename Part>
void add_over_shards(const std::vector<Part>& parts, std::vector<optim::Norms>& norms) {
  std::map<std::string_view, std::map<int, optim::Norms>> shards;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].shard >= 0) shards[parts[i].whole][parts[i].shard] = norms[i];
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].shard < 0) continue;
    norms[i] = {};
    for (const auto& [shard, term] : shards[parts[i].whole]) norms[i] += term;
  }
}

}  // namespace artel
