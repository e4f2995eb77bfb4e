// Forward passes: loss, metrics and predictions with the parameters as they are.
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
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "artel/exec/program.h"
#include "artel/nn/model.h"

namespace artel {

// Runs programs of which each of several workers has only a part (train/forward_pipeline.h).
class ProgramParts {
 public:
  virtual ~ProgramParts() = default;

  // Leaves this worker's part of a program.
  virtual void restrict(Program& program) = 0;
  // Runs it when its turn comes. Afterwards all workers have all outputs. A collective call.
  virtual void run(const Program& program, Frame& frame, ThreadPool& pool) = 0;
};

class Evaluator {
 public:
  // Types of one sample; without `y` there is no loss. `parameters`, which are those of a network
  // with so many shards, and `choices` are borrowed.
  Evaluator(const Model& model, const TensorType& x, std::optional<TensorType> y, const Loss& loss,
            Parameters& parameters, KernelChoices& choices, int threads,
            std::vector<Metric> metrics = {}, int shards = 1);

  // Before anything is computed: all workers make the same calls with the same rows, and each has
  // only a part of the network. Borrowed.
  void set_parts(ProgramParts* parts) { parts_of_ = parts; }

  struct Sums {
    double loss = 0;    // the sum over the samples of weight times loss
    double weight = 0;  // the sum of the weights; the samples if all count equally
    int64_t samples = 0;
    std::vector<double> metrics = {};           // see `metrics()`
    std::vector<std::vector<float>> rows = {};  // of each of its parts that has some
  };
  // Results do not depend on the number of threads. `answers` gets the network's output for the
  // rows, if it is wanted.
  Sums evaluate(const Tensor& x, const Tensor& y, Tensor* answers = nullptr);
  // What the sums and rows are of.
  const Metrics& metrics();
  Tensor predict(const Tensor& x, std::string_view output = "prediction");
  // Several outputs of one pass.
  std::vector<Tensor> predict(const Tensor& x, const std::vector<std::string>& outputs);

 private:
  const Program& program(int64_t samples);
  // For the values of an output, of that many samples.
  Tensor output_for(int64_t rows, std::string_view output);
  // How many samples are computed at a time, of that many.
  int64_t chunk_of(int64_t rows);
  // Runs all rows of x in chunks, side by side on the threads; `done` is called with each finished
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
  ProgramParts* parts_of_ = nullptr;
  std::map<int64_t, bool> fits_;    // whether values of a whole program do, by samples
  std::optional<Metrics> metrics_;  // once they are asked for
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by samples
  struct Memory {
    ThreadPool serial;
    std::map<int64_t, std::unique_ptr<Frame>> frames;  // by samples
  };
  std::vector<std::unique_ptr<Memory>> idle_;
  std::mutex mutex_;
};

}  // namespace artel
