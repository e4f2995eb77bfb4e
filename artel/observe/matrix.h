// Displays a matrix of counts, such as a confusion matrix.
//
//   artel::write_file_atomically("cats.svg", artel::observe::matrix_svg({.title = "confusion",
//       .row_label = "label", .column_label = "answer", .names = {"cat", "dog"},
//       .counts = {40, 2, 5, 53}}));
#pragma once

#include <string>
#include <vector>

namespace artel::observe {

struct Matrix {
  std::string title, row_label, column_label;
  std::vector<std::string> names;  // of both rows and columns
  std::vector<double> counts;      // row by row
};

// SVG. Each cell shows its count; its darkness is its share of the row. With more than 40 names,
// cells have no text.
std::string matrix_svg(const Matrix& matrix);

// Plain text: the column names, then one line per row.
std::string matrix_text(const Matrix& matrix);

}  // namespace artel::observe
