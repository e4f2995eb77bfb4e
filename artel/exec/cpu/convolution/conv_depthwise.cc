#include "artel/exec/cpu/convolution/conv_depthwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/convolution/conv_depthwise.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// The part of a kernel that lies inside the image along one axis.
struct KernelSpan {
  int64_t begin, end;  // of the kernel
  int64_t first;       // pixel of the image that the kernel's element 0 would read

  KernelSpan(int64_t output, int64_t stride, int64_t pad, int64_t dilation, int64_t kernel,
             int64_t extent)
      : first(output * stride - pad) {
    begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
    end = std::min(kernel, first >= extent ? 0 : (extent - 1 - first) / dilation + 1);
    begin = std::min(begin, kernel);
    end = std::max(end, begin);
  }
};

// kOutputs neighbours of a row at a time, in one vector of channels each: their sums are chains of
// additions that do not wait for each other.
template <int kOutputs, class D>
HWY_INLINE void depthwise_outputs(D d, const ConvShape& s, const KernelSpan& rows,
                                  const KernelSpan& columns, const float* x, const float* w,
                                  const float* bias, const ConvEpilogue& epilogue, float* y) {
  hn::Vec<D> sum[kOutputs];
  for (int i = 0; i < kOutputs; ++i) sum[i] = bias ? hn::LoadU(d, bias) : hn::Zero(d);
  const int64_t step = s.stride_w * s.c;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      const auto weight = hn::LoadU(d, w + (i * s.kw + j) * s.c);
      const float* at =
          x + ((rows.first + i * s.dilation_h) * s.w + columns.first + j * s.dilation_w) * s.c;
      for (int k = 0; k < kOutputs; ++k)
        sum[k] = hn::MulAdd(hn::LoadU(d, at + k * step), weight, sum[k]);
    }
  }
  const auto most = hn::Set(d, epilogue.most);
  for (int k = 0; k < kOutputs; ++k) {
    if (epilogue.relu) sum[k] = hn::Max(hn::Zero(d), sum[k]);  // zero first: a NaN stays a NaN
    hn::StoreU(hn::Min(most, sum[k]), d, y + k * s.c);
  }
}

// Processes all channels of a few neighbouring pixels together, because their common inputs fit
// into the L1 cache.
void depthwise_row(const ConvShape& s, int64_t row, const float* image, const float* w,
                   const ConvEpilogue& epilogue, float* out) {
  const KernelSpan rows(row, s.stride_h, s.pad_top, s.dilation_h, s.kh, s.h);
  const int64_t width = s.out_w();
  const auto columns_of = [&](int64_t output) {
    return KernelSpan(output, s.stride_w, s.pad_left, s.dilation_w, s.kw, s.w);
  };
  const auto whole = [&](int64_t output) {
    if (output >= width) return false;
    const KernelSpan span = columns_of(output);
    return span.begin == 0 && span.end == s.kw;
  };
  for (int64_t j = 0; j < width;) {
    const KernelSpan columns = columns_of(j);
    const int64_t outputs = !whole(j) ? 1 : whole(j + 7) ? 8 : whole(j + 3) ? 4 : 1;
    for_each_vector(s.c, [&](auto d, int64_t c) HWY_ATTR {
      const float* bias = epilogue.bias ? epilogue.bias + c : nullptr;
      float* const y = out + j * s.c + c;
      if (outputs == 8)
        depthwise_outputs<8>(d, s, rows, columns, image + c, w + c, bias, epilogue, y);
      else if (outputs == 4)
        depthwise_outputs<4>(d, s, rows, columns, image + c, w + c, bias, epilogue, y);
      else
        depthwise_outputs<1>(d, s, rows, columns, image + c, w + c, bias, epilogue, y);
    });
    j += outputs;
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {
namespace {

HWY_EXPORT(depthwise_row);

class DepthwiseConvolution final : public ConvKernel {
 public:
  explicit DepthwiseConvolution(const ConvShape& shape) : s_(shape) {}

  size_t workspace_bytes() const override { return 0; }
  bool caps() const override { return true; }

  void run(ThreadPool& pool, const float* first, const float* second, float* out,
           const ConvEpilogue& epilogue, std::byte*) const override {
    const auto row = HWY_DYNAMIC_DISPATCH(depthwise_row);
    const int64_t height = s_.out_h(), pitch = s_.out_w() * s_.c;
    parallel_for(pool, s_.n * height, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        row(s_, i % height, first + i / height * s_.h * s_.w * s_.c, second, epilogue,
            out + i * pitch);
    });
  }

 private:
  ConvShape s_;
};

}  // namespace

bool depthwise_applies(const ConvShape& s, ConvPass pass) {
  return pass == ConvPass::forward && s.groups > 1 && s.groups == s.c && s.c == s.k;
}

std::unique_ptr<ConvKernel> make_depthwise(const ConvShape& shape) {
  return std::make_unique<DepthwiseConvolution>(shape);
}

}  // namespace artel::kernels
#endif
