#include "artel/exec/cpu/rows/norm.h"

#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

struct Matrix {
  int64_t rows, columns;
};

const std::vector<Matrix> kMatrices = {{1, 1},   {2, 3},    {7, 16},    {64, 8},
                                       {67, 33}, {257, 64}, {5000, 19}, {130, 1030}};

std::vector<char> workspace_for(const Matrix& m) {
  return std::vector<char>(norm_workspace_bytes(m.rows, m.columns));
}

// Appends parts so that all results can be compared at once.
template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

struct BatchNormCase {
  bool relu, residual, affine;
};

struct BatchNormOracle {
  std::vector<double> y, mean, inv_std, variance, dx, dgamma, dbeta, dresidual;
};

BatchNormOracle batch_norm_oracle(const Matrix& m, const BatchNormCase& options,
                                  const std::vector<float>& x, const std::vector<float>& gamma,
                                  const std::vector<float>& beta,
                                  const std::vector<float>& residual,
                                  const std::vector<float>& dy) {
  const int64_t size = m.rows * m.columns;
  BatchNormOracle o{std::vector<double>(size), {}, {}, {},
                    std::vector<double>(size), {}, {}, std::vector<double>(size)};
  const double n = static_cast<double>(m.rows);
  for (int64_t c = 0; c < m.columns; ++c) {
    double mean = 0, variance = 0;
    for (int64_t r = 0; r < m.rows; ++r) mean += x[r * m.columns + c] / n;
    for (int64_t r = 0; r < m.rows; ++r) variance += std::pow(x[r * m.columns + c] - mean, 2) / n;
    const double inv_std = 1 / std::sqrt(variance + 1e-5);
    const double g = options.affine ? gamma[c] : 1, b = options.affine ? beta[c] : 0;
    double dgamma = 0, dbeta = 0;
    for (int64_t r = 0; r < m.rows; ++r) {
      const int64_t i = r * m.columns + c;
      double y = g * (x[i] - mean) * inv_std + b + (options.residual ? residual[i] : 0);
      o.dresidual[i] = options.relu && y <= 0 ? 0 : dy[i];
      o.y[i] = options.relu ? std::max(0.0, y) : y;
      dbeta += o.dresidual[i];
      dgamma += o.dresidual[i] * (x[i] - mean) * inv_std;
    }
    for (int64_t r = 0; r < m.rows; ++r) {
      const int64_t i = r * m.columns + c;
      const double normal = (x[i] - mean) * inv_std;
      o.dx[i] = g * inv_std * (o.dresidual[i] - dbeta / n - normal * dgamma / n);
    }
    o.mean.push_back(mean);
    o.variance.push_back(variance);
    o.inv_std.push_back(inv_std);
    o.dgamma.push_back(dgamma);
    o.dbeta.push_back(dbeta);
  }
  return o;
}

TEST(BatchNorm, TrainingAgainstDouble) {
  for (const Matrix& m : kMatrices) {
    for (const BatchNormCase& options : {BatchNormCase{false, false, true},
                                         {true, false, true},
                                         {true, true, true},
                                         {false, true, false}}) {
      SCOPED_TRACE(testing::Message() << m.rows << " x " << m.columns << ", relu " << options.relu
                                      << ", residual " << options.residual);
      if (m.rows == 2) continue;  // gradients of two rows are rounding noise over tiny variances
      const int64_t size = m.rows * m.columns;
      const std::vector<float> x = random_values(size, 1, 3, 8), dy = random_values(size, 2),
                               residual = random_values(size, 3),
                               gamma = random_values(m.columns, 4),
                               beta = random_values(m.columns, 5);
      const float* g = options.affine ? gamma.data() : nullptr;
      const float* b = options.affine ? beta.data() : nullptr;
      const BatchNormOptions kernel_options{.relu = options.relu};
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<char> workspace = workspace_for(m);
        std::vector<float> y(size), mean(m.columns), inv_std(m.columns), variance(m.columns);
        batch_norm_training(pool, kernel_options, m.rows, m.columns, x.data(), g, b,
                            options.residual ? residual.data() : nullptr, y.data(), mean.data(),
                            inv_std.data(), variance.data(), workspace.data());
        std::vector<float> dx(size), dgamma(m.columns), dbeta(m.columns), dresidual(size);
        batch_norm_backward(pool, kernel_options, m.rows, m.columns, dy.data(), x.data(), y.data(),
                            g, b, mean.data(), inv_std.data(), dx.data(), dgamma.data(),
                            dbeta.data(), options.residual ? dresidual.data() : nullptr,
                            workspace.data());
        if (!options.residual) {  // the mask without y has the same bits
          std::vector<float> again(size);
          batch_norm_backward(pool, kernel_options, m.rows, m.columns, dy.data(), x.data(), nullptr,
                              g, b, mean.data(), inv_std.data(), again.data(), dgamma.data(),
                              dbeta.data(), nullptr, workspace.data());
          EXPECT_EQ(again, dx);
        }
        std::vector<float> all = y;
        for (const auto& part : {mean, inv_std, variance, dx, dgamma, dbeta}) append(all, part);
        if (options.residual) append(all, dresidual);
        return all;
      });
      const BatchNormOracle oracle = batch_norm_oracle(m, options, x, gamma, beta, residual, dy);
      std::vector<double> expected = oracle.y;
      for (const auto& part :
           {oracle.mean, oracle.inv_std, oracle.variance, oracle.dx, oracle.dgamma, oracle.dbeta})
        append(expected, part);
      if (options.residual) append(expected, oracle.dresidual);
      expect_close(got, expected, m.rows == 1 ? 1e-3 : 2e-5);
    }
  }
}

// A mean a thousand times the deviation must not swallow the variance.
TEST(BatchNorm, VarianceSurvivesLargeMean) {
  const Matrix m{4096, 5};
  const std::vector<float> x = random_values(m.rows * m.columns, 1, 999.5f, 1000.5f);
  std::vector<float> y(x.size()), mean(5), inv_std(5), variance(5);
  std::vector<char> workspace = workspace_for(m);
  ThreadPool pool(2);
  batch_norm_training(pool, {}, m.rows, m.columns, x.data(), nullptr, nullptr, nullptr, y.data(),
                      mean.data(), inv_std.data(), variance.data(), workspace.data());
  for (int64_t c = 0; c < m.columns; ++c) {
    double exact_mean = 0, exact = 0;
    for (int64_t r = 0; r < m.rows; ++r) exact_mean += x[r * 5 + c] / 4096.0;
    for (int64_t r = 0; r < m.rows; ++r) exact += std::pow(x[r * 5 + c] - exact_mean, 2) / 4096.0;
    EXPECT_NEAR(variance[c], exact, 1e-6 * exact);
  }
}

TEST(BatchNorm, InferenceAndRunningStatistics) {
  const Matrix m{37, 13};
  const std::vector<float> x = random_values(m.rows * m.columns, 1), gamma = random_values(13, 2),
                           beta = random_values(13, 3), mean = random_values(13, 4),
                           variance = random_values(13, 5, 0.5f, 2);
  std::vector<float> y(x.size());
  std::vector<char> workspace = workspace_for(m);
  ThreadPool pool(2);
  batch_norm_inference(pool, {.relu = true}, m.rows, m.columns, x.data(), gamma.data(), beta.data(),
                       nullptr, mean.data(), variance.data(), y.data(), workspace.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % 13;
    const double expected = gamma[c] * (x[i] - mean[c]) / std::sqrt(variance[c] + 1e-5) + beta[c];
    ASSERT_NEAR(y[i], std::max(0.0, expected), 1e-5);
  }
}

TEST(BatchNorm, EmptyBatch) {
  ThreadPool pool(2);
  std::vector<char> workspace = workspace_for({0, 3});
  std::vector<float> mean(3, 7), inv_std(3), variance(3), dgamma(3, 7), dbeta(3, 7);
  batch_norm_training(pool, {}, 0, 3, nullptr, nullptr, nullptr, nullptr, nullptr, mean.data(),
                      inv_std.data(), variance.data(), workspace.data());
  EXPECT_EQ(mean, std::vector<float>(3));
  batch_norm_backward(pool, {}, 0, 3, nullptr, nullptr, nullptr, nullptr, nullptr, mean.data(),
                      inv_std.data(), nullptr, dgamma.data(), dbeta.data(), nullptr,
                      workspace.data());
  EXPECT_EQ(dgamma, std::vector<float>(3));
}

// Layer norm, and RMS norm as its form without centering.
void check_row_norm(const Matrix& m, bool centered) {
  const int64_t size = m.rows * m.columns;
  const double n = static_cast<double>(m.columns);
  const std::vector<float> x = random_values(size, 1, -1, 3), dy = random_values(size, 2),
                           gamma = random_values(m.columns, 3), beta = random_values(m.columns, 4);
  const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
    std::vector<char> workspace = workspace_for(m);
    std::vector<float> y(size), mean(m.rows), inv_std(m.rows), dx = dy, dgamma(m.columns),
                                                               dbeta(m.columns);
    if (centered) {
      layer_norm(pool, 1e-5f, m.rows, m.columns, x.data(), gamma.data(), beta.data(), y.data(),
                 mean.data(), inv_std.data());
      layer_norm_backward(pool, m.rows, m.columns, dx.data(), x.data(), gamma.data(), mean.data(),
                          inv_std.data(), dx.data(), dgamma.data(), dbeta.data(), workspace.data());
    } else {
      rms_norm(pool, 1e-5f, m.rows, m.columns, x.data(), gamma.data(), y.data(), inv_std.data());
      rms_norm_backward(pool, m.rows, m.columns, dx.data(), x.data(), gamma.data(), inv_std.data(),
                        dx.data(), dgamma.data(), workspace.data());
    }
    std::vector<float> all = y;
    for (const auto& part : {dx, dgamma, dbeta}) append(all, part);
    return all;
  });

  std::vector<double> y(size), dx(size), dgamma(m.columns), dbeta(m.columns);
  for (int64_t r = 0; r < m.rows; ++r) {
    const int64_t first = r * m.columns;
    double mean = 0, squares = 0, along = 0, average = 0;
    for (int64_t c = 0; c < m.columns && centered; ++c) mean += x[first + c] / n;
    for (int64_t c = 0; c < m.columns; ++c) squares += std::pow(x[first + c] - mean, 2) / n;
    const double inv_std = 1 / std::sqrt(squares + 1e-5);
    for (int64_t c = 0; c < m.columns; ++c) {
      const double normal = (x[first + c] - mean) * inv_std;
      y[first + c] = normal * gamma[c] + (centered ? beta[c] : 0);
      dgamma[c] += dy[first + c] * normal;
      dbeta[c] += centered ? dy[first + c] : 0;
      along += dy[first + c] * gamma[c] * normal / n;
      average += centered ? dy[first + c] * gamma[c] / n : 0;
    }
    for (int64_t c = 0; c < m.columns; ++c) {
      const double normal = (x[first + c] - mean) * inv_std;
      dx[first + c] = inv_std * (dy[first + c] * gamma[c] - average - normal * along);
    }
  }
  std::vector<double> expected = y;
  for (const auto& part : {dx, dgamma, dbeta}) append(expected, part);
  expect_close(got, expected, m.columns == 1 ? 1e-3 : 3e-5);
}

TEST(LayerNorm, AgainstDouble) {
  for (const Matrix& m : kMatrices) check_row_norm(m, true);
}

TEST(RmsNorm, AgainstDouble) {
  for (const Matrix& m : kMatrices) check_row_norm(m, false);
}

}  // namespace
}  // namespace artel::kernels
