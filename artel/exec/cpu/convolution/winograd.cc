#include "artel/exec/cpu/convolution/winograd.h"

#include <algorithm>
#include <vector>

#include "artel/exec/cpu/convolution/winograd_transform.h"
#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"

namespace artel::kernels {
namespace {

// y = conv(x, w), and dx = conv(dy, flipped and transposed w), which has the same form.
//
// With many tiles the transformed weights are made once and each thread takes blocks of tiles
// through all stages. With few tiles (deep layers, where the weights are the bulk) the transformed
// input is shared and each thread takes blocks of output channels, whose transformed weights then
// live in the cache only. Neither choice changes the order of any sum.
class WinogradImage final : public ConvKernel {
 public:
  WinogradImage(const ConvShape& s, bool backward, int output, int threads, int lanes)
      : output_(output),
        elements_(winograd_elements(output)),
        threads_(threads),
        lanes_(lanes),
        backward_(backward),
        weight_rows_(s.c),
        weight_columns_(s.k),
        images_(s.n) {
    in_ = {s.h, s.w, s.c, s.pad_top, s.pad_left};
    out_ = {s.out_h(), s.out_w(), s.k, 0, 0};
    if (backward) {
      in_ = {s.out_h(), s.out_w(), s.k, 2 - s.pad_top, 2 - s.pad_left};
      out_ = {s.h, s.w, s.c, 0, 0};
    }
    in_.tiles_h = out_.tiles_h = divide_up(out_.height, output);
    in_.tiles_w = out_.tiles_w = divide_up(out_.width, output);
    panels_ = panel_count(out_.channels);
  }

  size_t workspace_bytes() const override {
    const int64_t own = images_ * tiles_of_image(), most = own * lanes_;
    int64_t floats = Blocks(*this, own).floats();
    if (lanes_ > 1) {
      // Any number of tiles up to `most` may run.
      floats = std::max(floats, Blocks(*this, std::min(most, kBlockTiles)).floats());
      if (most > kBlockTiles) floats = std::max(floats, Blocks(*this, most, kBlockTiles).floats());
    }
    return sizeof(float) * floats;
  }

  void run(ThreadPool& pool, const float* image, const float* weights, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    const ConvLane lane = {image, weights, out, images_};
    run_lanes(pool, {&lane, 1}, epilogue, workspace);
  }

  bool joins() const override { return true; }

  void run_lanes(ThreadPool& pool, std::span<const ConvLane> lanes, const ConvEpilogue& epilogue,
                 std::byte* workspace) const override {
    const Blocks blocks(*this, images_of(lanes) * tiles_of_image());
    float* shared = reinterpret_cast<float*>(workspace);
    if (blocks.by_tiles)
      run_by_tiles(pool, lanes, blocks, epilogue, shared);
    else
      run_by_panels(pool, lanes, blocks, epilogue, shared);
  }

 private:
  static constexpr int64_t kBlockTiles = 96;  // transformed: 1 to 4 MB, in the L3 cache
  static constexpr int64_t kBlockPanels = 4;

  // The partition of the tiles of all lanes.
  struct Blocks {
    Blocks(const WinogradImage& conv, int64_t tiles)
        : Blocks(conv, tiles, tiles > kBlockTiles ? even_block(tiles, conv.threads_) : tiles) {}
    Blocks(const WinogradImage& conv, int64_t tiles_in, int64_t block)
        : by_tiles(tiles_in > kBlockTiles),
          tiles(tiles_in),
          block_tiles(std::max<int64_t>(1, block)) {
      const int64_t most_panels = by_tiles ? kBlockPanels : divide_up(conv.panels_, conv.threads_);
      block_panels = std::clamp<int64_t>(most_panels, 1, kBlockPanels);
      in_layout.tile = aligned_floats(conv.in_.channels) + kWinogradShift;
      in_layout.group = panel_width();
      in_layout.element = block_tiles * in_layout.tile + kWinogradShift;
      product_row = block_panels * panel_width();
      product_element = block_tiles * product_row + kWinogradShift;
      const int64_t in_floats = conv.elements_ * in_layout.element;
      shared_floats = by_tiles ? conv.panels_ * conv.panel_floats() : in_floats;
      slot_floats = conv.taps_floats() + conv.elements_ * product_element +
                    (by_tiles ? in_floats : block_panels * conv.panel_floats());
      slots = conv.threads_;
    }

    static int64_t even_block(int64_t tiles, int threads) {
      return divide_up(tiles, divide_up(divide_up(tiles, kBlockTiles), threads) * threads);
    }
    int64_t floats() const { return shared_floats + slots * slot_floats; }

    bool by_tiles;
    int64_t tiles, block_tiles, block_panels;
    TransformedLayout in_layout;
    int64_t product_row, product_element;
    int64_t shared_floats, slot_floats, slots;
  };

  int64_t tiles_of_image() const { return out_.tiles_h * out_.tiles_w; }

  void transform_input(std::span<const ConvLane> lanes, const Blocks& blocks, int64_t first,
                       int64_t tiles, float* transformed) const {
    for_each_lane(lanes, tiles_of_image(), first, tiles,
                  [&](const ConvLane& lane, int64_t from, int64_t count, int64_t at) {
                    winograd_input(output_, in_, lane.first, from, count, blocks.in_layout,
                                   transformed + at * blocks.in_layout.tile);
                  });
  }

  void run_by_tiles(ThreadPool& pool, std::span<const ConvLane> lanes, const Blocks& blocks,
                    const ConvEpilogue& epilogue, float* shared) const {
    float* const slots = shared + blocks.shared_floats;
    for_each_with_slot(pool, threads_, panels_, [&](int64_t slot, int64_t panel) {
      transform_weights(lanes[0].second, panel, slots + slot * blocks.slot_floats,
                        shared + panel * panel_floats());
    });
    const int64_t count = divide_up(blocks.tiles, blocks.block_tiles);
    for_each_with_slot(pool, threads_, count, [&](int64_t slot, int64_t block) {
      float* transformed = slots + slot * blocks.slot_floats + taps_floats();
      float* product = transformed + elements_ * blocks.in_layout.element;
      const int64_t first = block * blocks.block_tiles;
      const int64_t tiles = std::min(blocks.block_tiles, blocks.tiles - first);
      transform_input(lanes, blocks, first, tiles, transformed);
      for (int64_t panel = 0; panel < panels_; panel += blocks.block_panels)
        multiply(lanes, blocks, transformed, shared + panel * panel_floats(), first, tiles, panel,
                 epilogue, product);
    });
  }

  void run_by_panels(ThreadPool& pool, std::span<const ConvLane> lanes, const Blocks& blocks,
                     const ConvEpilogue& epilogue, float* shared) const {
    constexpr int64_t kChunk = 6;
    for_each_with_slot(
        pool, threads_, divide_up(blocks.tiles, kChunk), [&](int64_t, int64_t chunk) {
          const int64_t first = chunk * kChunk;
          transform_input(lanes, blocks, first, std::min(kChunk, blocks.tiles - first),
                          shared + first * blocks.in_layout.tile);
        });
    const int64_t count = blocks.tiles == 0 ? 0 : divide_up(panels_, blocks.block_panels);
    for_each_with_slot(pool, threads_, count, [&](int64_t slot, int64_t block) {
      float* taps = shared + blocks.shared_floats + slot * blocks.slot_floats;
      float* block_weights = taps + taps_floats();
      float* product = block_weights + blocks.block_panels * panel_floats();
      const int64_t panel = block * blocks.block_panels;
      for (int64_t i = 0; i < std::min(blocks.block_panels, panels_ - panel); ++i)
        transform_weights(lanes[0].second, panel + i, taps, block_weights + i * panel_floats());
      multiply(lanes, blocks, shared, block_weights, 0, blocks.tiles, panel, epilogue, product);
    });
  }

  static constexpr int64_t kTapRows = 32;

  int64_t panel_floats() const { return elements_ * in_.channels * panel_width(); }
  int64_t taps_floats() const { return kWinogradTaps * kTapRows * panel_width(); }

  // One panel of transformed weights: [element][in channels][panel width].
  void transform_weights(const float* weights, int64_t panel, float* taps, float* out) const {
    const int64_t width = panel_width(), column = panel * width;
    const int64_t columns = std::min(width, out_.channels - column);
    for (int64_t row = 0; row < in_.channels; row += kTapRows) {
      const int64_t rows = std::min(kTapRows, in_.channels - row);
      for (int64_t tap = 0; tap < kWinogradTaps; ++tap) {
        const int64_t source = backward_ ? kWinogradTaps - 1 - tap : tap;
        const float* plane = weights + source * weight_rows_ * weight_columns_;
        const float* corner = backward_ ? plane + column * weight_columns_ + row
                                        : plane + row * weight_columns_ + column;
        pack_panels(corner, weight_columns_, backward_, rows, columns,
                    taps + tap * kTapRows * width, 0);
      }
      winograd_weights(output_, taps, kTapRows * width, rows, out + row * width,
                       in_.channels * width);
    }
  }

  // The products of all elements for a block of tiles and panels, and the way back to the images.
  void multiply(std::span<const ConvLane> lanes, const Blocks& blocks, const float* transformed,
                const float* weights, int64_t first, int64_t tiles, int64_t panel,
                const ConvEpilogue& epilogue, float* product) const {
    const int64_t column = panel * panel_width();
    const int64_t columns = std::min(blocks.product_row, out_.channels - column);
    const Segment all{0, 0, in_.channels};
    std::vector<const float*> a(tiles);
    std::vector<float*> c(tiles);
    for (int64_t e = 0; e < elements_; ++e) {
      for (int64_t i = 0; i < tiles; ++i) {
        a[i] = transformed + e * blocks.in_layout.element + i * blocks.in_layout.tile;
        c[i] = product + e * blocks.product_element + i * blocks.product_row;
      }
      multiply_panels({.a = a,
                       .c = c,
                       .columns = columns,
                       .segments = {&all, 1},
                       .panels = weights + e * in_.channels * panel_width(),
                       .panel_stride = panel_floats()});
    }
    for_each_lane(lanes, tiles_of_image(), first, tiles,
                  [&](const ConvLane& lane, int64_t from, int64_t count, int64_t at) {
                    winograd_output(output_, out_, product + at * blocks.product_row,
                                    blocks.product_element, blocks.product_row, from, count,
                                    {column, columns}, epilogue.bias, epilogue.relu, lane.out);
                  });
  }

  int output_;
  int64_t elements_;
  int threads_, lanes_;
  bool backward_;
  int64_t weight_rows_, weight_columns_, images_;
  TileGrid in_, out_;
  int64_t panels_;
};

}  // namespace

bool winograd_applies(const ConvShape& s) {
  const auto small = [](int64_t padding) { return padding >= 0 && padding <= 2; };
  return s.kh == 3 && s.kw == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.groups == 1 && small(s.pad_top) && small(s.pad_left) &&
         small(s.pad_bottom) && small(s.pad_right);
}

std::unique_ptr<ConvKernel> make_winograd(const ConvShape& shape, ConvPass pass, int output,
                                          int threads, int lanes) {
  if (pass == ConvPass::backward_weights)
    return make_winograd_weights(shape, output, threads, lanes);
  return std::make_unique<WinogradImage>(shape, pass == ConvPass::backward_data, output, threads,
                                         lanes);
}

}  // namespace artel::kernels
