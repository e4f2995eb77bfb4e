// Models in the wire format of ONNX that hold initialisers and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artel {

inline std::string wire_number(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(0x80 | (value & 0x7f));
  return text + static_cast<char>(value);
}
inline std::string wire_field(int number, uint64_t value) {
  return wire_number(number * 8) + wire_number(value);
}
inline std::string wire_field(int number, const std::string& bytes) {
  return wire_number(number * 8 + 2) + wire_number(bytes.size()) + bytes;
}

// `content` is what follows name, type and extents: raw bytes (field 9), floats (4), ...
inline std::string onnx_tensor(const std::string& name, int type,
                               const std::vector<uint64_t>& shape, const std::string& content) {
  std::string tensor;
  for (const uint64_t extent : shape) tensor += wire_field(1, extent);
  return tensor + wire_field(2, static_cast<uint64_t>(type)) + wire_field(8, name) + content;
}

inline std::string onnx_model(const std::vector<std::string>& tensors) {
  std::string graph = wire_field(2, std::string("main"));
  for (const std::string& tensor : tensors) graph += wire_field(5, tensor);
  return wire_field(1, uint64_t{8}) + wire_field(2, std::string("test")) + wire_field(7, graph);
}

}  // namespace artel
