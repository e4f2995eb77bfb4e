#include "artel/data/images/idx.h"
#include "artel/base/compress.h"
#include "tests/fuzz/target.h"
#include "tests/support/gzip.h"

namespace artel::fuzz::idx {

void read(const Bytes& bytes) {
  constexpr uint64_t kMaxBytes = 1 << 24;
  data::parse_idx(is_gzip(bytes) ? gunzip(bytes, kMaxBytes) : bytes);
}

std::vector<std::string> seeds() {
  const std::string bytes("\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\3abcdefghijkl", 28);
  const std::string numbers("\0\0\x0d\x01\0\0\0\2\x3f\x80\0\0\0\0\0\0", 16);
  return {bytes, numbers, gzip(bytes)};
}

}  // namespace artel::fuzz::idx
