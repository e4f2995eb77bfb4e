#include "artel/nn/layer_words.h"

#include <charconv>

#include "artel/base/text.h"

namespace artel::nn {
namespace {

constexpr size_t kMostCharacters = 1 << 16;
constexpr size_t kMostExtents = 8;

// Parses all of `text` as one number of type T. Returns false if it is not one.
template <typename T>
bool parse_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      finish();
    } else if (c == '{' || c == '}' || c == '|') {
      finish();
      words.emplace_back(1, c);
    } else {
      word += c;
    }
  }
  finish();
  return words;
}

}  // namespace

LayerWords::LayerWords(size_t index, std::string text) : index_(index), text_(std::move(text)) {
  if (text_.size() > kMostCharacters)
    reject("got {} characters, expected at most {}", text_.size(), kMostCharacters);
  words_ = split_words(text_);
}

bool LayerWords::more() const { return !at_end() && words_[next_] != "|" && words_[next_] != "}"; }

std::string LayerWords::take(std::string_view expected) {
  if (at_end()) reject("got the end of the text, expected {}", expected);
  return words_[next_++];
}

bool LayerWords::accept(std::string_view word) {
  if (at_end() || words_[next_] != word) return false;
  ++next_;
  return true;
}

bool LayerWords::accept(std::string_view first, std::string_view second) {
  if (next_ + 1 >= words_.size() || words_[next_ + 1] != second || !accept(first)) return false;
  return accept(second);
}

void LayerWords::expect(std::string_view word) {
  if (accept(word)) return;
  reject("got {}, expected '{}'",
         at_end() ? "the end of the text" : fmt::format("'{}'", words_[next_]), word);
}

std::string LayerWords::label() {
  if (!more() || words_[next_].back() != ':') return "";
  std::string name = take("a name");
  name.pop_back();
  check_name(name);
  return name;
}

std::string LayerWords::name(std::string_view what) {
  std::string name = take(what);
  check_name(name);
  return name;
}

void LayerWords::check_name(const std::string& name) const {
  const bool valid =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
      std::string::npos;
  if (name.empty() || !valid)
    reject("got the name '{}', expected letters, digits, '_' and '.'", name);
}

int64_t LayerWords::to_integer(std::string_view what, std::string_view word, int64_t least,
                               int64_t most) const {
  int64_t value = 0;
  if (!parse_number(word, value) || value < least || value > most)
    reject("{}: got '{}', expected a whole number from {} to {}", what, word, least, most);
  return value;
}

int64_t LayerWords::integer(std::string_view what, int64_t least, int64_t most) {
  return to_integer(what, take(what), least, most);
}

double LayerWords::number(std::string_view what, double least, double most) {
  const std::string word = take(what);
  double value = 0;
  if (!parse_number(word, value) || !(value >= least && value <= most))
    reject("{}: got '{}', expected a number from {} to {}", what, word, least, most);
  return value;
}

std::array<int64_t, 2> LayerWords::pair(std::string_view what, int64_t least, int64_t most) {
  const std::string word = take(what);
  const std::vector<std::string> parts = split(word, 'x');
  if (parts.size() > 2)
    reject("{}: got '{}', expected one number or two, such as 3 or 3x5", what, word);
  return {to_integer(what, parts.front(), least, most),
          to_integer(what, parts.back(), least, most)};
}

std::vector<int64_t> LayerWords::extents(std::string_view what, int64_t most) {
  const std::string word = take(what);
  const std::vector<std::string> parts = split(word, 'x');
  if (parts.size() > kMostExtents)
    reject("{}: got '{}', expected at most {} numbers", what, word, kMostExtents);
  std::vector<int64_t> values;
  for (const std::string& part : parts) values.push_back(to_integer(what, part, -1, most));
  return values;
}

void LayerWords::reject_option(std::string_view kind, const std::vector<std::string>& options) {
  const std::string word = take("an option");
  reject("unknown option '{}' of {}{}; known: {}", word, kind, did_you_mean(word, options),
         join(options, ", "));
}

std::string LayerWords::shortened() const {
  constexpr size_t kShown = 60;
  return text_.size() <= kShown ? text_ : text_.substr(0, kShown) + "...";
}

}  // namespace artel::nn
