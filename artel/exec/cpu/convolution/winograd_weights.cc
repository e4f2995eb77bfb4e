#include <algorithm>
#include <vector>

#include "artel/exec/cpu/convolution/winograd.h"
#include "artel/exec/cpu/convolution/winograd_transform.h"
#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/rows/sum_passes.h"

namespace artel::kernels {
namespace {

// dw = G^T [ sum over tiles (B^T x B)^T (A dy A^T) ] G.
//
// Tiles are taken in blocks of a size fixed by the shape: all threads transform the input of a
// block, then each takes blocks of output channels. Both transforms write panels, so the products
// read their operands in order. The sums of all elements are kept between blocks; when one block
// holds all tiles they never leave the cache.
//
// Several lanes with few tiles are transformed together. Each block of dw then receives the sums of
// one lane after another. They are transformed back and added in tree order while they are in the
// L2 cache.
class WinogradWeights final : public ConvKernel {
 public:
  WinogradWeights(const ConvShape& s, int output, int threads, int lanes)
      : output_(output),
        elements_(winograd_elements(output)),
        threads_(threads),
        lanes_(lanes),
        c_(s.c),
        k_(s.k),
        images_(s.n) {
    in_ = {s.h, s.w, s.c, s.pad_top, s.pad_left};
    out_ = {s.out_h(), s.out_w(), s.k, 0, 0};
    in_.tiles_h = out_.tiles_h = divide_up(out_.height, output);
    in_.tiles_w = out_.tiles_w = divide_up(out_.width, output);
    block_panels_ = std::clamp<int64_t>(divide_up(panel_count(k_), threads), 1, kBlockPanels);
    sum_row_ = block_panels_ * panel_width();
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (pass_floats() + stack_floats(lanes_, tiles_of(images_) * lanes_,
                                                         kMostTiles, weights()));
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    run_lane(pool, {x, dy, dw, images_}, dw, reinterpret_cast<float*>(workspace));
  }

  bool joins() const override { return true; }

  void run_sums(ThreadPool& pool, std::span<const ConvLane> lanes, std::span<const int> merges,
                std::byte* workspace) const override {
    auto* memory = reinterpret_cast<float*>(workspace);
    std::vector<int64_t> terms;
    for (const ConvLane& lane : lanes) terms.push_back(tiles_of(lane.images));
    run_passes(pool, sum_passes(terms, merges, kMostTiles), weights(), lanes[0].out,
               memory + pass_floats(), [&](const SumPass& pass, float* sum) {
                 if (pass.last - pass.first == 1)
                   run_lane(pool, lanes[pass.first], sum, memory);
                 else
                   run_pass(pool, lanes.subspan(pass.first, pass.last - pass.first),
                            merges_inside(pass, merges), sum, memory);
               });
  }

 private:
  static constexpr int64_t kMostTiles = 256;  // in a single block
  static constexpr int64_t kBlockTiles = 128;
  static constexpr int64_t kBlockPanels = 4;
  static constexpr int64_t kJointRows = 12;  // a tile of products; their sums are in the L2 cache

  // Tiles that are transformed at a time.
  struct Blocks {
    Blocks(const WinogradWeights& conv, int64_t tiles_in) : tiles(tiles_in) {
      const int64_t group = tiles * panel_width();
      in_layout = {panel_count(conv.c_) * group + kWinogradShift, panel_width(), group};
      out_layout = {conv.block_panels_ * group + kWinogradShift, panel_width(), group};
      in_floats = conv.elements_ * in_layout.element;
      out_floats = conv.elements_ * out_layout.element;
    }

    int64_t tiles;
    TransformedLayout in_layout, out_layout;
    int64_t in_floats, out_floats;
  };

  int64_t weights() const { return kWinogradTaps * c_ * k_; }
  int64_t tiles_of(int64_t images) const { return images * out_.tiles_h * out_.tiles_w; }
  int64_t panel_blocks() const { return divide_up(panel_count(k_), block_panels_); }
  // The sums of all elements for some rows of dw and a block of columns.
  int64_t sum_element(int64_t rows) const { return rows * sum_row_ + kWinogradShift; }
  int64_t sum_floats(int64_t rows) const { return elements_ * sum_element(rows); }
  // A part of dw, as a dense array.
  int64_t part_floats() const { return aligned_floats(kWinogradTaps * kJointRows * sum_row_); }

  static int64_t block_of(int64_t tiles) {
    const int64_t blocks = tiles <= kMostTiles ? 1 : divide_up(tiles, kBlockTiles);
    return std::max<int64_t>(1, divide_up(tiles, blocks));
  }

  int64_t lane_floats(int64_t tiles) const {
    const Blocks blocks(*this, block_of(tiles));
    const int64_t sums = tiles <= kMostTiles ? threads_ : panel_blocks();
    return blocks.in_floats + threads_ * blocks.out_floats + sums * sum_floats(c_);
  }

  int64_t pass_floats() const {
    const int64_t own = tiles_of(images_);
    int64_t floats = lane_floats(own);
    if (lanes_ == 1) return floats;
    if (own > kMostTiles) floats = std::max(floats, lane_floats(kMostTiles));  // of smaller lanes
    const Blocks joint(*this, std::min(own * lanes_, kMostTiles));
    const int64_t slot =
        joint.out_floats + sum_floats(kJointRows) + most_levels(lanes_) * part_floats();
    return std::max(floats, joint.in_floats + threads_ * slot);
  }

  void transform_input(ThreadPool& pool, std::span<const ConvLane> lanes, const Blocks& blocks,
                       int64_t first, int64_t tiles, float* input) const {
    constexpr int64_t kChunk = 8;
    for_each_with_slot(pool, threads_, divide_up(tiles, kChunk), [&](int64_t, int64_t chunk) {
      const int64_t begin = chunk * kChunk;
      for_each_lane(lanes, tiles_of(1), first + begin, std::min(kChunk, tiles - begin),
                    [&](const ConvLane& lane, int64_t from, int64_t count, int64_t at) {
                      winograd_input(output_, in_, lane.first, from, count, blocks.in_layout,
                                     input + (begin + at) * blocks.in_layout.tile);
                    });
    });
  }

  void transform_gradient(std::span<const ConvLane> lanes, const Blocks& blocks, int64_t first,
                          int64_t tiles, int64_t column, int64_t columns, float* gradient) const {
    for_each_lane(lanes, tiles_of(1), first, tiles,
                  [&](const ConvLane& lane, int64_t from, int64_t count, int64_t at) {
                    winograd_output_gradient(output_, out_, lane.second, from, count,
                                             {column, columns}, blocks.out_layout,
                                             gradient + at * blocks.out_layout.tile);
                  });
  }

  void run_lane(ThreadPool& pool, const ConvLane& lane, float* dw, float* input) const {
    const int64_t all = tiles_of(lane.images);
    const Blocks blocks(*this, block_of(all));
    const bool single = all <= kMostTiles;
    float* gradients = input + blocks.in_floats;
    float* sums = gradients + threads_ * blocks.out_floats;
    if (all == 0) std::fill_n(dw, weights(), 0.f);
    for (int64_t first = 0; first < all; first += blocks.tiles) {
      const int64_t tiles = std::min(blocks.tiles, all - first);
      transform_input(pool, {&lane, 1}, blocks, first, tiles, input);
      for_each_with_slot(pool, threads_, panel_blocks(), [&](int64_t slot, int64_t block) {
        float* gradient = gradients + slot * blocks.out_floats;
        float* sum = sums + (single ? slot : block) * sum_floats(c_);
        const int64_t column = block * sum_row_, columns = std::min(sum_row_, k_ - column);
        transform_gradient({&lane, 1}, blocks, first, tiles, column, columns, gradient);
        accumulate(blocks, input, gradient, {0, 0, tiles}, {0, c_}, columns, first > 0, sum);
        if (first + tiles == all)
          winograd_weights_gradient(output_, sum, sum_element(c_), sum_row_, c_, columns, {},
                                    dw + column, c_ * k_, k_);
      });
    }
  }

  void run_pass(ThreadPool& pool, std::span<const ConvLane> lanes, const std::vector<int>& merges,
                float* dw, float* input) const {
    const Blocks blocks(*this, tiles_of(images_of(lanes)));
    transform_input(pool, lanes, blocks, 0, blocks.tiles, input);
    float* slots = input + blocks.in_floats;
    const int64_t slot_floats =
        blocks.out_floats + sum_floats(kJointRows) + most_levels(lanes_) * part_floats();
    for_each_with_slot(pool, threads_, panel_blocks(), [&](int64_t slot, int64_t block) {
      float* gradient = slots + slot * slot_floats;
      float* sum = gradient + blocks.out_floats;
      float* parts = sum + sum_floats(kJointRows);
      const int64_t column = block * sum_row_, columns = std::min(sum_row_, k_ - column);
      transform_gradient(lanes, blocks, 0, blocks.tiles, column, columns, gradient);
      for (int64_t row = 0; row < c_; row += kJointRows) {
        const int64_t rows = std::min(kJointRows, c_ - row);
        sum_part(lanes, merges, blocks, input, gradient, {row, rows}, columns, sum, parts);
        for (int64_t tap = 0; tap < kWinogradTaps; ++tap)
          for (int64_t i = 0; i < rows; ++i)
            std::copy_n(parts + (tap * kJointRows + i) * sum_row_, columns,
                        dw + (tap * c_ + row + i) * k_ + column);
      }
    });
  }

  struct Rows {
    int64_t first, count;
  };

  // The sum over lanes of some rows and columns of dw, as the first of `parts`.
  void sum_part(std::span<const ConvLane> lanes, const std::vector<int>& merges,
                const Blocks& blocks, const float* input, const float* gradient, Rows rows,
                int64_t columns, float* sum, float* parts) const {
    int depth = 0;
    int64_t at = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      const int64_t tiles = tiles_of(lanes[i].images);
      accumulate(blocks, input, gradient, {at * panel_width(), at, tiles}, rows, columns, false,
                 sum);
      winograd_weights_gradient(output_, sum, sum_element(rows.count), sum_row_, rows.count,
                                columns, {merges[i], part_floats()}, parts + depth * part_floats(),
                                kJointRows * sum_row_, sum_row_);
      depth += 1 - merges[i];
      at += tiles;
    }
  }

  // The products of all elements over the tiles of a segment, for some rows of dw.
  void accumulate(const Blocks& blocks, const float* input, const float* gradient,
                  const Segment& tiles, Rows rows, int64_t columns, bool add, float* sum) const {
    const int64_t width = panel_width();
    std::vector<const float*> a(rows.count);
    std::vector<float*> c(rows.count);
    for (int64_t i = 0; i < rows.count; ++i) {
      const int64_t row = rows.first + i;
      a[i] = input + row / width * blocks.in_layout.group + row % width;
      c[i] = sum + i * sum_row_;
    }
    for (int64_t e = 0; e < elements_; ++e) {
      multiply_panels({.a = a,
                       .a_step = width,
                       .c = c,
                       .columns = columns,
                       .segments = {&tiles, 1},
                       .panels = gradient + e * blocks.out_layout.element,
                       .panel_stride = blocks.out_layout.group,
                       .accumulate = add});
      for (const float*& row : a) row += blocks.in_layout.element;
      for (float*& row : c) row += sum_element(rows.count);
    }
  }

  int output_;
  int64_t elements_;
  int threads_, lanes_;
  int64_t c_, k_, images_;
  TileGrid in_, out_;
  int64_t block_panels_, sum_row_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_weights(const ConvShape& shape, int output, int threads,
                                                  int lanes) {
  return std::make_unique<WinogradWeights>(shape, output, threads, lanes);
}

}  // namespace artel::kernels
