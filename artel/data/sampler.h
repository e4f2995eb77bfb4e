// The samples of each batch as pure functions of (seed, epoch, position). Any worker can compute
// any part of any batch without communication and without an array of the size of the data.
//
//   const artel::data::Sampler sampler(60'000, {.batch_size = 64, .seed = 7});
//   const std::vector<int64_t> first = sampler.samples(0, 0, 64);  // of the first epoch
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace artel::data {

// A pseudorandom permutation of [0, size), determined by a key.
//
// A Feistel network of eight rounds permutes the smallest sufficient power of two. Results outside
// [0, size) are permuted again until they fall inside (cycle walking), on average less than twice.
// Constant memory, about 30 ns per number.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t operator()(int64_t i) const;

 private:
  static constexpr int kRounds = 8;  // even, so the two halves end up with their own widths
  uint64_t encrypt(uint64_t x) const;

  uint64_t size_;
  int low_bits_, high_bits_;
  std::array<uint64_t, kRounds> keys_;
};

enum class LastBatch {
  drop,  // skips the samples that do not fill a batch in this epoch
  keep,  // the last batch of an epoch is smaller
};

struct SamplerOptions {
  int64_t batch_size = 32;  // of all workers together
  bool shuffle = true;
  uint64_t seed = 0;
  LastBatch last_batch = LastBatch::drop;
};

class Sampler {
 public:
  // Throws if an epoch would have no batch.
  Sampler(int64_t samples, SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  int64_t batches_per_epoch() const;
  // Samples per epoch: all, or a multiple of the batch size.
  int64_t samples_per_epoch() const;

  // The samples at positions [begin, end) in the order of this epoch.
  std::vector<int64_t> samples(int64_t epoch, int64_t begin, int64_t end) const;

 private:
  int64_t size_;
  SamplerOptions options_;
};

}  // namespace artel::data
