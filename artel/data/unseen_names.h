// Category names in new rows that the training rows did not have. The encoder treats them as
// missing.
//
//   artel::data::UnseenNames unseen;
//   unseen.add("colour", "mauve");
//   for (const std::string& line : unseen.warnings()) artel::log(artel::LogLevel::warning, "{}",
//   line);
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/plural.h"
#include "artel/base/text.h"

namespace artel::data {

class UnseenNames {
 public:
  void add(const std::string& column, std::string_view name) {
    Column& found = columns_[column];
    ++found.rows;
    if (found.examples.size() < kExamples) found.examples.emplace(name);
  }

  void add(const UnseenNames& others) {
    for (const auto& [name, column] : others.columns_) {
      Column& found = columns_[name];
      found.rows += column.rows;
      for (const std::string& example : column.examples)
        if (found.examples.size() < kExamples) found.examples.insert(example);
    }
  }

  // One line for each column.
  std::vector<std::string> warnings() const {
    std::vector<std::string> lines;
    for (const auto& [name, column] : columns_)
      lines.push_back(fmt::format(
          "column '{}': {} with names that the training data does not have, such as '{}'; they "
          "count as missing",
          name, counted(column.rows, "row"),
          join({column.examples.begin(), column.examples.end()}, "', '")));
    return lines;
  }

 private:
  static constexpr size_t kExamples = 3;
  struct Column {
    int64_t rows = 0;
    std::set<std::string> examples;
  };
  std::map<std::string, Column> columns_;
};

}  // namespace artel::data
