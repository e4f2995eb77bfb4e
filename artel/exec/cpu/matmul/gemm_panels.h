// The inner loops of all products: rows of A, read in place, times packed panels of B.
//
// Matrix products and all convolution algorithms reduce to one primitive. Each row of A and of C is
// given by a pointer, so rows may be matrix rows, image patches, transformed tiles or columns of a
// transposed matrix. B is packed into panels of panel_width() columns: panel j holds
// [k][panel_width()] floats, padded with zeros on the right.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace artel::kernels {

// Columns of a panel: two vectors of the machine.
int64_t panel_width();
// Rows of C that are summed in registers at a time.
int64_t tile_rows();

// Part of the summation: `length` steps that start `a` elements after each row pointer and at row
// `b` of the panels. A patch of an image has one segment for each kernel row.
struct Segment {
  int64_t a, b, length;
};

// Ends a part of the summation after the first `segments` segments. The part's sum is put on a
// stack, then the two topmost sums are replaced by their sum, `merges` times. So parts are added in
// the order of any binary tree, in registers.
struct SumCut {
  int64_t segments;
  int merges;
};

// The largest number of sums that may be on the stack.
inline constexpr int kMostStackedSums = 8;

// Memory that the caller will read next: it is fetched into the L2 cache during the product.
struct Ahead {
  const float* first = nullptr;
  int64_t rows = 0, stride = 0;  // in floats
  int64_t bytes = 0;             // of each row
};

// c[i][j] = min(most, relu(alpha * sum_p a[i][p * a_step] * b[p][j] [+ c[i][j]] [+ bias[j]]))
struct PanelProduct {
  std::span<const float* const> a;
  int64_t a_step = 1;
  std::span<float* const> c;  // as many rows as `a`
  int64_t columns = 0;
  std::span<const Segment> segments;
  std::span<const SumCut> cuts = {};  // none: one sum; else one sum is left after the last
  const float* panels = nullptr;
  int64_t panel_stride = 0;  // floats from one panel to the next
  bool accumulate = false;
  float alpha = 1;
  const float* bias = nullptr;  // one value for each column
  bool relu = false;
  float most = std::numeric_limits<float>::infinity();
  Ahead ahead = {};
};

// The number of panels that hold n columns, and the floats of panels with k rows.
inline int64_t panel_count(int64_t n) { return (n + panel_width() - 1) / panel_width(); }
inline int64_t panel_floats(int64_t k, int64_t n) { return panel_count(n) * k * panel_width(); }

void multiply_panels(const PanelProduct& product);

// Packs the k x n matrix b (stored n x k when transposed) into panels.
void pack_panels(const float* b, int64_t ldb, bool transposed, int64_t k, int64_t n, float* panels,
                 int64_t panel_stride);

// Packs the columns of a [k, rows], which are the rows of a transposed left factor, into tiles of
// tile_rows() of them: tile i holds [k][tile_rows()] floats.
void pack_tiles(const float* a, int64_t lda, int64_t k, int64_t rows, float* tiles,
                int64_t tile_stride);

}  // namespace artel::kernels
