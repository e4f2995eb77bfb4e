#include "artel/exec/kernels/conv_part.h"

#include <algorithm>

namespace artel::kernels {
namespace {

// Pixel (i, j) of the part is pixel (first_row + i * row_step, first_column + j * column_step).
struct Part {
  int64_t rows, columns;
  int64_t first_row = 0, first_column = 0, row_step = 1, column_step = 1;
};

bool is_sampling(const ConvShape& s) {
  const bool every_pixel = s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
                           s.pad_left == 0 && s.pad_bottom == 0 && s.pad_right == 0;
  return s.kh == 1 && s.kw == 1 && !every_pixel;
}

Part part_of(const ConvShape& s) {
  if (is_sampling(s))
    return {s.out_h(), s.out_w(), -s.pad_top, -s.pad_left, s.stride_h, s.stride_w};
  return {std::max<int64_t>(1, s.h + std::min<int64_t>(0, s.pad_bottom)),
          std::max<int64_t>(1, s.w + std::min<int64_t>(0, s.pad_right))};
}

// The convolution as the part sees it.
ConvShape shape_on_part(const ConvShape& s) {
  const Part part = part_of(s);
  ConvShape inner = s;
  inner.h = part.rows, inner.w = part.columns;
  inner.pad_bottom += s.h - part.rows;
  inner.pad_right += s.w - part.columns;
  if (is_sampling(s)) {
    inner.stride_h = inner.stride_w = 1;
    inner.pad_top = inner.pad_left = inner.pad_bottom = inner.pad_right = 0;
  }
  return inner;
}

class PartConvolution final : public ConvKernel {
 public:
  PartConvolution(const ConvShape& shape, ConvPass pass, std::unique_ptr<ConvKernel> inner)
      : s_(shape), part_(part_of(shape)), pass_(pass), inner_(std::move(inner)) {}

  size_t workspace_bytes() const override { return part_bytes() + inner_->workspace_bytes(); }

  void run(ThreadPool& pool, const float* first, const float* second, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    float* part = reinterpret_cast<float*>(workspace);
    std::byte* rest = workspace + part_bytes();
    if (pass_ == ConvPass::backward_data) {
      inner_->run(pool, first, second, part, epilogue, rest);
      spread(pool, part, out);
    } else {
      gather(pool, first, part);
      inner_->run(pool, part, second, out, epilogue, rest);
    }
  }

 private:
  size_t part_bytes() const {
    const int64_t floats = s_.n * part_.rows * part_.columns * s_.c;
    return sizeof(float) * static_cast<size_t>((floats + 15) / 16 * 16);
  }

  // Calls visit(pixel of the image, or -1 in the padding; pixel of the part) for one row of parts.
  template <class Visit>
  void for_each_pixel(int64_t row, const Visit& visit) const {
    const int64_t image = row / part_.rows;
    const int64_t y = part_.first_row + row % part_.rows * part_.row_step;
    for (int64_t j = 0; j < part_.columns; ++j) {
      const int64_t x = part_.first_column + j * part_.column_step;
      const bool inside = y >= 0 && y < s_.h && x >= 0 && x < s_.w;
      visit(inside ? (image * s_.h + y) * s_.w + x : -1, row * part_.columns + j);
    }
  }

  void gather(ThreadPool& pool, const float* x, float* part) const {
    parallel_for(pool, s_.n * part_.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for_each_pixel(row, [&](int64_t from, int64_t to) {
          if (from < 0)
            std::fill_n(part + to * s_.c, s_.c, 0.f);
          else
            std::copy_n(x + from * s_.c, s_.c, part + to * s_.c);
        });
    });
  }

  void spread(ThreadPool& pool, const float* part, float* dx) const {
    parallel_for(pool, s_.n, 1, [&](int64_t begin, int64_t end) {
      std::fill(dx + begin * s_.h * s_.w * s_.c, dx + end * s_.h * s_.w * s_.c, 0.f);
      for (int64_t row = begin * part_.rows; row < end * part_.rows; ++row)
        for_each_pixel(row, [&](int64_t to, int64_t from) {
          if (to >= 0) std::copy_n(part + from * s_.c, s_.c, dx + to * s_.c);
        });
    });
  }

  ConvShape s_;
  Part part_;
  ConvPass pass_;
  std::unique_ptr<ConvKernel> inner_;
};

}  // namespace

bool reads_part(const ConvShape& s) {
  return is_sampling(s) || s.pad_bottom < 0 || s.pad_right < 0;
}

std::unique_ptr<ConvKernel> make_on_part(
    const ConvShape& shape, ConvPass pass,
    const std::function<std::unique_ptr<ConvKernel>(const ConvShape&)>& make) {
  return std::make_unique<PartConvolution>(shape, pass, make(shape_on_part(shape)));
}

}  // namespace artel::kernels
