// Computes the teachers' outputs for a batch, for knowledge distillation (nn/distillation.h).
//
// Outputs are computed lane by lane, or once for all samples and cached. Either way, their bits do
// not depend on the number of workers or threads. Not thread safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/data/loader.h"
#include "artel/exec/program.h"
#include "artel/nn/distillation.h"
#include "artel/train/step/kept_features.h"

namespace artel {

class Teacher {
 public:
  // `outputs` is the combined network of all teachers (nn::softened_outputs), `sample` the type of
  // one sample. Throws if a weight is missing.
  Teacher(Model outputs, const TensorType& sample, NamedTensors weights,
          const nn::DistillationOptions& options);

  // Computes and caches the outputs for all samples of `set`, from which the batches come. Workers
  // of one machine share the work and the file (kept_features). `key` identifies the samples.
  void keep(const data::Dataset& set, const data::Augmentation& prepare, const std::string& key,
            int threads);

  const nn::DistillationOptions& options() const { return options_; }
  // Shape of the output for one sample.
  const Shape& output() const { return output_; }
  int64_t parameter_count() const;
  // Identifies the network, weights, and options, on which the bits of the outputs depend.
  const std::string& identity() const { return identity_; }

  // The outputs for a batch with the lanes `own` of `lanes`.
  Tensor outputs(const data::Batch& batch, int lanes, comm::LaneRange own, ThreadPool& pool);

 private:
  struct Place {
    ThreadPool serial{1, limit_threads};
    std::map<int64_t, std::unique_ptr<Frame>> frames;  // by rows
  };
  static void limit_threads();

  const Program& program(int64_t rows);
  void compute(Place& place, const Tensor& x, Tensor to);
  Tensor read_kept(const data::Batch& batch) const;

  Model model_;
  TensorType sample_;
  NamedTensors weights_;
  nn::DistillationOptions options_;
  Shape output_;
  std::string identity_;
  KernelChoices choices_;
  Parameters parameters_;
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by rows
  std::vector<std::unique_ptr<Place>> idle_ ARTEL_GUARDED_BY(mutex_);
  Mutex mutex_;
  data::DatasetPtr kept_;  // the outputs as inputs
};

}  // namespace artel
