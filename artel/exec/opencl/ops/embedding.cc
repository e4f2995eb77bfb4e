// Ops that look up rows or draw random numbers.
#include <cmath>

#include "artel/base/random.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/dropout.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// The table may be a shard that starts at `first_row` of a table of `all_rows` rows. An index
// outside the whole table gives NaN, which shows in the loss.
constexpr std::string_view kLookupSource = R"(
__kernel void embedding(int n, int rows, int first_row, int all_rows, int columns,
                        IN(int, indices), IN(float, table), OUT(float, y)) {
  USE_IN(int, indices);
  USE_IN(float, table);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int index = indices[i / columns], row = index - first_row;
  if (index < 0 || index >= all_rows)
    y[i] = NAN;
  else
    y[i] = row >= 0 && row < rows ? table[(long)row * columns + i % columns] : 0.0f;
}

/* One item adds up a column, in the order of the indices. */
__kernel void embedding_backward(int count, int rows, int first_row, int columns, IN(float, dy),
                                 IN(int, indices), OUT(float, dtable)) {
  USE_IN(float, dy);
  USE_IN(int, indices);
  USE_OUT(float, dtable);
  const int column = get_global_id(0);
  if (column >= columns) return;
  for (int i = 0; i < count; ++i) {
    const int row = indices[i] - first_row;
    if (row >= 0 && row < rows) dtable[(long)row * columns + column] += dy[(long)i * columns + column];
  }
}

/* Row `row` of length `length` is part of a row of `all` elements, from `first` on. */
__kernel void dropout(int n, ulong key, int threshold, float scale, int length, int all, int first,
                      IN(float, x), OUT(float, y)) {
  USE_IN(float, x);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  const ulong number = (ulong)(i / length) * all + first + i % length;
  const float factor = kept_factor(key, number, threshold, scale);
  y[i] = factor == 0 ? 0.0f : x[i] * factor;
}
)";

struct Table {
  int64_t rows, first, all, columns;

  Table(const KernelRequest& request, const Shape& shape)
      : rows(shape[0]),
        first(request.attributes().integer("first_row", 0)),
        all(request.attributes().integer("all_rows", rows)),
        columns(shape[1]) {}
};

Kernel make_embedding(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kLookupSource, "embedding");
  const Table table(request, request.in(1));
  const int64_t n = request.out().elements();
  return {{}, 0, [=, &device](const KernelRun& run) {
            device.run(kernel, items(n),
                       {n, table.rows, table.first, table.all, table.columns, run.inputs[0],
                        run.in(1), run.out(0)});
          }};
}

Kernel make_embedding_backward(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kLookupSource, "embedding_backward");
  const Fill fill(device);
  const Table table(request, request.out());
  const int64_t count = request.in(1).elements(), n = request.out().elements();
  const bool onto = request.inputs() == 3;
  const StridedCopy copy(device, {n}, {1}, {1});
  Kernel result = {{}, 0, [=, &device](const KernelRun& run) {
                     if (!onto)
                       fill.run(run.out(0), n);
                     else if (run.inputs[2] != run.outputs[0])
                       copy.run(run.in(2), run.out(0));
                     device.run(kernel, items(table.columns),
                                {count, table.rows, table.first, table.columns, run.in(0),
                                 run.inputs[1], run.out(0)});
                   }};
  if (onto) result.in_place = {{0, 2}};
  return result;
}

Kernel make_dropout(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kLookupSource, "dropout");
  const DropoutRule rule(request.attributes().number("probability"));
  const uint64_t stream = hash_name(request.attributes().text("stream"));
  const int64_t n = request.in(0).elements();
  const int64_t part = request.attributes().integer("row", 0);
  const int64_t length = part > 0 ? part : std::max<int64_t>(1, n);
  const int64_t all = part > 0 ? request.attributes().integer("all_of_row") : length;
  const int64_t first = part > 0 ? request.attributes().integer("first_of_row") : 0;
  return {{},
          0,
          [=, &device](const KernelRun& run) {
            device.run(kernel, items(n),
                       {n, random_key(run.context, stream), rule.threshold, rule.scale, length, all,
                        first, run.in(0), run.out(0)});
          },
          {{0, 0}}};
}

}  // namespace

DropoutRule::DropoutRule(double probability)
    : threshold(static_cast<int>(std::ceil(static_cast<float>(probability) * 0x1p24))),
      scale(probability < 1 ? 1.0f / (1.0f - static_cast<float>(probability)) : 0.0f) {}

std::vector<KernelDefinition> embedding_kernels() {
  return {{"embedding", make_embedding},
          {"embedding_backward", make_embedding_backward},
          {"dropout", make_dropout}};
}

}  // namespace artel::opencl
