// A matrix of counts as a picture: confusion matrices.
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
  std::vector<std::string> names;  // of the rows, and of the columns
  std::vector<double> counts;      // row by row
};

// As SVG: each cell shows its count, and how dark it is its share of the row. Cells of more than 40
// names have no text.
std::string matrix_svg(const Matrix& matrix);

// As text: a line for each row, below the names of the columns.
std::string matrix_text(const Matrix& matrix);

}  // namespace artel::observe
