// Update rules, which apply a reduced gradient to a parameter.
//
// A rule works in place on raw floats, one parameter at a time. It does not depend on the physical
// layout, and a parameter can be updated as soon as its bucket is reduced. Padding that is zero in
// parameter, gradient, and state stays zero.
//
//   const auto adam = artel::optim::make_optimizer(artel::optim::adam(1e-3));
//   std::vector<float> weights(8, 1.0f), gradient(8, 0.5f), mean(8), square(8);
//   const std::vector<std::span<float>> state = {mean, square};  // adam->slots()
//   artel::ThreadPool pool(1);
//   adam->update(pool, {.name = "dense.weight"}, 1, 1e-3f, 1, weights, gradient, state);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/optim/config.h"
#include "artel/optim/norms.h"
#include "artel/optim/rates.h"
#include "artel/tensor/shape.h"

namespace artel::optim {

struct ParameterInfo {
  std::string name;
  // Applies weight decay, and the norm scaling of LARS and LAMB.
  bool decay = true;
  // Elements that are zero stay zero, as pruned weights do.
  bool keep_zeros = false;
};

// True if weight decay applies to a parameter of this shape. Biases and normalisation parameters,
// which have one axis, are exempt unless the configuration includes them.
bool decays(const OptimizerConfig& config, const Shape& shape);

// The slot of averaged weights.
inline constexpr std::string_view kAverageSlot = "average";

// Stateless and thread safe. The caller owns the state and stores it in checkpoints.
class Optimizer {
 public:
  explicit Optimizer(const OptimizerConfig& config);
  virtual ~Optimizer() = default;

  // The names of the state slots. Each has the size of the parameter and is zero before the first
  // step. They match PyTorch's names for the same rules ("momentum_buffer", "exp_avg", ...). The
  // last is kAverageSlot if weights are averaged.
  std::vector<std::string> slots() const;

  // The data that the update of an element depends on: the element, norms, or the whole parameter.
  enum class Scope { element, norms, parameter };
  virtual Scope scope() const { return Scope::element; }

  // Performs step `step` (from 1) for one parameter. Multiplies the gradient by `gradient_scale`
  // (averaging, clipping by norm) and updates the parameter and its `state`, one span per slot. The
  // result does not depend on the number of threads. Throws if the lengths disagree.
  void update(ThreadPool& pool, const ParameterInfo& info, int64_t step, float learning_rate,
              float gradient_scale, std::span<float> parameter, std::span<const float> gradient,
              std::span<const std::span<float>> state) const;

  // The update in two halves, for a divided parameter (optim/norms.h). The first returns the norm
  // terms of a part by chunk, or none if the rule needs no norms. The second takes their sum over
  // the whole parameter. Not for rules with Scope::parameter.
  struct Part {
    const ParameterInfo& info;
    int64_t step = 0;
    float learning_rate = 0, gradient_scale = 1;
    std::span<float> parameter = {};
    std::span<const float> gradient = {};
    std::span<const std::span<float>> state = {};
  };
  std::vector<Norms> begin(ThreadPool& pool, const Part& part) const;
  void finish(ThreadPool& pool, const Part& part, const Norms& norms) const;

 protected:
  struct Update;  // the arguments of `update`, checked

 private:
  Update checked(ThreadPool& pool, const Part& part) const;
  virtual std::vector<Norms> measure(const Update&) const { return {}; }
  virtual std::vector<std::string> own_slots() const = 0;
  virtual void apply(const Update& update) const = 0;
  // The share of the new weights in the average after a step.
  float average_share(int64_t step) const;

  float clip_value_;
  std::vector<RateFactor> rates_;
  double average_;
  int64_t average_from_;
};

// Throws like `check`.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config);

}  // namespace artel::optim
