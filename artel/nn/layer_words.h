// A cursor over the words of one layer in a network written as text. Errors begin with the layer's
// index and text.
//
//   // "soft_step [STEEPNESS]": the word after the kind is optional.
//   artel::nn::register_layer("soft_step", "[STEEPNESS]", [](artel::nn::LayerWords& words) {
//     const double steepness = words.more() ? words.number("steepness", 0.01, 100) : 1;
//     return artel::nn::Layer("soft_step", [steepness](artel::nn::Build&, artel::Value x) {
//       return artel::unary("sigmoid", artel::mul_scalar(x, steepness));
//     });
//   });
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
  // True if the current layer has more words before the end of the text or of its part of a block.
  bool more() const;
  // Takes the next word, which must exist. `expected` describes it in the error message.
  std::string take(std::string_view expected);
  // Takes the next word, or the next two, if they match.
  bool accept(std::string_view word);
  bool accept(std::string_view first, std::string_view second);
  void expect(std::string_view word);
  // Takes the next word if it ends with a colon, and returns it without the colon; otherwise "".
  std::string label();

  // A word of letters, digits, '_' and '.'.
  std::string name(std::string_view what);
  int64_t integer(std::string_view what, int64_t least, int64_t most);
  double number(std::string_view what, double least, double most);
  // "3" for 3x3, or "3x5".
  std::array<int64_t, 2> pair(std::string_view what, int64_t least, int64_t most);
  // Parses extents such as "3x32x32". One of them may be -1.
  std::vector<int64_t> extents(std::string_view what, int64_t most);

  // Throws: the next word is not an option of this kind of layer.
  [[noreturn]] void reject_option(std::string_view kind, const std::vector<std::string>& options);

  template <typename... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::invalid_argument, "[layer {} '{}'] {}", index_, shortened(),
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string shortened() const;
  void check_name(const std::string& name) const;
  int64_t to_integer(std::string_view what, std::string_view word, int64_t least,
                     int64_t most) const;

  size_t index_;
  std::string text_;
  std::vector<std::string> words_;
  size_t next_ = 0;
};

}  // namespace artel::nn
