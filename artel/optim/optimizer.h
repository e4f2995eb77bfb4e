// Update rules: how a reduced gradient changes a parameter.
//
// A rule works in place on raw floats, one parameter at a time: it neither knows nor cares in which
// physical layout the elements lie, and a parameter can be updated as soon as its bucket is
// reduced. Padding that is zero in parameter, gradient and state stays zero.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/optim/config.h"
#include "artel/tensor/shape.h"

namespace artel::optim {

struct ParameterInfo {
  std::string name;
  // Whether weight decay, and the scaling by norms of LARS and LAMB, apply to it.
  bool decay = true;
};

// Weight decay is for matrices and kernels; biases and the parameters of normalisation layers,
// which have one axis, are left alone unless the configuration says otherwise.
bool decays(const OptimizerConfig& config, const Shape& shape);

// Stateless and thread safe: the state lives with the caller, who stores it in checkpoints.
class Optimizer {
 public:
  explicit Optimizer(const OptimizerConfig& config);
  virtual ~Optimizer() = default;

  // The names of the state slots, each as long as the parameter and zero before the first step.
  // They are PyTorch's where it has the same rule ("momentum_buffer", "exp_avg", ...).
  virtual std::vector<std::string> slots() const = 0;

  // Step `step` (from 1) for one parameter: reads the gradient once, multiplied by `gradient_scale`
  // (averaging, clipping by norm), and updates the parameter and its `state`, one span for each
  // slot. The result does not depend on the number of threads. Throws if the lengths disagree.
  void update(ThreadPool& pool, const ParameterInfo& info, int64_t step, float learning_rate,
              float gradient_scale, std::span<float> parameter, std::span<const float> gradient,
              std::span<const std::span<float>> state) const;

 protected:
  struct Update;  // the arguments of `update`, checked

 private:
  virtual void apply(const Update& update) const = 0;

  float clip_value_;
};

// Throws as `check` does.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config);

}  // namespace artel::optim
