#include "artel/base/digest.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr size_t kBlock = 64;
using Words = std::array<uint32_t, 16>;

Words load_words(const std::byte* block, bool big_endian) {
  Words words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t shift = 8 * (big_endian ? 3 - j : j);
      words[i] |= std::to_integer<uint32_t>(block[4 * i + j]) << shift;
    }
  }
  return words;
}

// The frame that the three have in common: whole blocks, then the rest with a 1 bit, zeros and the
// length in bits; the state is written as hexadecimal digits.
template <size_t N, typename Mix>
std::string digest(std::span<const std::byte> bytes, std::array<uint32_t, N> state, bool big_endian,
                   Mix mix) {
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock))
    mix(state, load_words(bytes.data(), big_endian));
  std::array<std::byte, 2 * kBlock> tail{};
  std::copy(bytes.begin(), bytes.end(), tail.begin());
  tail[bytes.size()] = std::byte{0x80};
  const size_t size = bytes.size() + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i)
    tail[size - 8 + i] = static_cast<std::byte>(bits >> (8 * (big_endian ? 7 - i : i)));
  for (size_t at = 0; at < size; at += kBlock) mix(state, load_words(tail.data() + at, big_endian));
  std::string text;
  for (const uint32_t word : state)
    text += fmt::format("{:08x}", big_endian ? word : __builtin_bswap32(word));
  return text;
}

void mix_md5(std::array<uint32_t, 4>& state, const Words& words) {
  static constexpr int kShifts[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  static const auto kSines = [] {
    std::array<uint32_t, 64> table;
    for (int i = 0; i < 64; ++i)
      table[i] = static_cast<uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 0x1p32));
    return table;
  }();
  auto [a, b, c, d] = state;
  for (int i = 0; i < 64; ++i) {
    uint32_t f;
    int word;
    if (i < 16) {
      f = (b & c) | (~b & d);
      word = i;
    } else if (i < 32) {
      f = (d & b) | (~d & c);
      word = (5 * i + 1) % 16;
    } else if (i < 48) {
      f = b ^ c ^ d;
      word = (3 * i + 5) % 16;
    } else {
      f = c ^ (b | ~d);
      word = 7 * i % 16;
    }
    f += a + kSines[i] + words[word];
    a = d;
    d = c;
    c = b;
    b += std::rotl(f, kShifts[i / 16][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

void mix_sha1(std::array<uint32_t, 5>& state, const Words& words) {
  std::array<uint32_t, 80> w;
  std::copy(words.begin(), words.end(), w.begin());
  for (int i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (int i = 0; i < 80; ++i) {
    uint32_t f;
    if (i < 20)
      f = ((b & c) | (~b & d)) + 0x5a827999u;
    else if (i < 40)
      f = (b ^ c ^ d) + 0x6ed9eba1u;
    else if (i < 60)
      f = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
    else
      f = (b ^ c ^ d) + 0xca62c1d6u;
    const uint32_t next = std::rotl(a, 5) + f + e + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
}

constexpr std::array<uint32_t, 64> kSha256 = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void mix_sha256(std::array<uint32_t, 8>& state, const Words& words) {
  std::array<uint32_t, 64> w;
  std::copy(words.begin(), words.end(), w.begin());
  for (int i = 16; i < 64; ++i) {
    const uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3)) + w[i - 7] +
           (std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kSha256[i] + w[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d,
           state[4] + e, state[5] + f, state[6] + g, state[7] + h};
}

}  // namespace

std::string md5(std::span<const std::byte> bytes) {
  return digest(bytes, std::array<uint32_t, 4>{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476},
                false, mix_md5);
}

std::string sha1(std::span<const std::byte> bytes) {
  return digest(bytes,
                std::array<uint32_t, 5>{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0},
                true, mix_sha1);
}

std::string sha256(std::span<const std::byte> bytes) {
  return digest(bytes,
                std::array<uint32_t, 8>{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                        0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
                true, mix_sha256);
}

std::string digest_like(const std::string& expected, std::span<const std::byte> bytes) {
  if (expected.size() == 32) return md5(bytes);
  if (expected.size() == 40) return sha1(bytes);
  require(expected.size() == 64, ErrorKind::invalid_argument, "'{}' is not a digest", expected);
  return sha256(bytes);
}

}  // namespace artel
