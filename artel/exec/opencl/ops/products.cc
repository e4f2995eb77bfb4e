#include "artel/exec/opencl/ops/products.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// A work group of TX x TY items computes a tile of 8 TX columns and ROWS TY rows. Each item
// computes ROWS rows of eight neighbouring columns in registers. Panels of 16 along k pass through
// local memory.
constexpr int64_t kGroup = 64, kVector = 8, kMostTileRows = 128;
constexpr std::string_view kProductSource = R"(
#define TILE_ROWS (TY * ROWS)
#define TILE_COLUMNS (TX * 8)
__kernel __attribute__((reqd_work_group_size(TX, TY, 1)))
void product(int m, int n, int k, IN(float, a), int lda, int ta, int a_distance,
             IN(float, b), int ldb, int tb, int b_distance,
             OUT(float, c), int ldc, int c_distance, int accumulate,
             IN(float, bias), int activation, float most, OUT(float, slope)) {
  __local float left[16][TILE_ROWS + 1];
  __local float8 right[16][TX];
  USE_IN(float, a);
  USE_IN(float, b);
  USE_OUT(float, c);
  USE_IN(float, bias);
  USE_OUT(float, slope);
  const long batch = get_group_id(2);
  a += batch * a_distance;
  b += batch * b_distance;
  c += batch * c_distance;
  const int row0 = get_group_id(1) * TILE_ROWS, column0 = get_group_id(0) * TILE_COLUMNS;
  const int tx = get_local_id(0), ty = get_local_id(1), t = ty * TX + tx;
  float8 sum[ROWS];
  for (int i = 0; i < ROWS; ++i) sum[i] = 0;
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int e = t; e < 16 * TILE_ROWS; e += 64) {
      const int ar = ta ? e % TILE_ROWS : e / 16, ak = ta ? e / TILE_ROWS : e % 16;
      const int row = row0 + ar, a_at = k0 + ak;
      left[ak][ar] = row < m && a_at < k
                         ? a[ta ? (long)a_at * lda + row : (long)row * lda + a_at] : 0.0f;
    }
    for (int e = t; e < 16 * TILE_COLUMNS; e += 64) {
      const int bc = tb ? e / 16 : e % TILE_COLUMNS, bk = tb ? e % 16 : e / TILE_COLUMNS;
      const int column = column0 + bc, b_at = k0 + bk;
      ((__local float*)right)[bk * TILE_COLUMNS + bc] = column < n && b_at < k
                          ? b[tb ? (long)column * ldb + b_at : (long)b_at * ldb + column] : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int kk = 0; kk < 16; ++kk) {
      const float8 y = right[kk][tx];
#pragma unroll
      for (int i = 0; i < ROWS; ++i) sum[i] = fma((float8)(left[kk][ty * ROWS + i]), y, sum[i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < ROWS; ++i) {
    const int row = row0 + ty * ROWS + i;
    float values[8];
    vstore8(sum[i], 0, values);
    for (int j = 0; j < 8; ++j) {
      const int column = column0 + tx * 8 + j;
      if (row >= m || column >= n) continue;
      const long at = (long)row * ldc + column;
      float value = values[j];
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
}
)";

// The smallest power of two that is at least `n`, but at most `most`.
int64_t power_for(int64_t n, int64_t most) {
  int64_t power = 1;
  while (power < n && power < most) power *= 2;
  return power;
}

}  // namespace

ProductTile product_tile(int64_t m, int64_t n) {
  const int64_t items = power_for(divide_up(n, kVector), kGroup / kVector);
  const int64_t high = kGroup / items;
  const int64_t rows = power_for(divide_up(m, high), std::min(kVector, kMostTileRows / high));
  return {.items = items, .rows = rows};
}

struct Products::Kernels {
  std::array<std::atomic<BuiltKernel>, kVector * kVector> by_tile{};
};

Products::Products(OpenClDevice& device)
    : device_(&device), kernels_(std::make_shared<Kernels>()) {}

BuiltKernel Products::kernel(const ProductTile& tile) const {
  std::atomic<BuiltKernel>& found =
      kernels_->by_tile[static_cast<size_t>((tile.items - 1) * kVector + tile.rows - 1)];
  if (!found)
    found = device_->kernel(
        kProductSource, "product",
        fmt::format("-DTX={} -DTY={} -DROWS={}", tile.items, kGroup / tile.items, tile.rows));
  return found;
}

void Products::run(const Product& p) const {
  const ProductTile tile = product_tile(p.m, p.n);
  const int64_t high = kGroup / tile.items;
  const auto global = [](int64_t extent, int64_t of_tile, int64_t items) {
    return static_cast<size_t>(divide_up(extent, of_tile) * items);
  };
  device_->run(kernel(tile),
               {{global(p.n, kVector * tile.items, tile.items), global(p.m, tile.rows * high, high),
                 static_cast<size_t>(p.batch)},
                {static_cast<size_t>(tile.items), static_cast<size_t>(high), 1}},
               {p.m, p.n, p.k, p.a, p.lda, p.transpose_a, p.a_distance, p.b, p.ldb, p.transpose_b,
                p.b_distance, p.c, p.ldc, p.c_distance, p.accumulate, p.bias,
                static_cast<int>(p.activation), p.most, p.slope});
}

}  // namespace artel::opencl
