#include "artel/base/checksum.h"

#include <zlib.h>

#include "artel/base/error.h"
#include "artel/base/file.h"

#if defined(__x86_64__)
#include <wmmintrin.h>
#endif

namespace artel {
namespace {

uint32_t crc32_of_zlib(std::span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

#if defined(__x86_64__)
constexpr size_t kBlock = 16, kAtOnce = 4 * kBlock;

__attribute__((target("pclmul"))) __m128i load(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Shifts the accumulated remainder by one block. `powers` are the powers of x, modulo the
// polynomial of CRC-32, that multiply its two halves.
__attribute__((target("pclmul"))) __m128i fold(__m128i sum, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(sum, powers, 0x00);
  const __m128i high = _mm_clmulepi64_si128(sum, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Treats the bytes as a polynomial over GF(2), whose remainder is the checksum. Four chains of
// carry-less products fold any number of bytes into sixteen with the same remainder (Gopal et al.,
// "Fast CRC computation using PCLMULQDQ", 2009). Needs at least kAtOnce bytes.
__attribute__((target("pclmul"))) uint32_t crc32_by_products(std::span<const std::byte> bytes,
                                                             uint32_t before) {
  const __m128i by_four = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_one = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  __m128i sum[4] = {load(at), load(at + kBlock), load(at + 2 * kBlock), load(at + 3 * kBlock)};
  sum[0] = _mm_xor_si128(sum[0], _mm_cvtsi32_si128(static_cast<int>(~before)));
  for (at += kAtOnce; at + kAtOnce <= end; at += kAtOnce)
    for (size_t i = 0; i < 4; ++i) sum[i] = fold(sum[i], by_four, load(at + i * kBlock));
  __m128i all = sum[0];
  for (size_t i = 1; i < 4; ++i) all = fold(all, by_one, sum[i]);
  for (; at + kBlock <= end; at += kBlock) all = fold(all, by_one, load(at));
  std::byte rest[kBlock];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), all);
  return crc32_of_zlib({at, end}, crc32_of_zlib(rest, ~uint32_t{0}));
}
#endif

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_products = __builtin_cpu_supports("pclmul");
  if (has_products && bytes.size() >= kAtOnce) return crc32_by_products(bytes, before);
#endif
  return crc32_of_zlib(bytes, before);
}

void check_crc32(uint32_t found, uint32_t expected, const std::string& name) {
  require(found == expected, ErrorKind::corrupt, "[{}] wrong checksum: got {:08x}, expected {:08x}",
          name, found, expected);
}

FileSummary summarise_file(const std::filesystem::path& path) {
  FileSummary file;
  read_pieces(path, [&](std::span<const std::byte> piece) {
    file.bytes += piece.size();
    file.crc32 = crc32(piece, file.crc32);
  });
  return file;
}

}  // namespace artel
