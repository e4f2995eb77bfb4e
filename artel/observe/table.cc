#include "artel/observe/table.h"

#include <algorithm>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::observe {
namespace {

// Counts characters, not bytes: continuation bytes of UTF-8 do not take a column.
size_t columns(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool starts_as_number(const std::string& cell) {
  const size_t at = cell.find_first_not_of("+-.<>~");
  return cell.empty() || (at != cell.npos && cell[at] >= '0' && cell[at] <= '9');
}

std::string padded(const std::string& cell, size_t width, bool right) {
  const std::string blanks(width - columns(cell), ' ');
  return right ? blanks + cell : cell + blanks;
}

}  // namespace

Table::Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}

void Table::add(std::vector<std::string> cells) {
  require(cells.size() <= headers_.size(), ErrorKind::invalid_argument,
          "[table] row: got {} cells, expected at most {}", cells.size(), headers_.size());
  cells.resize(headers_.size());
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (size_t i = 0; i < headers_.size(); ++i) {
    size_t width = columns(headers_[i]);
    bool numbers = !rows_.empty();
    for (const auto& row : rows_) {
      width = std::max(width, columns(row[i]));
      numbers = numbers && starts_as_number(row[i]);
    }
    widths.push_back(width);
    right.push_back(numbers);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string row;
    for (size_t i = 0; i < cells.size(); ++i)
      row += (i ? "  " : "") + padded(cells[i], widths[i], right[i]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
  };
  line(headers_);
  std::vector<std::string> rules;
  for (const size_t width : widths) rules.emplace_back(width, '-');
  line(rules);
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace artel::observe
