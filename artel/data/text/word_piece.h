// WordPiece as BERT does it (Wu et al., 2016; Devlin et al., 2018).
//
// Basic tokenisation: control characters are removed, ideographs and punctuation marks are words by
// themselves, letters become lower case without accents (if the vocabulary is uncased). A word is
// then cut greedily into the longest pieces of the vocabulary, all of which except the first begin
// with ##; a word that cannot be cut, or is longer than 100 characters, becomes [UNK].
#pragma once

#include "artel/data/text/tokenizer.h"

namespace artel::data {

class WordPiece : public Tokenizer {
 public:
  // Throws for tokens that occur twice or are not UTF-8, or if [UNK], [CLS], [SEP] or [PAD] is
  // missing; `where` names the file in messages.
  WordPiece(std::vector<std::string> tokens, bool lower_case, const std::string& where);

  const std::vector<std::string>& names() const override { return names_; }
  // Only the pieces of the text: no [CLS], no [SEP].
  std::vector<int32_t> encode(std::string_view text) const override;
  // Words separated by single spaces: the text's own spacing is lost.
  std::string decode(std::span<const int32_t> tokens) const override;
  void save(const std::filesystem::path& folder) const override;

  // [CLS] text [SEP], or [CLS] text [SEP] second [SEP], cut to `positions` by shortening the longer
  // text, and padded with [PAD] if asked to. `types` is 1 for the second text.
  struct Sentence {
    std::vector<int32_t> tokens, types;
    bool cut = false;  // whether there was more text
  };
  Sentence sentence(std::string_view text, std::string_view second, int64_t positions,
                    bool pad = false) const;

  // The number of a token such as "[MASK]"; throws if there is none.
  int32_t number(std::string_view token) const;

 private:
  void encode_word(const std::string& word, std::vector<int32_t>& tokens) const;

  std::vector<std::string> names_;
  std::string where_;
  bool lower_case_;
  struct Numbers;
  std::shared_ptr<const Numbers> numbers_;
};

// vocab.txt (one token per line; uncased unless tokenizer_config.json beside it says otherwise) or
// tokenizer.json (its vocabulary and whether it is uncased).
std::shared_ptr<const WordPiece> read_word_piece(const std::filesystem::path& file);

// Learns `size` pieces from a text, uncased: the marks, all characters, then what byte pairs (see
// byte_pair.h) join most often. Throws if there are more characters than that.
std::shared_ptr<const WordPiece> train_word_piece(std::string_view text, int64_t size);

// The words of basic tokenisation.
std::vector<std::string> basic_words(std::string_view text, bool lower_case);

}  // namespace artel::data
