// The words of one layer in a network written as text; a cursor over them. Errors begin with the
// layer's index and text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"

namespace artel::nn {

class LayerWords {
 public:
  LayerWords(size_t index, std::string text);

  bool at_end() const { return next_ == words_.size(); }
  // Whether the current layer has more words: neither the text nor its part of a block has ended.
  bool more() const;
  // The next word, which must be there; `expected` says what it should be.
  std::string take(std::string_view expected);
  // Takes the next word, or the next two, if they are these.
  bool accept(std::string_view word);
  bool accept(std::string_view first, std::string_view second);
  void expect(std::string_view word);
  // Takes the next word if it ends with a colon, and returns it without the colon; else "".
  std::string label();

  int64_t integer(std::string_view what, int64_t least, int64_t most);
  double number(std::string_view what, double least, double most);
  // "3" for 3x3, or "3x5".
  std::array<int64_t, 2> pair(std::string_view what, int64_t least, int64_t most);
  // "3x32x32"; one of them may be -1.
  std::vector<int64_t> extents(std::string_view what, int64_t most);

  // Fails because the next word is none of the options of this kind of layer.
  [[noreturn]] void reject_option(std::string_view kind, const std::vector<std::string>& options);

  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::invalid_argument, "[layer {} '{}'] {}", index_, shortened(),
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string shortened() const;
  int64_t to_integer(std::string_view what, std::string_view word, int64_t least,
                     int64_t most) const;

  size_t index_;
  std::string text_;
  std::vector<std::string> words_;
  size_t next_ = 0;
};

}  // namespace artel::nn
