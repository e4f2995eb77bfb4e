#include "artel/data/tables/unseen_names.h"

#include <fmt/format.h>

#include "artel/base/plural.h"
#include "artel/base/text.h"

namespace artel::data {
namespace {

constexpr size_t kExamples = 3;

}  // namespace

void UnseenNames::add(const std::string& column, std::string_view name) {
  Column& found = columns_[column];
  ++found.rows;
  if (found.examples.size() < kExamples) found.examples.emplace(name);
}

void UnseenNames::add(const UnseenNames& others) {
  for (const auto& [name, column] : others.columns_) {
    Column& found = columns_[name];
    found.rows += column.rows;
    for (const std::string& example : column.examples)
      if (found.examples.size() < kExamples) found.examples.insert(example);
  }
}

std::vector<std::string> UnseenNames::warnings() const {
  std::vector<std::string> lines;
  for (const auto& [name, column] : columns_)
    lines.push_back(fmt::format(
        "column '{}': {} with names that the training data does not have, such as '{}'; they count "
        "as missing",
        name, counted(column.rows, "row"),
        join({column.examples.begin(), column.examples.end()}, "', '")));
  return lines;
}

}  // namespace artel::data
