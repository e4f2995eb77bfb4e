// A plain-text table with columns as wide as their longest cell.
//
//   artel::observe::Table table({"network", "accuracy"});
//   table.add({"lenet5", "0.991"});
//   artel::println("{}", table.text());
#pragma once

#include <string>
#include <vector>

namespace artel::observe {

// Columns of numbers (with or without a unit) are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // Missing cells at the end are empty. Throws an Error if `cells` is longer than the headers.
  void add(std::vector<std::string> cells);

  // A line of headers, a rule, and a line per row. Each ends with a line feed.
  std::string text() const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace artel::observe
