// Row-wise kernels: softmax, cross entropy, class scores, exact sums, embedding, dropout.
#include "artel/base/random.h"
#include "artel/exec/cpu/elementwise/dropout.h"
#include "artel/exec/cpu/matmul/classes.h"
#include "artel/exec/cpu/matmul/limbs.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/cpu/rows/cross_entropy.h"
#include "artel/exec/cpu/rows/softmax.h"
#include "artel/exec/cpu/sequence/embedding.h"
#include "artel/graph/ops/limbs.h"

namespace artel {
namespace {

using Forward = void (*)(ThreadPool&, int64_t, int64_t, const float*, float*);
using Backward = void (*)(ThreadPool&, int64_t, int64_t, const float*, const float*, float*);

std::function<Kernel(const KernelRequest&)> forward(Forward function) {
  return [function](const KernelRequest& request) -> Kernel {
    const Rows all = rows_of(request.in(0));
    const int64_t rows = all.rows, columns = all.columns;
    return {{},
            0,
            [=](const KernelRun& run) { function(run.pool, rows, columns, run.in(0), run.out(0)); },
            {{0, 0}}};
  };
}

std::function<Kernel(const KernelRequest&)> backward(Backward function) {
  return [function](const KernelRequest& request) -> Kernel {
    const Rows all = rows_of(request.in(0));
    const int64_t rows = all.rows, columns = all.columns;
    return {{},
            0,
            [=](const KernelRun& run) {
              function(run.pool, rows, columns, run.in(0), run.in(1), run.out(0));
            },
            {{0, 0}}};
  };
}

// The inputs from `first` on are logits, labels and perhaps class weights.
std::function<kernels::CrossEntropyTarget(const KernelRun&)> target_of(const KernelRequest& request,
                                                                       int first) {
  const bool labels = request.in_type(first + 1) == DType::i32;
  const bool weights = request.inputs() > first + 2;
  const auto smoothing = static_cast<float>(request.attributes().number("label_smoothing"));
  const auto ignore = static_cast<int32_t>(request.attributes().integer("ignore_index"));
  const bool over_rows = request.attributes().flag("over_rows");
  return [=](const KernelRun& run) -> kernels::CrossEntropyTarget {
    return {.labels = labels ? run.as_input<const int32_t>(first + 1) : nullptr,
            .probabilities = labels ? nullptr : run.in(first + 1),
            .class_weights = weights ? run.in(first + 2) : nullptr,
            .ignore_index = ignore,
            .label_smoothing = smoothing,
            .over_rows = over_rows};
  };
}

Kernel make_cross_entropy(const KernelRequest& request) {
  const Rows all = rows_of(request.in(0));
  const int64_t rows = all.rows, classes = all.columns;
  return {{}, 0, [=, target = target_of(request, 0)](const KernelRun& run) {
            run.out(2)[0] = kernels::cross_entropy(run.pool, target(run), rows, classes, run.in(0),
                                                   run.out(0), run.out(1), nullptr);
          }};
}

Kernel make_cross_entropy_backward(const KernelRequest& request) {
  const Rows all = rows_of(request.in(2));
  const int64_t rows = all.rows, classes = all.columns;
  return {{},
          0,
          [=, target = target_of(request, 2)](const KernelRun& run) {
            kernels::cross_entropy_backward(run.pool, target(run), rows, classes, run.in(2),
                                            run.in(1), run.in(0), run.out(0));
          },
          {{0, 2}}};
}

Kernel make_argmax(const KernelRequest& request) {
  const Rows all = rows_of(request.in(0));
  const int64_t rows = all.rows, classes = all.columns;
  return {{}, 0, [=](const KernelRun& run) {
            kernels::argmax(run.pool, rows, classes, run.in(0), run.as_output<int32_t>(0));
          }};
}

Kernel make_limb_sums(const KernelRequest& request) {
  const auto count = static_cast<size_t>(request.in(0).elements());
  const bool squares = request.attributes().flag("squares");
  return {{}, 0, [=](const KernelRun& run) {
            kernels::limb_sums({run.in(0), count}, squares, {run.out(0), kLimbs});
          }};
}

Kernel make_count_top(const KernelRequest& request) {
  const Rows all = rows_of(request.in(0));
  const int64_t rows = all.rows, classes = all.columns;
  const int64_t k = request.attributes().integer("k");
  const auto ignored = static_cast<int32_t>(request.attributes().integer("ignore_index"));
  return {{}, 0, [=](const KernelRun& run) {
            const kernels::LabelCounts counts = kernels::count_top(
                run.pool, rows, classes, k, ignored, run.in(0), run.as_input<const int32_t>(1));
            run.out(0)[0] = static_cast<float>(counts.top);
            run.out(0)[1] = static_cast<float>(counts.labels);
          }};
}

// The table, or the shard of one.
kernels::TableRows table_rows(const KernelRequest& request, int64_t rows) {
  return {rows, request.attributes().integer("first_row", 0),
          request.attributes().integer("all_rows", rows)};
}

Kernel make_embedding(const KernelRequest& request) {
  const int64_t count = request.in(0).elements();
  const kernels::TableRows rows = table_rows(request, request.in(1)[0]);
  const int64_t columns = request.in(1)[1];
  return {{}, 0, [=](const KernelRun& run) {
            kernels::embedding(run.pool, count, rows, columns, run.as_input<const int32_t>(0),
                               run.in(1), run.out(0));
          }};
}

Kernel make_embedding_backward(const KernelRequest& request) {
  const int64_t count = request.in(1).elements();
  const kernels::TableRows rows = table_rows(request, request.out()[0]);
  const int64_t columns = request.out()[1];
  const bool onto = request.inputs() == 3;
  Kernel kernel = {{}, 0, [=](const KernelRun& run) {
                     kernels::embedding_backward(
                         run.pool, count, rows, columns, run.as_input<const int32_t>(1), run.in(0),
                         run.out(0), /*padding_index=*/-1, onto ? run.in(2) : nullptr);
                   }};
  if (onto) {
    kernel.in_place = {{0, 2}};
    return kernel;
  }
  kernel.rows = count;
  kernel.run_sums = [=](std::span<const KernelRun> lanes, std::span<const int> merges) {
    std::vector<kernels::LookedUpRows> looked_up;
    for (const KernelRun& lane : lanes)
      looked_up.push_back({lane.rows, lane.as_input<const int32_t>(1), lane.in(0)});
    kernels::embedding_backward_sums(lanes[0].pool, looked_up, merges, rows, columns,
                                     lanes[0].out(0));
  };
  return kernel;
}

Kernel make_dropout(const KernelRequest& request) {
  const int64_t n = request.in(0).elements();
  const auto probability = static_cast<float>(request.attributes().number("probability"));
  const uint64_t stream = hash_name(request.attributes().text("stream"));
  if (const int64_t row = request.attributes().integer("row", 0); row > 0) {
    const kernels::DropoutRows part = {n / row, row, request.attributes().integer("all_of_row"),
                                       request.attributes().integer("first_of_row")};
    return {{},
            0,
            [=](const KernelRun& run) {
              kernels::dropout(run.pool, random_key(run.context, stream), probability, part,
                               run.in(0), run.out(0));
            },
            {{0, 0}}};
  }
  return {{},
          0,
          [=](const KernelRun& run) {
            kernels::dropout(run.pool, random_key(run.context, stream), probability, n, run.in(0),
                             run.out(0));
          },
          {{0, 0}}};
}

}  // namespace

std::vector<KernelDefinition> row_kernels() {
  return {{"softmax", forward(kernels::softmax)},
          {"softmax_backward", backward(kernels::softmax_backward)},
          {"log_softmax", forward(kernels::log_softmax)},
          {"log_softmax_backward", backward(kernels::log_softmax_backward)},
          {"cross_entropy", make_cross_entropy},
          {"cross_entropy_backward", make_cross_entropy_backward},
          {"argmax", make_argmax},
          {"count_top", make_count_top},
          {"limb_sums", make_limb_sums},
          {"embedding", make_embedding},
          {"embedding_backward", make_embedding_backward},
          // Row-major, so that the mask of an element does not depend on the layout.
          {"dropout", make_dropout}};
}

}  // namespace artel
