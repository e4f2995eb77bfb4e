#include "artel/exec/cpu/convolution/conv_part.h"

#include <algorithm>

namespace artel::kernels {
namespace {

// One axis of the part: pixel i of it is pixel first + i * step of the image.
struct PartAxis {
  int64_t count, first = 0, step = 1;
};

struct Part {
  PartAxis rows, columns;
};

// The geometry of a convolution along one axis.
struct CutAxis {
  int64_t size, out, kernel;
  int64_t &stride, &before, &after;

  bool samples() const { return kernel == 1 && (stride > 1 || before != 0 || after != 0); }

  // The part of the axis that is read. The geometry becomes that of the part.
  PartAxis take() {
    if (samples()) {
      const PartAxis axis = {out, -before, stride};
      stride = 1;
      before = after = 0;
      return axis;
    }
    const PartAxis axis = {std::max<int64_t>(1, size + std::min<int64_t>(0, after))};
    after += size - axis.count;
    return axis;
  }
};

CutAxis rows_of(ConvShape& s) {
  return {s.h, s.out_h(), s.kh, s.stride_h, s.pad_top, s.pad_bottom};
}

CutAxis columns_of(ConvShape& s) {
  return {s.w, s.out_w(), s.kw, s.stride_w, s.pad_left, s.pad_right};
}

// The part that a convolution reads, which becomes the convolution as the part sees it.
Part take_part(ConvShape& s) {
  const Part part = {rows_of(s).take(), columns_of(s).take()};
  s.h = part.rows.count, s.w = part.columns.count;
  return part;
}

class PartConvolution final : public ConvKernel {
 public:
  PartConvolution(const ConvShape& shape, const Part& part, ConvPass pass,
                  std::unique_ptr<ConvKernel> inner)
      : s_(shape), part_(part), pass_(pass), inner_(std::move(inner)) {}

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
    const int64_t floats = s_.n * part_.rows.count * part_.columns.count * s_.c;
    return sizeof(float) * static_cast<size_t>((floats + 15) / 16 * 16);
  }

  // Calls visit(pixel of the image, or -1 in the padding; pixel of the part) for one row of parts.
  template <class Visit>
  void for_each_pixel(int64_t row, const Visit& visit) const {
    const PartAxis &rows = part_.rows, &columns = part_.columns;
    const int64_t image = row / rows.count, y = rows.first + row % rows.count * rows.step;
    for (int64_t j = 0; j < columns.count; ++j) {
      const int64_t x = columns.first + j * columns.step;
      const bool inside = y >= 0 && y < s_.h && x >= 0 && x < s_.w;
      visit(inside ? (image * s_.h + y) * s_.w + x : -1, row * columns.count + j);
    }
  }

  void gather(ThreadPool& pool, const float* x, float* part) const {
    parallel_for(pool, s_.n * part_.rows.count, 1, [&](int64_t begin, int64_t end) {
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
      for (int64_t row = begin * part_.rows.count; row < end * part_.rows.count; ++row)
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

bool reads_part(const ConvShape& shape) {
  ConvShape s = shape;
  const bool pointwise = s.kh == 1 && s.kw == 1;
  return (pointwise && (rows_of(s).samples() || columns_of(s).samples())) || s.pad_bottom < 0 ||
         s.pad_right < 0;
}

std::unique_ptr<ConvKernel> make_on_part(
    const ConvShape& shape, ConvPass pass,
    const std::function<std::unique_ptr<ConvKernel>(const ConvShape&)>& make) {
  ConvShape inner = shape;
  const Part part = take_part(inner);
  return std::make_unique<PartConvolution>(shape, part, pass, make(inner));
}

}  // namespace artel::kernels
