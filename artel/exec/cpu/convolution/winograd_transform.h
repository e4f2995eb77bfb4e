// The transforms of Winograd's minimal filtering F(o x o, 3x3), o = 2 or 4, on NHWC images.
//
// An image is cut into tiles of o x o outputs; each tile needs (o + 2)^2 inputs. With constant
// matrices A, B and G (Lavin and Gray, 2015) the convolution of a tile is
//   y = A^T [ (G w G^T) . (B^T x B) ] A,
// where the product is element-wise over (o + 2)^2 elements and sums over channels, so each element
// is one matrix product over tiles and channels. The transposed formulas give the gradients. All
// functions are vectorised over channels and run in the calling thread.
#pragma once

#include <cstdint>

namespace artel::kernels {

inline constexpr int64_t kWinogradTaps = 9;

// Offset in floats, one cache line, added to the distance between the elements of a transformed
// buffer. They are accessed together, and power-of-two distances would map them to one cache set.
inline constexpr int64_t kWinogradShift = 16;

inline int64_t winograd_elements(int output) { return (output + 2) * (output + 2); }

// An image whose tile (i, j) begins at (i * output - top, j * output - left); what lies outside
// reads as zero and is not written. Tiles are counted over images, rows and columns.
struct TileGrid {
  int64_t height, width, channels;
  int64_t top, left;
  int64_t tiles_h, tiles_w;
};

// Where transformed values lie: element e of tile t (counted from the first of the call) and
// channel c is at e * element + t * tile + c / panel_width() * group + c % panel_width().
struct TransformedLayout {
  int64_t element, tile, group;
};

// The channels [begin, begin + count) of an image; begin is a multiple of panel_width().
struct ChannelRange {
  int64_t begin, count;
};

// B^T x B for `tiles` tiles from tile `first` on.
void winograd_input(int output, const TileGrid& grid, const float* image, int64_t first,
                    int64_t tiles, const TransformedLayout& layout, float* transformed);

// A dy A^T, of some channels.
void winograd_output_gradient(int output, const TileGrid& grid, const float* image, int64_t first,
                              int64_t tiles, ChannelRange channels, const TransformedLayout& layout,
                              float* transformed);

// A^T m A + bias, of some channels, into the image; m is [element][tile][row_stride].
void winograd_output(int output, const TileGrid& grid, const float* transformed,
                     int64_t element_stride, int64_t row_stride, int64_t first, int64_t tiles,
                     ChannelRange channels, const float* bias, bool relu, float* image);

// G w G^T for taps [9][tap_rows][panel_width()], of which `rows` are used, into [element][rows]
// [panel_width()].
void winograd_weights(int output, const float* taps, int64_t tap_stride, int64_t rows,
                      float* transformed, int64_t element_stride);

// Parts of a sum that lie at equal distances before another one in memory.
struct PartsBelow {
  int count = 0;
  int64_t distance = 0;
};

// G^T u G for u [element][rows][row_stride] into dw [9][rows][columns]. If there are parts below
// dw, adds them one after another and writes the sum to the lowest instead.
void winograd_weights_gradient(int output, const float* transformed, int64_t element_stride,
                               int64_t row_stride, int64_t rows, int64_t columns,
                               const PartsBelow& below, float* dw, int64_t tap_stride,
                               int64_t dw_row_stride);

}  // namespace artel::kernels
