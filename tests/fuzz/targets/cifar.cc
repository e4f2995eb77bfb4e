#include "artel/data/images/cifar.h"
#include "tests/fuzz/target.h"
#include "tests/support/pictures.h"

namespace artel::fuzz::cifar {

// The first byte says how to read the rest.
void read(const Bytes& bytes) {
  if (bytes.data.empty()) return;
  const Bytes rest = bytes.part(1, bytes.data.size() - 1);
  const auto kind = std::to_integer<int>(bytes.data[0]);
  if (kind % 3 == 0) {
    // A picture with its labels after a zero byte at the end.
    const size_t cut = rest.text().rfind('\0');
    if (cut == std::string_view::npos) return;
    data::parse_cifar_png(rest.part(0, cut), rest.part(cut + 1, rest.data.size() - cut - 1), 0);
  } else {
    data::parse_cifar(rest, kind % 3);
  }
}

std::vector<std::string> seeds() {
  const std::string picture = png(2, 1024, 3, std::vector<uint8_t>(2 * 1024 * 3, 7));
  return {"\1" + std::string(2 * 3073, 'a'), "\2" + std::string(3074, 'b'),
          std::string(1, '\0') + picture + std::string("\0[3, 4]", 7)};
}

}  // namespace artel::fuzz::cifar
