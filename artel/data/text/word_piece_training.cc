#include <algorithm>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/unicode.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {
namespace {

const std::vector<std::string> kMarks = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

// Whether the bytes are whole characters: byte pairs may end inside of one.
bool whole_characters(std::string_view text) {
  while (!text.empty()) {
    const auto [code, bytes] = unicode::first_code_point(text);
    if (code == unicode::kInvalid) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// All characters of the words, as first and as later piece of a word.
std::set<std::string> characters_of(const std::vector<std::string>& words) {
  std::set<std::string> pieces;
  for (const std::string& word : words)
    for (std::string_view rest = word; !rest.empty();) {
      const size_t bytes = unicode::first_code_point(rest).bytes;
      pieces.emplace(rest.substr(0, bytes));
      pieces.emplace("##" + std::string(rest.substr(0, bytes)));
      rest.remove_prefix(bytes);
    }
  return pieces;
}

}  // namespace

std::shared_ptr<const WordPiece> train_word_piece(std::string_view text, int64_t size) {
  const std::vector<std::string> words = basic_words(text, true);
  std::vector<std::string> tokens = kMarks;
  const std::set<std::string> characters = characters_of(words);
  tokens.insert(tokens.end(), characters.begin(), characters.end());
  require(size >= static_cast<int64_t>(tokens.size()), ErrorKind::invalid_argument,
          "[tokenizer] wordpiece: got {} tokens, expected at least {} for the marks and characters "
          "of the text",
          size, tokens.size());
  std::set<std::string> known(tokens.begin(), tokens.end());
  // A merge that begins with the space before a word begins a word.
  for (const auto& [left, right] : train_byte_pair(" " + join(words, " "), size + 256)) {
    if (static_cast<int64_t>(tokens.size()) >= size) break;
    const std::string merged = left + right;
    std::string piece = merged.starts_with(' ') ? merged.substr(1) : "##" + merged;
    if (whole_characters(merged) && known.insert(piece).second) tokens.push_back(std::move(piece));
  }
  return std::make_shared<WordPiece>(std::move(tokens), true, "wordpiece");
}

}  // namespace artel::data
