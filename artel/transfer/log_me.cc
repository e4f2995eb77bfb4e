#include "artel/transfer/log_me.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace artel::transfer {

std::vector<double> eigenvalues(std::vector<double> a, int64_t n, std::vector<double>& v) {
  v.assign(static_cast<size_t>(n * n), 0.0);
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  double all = 0;
  for (const double value : a) all += value * value;
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) off += a[p * n + q] * a[p * n + q];
    if (off <= 1e-20 * all) break;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const double apq = a[p * n + q];
        if (apq * apq <= 1e-24 * all) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
        const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0), s = t * c;
        // Both sides of the matrix, which stays symmetric, and the vectors as rows for now.
        for (int64_t k = 0; k < n; ++k) {
          const double x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = s * x + c * y;
        }
        for (int64_t k = 0; k < n; ++k) {
          const double x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y;
          a[k * n + q] = s * x + c * y;
        }
        for (int64_t k = 0; k < n; ++k) {
          const double x = v[p * n + k], y = v[q * n + k];
          v[p * n + k] = c * x - s * y;
          v[q * n + k] = s * x + c * y;
        }
      }
  }
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(a[i * n + i]);
  for (int64_t i = 0; i < n; ++i)  // rows become columns
    for (int64_t j = i + 1; j < n; ++j) std::swap(v[i * n + j], v[j * n + i]);
  return values;
}

namespace {

// The evidence of one target, at the precisions alpha of the weights and beta of the noise that
// make it largest. `spectrum` are the squared singular values, `z` the target along their vectors.
double evidence(const std::vector<double>& spectrum, const std::vector<double>& z) {
  const auto n = static_cast<double>(z.size());
  double alpha = 1, beta = 1, length = 0, wrong = 0;
  for (int i = 0; i < 50; ++i) {
    double used = 0;
    length = wrong = 0;
    for (size_t k = 0; k < z.size(); ++k) {
      const double sum = alpha + beta * spectrum[k];
      used += beta * spectrum[k] / sum;
      length += beta * beta * spectrum[k] * z[k] * z[k] / (sum * sum);
      wrong += alpha * alpha * z[k] * z[k] / (sum * sum);
    }
    const double before = alpha / beta;
    alpha = used / std::max(length, 1e-12);
    beta = (n - used) / std::max(wrong, 1e-12);
    alpha = std::clamp(alpha, 1e-9, 1e9);
    beta = std::clamp(beta, 1e-9, 1e9);
    if (std::abs(alpha / beta - before) <= 1e-4 * before) break;
  }
  double determinant = 0;
  for (const double value : spectrum) determinant += std::log1p(beta / alpha * value);
  return (n * std::log(beta / (2 * std::numbers::pi)) - beta * wrong - alpha * length -
          determinant) /
         (2 * n);
}

}  // namespace

double log_me(const Tensor& rows, const Tensor& classes, int64_t most) {
  const int64_t all = rows.shape()[0], numbers = rows.elements() / std::max<int64_t>(1, all);
  const int64_t n = std::min(all, most);
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < n; ++i) chosen.push_back(i * all / n);
  std::vector<double> means(static_cast<size_t>(numbers));
  const float* const values = rows.values<float>().data();
  for (const int64_t i : chosen)
    for (int64_t j = 0; j < numbers; ++j)
      means[j] += values[i * numbers + j] / static_cast<double>(n);
  std::vector<double> centred(static_cast<size_t>(n * numbers));
  double squares = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < numbers; ++j) {
      const double value = values[chosen[i] * numbers + j] - means[j];
      centred[i * numbers + j] = value;
      squares += value * value;
    }
  // In units in which a row has length 1, so that layers of any scale compare.
  const double scale = squares > 0 ? static_cast<double>(n) / squares : 0;
  std::vector<double> products(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      const double product = scale * std::inner_product(centred.begin() + i * numbers,
                                                        centred.begin() + (i + 1) * numbers,
                                                        centred.begin() + j * numbers, 0.0);
      products[i * n + j] = products[j * n + i] = product;
    }
  std::vector<double> vectors;
  std::vector<double> spectrum = eigenvalues(std::move(products), n, vectors);
  for (double& value : spectrum) value = std::max(0.0, value);
  int32_t last = 0;
  for (const int64_t i : chosen) last = std::max(last, classes.values<int32_t>()[i]);
  double sum = 0;
  for (int32_t label = 0; label <= last; ++label) {
    std::vector<double> z(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      if (classes.values<int32_t>()[chosen[i]] == label)
        for (int64_t k = 0; k < n; ++k) z[k] += vectors[i * n + k];
    sum += evidence(spectrum, z);
  }
  return sum / static_cast<double>(last + 1);
}

}  // namespace artel::transfer
