// artel_bench_memory [THREADS [REPEATS]]: milliseconds and GB/s of the memory-bound kernels, each
// tensor counted once per unavoidable read or write.
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artel/exec/cpu/elementwise/copy.h"
#include "artel/exec/cpu/elementwise/dropout.h"
#include "artel/exec/cpu/elementwise/elementwise.h"
#include "artel/exec/cpu/rows/cross_entropy.h"
#include "artel/exec/cpu/rows/norm.h"
#include "artel/exec/cpu/rows/pool.h"
#include "artel/exec/cpu/rows/reduce.h"
#include "artel/exec/cpu/rows/softmax.h"
#include "timing.h"

namespace artel::bench {
namespace {

using namespace kernels;

struct Case {
  std::string name;
  double floats;  // read or written
  std::function<void(ThreadPool&)> run;
};

struct Tensors {
  static constexpr int64_t kSize = int64_t{64} * 32 * 32 * 64;  // the largest map of ResNet-18
  Buffer a{kSize}, b{kSize}, c{kSize}, d{kSize};
  Buffer channels{4096}, more_channels{4096}, gradients{4096}, statistics{int64_t{1} << 16};
  std::vector<char> workspace = std::vector<char>(1 << 22);
  std::vector<uint8_t> argmax = std::vector<uint8_t>(kSize);
  std::vector<int32_t> labels = std::vector<int32_t>(1 << 16);
};

void add_batch_norm(std::vector<Case>& cases, Tensors& t, int64_t rows, int64_t channels) {
  const double n = static_cast<double>(rows * channels);
  float* mean = t.statistics.data();
  float* inv_std = mean + channels;
  const std::string shape = fmt::format(" {}x{}", rows, channels);
  cases.push_back({"batch norm + relu" + shape, 3 * n, [=, &t](ThreadPool& pool) {
                     batch_norm_training(pool, {.relu = true}, rows, channels, t.a.data(),
                                         t.channels.data(), t.more_channels.data(), nullptr,
                                         t.b.data(), mean, inv_std, nullptr, t.workspace.data());
                   }});
  cases.push_back({"batch norm + relu backward" + shape, 5 * n, [=, &t](ThreadPool& pool) {
                     batch_norm_backward(pool, {.relu = true}, rows, channels, t.c.data(),
                                         t.a.data(), nullptr, t.channels.data(),
                                         t.more_channels.data(), mean, inv_std, t.d.data(),
                                         t.gradients.data(), t.gradients.data() + channels, nullptr,
                                         t.workspace.data());
                   }});
  cases.push_back(
      {"batch norm + residual + relu backward" + shape, 7 * n, [=, &t](ThreadPool& pool) {
         batch_norm_backward(pool, {.relu = true}, rows, channels, t.c.data(), t.a.data(),
                             t.b.data(), t.channels.data(), t.more_channels.data(), mean, inv_std,
                             t.d.data(), t.gradients.data(), t.gradients.data() + channels,
                             t.c.data(), t.workspace.data());
       }});
}

void add_elementwise(std::vector<Case>& cases, Tensors& t, const std::string& name,
                     std::vector<ElementInstruction> code, int64_t rows, int64_t columns) {
  ElementProgram program{3, std::move(code), {}};
  program.outputs = {2 + static_cast<int>(program.code.size())};
  const ElementOperand dense{{columns, 1}};
  auto kernel = std::make_shared<ElementKernel>(program, std::vector<int64_t>{rows, columns},
                                                std::vector<ElementOperand>{dense, dense, {{0, 1}}},
                                                std::vector<ElementOperand>{dense});
  cases.push_back({fmt::format("{} {}x{}", name, rows, columns),
                   3.0 * static_cast<double>(rows * columns), [=, &t](ThreadPool& pool) {
                     const float* inputs[] = {t.a.data(), t.b.data(), t.channels.data()};
                     float* output = t.c.data();
                     kernel->run(pool, inputs, &output);
                   }});
}

void add_softmax(std::vector<Case>& cases, Tensors& t, int64_t rows, int64_t columns) {
  const double n = static_cast<double>(rows * columns);
  const std::string shape = fmt::format(" {}x{}", rows, columns);
  cases.push_back({"softmax" + shape, 2 * n, [=, &t](ThreadPool& pool) {
                     softmax(pool, rows, columns, t.a.data(), t.b.data());
                   }});
  cases.push_back({"cross entropy and gradient" + shape, 2 * n, [=, &t](ThreadPool& pool) {
                     float loss = 0;
                     cross_entropy(pool, {.labels = t.labels.data()}, rows, columns, t.a.data(),
                                   &loss, t.statistics.data(), t.b.data());
                   }});
}

void add_layer_norm(std::vector<Case>& cases, Tensors& t, int64_t rows, int64_t columns) {
  const double n = static_cast<double>(rows * columns);
  float* mean = t.statistics.data();
  float* inv_std = mean + rows;
  cases.push_back(
      {fmt::format("layer norm {}x{}", rows, columns), 2 * n, [=, &t](ThreadPool& pool) {
         layer_norm(pool, 1e-5f, rows, columns, t.a.data(), t.channels.data(),
                    t.more_channels.data(), t.b.data(), mean, inv_std);
       }});
  cases.push_back(
      {fmt::format("layer norm backward {}x{}", rows, columns), 3 * n, [=, &t](ThreadPool& pool) {
         layer_norm_backward(pool, rows, columns, t.c.data(), t.a.data(), t.channels.data(), mean,
                             inv_std, t.d.data(), t.gradients.data(), t.gradients.data() + columns,
                             t.workspace.data());
       }});
}

void add_pool(std::vector<Case>& cases, Tensors& t, int64_t size, int64_t channels) {
  const PoolShape shape{64, PoolAxis::windows(size, 2, 2), PoolAxis::windows(size, 2, 2), channels};
  const double n = static_cast<double>(shape.input_elements() + shape.output_elements());
  const std::string text = fmt::format(" 2x2 of {}x{}x{}", size, size, channels);
  cases.push_back({"max pool" + text, n, [=, &t](ThreadPool& pool) {
                     max_pool(pool, shape, t.a.data(), t.b.data(), t.argmax.data());
                   }});
  cases.push_back({"max pool backward" + text, n, [=, &t](ThreadPool& pool) {
                     max_pool_backward<uint8_t>(pool, shape, t.b.data(), t.argmax.data(),
                                                t.c.data());
                   }});
  cases.push_back({"average pool" + text, n, [=, &t](ThreadPool& pool) {
                     average_pool(pool, shape, false, t.a.data(), t.b.data());
                   }});
}

void add_transpose(std::vector<Case>& cases, Tensors& t, int64_t images, int64_t channels,
                   int64_t pixels) {
  auto kernel = std::make_shared<CopyKernel>(std::vector<int64_t>{images, channels, pixels},
                                             std::vector<int64_t>{channels * pixels, pixels, 1},
                                             std::vector<int64_t>{channels * pixels, 1, channels});
  cases.push_back({fmt::format("NCHW to NHWC {}x{}x{}", images, channels, pixels),
                   2.0 * static_cast<double>(images * channels * pixels),
                   [=, &t](ThreadPool& pool) { kernel->run(pool, t.a.data(), t.b.data()); }});
}

std::vector<Case> all_cases(Tensors& t) {
  std::vector<Case> cases;
  add_batch_norm(cases, t, 65536, 64);
  add_batch_norm(cases, t, 4096, 256);
  add_batch_norm(cases, t, 256, 512);
  add_elementwise(cases, t, "relu(a + b)",
                  {{*find_element_op("add"), 0, 1}, {*find_element_op("relu"), 3}}, 65536, 64);
  add_elementwise(cases, t, "relu(a * 2 + b + row)",
                  {{*find_element_op("mul_scalar"), 0, -1, -1, 2.0f},
                   {*find_element_op("add"), 3, 1},
                   {*find_element_op("add"), 4, 2},
                   {*find_element_op("relu"), 5}},
                  2048, 384);
  add_elementwise(cases, t, "gelu_tanh(a + row) * b",
                  {{*find_element_op("add"), 0, 2},
                   {*find_element_op("gelu_tanh"), 3},
                   {*find_element_op("mul"), 4, 1}},
                  2048, 1536);
  add_elementwise(cases, t, "gelu_exact gradient", {{*find_element_op("gelu_grad"), 0, 1}}, 2048,
                  1536);
  add_elementwise(cases, t, "a / sqrt(b) + tanh(a)",
                  {{*find_element_op("sqrt"), 1},
                   {*find_element_op("div"), 0, 3},
                   {*find_element_op("tanh"), 0},
                   {*find_element_op("add"), 4, 5}},
                  2048, 1536);
  add_softmax(cases, t, 128, 10);
  add_softmax(cases, t, 12288, 256);
  add_softmax(cases, t, 128, 10007);
  add_layer_norm(cases, t, 2048, 384);
  add_pool(cases, t, 32, 64);
  add_pool(cases, t, 8, 256);
  add_pool(cases, t, 28, 6);
  add_transpose(cases, t, 64, 64, 1024);
  add_transpose(cases, t, 64, 3, 1024);
  add_transpose(cases, t, 1, 512, 4608);
  const int64_t n = Tensors::kSize;
  cases.push_back({"relu and bias gradient 128x1024", 3.0 * 128 * 1024, [&t](ThreadPool& pool) {
                     relu_bias_backward(pool, 128, 1024, t.a.data(), t.b.data(), t.c.data(),
                                        t.gradients.data(), t.workspace.data());
                   }});
  cases.push_back({"bias gradient 65536x64", static_cast<double>(n), [&t](ThreadPool& pool) {
                     bias_gradient(pool, 65536, 64, t.a.data(), t.gradients.data(),
                                   t.workspace.data());
                   }});
  cases.push_back({"add into", 3.0 * static_cast<double>(n), [&t](ThreadPool& pool) {
                     add_into(pool, Tensors::kSize, t.a.data(), t.b.data());
                   }});
  cases.push_back({"dropout", 2.0 * static_cast<double>(n), [&t](ThreadPool& pool) {
                     dropout(pool, 7, 0.5f, Tensors::kSize, t.a.data(), t.b.data());
                   }});
  return cases;
}

void run(int threads, int repeats) {
  ThreadPool pool(threads);
  Tensors tensors;
  fmt::print("{:<50} {:>9} {:>7}\n", "kernel", "ms", "GB/s");
  for (const Case& test : all_cases(tensors)) {
    const double seconds = median_seconds({[&] { test.run(pool); }}, repeats)[0];
    fmt::print("{:<50} {:>9.3f} {:>7.1f}\n", test.name, 1e3 * seconds,
               4e-9 * test.floats / seconds);
  }
}

}  // namespace
}  // namespace artel::bench

int main(int argc, char** argv) {
  artel::bench::run(argc > 1 ? std::atoi(argv[1]) : 1, argc > 2 ? std::atoi(argv[2]) : 15);
}
