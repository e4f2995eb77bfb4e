// Random numbers determined by their purpose, not by the order of calls.
//
//   artel::Random random{7, artel::hash_name("noise"), 120};  // seed, purpose, step
//   const float noise = random.normal();
//
// A `Random` is a stream identified by a key: (seed, "dropout", layer, step, sample). Equal keys
// give equal numbers on every worker and with any number of threads. The generator is Philox
// 4x32-10 (Salmon et al., SC 2011), which computes number i of a stream without its predecessors.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace artel {

// One block of four random words, a pure function of key and counter.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high);

// Hashes words or a name into a key. Stable across machines and versions; checkpoints depend on it.
uint64_t mix_key(std::initializer_list<uint64_t> words);
uint64_t hash_name(std::string_view name);

class Random {
 public:
  explicit Random(uint64_t key) : key_(key) {}
  Random(std::initializer_list<uint64_t> words) : key_(mix_key(words)) {}

  uint64_t key() const { return key_; }

  uint32_t next_u32();
  uint64_t next_u64();
  // Uniform in [0, 1), a multiple of 2^-24.
  float uniform();
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  // Normal with mean 0 and standard deviation 1 (Box-Muller).
  float normal();
  // Uniform integer in [0, n), unbiased. Requires n > 0.
  uint64_t below(uint64_t n);

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace artel
