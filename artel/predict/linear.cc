#include "artel/predict/linear.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr const char *kWeight = "weight", *kBias = "bias";

}  // namespace

std::vector<float> linear_weights(const Parameters& parameters, int64_t features) {
  const Tensor weight = parameters.get(kWeight);
  const std::span<const float> values = weight.values<float>();
  std::vector<float> weights(values.begin(), values.begin() + features);
  weights.push_back(parameters.get(kBias).values<float>()[0]);
  return weights;
}

void set_linear_weights(Parameters& parameters, const std::vector<float>& weights) {
  Tensor weight(parameters.get(kWeight).shape());
  std::copy(weights.begin(), weights.end() - 1, weight.values<float>().begin());
  parameters.set(kWeight, weight);
  parameters.set(kBias, Tensor::from<float>({1}, {weights.back()}));
}

LinearSums evaluate_linear(const data::SparseRows& rows, const Parameters& parameters,
                           bool classes) {
  const Tensor weight = parameters.get(kWeight);
  const std::span<const float> weights = weight.values<float>();
  const float bias = parameters.get(kBias).values<float>()[0];
  LinearSums sums;
  data::SparseSample sample;
  for (int64_t row = 0; row < rows.size(); ++row) {
    rows.read(row, sample);
    double margin = bias;
    for (size_t i = 0; i < sample.features.size(); ++i)
      margin += weights[static_cast<size_t>(sample.features[i])] * sample.values[i];
    if (!classes) {
      sums.loss += (margin - sample.target) * (margin - sample.target);
      continue;
    }
    const double towards = sample.target > 0 ? margin : -margin;
    sums.correct += towards > 0 ? 1 : 0;
    sums.loss += std::max(0.0, -towards) + std::log1p(std::exp(-std::abs(towards)));
  }
  return sums;
}

}  // namespace artel
