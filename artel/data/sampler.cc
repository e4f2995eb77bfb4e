#include "artel/data/sampler.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel::data {
namespace {

// The finaliser of MurmurHash3: every input bit reaches every output bit.
uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

uint64_t low_mask(int bits) { return (uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(int64_t size, uint64_t key) : size_(static_cast<uint64_t>(size)) {
  require(size >= 0, ErrorKind::invalid_argument, "a permutation of {} numbers", size);
  const int bits = std::max(2, static_cast<int>(std::bit_width(size_ > 0 ? size_ - 1 : 0)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  Random random(key);
  for (uint64_t& round_key : keys_) round_key = random.next_u64();
}

uint64_t Permutation::encrypt(uint64_t x) const {
  // (left, right) becomes (right, left xor F(right)): the widths of the halves change places.
  uint64_t left = x >> low_bits_, right = x & low_mask(low_bits_);
  int left_bits = high_bits_, right_bits = low_bits_;
  for (const uint64_t key : keys_) {
    left ^= scramble(right ^ key) & low_mask(left_bits);
    std::swap(left, right);
    std::swap(left_bits, right_bits);
  }
  return left << low_bits_ | right;
}

int64_t Permutation::operator()(int64_t i) const {
  uint64_t x = static_cast<uint64_t>(i);
  do {
    x = encrypt(x);
  } while (x >= size_);
  return static_cast<int64_t>(x);
}

Sampler::Sampler(int64_t samples, SamplerOptions options) : size_(samples), options_(options) {
  require(options_.batch_size > 0, ErrorKind::invalid_argument,
          "the batch size is {}, expected 1 or more", options_.batch_size);
  require(batches_per_epoch() > 0, ErrorKind::invalid_argument,
          "{} samples do not fill one batch of {}; try a smaller batch_size", size_,
          options_.batch_size);
}

int64_t Sampler::batches_per_epoch() const {
  const int64_t extra = options_.last_batch == LastBatch::keep ? options_.batch_size - 1 : 0;
  return (size_ + extra) / options_.batch_size;
}

int64_t Sampler::samples_per_epoch() const {
  return std::min(size_, batches_per_epoch() * options_.batch_size);
}

std::vector<int64_t> Sampler::samples(int64_t epoch, int64_t begin, int64_t end) const {
  require(0 <= begin && begin <= end && end <= size_, ErrorKind::invalid_argument,
          "places [{}, {}) of an epoch of {} samples", begin, end, size_);
  std::vector<int64_t> result(end - begin);
  std::iota(result.begin(), result.end(), begin);
  if (options_.shuffle) {
    const Permutation order(
        size_, mix_key({options_.seed, hash_name("shuffle"), static_cast<uint64_t>(epoch)}));
    for (int64_t& i : result) i = order(i);
  }
  return result;
}

}  // namespace artel::data
