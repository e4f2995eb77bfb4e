#include "artel/data/labelled_text.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/base/log.h"

namespace artel::data {
namespace {

constexpr int32_t kLargestLabel = 1'000'000;

const std::string& cell(const Table& table, const Column& column, int64_t row) {
  require(column.codes[row] >= 0, ErrorKind::corrupt, "[{}] row {}: '{}' is missing", table.name,
          row + 1, column.name);
  return column.categories[column.codes[row]];
}

int32_t label(const Table& table, const Column& column, int64_t row) {
  if (column.categorical) cell(table, column, row);  // throws if it is missing
  const double value = column.categorical ? column.codes[row] : column.numbers[row];
  require(value >= 0 && value <= kLargestLabel && value == std::floor(value), ErrorKind::corrupt,
          "[{}] row {}: '{}' is not a class: got {}, expected a whole number from 0 to {}",
          table.name, row + 1, column.name, value, kLargestLabel);
  return static_cast<int32_t>(value);
}

const Column& find_target(const Table& table, const std::string& name) {
  if (name.empty()) return table.columns.back();
  const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  require(found != table.columns.end(), ErrorKind::not_found, "[{}] no column is called '{}'",
          table.name, name);
  return *found;
}

}  // namespace

LabelledTexts labelled_texts(const Table& table, const std::string& target) {
  require(table.rows > 0, ErrorKind::invalid_argument, "[{}] has no rows, expected texts",
          table.name);
  const Column& labels = find_target(table, target);
  std::vector<const Column*> texts;
  for (const Column& column : table.columns)
    if (&column != &labels) texts.push_back(&column);
  require(texts.size() == 1 || texts.size() == 2, ErrorKind::invalid_argument,
          "[{}] got {} columns besides the target '{}', expected a text or two", table.name,
          texts.size(), labels.name);
  for (const Column* column : texts)
    require(column->categorical, ErrorKind::invalid_argument,
            "[{}] column '{}': got numbers, expected texts", table.name, column->name);
  LabelledTexts result;
  for (int64_t row = 0; row < table.rows; ++row) {
    result.texts.push_back(cell(table, *texts[0], row));
    if (texts.size() == 2) result.seconds.push_back(cell(table, *texts[1], row));
    result.labels.push_back(label(table, labels, row));
  }
  if (labels.categorical) result.class_names = labels.categories;
  return result;
}

DatasetPtr labelled_text(const LabelledTexts& texts,
                         const std::shared_ptr<const WordPiece>& tokenizer, int64_t context) {
  const auto rows = static_cast<int64_t>(texts.texts.size());
  require(rows > 0, ErrorKind::invalid_argument, "[labelled text] there is no text");
  const bool pairs = !texts.seconds.empty();
  Tensor inputs(pairs ? Shape{rows, 2, context} : Shape{rows, context}, DType::i32);
  int32_t* out = inputs.values<int32_t>().data();
  int64_t cut = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const WordPiece::Sentence sentence = tokenizer->sentence(
        texts.texts[row], pairs ? texts.seconds[row] : std::string(), context, true);
    cut += sentence.cut;
    out = std::copy(sentence.tokens.begin(), sentence.tokens.end(), out);
    if (pairs) out = std::copy(sentence.types.begin(), sentence.types.end(), out);
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
