#include "artel/transfer/log_me.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "artel/base/error.h"
#include "artel/exec/libraries.h"

// A LAPACK function, which OpenBLAS exports without a header.
extern "C" void dsyevd_(const char* vectors, const char* triangle, const int* n, double* matrix,
                        const int* row, double* values, double* work, const int* work_size,
                        int* whole, const int* whole_size, int* info);

namespace artel::transfer {

std::vector<double> eigenvalues(std::vector<double> matrix, int64_t n,
                                std::vector<double>& vectors) {
  const auto size = static_cast<int>(n);
  std::vector<double> values(static_cast<size_t>(n)), work(1);
  std::vector<int> whole(1);
  int info = 0;
  const auto run = [&](int work_size, int whole_size) {
    dsyevd_("V", "L" /* by columns: the upper one by rows */, &size, matrix.data(), &size,
            values.data(), work.data(), &work_size, whole.data(), &whole_size, &info);
    require(info == 0, ErrorKind::numeric,
            "the eigenvalues of {} x {} numbers: LAPACK's code is {}", n, n, info);
  };
  run(-1, -1);  // queries the workspace size
  work.resize(static_cast<size_t>(work[0]));
  whole.resize(static_cast<size_t>(whole[0]));
  run(static_cast<int>(work.size()), static_cast<int>(whole.size()));
  vectors = std::move(matrix);
  return values;
}

namespace {

// The evidence of one target of n samples, maximised over the precisions alpha of the weights and
// beta of the noise. `spectrum` holds the squared singular values, `z` the squared components of
// the target along their vectors, and `beyond` the squared remainder.
double evidence(double n, const std::vector<double>& spectrum, const std::vector<double>& z,
                double beyond) {
  double alpha = 1, beta = 1, length = 0, wrong = 0;
  for (int i = 0; i < 50; ++i) {
    double used = 0;
    length = 0;
    wrong = beyond;
    for (size_t k = 0; k < z.size(); ++k) {
      const double sum = alpha + beta * spectrum[k];
      used += beta * spectrum[k] / sum;
      length += beta * beta * spectrum[k] * z[k] / (sum * sum);
      wrong += alpha * alpha * z[k] / (sum * sum);
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
  limit_library_threads();
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
  // Scales rows to a mean length of 1, so that layers of any scale can be compared.
  const double scale = squares > 0 ? static_cast<double>(n) / squares : 0;
  // The Gram matrix of samples, or of features if they are fewer, has the same spectrum.
  const bool by_samples = n <= numbers;
  const int64_t side = std::min(n, numbers);
  std::vector<double> products(static_cast<size_t>(side * side));
  cblas_dsyrk(CblasRowMajor, CblasUpper, by_samples ? CblasNoTrans : CblasTrans,
              static_cast<int>(side), static_cast<int>(std::max(n, numbers)), scale, centred.data(),
              static_cast<int>(numbers), 0, products.data(), static_cast<int>(side));
  std::vector<double> vectors;  // eigenvectors as rows
  std::vector<double> spectrum = eigenvalues(std::move(products), side, vectors);
  for (double& value : spectrum) value = std::max(0.0, value);
  int32_t last = 0;
  for (const int64_t i : chosen) last = std::max(last, classes.values<int32_t>()[i]);
  double sum = 0;
  for (int32_t label = 0; label <= last; ++label) {
    double members = 0;
    std::vector<double> along(static_cast<size_t>(by_samples ? n : numbers));
    for (int64_t i = 0; i < n; ++i) {
      if (classes.values<int32_t>()[chosen[i]] != label) continue;
      members += 1;
      if (by_samples)
        along[i] = 1;
      else
        for (int64_t j = 0; j < numbers; ++j) along[j] += centred[i * numbers + j];
    }
    std::vector<double> z(static_cast<size_t>(side));
    double within = 0;
    for (int64_t k = 0; k < side; ++k) {
      const double product =
          std::inner_product(along.begin(), along.end(), vectors.begin() + k * side, 0.0);
      // Converts an eigenvector of the features to one of the samples.
      z[k] = by_samples            ? product * product
             : spectrum[k] > 1e-12 ? product * product * scale / spectrum[k]
                                   : 0;
      within += z[k];
    }
    sum += evidence(static_cast<double>(n), spectrum, z, std::max(0.0, members - within));
  }
  return sum / static_cast<double>(last + 1);
}

}  // namespace artel::transfer
