// Texts, each with a class, as samples of tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/tables/csv.h"
#include "artel/data/text/tokenizer.h"

namespace artel::data {

struct LabelledTexts {
  std::vector<std::string> texts = {};
  std::vector<std::string> seconds = {};  // second texts of pairs; otherwise empty
  std::vector<int32_t> labels = {};
  std::vector<std::string> class_names = {};
};

// Reads a table. The class is in the column `target`, or the last one if "". Of the other columns,
// without those in `ignore`, the first is the text and the second, if present, its pair. Skips and
// logs rows without a text or a class. Throws for more columns, and for numbers instead of text.
LabelledTexts labelled_texts(const Table& table, const std::string& target,
                             const std::vector<std::string>& ignore = {});

// Renumbers the classes according to other names. Throws for an unknown class; `where` names the
// texts in messages.
LabelledTexts with_classes(LabelledTexts texts, const std::vector<std::string>& names,
                           const std::string& where);

// Turns texts into rows of `context` tokens: longer texts are cut, shorter ones padded.
// - WordPiece tokens, for networks of the BERT family: [CLS] text [SEP] and padding. Pairs also
//   have token types.
// - Other tokens, for language models that read from left to right: the text, then end tokens
//   ("<|endoftext|>", or a line feed if the vocabulary lacks it), at least one. The last position
//   has seen the whole text.
class TextRows {
 public:
  struct Row {
    std::vector<int32_t> tokens;
    std::vector<int32_t> types = {};  // of pairs
    bool cut = false;                 // the text was longer than the context
  };

  TextRows(TokenizerPtr tokenizer, int64_t context);
  // Throws for a pair of texts unless the tokens are WordPiece's.
  Row row(const std::string& text, const std::optional<std::string>& second = {}) const;

 private:
  TokenizerPtr tokenizer_;
  int64_t context_;
  int32_t end_ = 0;  // not for WordPiece
};

// Samples i32 [context], or [2, context] with token types for pairs. The log says how many were
// cut.
DatasetPtr labelled_text(const LabelledTexts& texts, const TokenizerPtr& tokenizer,
                         int64_t context);

}  // namespace artel::data
