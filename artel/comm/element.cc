#include "artel/comm/element.h"

#include <array>

#include "artel/base/error.h"

namespace artel::comm {
namespace {

struct Properties {
  std::string_view name;
  size_t bytes;
};

constexpr std::array<Properties, 9> kProperties{{{"f32", 4},
                                                 {"f64", 8},
                                                 {"f16", 2},
                                                 {"bf16", 2},
                                                 {"i8", 1},
                                                 {"u8", 1},
                                                 {"i16", 2},
                                                 {"i32", 4},
                                                 {"i64", 8}}};

const Properties& properties(ElementType type) {
  const auto index = static_cast<size_t>(type);
  require(index < kProperties.size(), ErrorKind::invalid_argument,
          "[comm] element type: got {}, expected a value below {}", index, kProperties.size());
  return kProperties[index];
}

}  // namespace

size_t size_of(ElementType type) { return properties(type).bytes; }
std::string_view to_string(ElementType type) { return properties(type).name; }

}  // namespace artel::comm
