// Forward passes: computes losses, metrics, and predictions with the current parameters.
//
//   artel::KernelChoices choices;
//   const artel::TensorType image = {artel::DType::f32, {784}}, label = {artel::DType::i32, {}};
//   artel::Evaluator evaluator(model, image, label, artel::loss_by_name("cross_entropy"),
//                              trainer.parameters(), choices, 2);
//   const artel::Evaluator::Sums sums = evaluator.evaluate(images, labels);
//   artel::println("loss {}", sums.loss / sums.weight);
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/exec/program.h"
#include "artel/graph/passes/quantise_weights.h"
#include "artel/nn/model.h"

namespace artel {

// Runs programs that are divided among several workers (train/parts/forward_pipeline.h).
class ProgramParts {
 public:
  virtual ~ProgramParts() = default;

  // Restricts a program to this worker's part.
  virtual void restrict(Program& program) = 0;
  // Runs this worker's part when its inputs have arrived. A collective call, after which all
  // workers have all outputs.
  virtual void run(const Program& program, Frame& frame, ThreadPool& pool) = 0;
};

class Evaluator {
 public:
  // `x` and `y` are the types of one sample; without `y`, no loss is computed. Borrows
  // `parameters`, which belong to a network with `shards` shards, and `choices`. `matrices` are the
  // weights that are quantised in `parameters`; they need a network with one shard.
  Evaluator(const Model& model, const TensorType& x, std::optional<TensorType> y, const Loss& loss,
            Parameters& parameters, KernelChoices& choices, int threads,
            std::vector<Metric> metrics = {}, int shards = 1,
            std::map<std::string, QuantisedType> matrices = {});

  // Divides the network among several workers, which then make the same calls with the same rows.
  // Call before any computation. Borrows `parts`.
  void set_parts(ProgramParts* parts) { parts_of_ = parts; }

  struct Sums {
    double loss = 0;    // sum of weight * loss over the samples
    double weight = 0;  // sum of the weights; the number of samples if they are not weighted
    int64_t samples = 0;
    std::vector<double> metrics = {};           // see metrics()
    std::vector<std::vector<float>> rows = {};  // for metrics that need all rows
  };
  // Results do not depend on the number of threads. Stores the network's outputs in `answers`
  // unless it is null.
  Sums evaluate(const Tensor& x, const Tensor& y, Tensor* answers = nullptr);
  // Computes metric values from Sums.
  const Metrics& metrics();
  Tensor predict(const Tensor& x, std::string_view output = "prediction");
  // Computes several outputs in one pass.
  std::vector<Tensor> predict(const Tensor& x, const std::vector<std::string>& outputs);

 private:
  const Program& program(int64_t samples);
  // Allocates a tensor for an output of `rows` samples.
  Tensor output_for(int64_t rows, std::string_view output);
  // Number of samples per chunk.
  int64_t chunk_of(int64_t rows);
  // Runs all rows of `x` in chunks, in parallel on the threads. Calls `done` for each finished
  // chunk.
  void run(
      const Tensor& x, const Tensor* y,
      const std::function<void(int64_t chunk, int64_t begin, int64_t end, const Frame&)>& done);

  Model model_;
  TensorType x_;
  std::optional<TensorType> y_;
  Loss loss_;
  Parameters& parameters_;
  KernelChoices& choices_;
  ThreadPool pool_;
  std::vector<Metric> wanted_;
  ShardPart part_;
  std::map<std::string, QuantisedType> matrices_;
  ProgramParts* parts_of_ = nullptr;
  std::map<int64_t, bool> fits_;    // by samples: true if a program's values fit into a chunk
  std::optional<Metrics> metrics_;  // created on demand
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by samples
  struct Memory {
    ThreadPool serial;
    std::map<int64_t, std::unique_ptr<Frame>> frames;  // by samples
  };
  std::vector<std::unique_ptr<Memory>> idle_ ARTEL_GUARDED_BY(mutex_);
  Mutex mutex_;
};

}  // namespace artel
