// The update: applies the sums of all lanes to parameters and states, bucket by bucket. Owns the
// optimizer state.
//
// Only trained parameters have optimizer state.
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
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "artel/exec/parameters.h"
#include "artel/optim/optimizer.h"
#include "artel/tensor/named_tensor.h"
#include "artel/train/step/summed_region.h"

namespace artel {

class Update {
 public:
  // Borrows `parameters` and `pool`. `trained` selects the trained parameters; null means all.
  Update(const optim::OptimizerConfig& config, Parameters& parameters, ThreadPool& pool,
         const std::function<bool(const std::string&)>& trained);

  // Sets the region of the sums. Call before the first update.
  void bind(const SummedRegion& region);
  // Elements of these parameters that are zero stay zero. Call before `bind`.
  void keep_zeros(const std::vector<std::string>& parameters) {
    keep_zeros_ = {parameters.begin(), parameters.end()};
  }

  // A part of the region with the parameter or state that it updates.
  struct Target : SummedRegion::Part {
    bool decays = true;  // parameters only
    bool keeps_zeros = false;
    std::span<float> values = {};               // in the layout of the region
    std::vector<std::span<float>> memory = {};  // optimizer state of a parameter
  };
  const std::vector<Target>& targets() const { return targets_; }

  struct Options {
    int64_t step = 0;
    float learning_rate = 0;
    float gradient_scale = 1;
    int lanes = 1;  // number of summed lanes
  };
  // `total` is the region summed over lanes.
  void apply(const Memory& total, const Options& options);

  // The same for some elements of a target, in the two halves of optim::Optimizer. States have no
  // norms. In between, the norms of all targets become the norms of the parameters that they are
  // shards of: here, or by a function set for shards on other workers.
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
  // The norm of the whole gradient, `scale` times the sum, given its sum of squares. Stored until
  // it is taken.
  double measure_norm(double squares, float scale = 1);
  std::optional<double> take_norm() { return std::exchange(norm_, std::nullopt); }
  // Measures the norm, and returns the factor by which clipping scales the gradient.
  float clip_scale(double squares, float scale = 1);
  float clip_scale(const Memory& total, float scale = 1);

  // Optimizer state: one tensor per slot and trained parameter, with its name in checkpoints and
  // the layout of the parameter.
  struct Remembered {
    std::string name;
    const ParameterEntry& parameter;
    std::span<float> values;
  };
  std::vector<Remembered> remembered() const;
  // The optimizer state in row-major order for checkpoints: as sources that read the present state,
  // as copies, or as raw memory with one block per slot.
  std::vector<TensorSource> sources() const;
  NamedTensors state() const;
  // Parameters missing from `state`, because they were frozen, start with zeros. Tensors are
  // released after use.
  void set_state(NamedTensors state);
  std::vector<std::span<float>> memory();
  // The optimizer state of one parameter; empty if it is not trained.
  std::vector<std::span<float>> memory_of(const std::string& parameter);

  // A trained parameter and its average; empty if weights are not averaged.
  struct Averaged {
    const std::string& name;
    std::span<float> weights, average;
  };
  std::vector<Averaged> averages();

 private:
  // A trained parameter and its offset in each block of memory.
  struct Place {
    ParameterEntry entry;
    size_t offset = 0;  // floats
  };
  // A slice of a target with its part of the region, ready for the optimizer.
  struct Moved {
    const Target& target;
    std::span<float> values;
    std::span<const float> sums;
    std::vector<std::span<float>> memory;
    optim::ParameterInfo info;
  };
  Moved moved(const Slice& slice, const Memory& total) const;
  bool touches_rows(const Target& target) const;
  void apply_to_rows(size_t target, const Memory& total, const Options& options);
  static optim::Optimizer::Part part_of(const Moved& moved, const Options& options);

  std::span<float> at(size_t slot, const Place& place) const;

  optim::OptimizerConfig config_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Parameters& parameters_;
  ThreadPool& pool_;
  std::vector<Place> places_;
  std::map<std::string, size_t> place_of_;  // by the name of a parameter
  size_t floats_ = 0;
  std::set<std::string> keep_zeros_;
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
