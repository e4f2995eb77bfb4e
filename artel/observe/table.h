// A table in plain text, with columns as wide as their longest cell.
//
//   artel::observe::Table table({"network", "accuracy"});
//   table.add({"lenet5", "0.991"});
//   artel::println("{}", table.text());
#pragma once

#include <string>
#include <vector>

namespace artel::observe {

// Columns whose cells are all numbers (with or without a unit) are aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // Missing cells at the end are empty; more cells than headers throw an Error.
  void add(std::vector<std::string> cells);

  // A line of headers, a rule and a line for each row; each ends with a line feed.
  std::string text() const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace artel::observe
