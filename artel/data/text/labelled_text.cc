#include "artel/data/text/labelled_text.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {
namespace {

constexpr int32_t kLargestLabel = 1'000'000;

const std::string& cell(const Column& column, int64_t row) {
  return column.categories[column.codes[row]];
}

int32_t label(const Table& table, const Column& column, int64_t row) {
  const double value = column.categorical ? column.codes[row] : column.numbers[row];
  require(value >= 0 && value <= kLargestLabel && value == std::floor(value), ErrorKind::corrupt,
          "[{}] row {}: '{}' is not a class: got {}, expected a whole number from 0 to {}",
          table.name, row + 1, column.name, value, kLargestLabel);
  return static_cast<int32_t>(value);
}

int32_t end_token(const Tokenizer& tokenizer) {
  const std::vector<std::string>& names = tokenizer.names();
  const auto end = std::find(names.begin(), names.end(), kEndOfText);
  if (end != names.end()) return static_cast<int32_t>(end - names.begin());
  return tokenizer.encode("\n").front();
}

}  // namespace

LabelledTexts labelled_texts(const Table& table, const std::string& target,
                             const std::vector<std::string>& ignore) {
  require(table.rows > 0, ErrorKind::invalid_argument, "[{}] has no rows, expected texts",
          table.name);
  const Column& labels = target.empty() ? table.columns.back() : find_column(table, target);
  for (const std::string& name : ignore) find_column(table, name);  // throws for an unknown column
  std::vector<const Column*> texts;
  for (const Column& column : table.columns)
    if (&column != &labels && std::find(ignore.begin(), ignore.end(), column.name) == ignore.end())
      texts.push_back(&column);
  require(texts.size() == 1 || texts.size() == 2, ErrorKind::invalid_argument,
          "[{}] got {} columns besides the target '{}', expected a text or two; leave others "
          "out with data.ignore",
          table.name, texts.size(), labels.name);
  for (const Column* column : texts)
    require(column->categorical, ErrorKind::invalid_argument,
            "[{}] column '{}': got numbers, expected texts; leave it out with data.ignore",
            table.name, column->name);
  LabelledTexts result;
  for (int64_t row = 0; row < table.rows; ++row) {
    if (is_missing(labels, row) || std::any_of(texts.begin(), texts.end(), [&](const Column* text) {
          return is_missing(*text, row);
        }))
      continue;
    result.texts.push_back(cell(*texts[0], row));
    if (texts.size() == 2) result.seconds.push_back(cell(*texts[1], row));
    result.labels.push_back(label(table, labels, row));
  }
  require(!result.texts.empty(), ErrorKind::corrupt, "[{}] no row has both a text and a class",
          table.name);
  if (const int64_t without = table.rows - std::ssize(result.texts); without > 0)
    log(LogLevel::warning, "[{}] {} of {} rows are left out: their text or class is missing",
        table.name, format_count(without), format_count(table.rows));
  if (labels.categorical) result.class_names = labels.categories;
  return result;
}

LabelledTexts with_classes(LabelledTexts texts, const std::vector<std::string>& names,
                           const std::string& where) {
  require(texts.class_names.empty() == names.empty(), ErrorKind::invalid_argument,
          "[{}] classes are {} here, but {} among the texts for training", where,
          texts.class_names.empty() ? "numbers" : "names", names.empty() ? "numbers" : "names");
  std::vector<int32_t> numbers;
  for (const std::string& name : texts.class_names) {
    const auto place = std::find(names.begin(), names.end(), name);
    require(place != names.end(), ErrorKind::invalid_argument,
            "[{}] the class '{}' does not occur among the texts for training", where, name);
    numbers.push_back(static_cast<int32_t>(place - names.begin()));
  }
  if (!names.empty())
    for (int32_t& label : texts.labels) label = numbers[label];
  texts.class_names = names;
  return texts;
}

TextRows::TextRows(TokenizerPtr tokenizer, int64_t context)
    : tokenizer_(std::move(tokenizer)), context_(context) {
  require(context_ >= 2, ErrorKind::invalid_argument, "data.context: got {}, expected at least 2",
          context_);
  if (!std::dynamic_pointer_cast<const WordPiece>(tokenizer_)) end_ = end_token(*tokenizer_);
}

TextRows::Row TextRows::row(const std::string& text,
                            const std::optional<std::string>& second) const {
  if (const auto pieces = std::dynamic_pointer_cast<const WordPiece>(tokenizer_)) {
    WordPiece::Sentence sentence =
        pieces->sentence(text, second.value_or(""), context_, /*pad=*/true);
    if (!second) sentence.types.clear();
    return {std::move(sentence.tokens), std::move(sentence.types), sentence.cut};
  }
  require(!second, ErrorKind::unsupported,
          "[labelled text] got pairs of texts, which need WordPiece tokens and a network of the "
          "BERT family; try data.tokenizer = \"wordpiece 8192\"");
  Row result{tokenizer_->encode(text)};
  result.cut = std::ssize(result.tokens) >= context_;
  if (result.cut) result.tokens.resize(static_cast<size_t>(context_ - 1));
  result.tokens.resize(static_cast<size_t>(context_), end_);
  return result;
}

DatasetPtr labelled_text(const LabelledTexts& texts, const TokenizerPtr& tokenizer,
                         int64_t context) {
  const auto rows = static_cast<int64_t>(texts.texts.size());
  require(rows > 0, ErrorKind::invalid_argument,
          "[labelled text] got no texts, expected at least one");
  const bool pairs = !texts.seconds.empty();
  Tensor inputs(pairs ? Shape{rows, 2, context} : Shape{rows, context}, DType::i32);
  int32_t* out = inputs.values<int32_t>().data();
  int64_t cut = 0;
  const TextRows rows_of(tokenizer, context);
  for (int64_t row = 0; row < rows; ++row) {
    const TextRows::Row tokens =
        rows_of.row(texts.texts[row], pairs ? std::optional(texts.seconds[row]) : std::nullopt);
    cut += tokens.cut;
    out = std::copy(tokens.tokens.begin(), tokens.tokens.end(), out);
    if (pairs) out = std::copy(tokens.types.begin(), tokens.types.end(), out);
  }
  if (cut > 0)
    log(LogLevel::info, "{} of {} texts are longer than the context and cut to {} tokens", cut,
        rows, context);
  Tensor labels({rows}, DType::i32);
  std::copy(texts.labels.begin(), texts.labels.end(), labels.values<int32_t>().begin());
  return tensor_dataset(std::move(inputs), std::move(labels),
                        static_cast<int64_t>(texts.class_names.size()), texts.class_names,
                        tokenizer);
}

}  // namespace artel::data
