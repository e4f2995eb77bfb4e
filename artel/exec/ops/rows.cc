// Kernels that see rows: softmax, cross-entropy, embedding, dropout.
#include "artel/base/random.h"
#include "artel/exec/kernels/cross_entropy.h"
#include "artel/exec/kernels/dropout.h"
#include "artel/exec/kernels/embedding.h"
#include "artel/exec/kernels/softmax.h"
#include "artel/exec/ops/catalogue.h"
#include "artel/exec/ops/shared.h"

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
  return [=](const KernelRun& run) -> kernels::CrossEntropyTarget {
    return {.labels = labels ? run.as_input<const int32_t>(first + 1) : nullptr,
            .probabilities = labels ? nullptr : run.in(first + 1),
            .class_weights = weights ? run.in(first + 2) : nullptr,
            .ignore_index = ignore,
            .label_smoothing = smoothing};
  };
}

Kernel make_cross_entropy(const KernelRequest& request) {
  const Rows all = rows_of(request.in(0));
  const int64_t rows = all.rows, classes = all.columns;
  return {{}, 0, [=, target = target_of(request, 0)](const KernelRun& run) {
            kernels::cross_entropy(run.pool, target(run), rows, classes, run.in(0), run.out(0),
                                   run.out(1), nullptr);
          }};
}

Kernel make_cross_entropy_backward(const KernelRequest& request) {
  const Rows all = rows_of(request.in(2));
  const int64_t rows = all.rows, classes = all.columns;
  return {{}, 0, [=, target = target_of(request, 2)](const KernelRun& run) {
            kernels::cross_entropy_backward(run.pool, target(run), rows, classes, run.in(2),
                                            run.in(1), run.in(0), run.out(0));
          }};
}

Kernel make_embedding(const KernelRequest& request) {
  const int64_t count = request.in(0).elements();
  const int64_t rows = request.in(1)[0], columns = request.in(1)[1];
  return {{}, 0, [=](const KernelRun& run) {
            kernels::embedding(run.pool, count, rows, columns, run.as_input<const int32_t>(0),
                               run.in(1), run.out(0));
          }};
}

Kernel make_embedding_backward(const KernelRequest& request) {
  const int64_t count = request.in(1).elements();
  const int64_t rows = request.out()[0], columns = request.out()[1];
  return {{}, 0, [=](const KernelRun& run) {
            kernels::embedding_backward(run.pool, count, rows, columns,
                                        run.as_input<const int32_t>(1), run.in(0), run.out(0));
          }};
}

Kernel make_dropout(const KernelRequest& request) {
  const int64_t n = request.in(0).elements();
  const auto probability = static_cast<float>(request.attributes().number("probability"));
  const uint64_t stream = hash_name(request.attributes().text("stream"));
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
          {"embedding", make_embedding},
          {"embedding_backward", make_embedding_backward},
          // Row-major, so that the mask of an element does not depend on the layout.
          {"dropout", make_dropout}};
}

}  // namespace artel
