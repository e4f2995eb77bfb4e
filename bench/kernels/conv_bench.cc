// artel_bench_conv [THREADS [REPEATS [LAYER [ALGORITHM]]]]: milliseconds and effective GFLOP/s
// (counted as direct convolution) of each algorithm, pass and layer of VGG-11, ResNet-18 and
// LeNet-5; with names, only the layers and algorithms whose names contain them. A star marks the
// rule's choice.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "artel/exec/cpu/convolution/conv.h"
#include "artel/exec/libraries.h"
#include "timing.h"

namespace artel::bench {
namespace {

using kernels::ConvAlgorithm;
using kernels::Convolution;
using kernels::ConvPass;
using kernels::ConvShape;

struct Layer {
  const char* name;
  ConvShape shape;
};

ConvShape same(int64_t size, int64_t c, int64_t k, int64_t kernel, int64_t stride = 1) {
  const int64_t pad = kernel / 2;
  return {64, size, size, c, k, kernel, kernel, stride, stride, pad, pad, pad, pad};
}

const std::vector<Layer> kLayers = {{"both 3>64@32", same(32, 3, 64, 3)},
                                    {"vgg 64>128@16", same(16, 64, 128, 3)},
                                    {"vgg 128>256@8", same(8, 128, 256, 3)},
                                    {"both 256>256@8", same(8, 256, 256, 3)},
                                    {"vgg 256>512@4", same(4, 256, 512, 3)},
                                    {"both 512>512@4", same(4, 512, 512, 3)},
                                    {"vgg 512>512@2", same(2, 512, 512, 3)},
                                    {"resnet 64>64@32", same(32, 64, 64, 3)},
                                    {"resnet 128>128@16", same(16, 128, 128, 3)},
                                    {"resnet 64>128@32/2", same(32, 64, 128, 3, 2)},
                                    {"resnet 128>256@16/2", same(16, 128, 256, 3, 2)},
                                    {"resnet 256>512@8/2", same(8, 256, 512, 3, 2)},
                                    {"resnet 64>128@32/2 1x1", same(32, 64, 128, 1, 2)},
                                    {"resnet 128>256@16/2 1x1", same(16, 128, 256, 1, 2)},
                                    {"resnet 256>512@8/2 1x1", same(8, 256, 512, 1, 2)},
                                    {"lenet 1>6@28 5x5", same(28, 1, 6, 5)},
                                    {"lenet 6>16@14 5x5", {64, 14, 14, 6, 16, 5, 5}}};

struct Buffers {
  explicit Buffers(const ConvShape& s)
      : x(s.n * s.h * s.w * s.c),
        w(s.kh * s.kw * s.c * s.k),
        y(s.n * s.out_h() * s.out_w() * s.k) {}
  Buffer x, w, y;
};

void execute(const Convolution& convolution, ConvPass pass, ThreadPool& pool, const Buffers& b,
             std::byte* workspace) {
  if (pass == ConvPass::forward) {
    convolution.forward(pool, b.x.data(), b.w.data(), nullptr, false, b.y.data(), workspace);
  } else if (pass == ConvPass::backward_data) {
    convolution.backward_data(pool, b.y.data(), b.w.data(), b.x.data(), workspace);
  } else {
    convolution.backward_weights(pool, b.x.data(), b.y.data(), b.w.data(), workspace);
  }
}

void measure(const Layer& layer, ConvPass pass, int threads, int repeats,
             std::string_view algorithm_name) {
  ThreadPool pool(threads, limit_library_threads);
  const Buffers buffers(layer.shape);
  std::vector<ConvAlgorithm> algorithms = kernels::conv_candidates(layer.shape, pass, false);
  std::erase_if(algorithms, [&](ConvAlgorithm algorithm) {
    return to_string(algorithm).find(algorithm_name) == std::string_view::npos;
  });
  std::vector<Convolution> convolutions;
  for (const ConvAlgorithm algorithm : algorithms) {
    convolutions.emplace_back(layer.shape, pass, algorithm, threads);
  }
  std::vector<Buffer> workspaces;
  std::vector<std::function<void()>> runs;
  for (const Convolution& convolution : convolutions) {
    workspaces.emplace_back(convolution.workspace_bytes() / sizeof(float));
    runs.push_back([&, workspace = workspaces.back().bytes()] {
      execute(convolution, pass, pool, buffers, workspace);
    });
  }
  const std::vector<double> seconds = median_seconds(runs, repeats);
  const ConvAlgorithm chosen = choose_conv(layer.shape, pass, false);
  fmt::print("{:<24} {:<17}", layer.name, to_string(pass));
  for (size_t i = 0; i < runs.size(); ++i) {
    fmt::print(" {:>9}{} {:>7.2f} ms {:>4.0f} GF/s {:>5.1f} MB", to_string(algorithms[i]),
               algorithms[i] == chosen ? '*' : ' ', 1e3 * seconds[i],
               kernels::conv_flops(layer.shape) / seconds[i] / 1e9,
               convolutions[i].workspace_bytes() / 1e6);
  }
  fmt::print("\n");
}

}  // namespace
}  // namespace artel::bench

int main(int argc, char** argv) {
  using namespace artel;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1,
            repeats = argc > 2 ? std::atoi(argv[2]) : 7;
  const std::string_view layer_name = argc > 3 ? argv[3] : "", algorithm = argc > 4 ? argv[4] : "";
  for (const bench::Layer& layer : bench::kLayers) {
    if (std::string_view(layer.name).find(layer_name) == std::string_view::npos) continue;
    for (const auto pass : {kernels::ConvPass::forward, kernels::ConvPass::backward_data,
                            kernels::ConvPass::backward_weights}) {
      bench::measure(layer, pass, threads, repeats, algorithm);
    }
  }
}
