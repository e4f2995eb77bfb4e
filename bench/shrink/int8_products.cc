// artel_bench_int8: predictions of a dense layer with int8 and int4 weights compared with fp32, in
// turns, on one core.
#include <algorithm>
#include <vector>

#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/nn/layers.h"
#include "artel/predict/batches.h"
#include "artel/predict/predictor.h"
#include "artel/shrink/weights_of_few_bits.h"

namespace {

using namespace artel;

constexpr int kTurns = 41;

struct Case {
  int64_t in, out, rows;
  QuantiseOptions form = {};
};

Tensor random_tensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(shape);
  Random random{seed};
  for (float& value : tensor.values<float>()) value = random.normal();
  return tensor;
}

double seconds(Predictor& predictor, const Tensor& x) {
  const Clock::time_point begin = Clock::now();
  predictor(x);
  return seconds_between(begin, Clock::now());
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + kTurns / 2);
  return values[kTurns / 2];
}

void compare(const Case& c) {
  const Model model = nn::sequential({nn::dense(c.out)});
  const TensorType sample = {DType::f32, {c.in}};
  const NamedTensors weights = {{"0.weight", random_tensor({c.out, c.in}, 1)},
                                {"0.bias", random_tensor({c.out}, 2)}};
  const NamedTensors small =
      shrink::quantise(inference_graph(model, batch_of(sample, 1)).graph, weights, {.form = c.form})
          .weights;
  Predictor fp32(model, sample, weights), quantised(model, sample, small);
  const Tensor x = random_tensor({c.rows, c.in}, 3);
  std::vector<double> slow, fast, ratios;
  fp32(x), quantised(x);
  for (int turn = 0; turn < kTurns; ++turn) {
    slow.push_back(seconds(fp32, x));
    fast.push_back(seconds(quantised, x));
    ratios.push_back(slow.back() / fast.back());
  }
  println("dense {} x {}, batch {:3}: fp32 {:.3f} ms, int{}{} {:.3f} ms, {:.2f}x", c.in, c.out,
          c.rows, 1e3 * median(slow), c.form.bits,
          c.form.group > 0 ? fmt::format(" in groups of {}", c.form.group) : "", 1e3 * median(fast),
          median(ratios));
}

}  // namespace

int main() {
  for (const Case& c : {Case{1024, 1024, 64},
                        {1024, 1024, 1},
                        {384, 1536, 64},
                        {4096, 1024, 64},
                        {1024, 1024, 64, {.bits = 8, .group = 32}},
                        {1024, 1024, 64, {.bits = 4}}})
    compare(c);
}
