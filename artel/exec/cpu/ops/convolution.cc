#include <limits>

#include "artel/exec/cpu/convolution/conv.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shapes.h"
#include "artel/exec/cpu/ops/shared.h"

namespace artel {
namespace {

using kernels::ConvAlgorithm;
using kernels::Convolution;
using kernels::ConvPass;
using kernels::ConvShape;

constexpr ConvAlgorithm kAlgorithms[] = {ConvAlgorithm::direct,    ConvAlgorithm::im2col,
                                         ConvAlgorithm::pointwise, ConvAlgorithm::winograd2,
                                         ConvAlgorithm::winograd4, ConvAlgorithm::depthwise,
                                         ConvAlgorithm::bf16};

ConvAlgorithm by_name(const std::string& name) {
  for (const ConvAlgorithm algorithm : kAlgorithms)
    if (name == kernels::to_string(algorithm)) return algorithm;
  return ConvAlgorithm::direct;
}

// The operands of lanes of a pass.
std::vector<kernels::ConvLane> operands(std::span<const KernelRun> lanes) {
  std::vector<kernels::ConvLane> all;
  for (const KernelRun& lane : lanes)
    all.push_back({lane.in(0), lane.in(1), lane.out(0), lane.rows});
  return all;
}

// `run` runs the convolution for one lane, `join` lets its kernel run several.
template <typename Run, typename Join>
Kernel choose_and_make(const KernelRequest& request, const ConvShape& s, ConvPass pass,
                       const Run& run, const Join& join) {
  const auto make = [&](const std::string& name) {
    auto conv = std::make_shared<const Convolution>(s, pass, by_name(name), request.threads,
                                                    request.lanes.all, request.lanes.together);
    Kernel kernel = {name, conv->workspace_bytes(),
                     [conv, run](const KernelRun& arguments) { run(*conv, arguments); }};
    if (!conv->form().empty()) kernel.algorithm += fmt::format(", {}", conv->form());
    kernel.rows = s.n;
    if (request.lanes.together > 1 && conv->joins()) join(request, kernel, conv);
    return kernel;
  };
  if (request.choices.bf16) return make(std::string(kernels::to_string(ConvAlgorithm::bf16)));
  const bool exact = request.choices.exact_convolutions;
  std::vector<std::string> candidates;
  for (const ConvAlgorithm algorithm : kernels::conv_candidates(s, pass, exact))
    candidates.emplace_back(kernels::to_string(algorithm));
  // Does not contain the number of threads, which must not change bits.
  const std::string key = fmt::format(
      "convolution {} {}x{}x{}x{} to {} kernel {}x{} stride {}x{} padding {}x{} dilation {}x{} "
      "groups {}",
      kernels::to_string(pass), s.n, s.c, s.h, s.w, s.k, s.kh, s.kw, s.stride_h, s.stride_w,
      s.pad_top, s.pad_left, s.dilation_h, s.dilation_w, s.groups);
  return make(request.choices.choose(
      key, candidates,
      std::string(kernels::to_string(kernels::choose_conv(s, pass, exact, request.lanes.all))),
      [&](const std::string& candidate) { return measure(request, make(candidate)); }));
}

using SharedConvolution = std::shared_ptr<const Convolution>;

Kernel make_forward(const KernelRequest& request) {
  const bool bias = request.inputs() == 3, relu = request.attributes().flag("relu");
  const auto most = static_cast<float>(
      request.attributes().number("most", std::numeric_limits<double>::infinity()));
  return choose_and_make(
      request, conv_shape(request.attributes(), request.in(0), request.in(1), request.out()),
      ConvPass::forward,
      [=](const Convolution& conv, const KernelRun& run) {
        conv.forward(run.pool, run.in(0), run.in(1), bias ? run.in(2) : nullptr, relu, run.out(0),
                     run.workspace, most);
      },
      [=](const KernelRequest& request, Kernel& kernel, const SharedConvolution& conv) {
        join_lanes(request, kernel, [=](std::span<const KernelRun> lanes) {
          conv->run_lanes(lanes[0].pool, operands(lanes), bias ? lanes[0].in(2) : nullptr, relu,
                          lanes[0].workspace, most);
        });
      });
}

Kernel make_backward_data(const KernelRequest& request) {
  return choose_and_make(
      request, conv_shape(request.attributes(), request.out(), request.in(1), request.in(0)),
      ConvPass::backward_data,
      [](const Convolution& conv, const KernelRun& run) {
        conv.backward_data(run.pool, run.in(0), run.in(1), run.out(0), run.workspace);
      },
      [](const KernelRequest& request, Kernel& kernel, const SharedConvolution& conv) {
        join_lanes(request, kernel, [=](std::span<const KernelRun> lanes) {
          conv->run_lanes(lanes[0].pool, operands(lanes), nullptr, false, lanes[0].workspace);
        });
      });
}

Kernel make_backward_weights(const KernelRequest& request) {
  return choose_and_make(
      request, conv_shape(request.attributes(), request.in(0), request.out(), request.in(1)),
      ConvPass::backward_weights,
      [](const Convolution& conv, const KernelRun& run) {
        conv.backward_weights(run.pool, run.in(0), run.in(1), run.out(0), run.workspace);
      },
      [](const KernelRequest&, Kernel& kernel, const SharedConvolution& conv) {
        kernel.run_sums = [=](std::span<const KernelRun> lanes, std::span<const int> merges) {
          conv->run_sums(lanes[0].pool, operands(lanes), merges, lanes[0].workspace);
        };
      });
}

// The transposed convolution is the data gradient of the convolution from its output to its input.
Kernel make_transposed(const KernelRequest& request) {
  const Rows all = channel_rows(request.out());
  const int64_t rows = all.rows, channels = all.columns;
  const bool bias = request.inputs() == 3;
  return choose_and_make(
      request, conv_shape(request.attributes(), request.out(), request.in(1), request.in(0)),
      ConvPass::backward_data,
      [=](const Convolution& conv, const KernelRun& run) {
        float* y = run.out(0);
        conv.backward_data(run.pool, run.in(0), run.in(1), y, run.workspace);
        if (!bias) return;
        const float* b = run.in(2);
        parallel_for(run.pool, rows, 64, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row)
            for (int64_t c = 0; c < channels; ++c) y[row * channels + c] += b[c];
        });
      },
      [](const KernelRequest&, Kernel&, const SharedConvolution&) {});
}

LayoutChoice image_and_weights(const Graph&, const Node& node, const std::vector<Layout>&) {
  LayoutChoice choice = {{Layout::channels_last(), Layout::convolution_weights()},
                         {Layout::channels_last()}};
  choice.inputs.resize(node.inputs.size());
  return choice;
}

LayoutChoice weights_from_images(const Graph&, const Node&, const std::vector<Layout>&) {
  return {{Layout::channels_last(), Layout::channels_last()}, {Layout::convolution_weights()}};
}

}  // namespace

std::vector<KernelDefinition> convolution_kernels() {
  return {{"conv2d", make_forward, image_and_weights},
          {"conv2d_backward_data", make_backward_data, image_and_weights},
          {"conv2d_backward_weights", make_backward_weights, weights_from_images},
          {"conv_transpose2d", make_transposed, image_and_weights}};
}

}  // namespace artel
