#include "artel/exec/kernels/winograd.h"

#include <algorithm>
#include <vector>

#include "artel/exec/kernels/gemm_panels.h"
#include "artel/exec/kernels/slots.h"
#include "artel/exec/kernels/winograd_transform.h"

namespace artel::kernels {
namespace {

// Shifts the elements of a transformed buffer against each other by a cache line: they are written
// and read side by side, and power-of-two distances would map them all to one cache set.
constexpr int64_t kLine = 16;

// y = conv(x, w), and dx = conv(dy, flipped and transposed w), which has the same form.
//
// With many tiles the transformed weights are made once and each thread takes blocks of tiles
// through all stages. With few tiles (deep layers, where the weights are the bulk) the transformed
// input is shared and each thread takes blocks of output channels, whose transformed weights then
// live in the cache only. Neither choice changes the order of any sum.
class WinogradImage final : public ConvKernel {
 public:
  WinogradImage(const ConvShape& s, bool backward, int output, int threads)
      : output_(output),
        elements_(winograd_elements(output)),
        threads_(threads),
        backward_(backward),
        weight_rows_(s.c),
        weight_columns_(s.k) {
    in_ = {s.h, s.w, s.c, s.pad_top, s.pad_left};
    out_ = {s.out_h(), s.out_w(), s.k, 0, 0};
    if (backward) {
      in_ = {s.out_h(), s.out_w(), s.k, 2 - s.pad_top, 2 - s.pad_left};
      out_ = {s.h, s.w, s.c, 0, 0};
    }
    in_.tiles_h = out_.tiles_h = divide_up(out_.height, output);
    in_.tiles_w = out_.tiles_w = divide_up(out_.width, output);
    tiles_ = s.n * out_.tiles_h * out_.tiles_w;
    panels_ = panel_count(out_.channels);
    by_tiles_ = tiles_ > kBlockTiles;
    const int64_t blocks = divide_up(divide_up(tiles_, kBlockTiles), threads) * threads;
    block_tiles_ = std::max<int64_t>(1, by_tiles_ ? divide_up(tiles_, blocks) : tiles_);
    const int64_t most_panels = by_tiles_ ? kBlockPanels : divide_up(panels_, threads);
    block_panels_ = std::clamp<int64_t>(most_panels, 1, kBlockPanels);
    in_layout_.tile = aligned_floats(in_.channels) + kLine;
    in_layout_.group = panel_width();
    in_layout_.element = block_tiles_ * in_layout_.tile + kLine;
    product_row_ = block_panels_ * panel_width();
    product_element_ = block_tiles_ * product_row_ + kLine;
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (shared_floats() + threads_ * slot_floats());
  }

  void run(ThreadPool& pool, const float* image, const float* weights, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    float* shared = reinterpret_cast<float*>(workspace);
    const auto slot_memory = [&](int64_t slot) {
      return shared + shared_floats() + slot * slot_floats();
    };
    if (by_tiles_) {
      for_each_with_slot(pool, threads_, panels_, [&](int64_t slot, int64_t panel) {
        transform_weights(weights, panel, slot_memory(slot), shared + panel * panel_floats());
      });
      const int64_t blocks = divide_up(tiles_, block_tiles_);
      for_each_with_slot(pool, threads_, blocks, [&](int64_t slot, int64_t block) {
        float* transformed = slot_memory(slot) + taps_floats();
        float* product = transformed + in_floats();
        const int64_t first = block * block_tiles_;
        const int64_t tiles = std::min(block_tiles_, tiles_ - first);
        winograd_input(output_, in_, image, first, tiles, in_layout_, transformed);
        for (int64_t panel = 0; panel < panels_; panel += block_panels_) {
          multiply(transformed, shared + panel * panel_floats(), first, tiles, panel, epilogue,
                   product, out);
        }
      });
      return;
    }
    constexpr int64_t kChunk = 6;
    for_each_with_slot(pool, threads_, divide_up(tiles_, kChunk), [&](int64_t, int64_t chunk) {
      const int64_t first = chunk * kChunk;
      winograd_input(output_, in_, image, first, std::min(kChunk, tiles_ - first), in_layout_,
                     shared + first * in_layout_.tile);
    });
    const int64_t blocks = tiles_ == 0 ? 0 : divide_up(panels_, block_panels_);
    for_each_with_slot(pool, threads_, blocks, [&](int64_t slot, int64_t block) {
      float* taps = slot_memory(slot);
      float* block_weights = taps + taps_floats();
      float* product = block_weights + block_panels_ * panel_floats();
      const int64_t panel = block * block_panels_;
      for (int64_t i = 0; i < std::min(block_panels_, panels_ - panel); ++i) {
        transform_weights(weights, panel + i, taps, block_weights + i * panel_floats());
      }
      multiply(shared, block_weights, 0, tiles_, panel, epilogue, product, out);
    });
  }

 private:
  static constexpr int64_t kBlockTiles = 96;  // transformed: 1 to 4 MB, in the L3 cache
  static constexpr int64_t kBlockPanels = 4;
  static constexpr int64_t kTapRows = 32;

  int64_t panel_floats() const { return elements_ * in_.channels * panel_width(); }
  int64_t taps_floats() const { return kWinogradTaps * kTapRows * panel_width(); }
  int64_t in_floats() const { return elements_ * in_layout_.element; }
  int64_t shared_floats() const { return by_tiles_ ? panels_ * panel_floats() : in_floats(); }
  int64_t slot_floats() const {
    return taps_floats() + elements_ * product_element_ +
           (by_tiles_ ? in_floats() : block_panels_ * panel_floats());
  }

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

  // The products of all elements for a block of tiles and panels, and the way back to the image.
  void multiply(const float* transformed, const float* weights, int64_t first, int64_t tiles,
                int64_t panel, const ConvEpilogue& epilogue, float* product, float* out) const {
    const int64_t column = panel * panel_width();
    const int64_t columns = std::min(product_row_, out_.channels - column);
    const Segment all{0, 0, in_.channels};
    std::vector<const float*> a(tiles);
    std::vector<float*> c(tiles);
    for (int64_t e = 0; e < elements_; ++e) {
      for (int64_t i = 0; i < tiles; ++i) {
        a[i] = transformed + e * in_layout_.element + i * in_layout_.tile;
        c[i] = product + e * product_element_ + i * product_row_;
      }
      multiply_panels({.a = a,
                       .c = c,
                       .columns = columns,
                       .segments = {&all, 1},
                       .panels = weights + e * in_.channels * panel_width(),
                       .panel_stride = panel_floats()});
    }
    winograd_output(output_, out_, product, product_element_, product_row_, first, tiles,
                    {column, columns}, epilogue.bias, epilogue.relu, out);
  }

  int output_;
  int64_t elements_;
  int threads_;
  bool backward_, by_tiles_;
  int64_t weight_rows_, weight_columns_;
  TileGrid in_, out_;
  int64_t tiles_, panels_, block_tiles_, block_panels_;
  TransformedLayout in_layout_;
  int64_t product_row_, product_element_;
};

// dw = G^T [ sum over tiles (B^T x B)^T (A dy A^T) ] G.
//
// Tiles are taken in blocks of a size fixed by the shape: all threads transform the input of a
// block, then each takes blocks of output channels. Both transforms write panels, so the products
// read their operands in order. The sums of all elements are kept between blocks; when one block
// holds all tiles they never leave the cache.
class WinogradWeights final : public ConvKernel {
 public:
  WinogradWeights(const ConvShape& s, int output, int threads)
      : output_(output), elements_(winograd_elements(output)), threads_(threads), c_(s.c), k_(s.k) {
    in_ = {s.h, s.w, s.c, s.pad_top, s.pad_left};
    out_ = {s.out_h(), s.out_w(), s.k, 0, 0};
    in_.tiles_h = out_.tiles_h = divide_up(out_.height, output);
    in_.tiles_w = out_.tiles_w = divide_up(out_.width, output);
    tiles_ = s.n * out_.tiles_h * out_.tiles_w;
    const int64_t blocks = tiles_ <= kMostTiles ? 1 : divide_up(tiles_, kBlockTiles);
    block_tiles_ = std::max<int64_t>(1, divide_up(tiles_, blocks));
    single_ = blocks == 1;
    block_panels_ = std::clamp<int64_t>(divide_up(panel_count(k_), threads), 1, kBlockPanels);
    const int64_t group = block_tiles_ * panel_width();
    in_layout_ = {panel_count(c_) * group + kLine, panel_width(), group};
    out_layout_ = {block_panels_ * group + kLine, panel_width(), group};
    sum_row_ = block_panels_ * panel_width();
    sum_element_ = c_ * sum_row_ + kLine;
  }

  size_t workspace_bytes() const override {
    const int64_t sums = single_ ? threads_ : panel_blocks();
    return sizeof(float) * elements_ *
           (in_layout_.element + threads_ * out_layout_.element + sums * sum_element_);
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    float* input = reinterpret_cast<float*>(workspace);
    float* gradients = input + elements_ * in_layout_.element;
    float* sums = gradients + threads_ * elements_ * out_layout_.element;
    if (tiles_ == 0) std::fill_n(dw, kWinogradTaps * c_ * k_, 0.f);
    for (int64_t first = 0; first < tiles_; first += block_tiles_) {
      const int64_t tiles = std::min(block_tiles_, tiles_ - first);
      constexpr int64_t kChunk = 8;
      for_each_with_slot(pool, threads_, divide_up(tiles, kChunk), [&](int64_t, int64_t chunk) {
        const int64_t begin = chunk * kChunk;
        winograd_input(output_, in_, x, first + begin, std::min(kChunk, tiles - begin), in_layout_,
                       input + begin * in_layout_.tile);
      });
      for_each_with_slot(pool, threads_, panel_blocks(), [&](int64_t slot, int64_t block) {
        float* gradient = gradients + slot * elements_ * out_layout_.element;
        float* sum = sums + (single_ ? slot : block) * elements_ * sum_element_;
        const int64_t column = block * sum_row_, columns = std::min(sum_row_, k_ - column);
        winograd_output_gradient(output_, out_, dy, first, tiles, {column, columns}, out_layout_,
                                 gradient);
        accumulate(input, gradient, tiles, columns, first > 0, sum);
        if (first + tiles == tiles_) {
          winograd_weights_gradient(output_, sum, sum_element_, sum_row_, c_, columns, dw + column,
                                    c_ * k_, k_);
        }
      });
    }
  }

 private:
  static constexpr int64_t kMostTiles = 256;  // in a single block
  static constexpr int64_t kBlockTiles = 128;
  static constexpr int64_t kBlockPanels = 4;

  int64_t panel_blocks() const { return divide_up(panel_count(k_), block_panels_); }

  void accumulate(const float* input, const float* gradient, int64_t tiles, int64_t columns,
                  bool add, float* sum) const {
    const int64_t width = panel_width();
    const Segment all{0, 0, tiles};
    std::vector<const float*> a(c_);
    std::vector<float*> c(c_);
    for (int64_t e = 0; e < elements_; ++e) {
      for (int64_t i = 0; i < c_; ++i) {
        a[i] = input + e * in_layout_.element + i / width * in_layout_.group + i % width;
        c[i] = sum + e * sum_element_ + i * sum_row_;
      }
      multiply_panels({.a = a,
                       .a_step = width,
                       .c = c,
                       .columns = columns,
                       .segments = {&all, 1},
                       .panels = gradient + e * out_layout_.element,
                       .panel_stride = out_layout_.group,
                       .accumulate = add});
    }
  }

  int output_;
  int64_t elements_;
  int threads_;
  int64_t c_, k_;
  TileGrid in_, out_;
  int64_t tiles_, block_tiles_, block_panels_;
  bool single_;
  TransformedLayout in_layout_, out_layout_;
  int64_t sum_row_, sum_element_;
};

}  // namespace

bool winograd_applies(const ConvShape& s) {
  const auto small = [](int64_t padding) { return padding >= 0 && padding <= 2; };
  return s.kh == 3 && s.kw == 3 && s.stride_h == 1 && s.stride_w == 1 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.groups == 1 && small(s.pad_top) && small(s.pad_left) &&
         small(s.pad_bottom) && small(s.pad_right);
}

std::unique_ptr<ConvKernel> make_winograd(const ConvShape& shape, ConvPass pass, int output,
                                          int threads) {
  if (pass == ConvPass::backward_weights) {
    return std::make_unique<WinogradWeights>(shape, output, threads);
  }
  return std::make_unique<WinogradImage>(shape, pass == ConvPass::backward_data, output, threads);
}

}  // namespace artel::kernels
