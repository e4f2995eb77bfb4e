// Element types of the data that collectives reduce, in the order of the tensor layer's types. The
// communication layer itself only ever sees bytes.
//
//   const size_t bytes = 100 * size_of(artel::comm::ElementType::bf16);  // 200
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace artel::comm {

enum class ElementType : uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64 };

size_t size_of(ElementType type);
std::string_view to_string(ElementType type);

}  // namespace artel::comm
