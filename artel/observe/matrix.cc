#include "artel/observe/matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/observe/table.h"
#include "artel/observe/xml_text.h"

namespace artel::observe {
namespace {

void check_size(const Matrix& matrix) {
  require(matrix.counts.size() == matrix.names.size() * matrix.names.size(),
          ErrorKind::invalid_argument, "[matrix] got {} counts for {} names, expected {}",
          matrix.counts.size(), matrix.names.size(), matrix.names.size() * matrix.names.size());
}

}  // namespace

std::string matrix_svg(const Matrix& matrix) {
  check_size(matrix);
  constexpr size_t kMostTexts = 40;
  const size_t size = matrix.names.size();
  const bool texts = size <= kMostTexts;
  size_t longest = 0;
  for (const std::string& name : matrix.names) longest = std::max(longest, name.size());
  const double cell = texts ? 46 : 12,
               margin = 40 + (texts ? 7.0 * static_cast<double>(longest) : 0);
  const double width = margin + cell * static_cast<double>(size) + 20;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{0:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {0:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"10\" y=\"18\" font-size=\"14\">{1} (rows: {2}, columns: {3})</text>\n",
      width, xml_text(matrix.title), xml_text(matrix.row_label), xml_text(matrix.column_label));
  for (size_t row = 0; row < size; ++row) {
    const double y = margin + cell * static_cast<double>(row);
    const double middle = y + cell / 2;
    if (texts)
      svg += fmt::format(
          "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"end\">{2}</text>\n"
          "<text transform=\"translate({3:.1f},{0:.1f}) rotate(-90)\">{2}</text>\n",
          margin - 6, middle + 4, xml_text(matrix.names[row]), middle + 4);
    double total = 0;
    for (size_t column = 0; column < size; ++column) total += matrix.counts[row * size + column];
    for (size_t column = 0; column < size; ++column) {
      const double count = matrix.counts[row * size + column];
      const double share = total > 0 ? count / total : 0,
                   x = margin + cell * static_cast<double>(column);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#1f77b4\" "
          "fill-opacity=\"{:.3f}\" stroke=\"#ccc\"/>\n",
          x, y, cell, cell, share);
      if (texts)
        svg += fmt::format(
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{:g}</text>\n",
            x + cell / 2, middle + 4, share > 0.6 ? "white" : "black", count);
    }
  }
  return svg + "</svg>\n";
}

std::string matrix_text(const Matrix& matrix) {
  check_size(matrix);
  const size_t size = matrix.names.size();
  std::vector<std::string> headers = {
      fmt::format("{} \\ {}", matrix.row_label, matrix.column_label)};
  headers.insert(headers.end(), matrix.names.begin(), matrix.names.end());
  Table table(headers);
  for (size_t row = 0; row < size; ++row) {
    std::vector<std::string> cells = {matrix.names[row]};
    for (size_t column = 0; column < size; ++column)
      cells.push_back(fmt::format("{:g}", matrix.counts[row * size + column]));
    table.add(cells);
  }
  return table.text();
}

}  // namespace artel::observe
