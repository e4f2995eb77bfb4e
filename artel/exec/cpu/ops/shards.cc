// Kernels at the borders of layers that are cut into shards.
#include "artel/graph/ops/shards.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/cpu/elementwise/copy.h"
#include "artel/exec/cpu/matmul/classes.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/rows/cross_entropy.h"
#include "artel/exec/shard_exchange.h"

namespace artel {
namespace {

using kernels::CopyKernel;

// Everything in the layout in which the first input comes.
LayoutChoice as_first(const Graph&, const Node& node, const std::vector<Layout>& offered) {
  return {std::vector<Layout>(node.inputs.size(), offered[0]),
          std::vector<Layout>(node.outputs.size(), offered[0])};
}

ShardExchange& exchange_of(const KernelRun& run) {
  require(
      run.context.shards != nullptr, ErrorKind::internal,
      "[shards] got a graph with some of the shards, but no connection to workers with the others");
  return *run.context.shards;
}

// Bytes of each worker's shards that begin at these elements. All workers have equally many shards.
std::vector<size_t> bytes_of_workers(const ShardPart& part, const std::vector<int64_t>& begins) {
  std::vector<size_t> bytes;
  for (int shard = 0; shard < part.shards; shard += part.count())
    bytes.push_back(static_cast<size_t>(begins[shard + part.count()] - begins[shard]) *
                    sizeof(float));
  return bytes;
}

Kernel make_shard_sum(const KernelRequest& request) {
  const auto count = static_cast<size_t>(request.out().elements());
  if (part_of(request.attributes()).whole())
    return {
        {}, 0, [=](const KernelRun& run) { std::copy_n(run.in(0), count, run.out(0)); }, {{0, 0}}};
  return {{}, 0, [=](const KernelRun& run) {
            std::vector<const float*> partials;
            for (size_t i = 0; i < run.inputs.size(); ++i)
              partials.push_back(run.in(static_cast<int>(i)));
            exchange_of(run).sum(partials, {run.out(0), count});
          }};
}

// A range of one shard as a copy between the whole and the memory of all shards.
struct RangeCopy {
  CopyKernel copy;
  int shard;
  int64_t whole, own;  // elements before it; `own` counts from the shard's first
};

std::vector<RangeCopy> range_copies(const Shape& shape, const Layout& layout, const Split& split,
                                    bool gathers) {
  std::vector<RangeCopy> copies;
  const std::vector<int64_t> strides = strides_of(shape, layout);
  const auto axis = static_cast<size_t>(split.axis);
  for (const SplitRange& range : ranges_of(shape, split)) {
    Shape part = shard_shape(shape, split, range.shard);
    const std::vector<int64_t> own = strides_of(part, layout);
    part[split.axis] = range.extent;
    copies.push_back({gathers ? CopyKernel(part.extents(), own, strides)
                              : CopyKernel(part.extents(), strides, own),
                      range.shard, range.begin * strides[axis], range.own * own[axis]});
  }
  return copies;
}

Kernel make_shard_slices(const KernelRequest& request) {
  const ShardPart part = part_of(request.attributes());
  auto copies = std::make_shared<std::vector<RangeCopy>>(
      range_copies(request.in(0), request.input_layouts[0], split_of(request.attributes()), false));
  return {{}, 0, [=](const KernelRun& run) {
            for (const RangeCopy& range : *copies)
              if (part.first <= range.shard && range.shard < part.last)
                range.copy.run(run.pool, run.in(0) + range.whole,
                               run.out(range.shard - part.first) + range.own);
          }};
}

Kernel make_shard_gather(const KernelRequest& request) {
  const ShardPart part = part_of(request.attributes());
  const Split split = split_of(request.attributes());
  const Shape& whole = request.out();
  auto copies = std::make_shared<std::vector<RangeCopy>>(
      range_copies(whole, request.output_layouts[0], split, true));
  if (part.whole())
    return {{}, 0, [=](const KernelRun& run) {
              for (const RangeCopy& range : *copies)
                range.copy.run(run.pool, run.in(range.shard) + range.own, run.out(0) + range.whole);
            }};
  std::vector<int64_t> begins;
  for (int shard = 0; shard <= split.shards; ++shard)
    begins.push_back(shard_begin(whole, split, shard));
  const std::vector<size_t> bytes = bytes_of_workers(part, begins);
  const auto all = static_cast<size_t>(whole.elements()) * sizeof(float);
  return {{}, all, [=](const KernelRun& run) {
            auto* const shards = reinterpret_cast<float*>(run.workspace);
            for (int shard = part.first; shard < part.last; ++shard)
              std::copy_n(run.in(shard - part.first), begins[shard + 1] - begins[shard],
                          shards + begins[shard]);
            exchange_of(run).gather({run.workspace, all}, bytes);
            for (const RangeCopy& range : *copies)
              range.copy.run(run.pool, shards + begins[range.shard] + range.own,
                             run.out(0) + range.whole);
          }};
}

// Classes divided into shards. `width` numbers of each shard and row are exchanged between all
// workers in the workspace, one shard after another.
class Classes {
 public:
  explicit Classes(const KernelRequest& request)
      : part(part_of(request.attributes())),
        rows(request.in(part.count()).elements()),
        all(request.attributes().integer("classes")),
        ignored(static_cast<int32_t>(request.attributes().integer("ignore_index"))),
        over_rows_(request.attributes().flag("over_rows")),
        ranges_(ranges_of({all}, split_of(request.attributes()))) {}

  const SplitRange& range(int shard) const { return ranges_[static_cast<size_t>(shard)]; }
  const int32_t* labels(const KernelRun& run) const {
    return run.as_input<const int32_t>(part.count());
  }
  kernels::CrossEntropyTarget target(const KernelRun& run) const {
    return {.labels = labels(run), .ignore_index = ignored, .over_rows = over_rows_};
  }
  size_t bytes(int64_t width) const {
    return static_cast<size_t>(part.shards * rows * width) * sizeof(float);
  }
  // Calls fill(shard, its scores, where to write) for the shards here.
  template <typename Fill>
  void exchange(const KernelRun& run, float* memory, int64_t width, const Fill& fill) const {
    for (int shard = part.first; shard < part.last; ++shard)
      fill(range(shard), run.in(shard - part.first), memory + shard * rows * width);
    if (part.whole()) return;
    std::vector<int64_t> begins;
    for (int shard = 0; shard <= part.shards; ++shard) begins.push_back(shard * rows * width);
    exchange_of(run).gather({reinterpret_cast<std::byte*>(memory), bytes(width)},
                            bytes_of_workers(part, begins));
  }

  const ShardPart part;
  const int64_t rows, all;
  const int32_t ignored;

 private:
  bool over_rows_;
  std::vector<SplitRange> ranges_;
};

Kernel make_shard_cross_entropy(const KernelRequest& request) {
  const Classes classes(request);
  return {{}, classes.bytes(kernels::kShardSums), [=](const KernelRun& run) {
            auto* const sums = reinterpret_cast<float*>(run.workspace);
            classes.exchange(run, sums, kernels::kShardSums,
                             [&](const SplitRange& range, const float* logits, float* own) {
                               kernels::cross_entropy_shard(run.pool, {range.begin, range.extent},
                                                            classes.rows, classes.labels(run),
                                                            logits, own);
                             });
            run.out(2)[0] = kernels::cross_entropy_of_shards(
                classes.part.shards, classes.target(run), classes.rows, classes.all, sums,
                run.out(0), run.out(1));
          }};
}

Kernel make_shard_cross_entropy_backward(const KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  const int64_t rows = request.in(3).elements(), all = attributes.integer("classes");
  const auto ignored = static_cast<int32_t>(attributes.integer("ignore_index"));
  const bool over_rows = attributes.flag("over_rows");
  const SplitRange range =
      ranges_of({all}, split_of(attributes))[static_cast<size_t>(attributes.integer("shard"))];
  return {{},
          0,
          [=](const KernelRun& run) {
            const kernels::CrossEntropyTarget target = {.labels = run.as_input<const int32_t>(3),
                                                        .ignore_index = ignored,
                                                        .over_rows = over_rows};
            kernels::cross_entropy_shard_backward(run.pool, {range.begin, range.extent}, target,
                                                  rows, all, run.in(2), run.in(1), run.in(0),
                                                  run.out(0));
          },
          {{0, 2}}};
}

Kernel make_shard_count_top(const KernelRequest& request) {
  const Classes classes(request);
  const int64_t k = request.attributes().integer("k"), rows = classes.rows;
  // The scores of the labels, then how many come before them.
  return {{}, 2 * classes.bytes(1), [=](const KernelRun& run) {
            auto* const scores = reinterpret_cast<float*>(run.workspace);
            float* const before = scores + classes.part.shards * rows;
            const int32_t* const labels = classes.labels(run);
            classes.exchange(
                run, scores, 1, [&](const SplitRange& range, const float* all, float* own) {
                  std::fill_n(own, rows, 0.0f);
                  kernels::label_scores({range.begin, range.extent}, rows, all, labels, own);
                });
            for (int64_t row = 0; row < rows; ++row)
              for (int shard = 0; shard < classes.part.shards; ++shard) {
                const SplitRange& range = classes.range(shard);
                if (labels[row] >= range.begin && labels[row] < range.begin + range.extent)
                  scores[row] = scores[shard * rows + row];
              }
            classes.exchange(run, before, 1,
                             [&](const SplitRange& range, const float* all, float* own) {
                               kernels::count_before(run.pool, {range.begin, range.extent}, rows,
                                                     all, labels, scores, own);
                             });
            int64_t top = 0, counted = 0;
            for (int64_t row = 0; row < rows; ++row) {
              if (labels[row] == classes.ignored) continue;
              ++counted;
              double place = 0;
              for (int shard = 0; shard < classes.part.shards; ++shard)
                place += before[shard * rows + row];
              top +=
                  labels[row] >= 0 && labels[row] < classes.all && place < static_cast<double>(k);
            }
            run.out(0)[0] = static_cast<float>(top);
            run.out(0)[1] = static_cast<float>(counted);
          }};
}

}  // namespace

std::vector<KernelDefinition> shard_kernels() {
  return {{"shard_sum", make_shard_sum, as_first},
          {"shard_slices", make_shard_slices, as_first},
          {"shard_gather", make_shard_gather, as_first},
          {"shard_cross_entropy", make_shard_cross_entropy},
          {"shard_cross_entropy_backward", make_shard_cross_entropy_backward},
          {"shard_count_top", make_shard_count_top}};
}

}  // namespace artel
