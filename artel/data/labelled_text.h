// Texts, each with a class, for networks of the BERT family.
#pragma once

#include <string>
#include <vector>

#include "artel/data/csv.h"
#include "artel/data/dataset.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {

struct LabelledTexts {
  std::vector<std::string> texts = {};
  std::vector<std::string> seconds = {};  // of pairs; else empty
  std::vector<int32_t> labels = {};
  std::vector<std::string> class_names = {};
};

// From a table: the class is in the column `target` ("": the last); of the other columns, without
// those in `ignore`, the first is the text and the second, if any, its second part. Rows without a
// text or a class are left out, which the log says. Throws for more columns, and for numbers where
// text should be.
LabelledTexts labelled_texts(const Table& table, const std::string& target,
                             const std::vector<std::string>& ignore = {});

// The same texts with the numbers that their classes have among other names. Throws for a class
// that is not among them; `where` names the texts in messages.
LabelledTexts with_classes(LabelledTexts texts, const std::vector<std::string>& names,
                           const std::string& where);

// Samples of `context` tokens with [CLS] and [SEP], longer texts cut, shorter ones padded: i32
// [context], or [2, context] with token types for pairs. The log says how many were cut.
DatasetPtr labelled_text(const LabelledTexts& texts,
                         const std::shared_ptr<const WordPiece>& tokenizer, int64_t context);

}  // namespace artel::data
