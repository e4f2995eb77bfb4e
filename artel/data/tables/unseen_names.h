// Category names in new rows that are absent from the training rows. The encoder treats them as
// missing.
//
//   artel::data::UnseenNames unseen;
//   unseen.add("colour", "mauve");
//   for (const std::string& line : unseen.warnings()) artel::println("{}", line);
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace artel::data {

class UnseenNames {
 public:
  void add(const std::string& column, std::string_view name);
  void add(const UnseenNames& others);
  // One line for each column.
  std::vector<std::string> warnings() const;

 private:
  struct Column {
    int64_t rows = 0;
    std::set<std::string> examples;
  };
  std::map<std::string, Column> columns_;
};

}  // namespace artel::data
