#include "artel/base/tar.h"
#include "artel/base/compress.h"
#include "tests/fuzz/target.h"
#include "tests/support/gzip.h"

namespace artel::fuzz::tar {

void read(const Bytes& bytes) {
  constexpr uint64_t kMaxBytes = 1 << 24;
  parse_tar(is_gzip(bytes) ? gunzip(bytes, kMaxBytes) : bytes);
}

std::vector<std::string> seeds() {
  std::string archive(512, '\0');
  archive.replace(0, 11, "package/abc");
  archive.replace(124, 11, "00000000005");
  archive[156] = '0';
  archive.replace(257, 5, "ustar");
  archive += "hello" + std::string(507 + 1024, '\0');
  return {archive, gzip(archive)};
}

}  // namespace artel::fuzz::tar
