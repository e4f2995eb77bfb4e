#include "artel/base/random.h"

#include <cmath>

namespace artel {
namespace {

uint64_t splitmix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> c = {
      static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
      static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * c[0];
    const uint64_t p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

uint64_t mix_key(std::initializer_list<uint64_t> words) {
  uint64_t key = 0x6172746c2d6b6579ull;
  for (const uint64_t word : words) key = splitmix(key ^ splitmix(word));
  return key;
}

uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a, then mixed
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return splitmix(hash);
}

uint32_t Random::next_u32() {
  if (used_ == 4) {
    block_ = philox(key_, counter_++, 0);
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t Random::next_u64() {
  const uint64_t low = next_u32();
  return low | static_cast<uint64_t>(next_u32()) << 32;
}

float Random::uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }

float Random::normal() {
  const float u = 1.0f - uniform();  // in (0, 1]
  const float v = uniform();
  return std::sqrt(-2.0f * std::log(u)) * std::cos(6.283185307179586f * v);
}

uint64_t Random::below(uint64_t n) {
  // Rejects the few values above the largest multiple of n, so each result is equally likely.
  const uint64_t limit = ~uint64_t{0} - (~uint64_t{0} % n + 1) % n;
  uint64_t x = next_u64();
  while (x > limit) x = next_u64();
  return x % n;
}

}  // namespace artel
