#include "artel/train/parts/distributed_product.h"

#include "artel/base/error.h"
#include "artel/exec/libraries.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/shards.h"
#include "artel/graph/passes/lower.h"
#include "artel/train/parts/tensor_group.h"

namespace artel {
namespace {

// The largest number of workers along the columns such that the workers divide both numbers of
// shards.
int workers_along_columns(int workers, const ProductOptions& options) {
  for (int columns = workers; columns >= 1; --columns)
    if (workers % columns == 0 && options.columns % columns == 0 &&
        options.rows % (workers / columns) == 0)
      return columns;
  fail(ErrorKind::invalid_argument,
       "[product] got {} x {} shards (rows x columns) for {} workers, expected numbers that the "
       "workers divide; try columns = {}",
       options.rows, options.columns, workers, workers);
}

SplitRange shard_range(int64_t extent, int shards, int shard) {
  return ranges_of({extent}, {0, 1, shards})[static_cast<size_t>(shard)];
}

Value slice_of(Value x, int64_t axis, const SplitRange& range, int64_t first) {
  return slice(x, axis, range.begin - first, range.begin - first + range.extent);
}

}  // namespace

// Two programs, because sums and columns are exchanged with different workers.
struct DistributedProduct::Compiled {
  Program sums, columns;
  Frame sums_frame, columns_frame;

  Compiled(Graph sum_graph, Graph column_graph, KernelChoices& choices, Parameters& weights)
      : sums(std::move(sum_graph), {}, choices),
        columns(std::move(column_graph), {}, choices),
        sums_frame(sums, weights),
        columns_frame(columns, weights) {}
};

DistributedProduct::DistributedProduct(Cluster& cluster, const ProductOptions& options)
    : options_(options), pool_(cluster.cores(), limit_library_threads) {
  require(options.in > 0 && options.out > 0 && options.rows > 0 && options.columns > 0 &&
              options.rows <= options.in && options.columns <= options.out,
          ErrorKind::invalid_argument,
          "[product] got weights [{}, {}] in {} x {} shards (rows x columns), expected a row and a "
          "column for each",
          options.in, options.out, options.rows, options.columns);
  const int along = workers_along_columns(cluster.size(), options);
  const int across = cluster.size() / along;
  const int row = cluster.rank() / along, column = cluster.rank() % along;
  rows_ = make_axis(cluster.group(), options.in, options.rows, across, row, column);
  columns_ = make_axis(cluster.group(), options.out, options.columns, along, column, row);
  weights_ = Parameters({{"weights", {rows().size(), columns().size()}, {}, false}});
}

DistributedProduct::~DistributedProduct() = default;

DistributedProduct::Axis DistributedProduct::make_axis(comm::Group* all, int64_t extent, int shards,
                                                       int workers, int place, int other) const {
  const int each = shards / workers;
  Axis axis = {{shards, place * each, (place + 1) * each}, {}, nullptr};
  axis.range.begin = shard_range(extent, shards, axis.part.first).begin;
  const SplitRange last = shard_range(extent, shards, axis.part.last - 1);
  axis.range.end = last.begin + last.extent;
  if (all) {
    comm::Group group = all->split(other);
    if (workers > 1)
      axis.group = std::make_unique<TensorGroup>(std::move(group), shards,
                                                 fmt::format("worker {}, product", all->rank()));
  }
  return axis;
}

void DistributedProduct::set_weights(const Tensor& part) { weights_.set("weights", part); }

DistributedProduct::Compiled& DistributedProduct::compiled(int64_t samples) {
  std::unique_ptr<Compiled>& found = compiled_[samples];
  if (found) return *found;
  Graph sums;
  const Value x = sums.input("x", {DType::f32, {samples, options_.in}});
  const Value weights = sums.parameter("weights", {rows().size(), columns().size()});
  std::vector<Value> partials;
  for (int r = rows_.part.first; r < rows_.part.last; ++r) {
    const SplitRange row = shard_range(options_.in, options_.rows, r);
    const Value own_x = slice_of(x, 1, row, 0), own = slice_of(weights, 0, row, rows().begin);
    std::vector<Value> parts;
    for (int c = columns_.part.first; c < columns_.part.last; ++c)
      parts.push_back(matmul(own_x, slice_of(own, 1, shard_range(options_.out, options_.columns, c),
                                             columns().begin)));
    partials.push_back(concat(parts, 1));
  }
  sums.set_output("y", shard_sum(partials, rows_.part));

  Graph gathered;
  const Value y = gathered.input("y", {DType::f32, {samples, columns().size()}});
  std::vector<Value> pieces;
  for (int c = columns_.part.first; c < columns_.part.last; ++c)
    pieces.push_back(
        slice_of(y, 1, shard_range(options_.out, options_.columns, c), columns().begin));
  gathered.set_output("y",
                      shard_gather(pieces, {1, 1, options_.columns}, options_.out, columns_.part));
  found = std::make_unique<Compiled>(lower(sums), lower(gathered), choices_, weights_);
  return *found;
}

Tensor DistributedProduct::operator()(const Tensor& x) {
  require(x.shape().rank() == 2 && x.shape()[1] == options_.in, ErrorKind::shape,
          "[product] got {}, expected [samples, {}]", to_string(x.shape()), options_.in);
  Compiled& both = compiled(x.shape()[0]);
  both.sums_frame.set_input("x", x);
  both.sums.run(both.sums_frame, pool_, {.context = {.shards = rows_.group.get()}});
  both.columns_frame.set_input("y", both.sums_frame.output("y"));
  both.columns.run(both.columns_frame, pool_, {.context = {.shards = columns_.group.get()}});
  return both.columns_frame.output("y");
}

}  // namespace artel
