#include <algorithm>
#include <set>

#include "artel/base/error.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/unicode.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {
namespace {

const std::vector<std::string> kSpecialTokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

// A text as words with a space before each, and all their characters, as first and as later piece
// of a word.
struct Sample {
  std::string words;
  std::set<std::string> characters;
};

Sample sample_of(std::string_view text) {
  Sample sample;
  while (!text.empty()) {  // line by line: words take much more memory than their text
    const std::string_view line = text.substr(0, text.find('\n'));
    for (const std::string& word : basic_words(line, true)) {
      sample.words += ' ' + word;
      for (std::string_view rest = word; !rest.empty();) {
        const std::string character(rest.substr(0, unicode::first_code_point(rest).bytes));
        sample.characters.insert({character, "##" + character});
        rest.remove_prefix(character.size());
      }
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return sample;
}

}  // namespace

std::shared_ptr<const WordPiece> train_word_piece(std::string_view text, int64_t size) {
  const Sample sample = sample_of(text);
  std::vector<std::string> tokens = kSpecialTokens;
  tokens.insert(tokens.end(), sample.characters.begin(), sample.characters.end());
  require(size >= static_cast<int64_t>(tokens.size()), ErrorKind::invalid_argument,
          "[tokenizer] wordpiece: got {} tokens, expected at least {} for the marks and characters "
          "of the text",
          size, tokens.size());
  std::set<std::string> known(tokens.begin(), tokens.end());
  // A merge that begins with the space before a word begins a word.
  for (const auto& [left, right] : train_byte_pair(sample.words, size + 256)) {
    if (static_cast<int64_t>(tokens.size()) >= size) break;
    const std::string merged = left + right;
    std::string piece = merged.starts_with(' ') ? merged.substr(1) : "##" + merged;
    // Byte pairs may end inside a character.
    if (unicode::is_valid(merged) && known.insert(piece).second) tokens.push_back(std::move(piece));
  }
  return std::make_shared<WordPiece>(std::move(tokens), true, "wordpiece");
}

}  // namespace artel::data
