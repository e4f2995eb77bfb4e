#include "artel/exec/opencl/ops/products.h"

#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// A work group of 16 x 16 items computes a tile of 64 x 64. Each item computes 4 x 4 elements at
// distances of 16, so that neighbouring items access neighbouring memory. Panels of 16 along k pass
// through local memory.
constexpr int64_t kTile = 64;
constexpr size_t kSide = 16;
constexpr std::string_view kProductSource = R"(
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void product(int m, int n, int k, IN(float, a), int lda, int ta, int a_distance,
             IN(float, b), int ldb, int tb, int b_distance,
             OUT(float, c), int ldc, int c_distance, int accumulate,
             IN(float, bias), int activation, float most, OUT(float, slope)) {
  __local float left[16][65], right[16][65];
  USE_IN(float, a);
  USE_IN(float, b);
  USE_OUT(float, c);
  USE_IN(float, bias);
  USE_OUT(float, slope);
  const long batch = get_group_id(2);
  a += batch * a_distance;
  b += batch * b_distance;
  c += batch * c_distance;
  const int row0 = get_group_id(1) * 64, column0 = get_group_id(0) * 64;
  const int tx = get_local_id(0), ty = get_local_id(1), t = ty * 16 + tx;
  float sum[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) sum[i][j] = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = 0; i < 4; ++i) {
      const int e = t + i * 256;
      const int ar = ta ? e % 64 : e / 16, ak = ta ? e / 64 : e % 16;
      const int row = row0 + ar, a_at = k0 + ak;
      left[ak][ar] = row < m && a_at < k
                         ? a[ta ? (long)a_at * lda + row : (long)row * lda + a_at] : 0.0f;
      const int bc = tb ? e / 16 : e % 64, bk = tb ? e % 16 : e / 64;
      const int column = column0 + bc, b_at = k0 + bk;
      right[bk][bc] = column < n && b_at < k
                          ? b[tb ? (long)column * ldb + b_at : (long)b_at * ldb + column] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int kk = 0; kk < 16; ++kk) {
      float x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = left[kk][ty + 16 * i];
      for (int j = 0; j < 4; ++j) y[j] = right[kk][tx + 16 * j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] = fma(x[i], y[j], sum[i][j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
      if (row >= m || column >= n) continue;
      const long at = (long)row * ldc + column;
      float value = sum[i][j];
      if (accumulate) value += c[at];
      if (bias) value += bias[column];
      if (activation == 1) value = value < 0 ? 0.0f : value > most ? most : value;
      if (activation == 2) {
        if (slope) slope[at] = gelu_slope(value);
        value = gelu_of(value);
      }
      if (activation == 3) {
        if (slope) slope[at] = gelu_tanh_slope(value);
        value = gelu_tanh_of(value);
      }
      c[at] = value;
    }
}
)";

}  // namespace

Products::Products(OpenClDevice& device)
    : device_(&device), kernel_(device.kernel(kProductSource, "product")) {}

void Products::run(const Product& p) const {
  const auto tiles = [](int64_t n) { return static_cast<size_t>(divide_up(n, kTile)) * kSide; };
  device_->run(kernel_, {{tiles(p.n), tiles(p.m), static_cast<size_t>(p.batch)}, {kSide, kSide, 1}},
               {p.m, p.n, p.k, p.a, p.lda, p.transpose_a, p.a_distance, p.b, p.ldb, p.transpose_b,
                p.b_distance, p.c, p.ldc, p.c_distance, p.accumulate, p.bias,
                static_cast<int>(p.activation), p.most, p.slope});
}

}  // namespace artel::opencl
