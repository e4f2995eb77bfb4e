// Batches in the order of the sampler, read and changed by background threads ahead of time.
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

// Where to go on: the next batch starts after `position` samples of `epoch`. Goes into checkpoints.
struct LoaderState {
  int64_t epoch = 0;
  int64_t position = 0;
  bool operator==(const LoaderState&) const = default;
};

struct LoaderOptions {
  SamplerOptions sampling;
  Augmentation augmentation;
  int threads = 1;     // background threads
  int prefetch = 4;    // batches that may be ready before they are asked for
  int64_t epochs = 0;  // `next` ends after so many; 0 means never
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
  // Goes on from a state, here or in another process.
  void seek(LoaderState state);
  // From the next batch on, each global batch, also a short one, is cut into `parts`, and `next`
  // gives parts [first, last) of it: of n samples those from n first / parts to n last / parts.
  void serve(int64_t first, int64_t last, int64_t parts);

  // The samples [begin, end) of the global batch that starts at `state`, read here and now. A pure
  // function of its arguments, the seed and the set; any thread.
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
