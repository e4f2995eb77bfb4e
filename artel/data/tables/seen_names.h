// Numbers names in order of first occurrence, with little more memory than their bytes.
//
//   artel::data::SeenNames names;
//   names.code_of("red");   // 0
//   names.code_of("blue");  // 1
//   names.code_of("red");   // 0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace artel::data {

class SeenNames {
 public:
  int32_t code_of(std::string_view name) {
    if (2 * ends_.size() >= slots_.size()) enlarge();
    int32_t& slot = slot_of(name);
    if (slot < 0) {
      slot = size();
      text_ += name;
      ends_.push_back(text_.size());
    }
    return slot;
  }

  int32_t size() const { return static_cast<int32_t>(ends_.size()); }
  // Valid until the next call of code_of.
  std::string_view name(int32_t code) const {
    const auto i = static_cast<size_t>(code);
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  // The slot of this name, or the free slot for it.
  int32_t& slot_of(std::string_view name) {
    const size_t mask = slots_.size() - 1;
    size_t at = std::hash<std::string_view>()(name) & mask;
    while (slots_[at] >= 0 && this->name(slots_[at]) != name) at = (at + 1) & mask;
    return slots_[at];
  }

  void enlarge() {
    constexpr size_t kLeast = 16;
    slots_.assign(std::max(kLeast, 2 * slots_.size()), -1);
    for (int32_t code = 0; code < size(); ++code) slot_of(name(code)) = code;
  }

  std::string text_;            // all names, one after the other
  std::vector<uint64_t> ends_;  // end offset of each name in text_
  std::vector<int32_t> slots_;  // hash table of codes, at most half full; -1 is free
};

}  // namespace artel::data
