#include "artel/exec/opencl/ops/sums.h"

#include <algorithm>

#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

constexpr int64_t kRowsOfChunk = 64, kMostRowChunks = 256;

int64_t row_chunks(int64_t rows) {
  return std::clamp<int64_t>(divide_up(rows, kRowsOfChunk), 1, kMostRowChunks);
}

constexpr std::string_view kColumnSumSource = R"(
__kernel void column_partials(int rows, int columns, int chunks, int term, IN(float, x),
                              IN(float, y), IN(float, mean), IN(float, scale),
                              OUT(float, partials)) {
  USE_IN(float, x);
  USE_IN(float, y);
  USE_IN(float, mean);
  USE_IN(float, scale);
  USE_OUT(float, partials);
  const int i = get_global_id(0);
  if (i >= columns * chunks) return;
  const int column = i % columns, chunk = i / columns;
  const int begin = (long)rows * chunk / chunks, end = (long)rows * (chunk + 1) / chunks;
  float sum = 0;
  for (int row = begin; row < end; ++row) {
    const long at = (long)row * columns + column;
    float value = x[at];
    if (term == 1) {
      value -= mean[column];
      value *= value;
    }
    if (term == 2) value *= y[at] - mean[column];
    if (term == 3) value *= (y[at] - (mean ? mean[row] : 0.0f)) * scale[row];
    sum += value;
  }
  partials[i] = sum;
}

__kernel void column_totals(int columns, int chunks, float factor, IN(float, partials),
                            OUT(float, totals)) {
  USE_IN(float, partials);
  USE_OUT(float, totals);
  const int column = get_global_id(0);
  if (column >= columns) return;
  float sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) sum += partials[(long)chunk * columns + column];
  totals[column] = factor * sum;
}
)";

}  // namespace

ColumnSummer::ColumnSummer(OpenClDevice& device)
    : device_(&device),
      partial_(device.kernel(kColumnSumSource, "column_partials")),
      total_(device.kernel(kColumnSumSource, "column_totals")) {}

size_t ColumnSummer::workspace_bytes(int64_t rows, int64_t columns) {
  return static_cast<size_t>(row_chunks(rows) * columns) * sizeof(float);
}

void ColumnSummer::run(const ColumnSums& s, float factor, float* out, void* workspace) const {
  const int64_t chunks = row_chunks(s.rows);
  device_->run(
      partial_, items(s.columns * chunks),
      {s.rows, s.columns, chunks, static_cast<int>(s.term), s.x, s.y, s.mean, s.scale, workspace});
  device_->run(total_, items(s.columns), {s.columns, chunks, factor, workspace, out});
}

}  // namespace artel::opencl
