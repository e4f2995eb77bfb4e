// Prefetches batches in the order of the sampler, read and augmented by background threads.
//
//   artel::data::Loader loader(samples, {.sampling = {.batch_size = 32}, .epochs = 1});
//   while (const auto batch = loader.next()) trainer.train_on_batch(batch->x, batch->y);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"
#include "artel/data/sampler.h"

namespace artel::data {

struct Batch {
  Tensor x;                      // [count, ...] of the layout's input type
  Tensor y;                      // [count, ...]: i32 labels or f32 values; empty without targets
  std::vector<int64_t> samples;  // indices in the set
  int64_t epoch = 0;
  int64_t position = 0;  // number of samples of the epoch before the global batch
  int64_t total = 0;     // samples of the global batch
  Tensor teacher = {};   // outputs of a teacher for the rows; empty without one

  int64_t size() const { return static_cast<int64_t>(samples.size()); }
};

// Position in the data: the next batch starts after `position` samples of `epoch`. Saved in
// checkpoints.
struct LoaderState {
  int64_t epoch = 0;
  int64_t position = 0;
  bool operator==(const LoaderState&) const = default;
};

struct LoaderOptions {
  SamplerOptions sampling;
  Augmentation augmentation;
  int threads = 1;     // background threads
  int prefetch = 4;    // maximum number of prepared batches
  int64_t epochs = 0;  // number of epochs; 0 means unlimited
};

class Loader {
 public:
  // Throws if the augmentation does not fit the set.
  Loader(DatasetPtr set, LoaderOptions options);
  ~Loader();
  Loader(Loader&&) noexcept;

  const Dataset& set() const;
  const Sampler& sampler() const;
  // The layout of one sample after augmentation. With mixup, `target` is [classes] of kind values.
  const SampleLayout& layout() const;

  // The next batch; empty after the last epoch. Blocks until it is ready. Rethrows an error of a
  // background thread in place of its batch. Not thread safe.
  std::optional<Batch> next();

  // The state after the last batch returned by `next`.
  LoaderState state() const;
  // Continues from a state of this or another process.
  void seek(LoaderState state);
  // From the next batch on, divides each global batch, including a short one, into `parts`; `next`
  // returns parts [first, last). Of n samples, these are n first / parts to n last / parts.
  void serve(int64_t first, int64_t last, int64_t parts);

  // Reads the samples [begin, end) of the global batch at `state` immediately. A pure function of
  // its arguments, the seed, and the set. Thread safe.
  Batch batch(LoaderState state, int64_t begin, int64_t end) const;

  // Total time that `next` has waited, in seconds.
  double seconds_waited() const;

 private:
  struct Share {
    int64_t first = 0, last = 1, parts = 1;
  };
  class Prefetcher;
  struct Source;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Prefetcher> prefetcher_;  // started by the first `next`
  LoaderState state_;
  Share share_;
  double waited_ = 0;
};

}  // namespace artel::data
