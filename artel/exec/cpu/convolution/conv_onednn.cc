#include "artel/exec/cpu/convolution/conv_onednn.h"

#include <fmt/format.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/libraries.h"

namespace artel::kernels {
namespace {

using dnnl::memory;
using Dims = memory::dims;

// oneDNN runs on one thread per part. A lane is divided into equal parts, whose number depends only
// on the shape and the number of lanes, so the bits do not depend on threads. With many lanes, each
// has few parts, because a call costs a few microseconds. Each call reorders the weights once to
// the layout that oneDNN prefers. With bf16, each thread also reorders the images of its part.
class OnednnConvolution final : public ConvKernel {
 public:
  OnednnConvolution(const ConvShape& s, ConvPass pass, bool bf16, int threads, int lanes)
      : s_(s),
        pass_(pass),
        operand_type_(bf16 ? memory::data_type::bf16 : memory::data_type::f32),
        threads_(threads),
        engine_(dnnl::engine::kind::cpu, 0) {
    limit_library_threads();
    const int64_t most = std::clamp<int64_t>(kPartsOfAllLanes / lanes, 1, kMostParts);
    for (parts_ = std::min(s.n, most); parts_ > 1 && s.n % parts_ != 0;) --parts_;
    call([&] {
      if (s.n > 0) prepare();
    });
  }

  size_t workspace_bytes() const override {
    return parts_ == 0 ? 0 : weight_copies() * weight_bytes() + threads_ * slot_bytes();
  }

  void run(ThreadPool& pool, const float* first, const float* second, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    call([&] { compute(pool, first, second, out, epilogue, workspace); });
  }

 private:
  static constexpr int64_t kMostParts = 8, kPartsOfAllLanes = 16;

  struct Operand {
    memory::desc layout;
    const void* data;
  };

  template <class Body>
  void call(const Body& body) const {
    try {
      body();
    } catch (const dnnl::error& error) {
      fail_in_onednn(
          error.status,
          fmt::format("a convolution of {}x{}x{}x{} to {} channels, kernel {}x{}, stride {}x{}, "
                      "padding {},{},{},{}, dilation {}x{}, {} groups",
                      s_.n, s_.h, s_.w, s_.c, s_.k, s_.kh, s_.kw, s_.stride_h, s_.stride_w,
                      s_.pad_top, s_.pad_left, s_.pad_bottom, s_.pad_right, s_.dilation_h,
                      s_.dilation_w, s_.groups));
    }
  }

  void compute(ThreadPool& pool, const float* first, const float* second, float* out,
               const ConvEpilogue& epilogue, std::byte* workspace) const {
    if (pass_ == ConvPass::backward_weights) std::fill_n(out, weight_count(), 0.f);
    if (parts_ == 0) return;
    limit_library_threads();
    std::byte* scratch = workspace + weight_copies() * weight_bytes();
    const int64_t images = s_.n / parts_;
    const int64_t x_part = images * s_.h * s_.w * s_.c;
    const int64_t y_part = images * s_.out_h() * s_.out_w() * s_.k;
    if (pass_ != ConvPass::backward_weights) change_layout({plain_, second}, {native_, workspace});
    for_each_with_slot(pool, threads_, parts_, [&](int64_t slot, int64_t part) {
      limit_library_threads();
      std::byte* slot_scratch = scratch + slot * slot_bytes();
      std::byte* rounded_x = slot_scratch + scratch_bytes();
      std::byte* rounded_y = rounded_x + rounded_bytes(x_);
      if (pass_ == ConvPass::forward) {
        float* y = out + part * y_part;
        execute({{DNNL_ARG_SRC, operand(x_, first + part * x_part, rounded_x)},
                 {DNNL_ARG_WEIGHTS, {native_, workspace}},
                 {DNNL_ARG_DST, {y_, y}}},
                slot_scratch);
        finish(y, y_part, epilogue);
      } else if (pass_ == ConvPass::backward_data) {
        execute({{DNNL_ARG_DIFF_DST, operand(y_, first + part * y_part, rounded_y)},
                 {DNNL_ARG_WEIGHTS, {native_, workspace}},
                 {DNNL_ARG_DIFF_SRC, {x_, out + part * x_part}}},
                slot_scratch);
      } else {
        execute({{DNNL_ARG_SRC, operand(x_, first + part * x_part, rounded_x)},
                 {DNNL_ARG_DIFF_DST, operand(y_, second + part * y_part, rounded_y)},
                 {DNNL_ARG_DIFF_WEIGHTS, {native_, workspace + part * weight_bytes()}}},
                slot_scratch);
      }
    });
    if (pass_ == ConvPass::backward_weights) add_parts(workspace, out);
  }

  void prepare() {
    const int64_t images = s_.n / parts_, c = s_.c / s_.groups, k = s_.k / s_.groups;
    constexpr auto kFloat = memory::data_type::f32;
    constexpr auto kImage = memory::format_tag::nhwc;
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    x_ = {{images, s_.c, s_.h, s_.w}, kFloat, kImage};
    y_ = {{images, s_.k, s_.out_h(), s_.out_w()}, kFloat, kImage};
    Dims dims{k, c, s_.kh, s_.kw}, steps{1, s_.k, s_.kw * c * s_.k, c * s_.k};
    if (s_.groups > 1) {
      dims.insert(dims.begin(), s_.groups);
      steps.insert(steps.begin(), k);
    }
    plain_ = {dims, kFloat, steps};
    const memory::desc weights(dims, operand_type_, memory::format_tag::any);
    const memory::desc weight_sums(dims, kFloat, memory::format_tag::any);
    const memory::desc x = as_operand(x_), y = as_operand(y_);
    const Dims strides{s_.stride_h, s_.stride_w}, dilation{s_.dilation_h - 1, s_.dilation_w - 1};
    const Dims before{s_.pad_top, s_.pad_left}, after{s_.pad_bottom, s_.pad_right};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, kDirect, x, weights, y_, strides, dilation, before,
         after},
        attributes, engine_);
    if (pass_ == ConvPass::forward) {
      native_ = forward.weights_desc();
      scratchpad_ = forward.scratchpad_desc();
      primitive_ = dnnl::convolution_forward(forward);
    } else if (pass_ == ConvPass::backward_data) {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {kDirect, x_, weights, y, strides, dilation, before, after}, attributes, engine_,
          forward);
      native_ = backward.weights_desc();
      scratchpad_ = backward.scratchpad_desc();
      primitive_ = dnnl::convolution_backward_data(backward);
    } else {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {kDirect, x, weight_sums, y, strides, dilation, before, after}, attributes, engine_,
          forward);
      native_ = backward.diff_weights_desc();
      scratchpad_ = backward.scratchpad_desc();
      primitive_ = dnnl::convolution_backward_weights(backward);
    }
    const bool sums = pass_ == ConvPass::backward_weights;
    pack_ = dnnl::reorder(dnnl::reorder::primitive_desc(engine_, sums ? native_ : plain_, engine_,
                                                        sums ? plain_ : native_));
  }

  int64_t weight_count() const { return s_.kh * s_.kw * (s_.c / s_.groups) * s_.k; }
  // Each part sums its own gradient; then one more copy holds a part in the plain layout.
  int64_t weight_copies() const { return pass_ == ConvPass::backward_weights ? parts_ + 1 : 1; }
  size_t weight_bytes() const {
    return (std::max(native_.get_size(), plain_.get_size()) + 63) / 64 * 64;
  }
  size_t scratch_bytes() const { return (scratchpad_.get_size() + 63) / 64 * 64; }
  size_t slot_bytes() const { return scratch_bytes() + rounded_bytes(x_) + rounded_bytes(y_); }

  // An image in the type that the library multiplies.
  memory::desc as_operand(const memory::desc& image) const {
    return {image.dims(), operand_type_, memory::format_tag::nhwc};
  }
  size_t rounded_bytes(const memory::desc& image) const {
    if (operand_type_ == memory::data_type::f32) return 0;
    return (as_operand(image).get_size() + 63) / 64 * 64;
  }
  // Rounds an image into `rounded` if that type is not its own.
  Operand operand(const memory::desc& image, const float* data, std::byte* rounded) const {
    if (operand_type_ == memory::data_type::f32) return {image, data};
    reorder(image, data, as_operand(image), rounded);
    return {as_operand(image), rounded};
  }

  memory wrap(const Operand& operand) const {
    return memory(operand.layout, engine_, const_cast<void*>(operand.data));
  }

  void execute(std::initializer_list<std::pair<int, Operand>> operands, std::byte* scratch) const {
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SCRATCHPAD, wrap({scratchpad_, scratch})}};
    for (const auto& [name, operand] : operands) arguments.emplace(name, wrap(operand));
    dnnl::stream stream(engine_);
    primitive_.execute(stream, arguments);
    stream.wait();
  }

  void change_layout(const Operand& from, const Operand& to) const {
    memory source = wrap(from), target = wrap(to);
    dnnl::stream stream(engine_);
    pack_.execute(stream, source, target);
    stream.wait();
  }

  void reorder(const memory::desc& from, const void* in, const memory::desc& to, void* out) const {
    memory source = wrap({from, in}), target = wrap({to, out});
    dnnl::stream stream(engine_);
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
  }

  void finish(float* y, int64_t count, const ConvEpilogue& epilogue) const {
    if (!epilogue.bias && !epilogue.relu) return;
    for (float* const end = y + count; y < end; y += s_.k) {
      for (int64_t k = 0; k < s_.k; ++k) {
        const float value = epilogue.bias ? y[k] + epilogue.bias[k] : y[k];
        y[k] = epilogue.relu && value < 0 ? 0.f : value;
      }
    }
  }

  void add_parts(std::byte* parts, float* dw) const {
    std::byte* plain = parts + parts_ * weight_bytes();
    for (int64_t part = 0; part < parts_; ++part) {
      change_layout({native_, parts + part * weight_bytes()}, {plain_, plain});
      const float* values = reinterpret_cast<const float*>(plain);
      for (int64_t i = 0; i < weight_count(); ++i) dw[i] += values[i];
    }
  }

  ConvShape s_;
  ConvPass pass_;
  memory::data_type operand_type_;  // of the factors; sums are f32
  int threads_;
  int64_t parts_;
  dnnl::engine engine_;
  dnnl::primitive primitive_;
  dnnl::reorder pack_;  // of weights, to the library's layout, or of their gradient from it
  memory::desc x_, y_, plain_, native_, scratchpad_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_onednn(const ConvShape& shape, ConvPass pass, bool bf16,
                                        int threads, int lanes) {
  return std::make_unique<OnednnConvolution>(shape, pass, bf16, threads, lanes);
}

}  // namespace artel::kernels
