// Forward passes: loss, accuracy and predictions with the parameters as they are.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "artel/exec/program.h"
#include "artel/nn/model.h"

namespace artel {

class Evaluator {
 public:
  // Types of one sample; without `y` there is no loss. `parameters` and `choices` are borrowed.
  Evaluator(const Model& model, const TensorType& x, std::optional<TensorType> y, const Loss& loss,
            Parameters& parameters, KernelChoices& choices, int threads);

  struct Sums {
    double loss = 0;  // summed over samples
    int64_t correct = 0;
    int64_t samples = 0;
  };
  // Results do not depend on the number of threads.
  Sums evaluate(const Tensor& x, const Tensor& y);
  Tensor predict(const Tensor& x);

 private:
  const Program& program(int64_t samples);
  // Runs all rows of x in chunks, side by side on the threads; `done` sees each finished chunk.
  void run(const Tensor& x, const Tensor* y,
           const std::function<void(int64_t chunk, int64_t begin, int64_t end, const Lane&)>& done);

  Model model_;
  TensorType x_;
  std::optional<TensorType> y_;
  Loss loss_;
  Parameters& parameters_;
  KernelChoices& choices_;
  ThreadPool pool_;
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by samples
  struct Memory {
    ThreadPool serial;
    std::map<int64_t, std::unique_ptr<Lane>> lanes;  // by samples
  };
  std::vector<std::unique_ptr<Memory>> idle_;
  std::mutex mutex_;
};

}  // namespace artel
