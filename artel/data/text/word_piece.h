// WordPiece as in BERT (Wu et al., 2016; Devlin et al., 2018).
//
// Basic tokenisation removes control characters, makes ideographs and punctuation marks single
// words, and folds letters to lower case without accents if the vocabulary is uncased. Words are
// then cut greedily into the longest pieces of the vocabulary; all pieces except the first begin
// with ##. A word that cannot be cut, or is longer than 100 characters, becomes [UNK].
#pragma once

#include "artel/data/text/tokenizer.h"

namespace artel::data {

class WordPiece : public Tokenizer {
 public:
  // Throws for duplicate tokens, invalid UTF-8, or a missing [UNK], [CLS], [SEP], or [PAD]. `where`
  // names the file in messages.
  WordPiece(std::vector<std::string> tokens, bool lower_case, const std::string& where);

  const std::vector<std::string>& names() const override { return names_; }
  // The pieces of the text, without [CLS] and [SEP].
  std::vector<int32_t> encode(std::string_view text) const override;
  // Words separated by single spaces: the text's own spacing is lost.
  std::string decode(std::span<const int32_t> tokens) const override;
  void save(const std::filesystem::path& folder) const override;

  // [CLS] text [SEP], or [CLS] text [SEP] second [SEP], cut to `positions` by shortening the longer
  // text, and padded with [PAD] if asked to. `types` is 1 for the second text.
  struct Sentence {
    std::vector<int32_t> tokens, types;
    bool cut = false;  // true if the text was shortened
  };
  Sentence sentence(std::string_view text, std::string_view second, int64_t positions,
                    bool pad = false) const;

  // The number of a token such as "[MASK]". Throws for an unknown token.
  int32_t number(std::string_view token) const;

 private:
  void encode_word(const std::string& word, std::vector<int32_t>& tokens) const;

  std::vector<std::string> names_;
  std::string where_;
  bool lower_case_;
  struct Numbers;
  std::shared_ptr<const Numbers> numbers_;
};

// Reads vocab.txt (one token per line; uncased unless tokenizer_config.json in its folder says
// otherwise) or the vocabulary and case setting of tokenizer.json.
std::shared_ptr<const WordPiece> read_word_piece(const std::filesystem::path& file);

// Learns `size` uncased pieces from a text: special tokens, all characters, then the most frequent
// byte pairs (see byte_pair.h). Throws if the text has too many distinct characters.
std::shared_ptr<const WordPiece> train_word_piece(std::string_view text, int64_t size);

// Splits a text into words, like BERT's basic tokeniser.
std::vector<std::string> basic_words(std::string_view text, bool lower_case);

}  // namespace artel::data
