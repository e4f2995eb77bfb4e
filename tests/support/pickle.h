// PyTorch files written by hand, for tests of their reader.
#pragma once

#include <string>
#include <vector>

namespace artel {

// Instructions of a pickle.
namespace pickle {

inline std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
inline std::string text(const std::string& value) { return "X" + little(value.size(), 4) + value; }
inline std::string integer(int64_t value) { return "J" + little(static_cast<uint64_t>(value), 4); }
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<int64_t>& values) {
  std::string result = "(";
  for (const int64_t value : values) result += integer(value);
  return result + "t";
}
// A tensor over a whole storage, or a part of it.
inline std::string tensor(const std::string& storage_class, const std::string& key,
                          int64_t storage_elements, int64_t offset,
                          const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                          const std::string& view = "") {
  return global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
         global("torch", storage_class) + text(key) + text("cpu") + integer(storage_elements) +
         view + "tQ" + integer(offset) + tuple(shape) + tuple(strides) + "\x89" +
         global("collections", "OrderedDict") + ")RtR";
}
inline std::string program(const std::string& instructions) {
  return "\x80\x02" + instructions + ".";
}

// A whole legacy file.
inline std::string legacy_file(const std::string& object, const std::string& keys,
                               const std::string& storages) {
  return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15) +
         program("M\xe9\x03") + program("}") + program(object) + program(keys) + storages;
}

}  // namespace pickle
}  // namespace artel
