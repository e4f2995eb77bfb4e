// Batches in the order of the sampler, read and augmented ahead of time by background threads.
//
//   artel::data::Loader loader(samples, {.sampling = {.batch_size = 32}, .epochs = 1});
//   while (const auto batch = loader.next()) trainer.train_on_batch(batch->x, batch->y);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/data/sampler.h"

namespace artel::data {

struct Batch {
  Tensor x;                      // [count, ...] of the layout's input type
  Tensor y;                      // [count, ...]: i32 labels or f32 values; empty without targets
  std::vector<int64_t> samples;  // which samples of the set these are
  int64_t epoch = 0;
  int64_t position = 0;  // how many samples of the epoch came before the global batch
  int64_t total = 0;     // samples of the global batch

  int64_t size() const { return static_cast<int64_t>(samples.size()); }
};

// Where to continue: the next batch starts after `position` samples of `epoch`. Saved in
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
  int prefetch = 4;    // batches that may be prepared ahead
  int64_t epochs = 0;  // `next` ends after this many; 0 means never
};

class Loader {
 public:
  // Throws if the augmentation does not fit the set.
  Loader(DatasetPtr set, LoaderOptions options);
  ~Loader();
  Loader(Loader&&) noexcept;

  const Dataset& set() const;
  const Sampler& sampler() const;
  // Of one sample, after augmentation. With mixup, `target` is [classes] of kind values.
  const SampleLayout& layout() const;

  // The next batch, or nothing after the last epoch. Blocks until it is ready; an error of a
  // background thread is thrown here in place of its batch. One caller at a time.
  std::optional<Batch> next();

  // The state after the batch that `next` returned last.
  LoaderState state() const;
  // Continues from a state, of this process or another.
  void seek(LoaderState state);
  // From the next batch on, each global batch, including a short one, is cut into `parts`, and
  // `next` returns parts [first, last): of n samples, those from n first / parts to n last / parts.
  void serve(int64_t first, int64_t last, int64_t parts);

  // The samples [begin, end) of the global batch that starts at `state`, read immediately. A pure
  // function of its arguments, the seed and the set; thread safe.
  Batch batch(LoaderState state, int64_t begin, int64_t end) const;

  // Seconds that `next` has spent waiting, in total.
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
