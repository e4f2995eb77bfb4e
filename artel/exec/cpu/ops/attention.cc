#include "artel/exec/cpu/sequence/attention.h"

#include "artel/base/random.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/cpu/sequence/cached_attention.h"
#include "artel/exec/cpu/sequence/rotary.h"

namespace artel {
namespace {

// The operands of an attention node, of which `first` is the first input.
struct Operands {
  kernels::AttentionShape shape;
  int first, mask;  // inputs; no mask: -1
  bool packed;
  float dropout;
  uint64_t stream;
  int64_t first_head, all_heads;

  Operands(const KernelRequest& request, int first)
      : first(first),
        packed(request.attributes().flag("packed")),
        dropout(static_cast<float>(request.attributes().number("dropout"))),
        stream(hash_name(request.attributes().text("stream"))),
        first_head(request.attributes().integer("first_head", 0)),
        all_heads(request.attributes().integer("all_heads", 0)) {
    const Shape& q = request.in(first);
    const Shape& k = request.in(packed ? first : first + 1);
    const int64_t heads = request.attributes().integer("heads");
    shape = {.batch = q[0],
             .heads = heads,
             .queries = q[1],
             .keys = k[1],
             .width = q[2] / heads / (packed ? 3 : 1),
             .causal = request.attributes().flag("causal")};
    const int after = first + (packed ? 1 : 3);
    mask = request.inputs() > after ? after : -1;
  }

  // q, k and v as `at(i)`, the memory of value i of those that are not packed.
  template <typename T, typename At>
  std::array<kernels::HeadRows<T>, 3> rows(const At& at) const {
    const int64_t width = shape.heads * shape.width;
    if (!packed) return {{{at(0), width}, {at(1), width}, {at(2), width}}};
    T* qkv = at(0);
    return {{{qkv, 3 * width}, {qkv + width, 3 * width}, {qkv + 2 * width, 3 * width}}};
  }

  kernels::AttentionInputs inputs(const KernelRun& run) const {
    const auto [q, k, v] = rows<const float>([&](int i) { return run.in(first + i); });
    return {.q = q,
            .k = k,
            .v = v,
            .mask = mask < 0 ? nullptr : run.as_input<const uint32_t>(mask),
            .dropout = dropout,
            .dropout_key = random_key(run.context, stream),
            .first_head = first_head,
            .all_heads = all_heads};
  }
};

Kernel make_attention(const KernelRequest& request) {
  const Operands operands(request, 0);
  const kernels::Attention attention(operands.shape, request.threads);
  return {{}, attention.forward_workspace_bytes(), [=](const KernelRun& run) {
            attention.forward(run.pool, operands.inputs(run), run.out(0), run.out(1),
                              run.workspace);
          }};
}

Kernel make_attention_backward(const KernelRequest& request) {
  const Operands operands(request, 2);
  const kernels::Attention attention(operands.shape, request.threads);
  return {{}, attention.backward_workspace_bytes(), [=](const KernelRun& run) {
            const auto [dq, dk, dv] = operands.rows<float>([&](int i) { return run.out(i); });
            attention.backward(run.pool, operands.inputs(run), run.in(1), run.in(0), {dq, dk, dv},
                               run.workspace);
          }};
}

Kernel make_cached_attention(const KernelRequest& request) {
  const Shape& cache = request.in(1);
  const kernels::CachedAttention attention({.heads = request.attributes().integer("heads"),
                                            .key_heads = request.attributes().integer("key_heads"),
                                            .tokens = request.in(0)[1],
                                            .positions = cache[1],
                                            .key_width = cache[2]});
  return {{}, attention.workspace_bytes(), [=](const KernelRun& run) {
            attention.run(run.pool, run.in(0), run.as_input<float>(1),
                          run.as_input<const int32_t>(2)[0], run.out(0), run.workspace);
          }};
}

Kernel make_rotary(const KernelRequest& request) {
  const Shape& x = request.in(0);
  const int64_t heads = request.attributes().integer("heads");
  const kernels::RotaryShape shape = {.batch = x[0],
                                      .positions = x[1],
                                      .heads = heads,
                                      .width = x[2] / heads,
                                      .table_rows = request.in(1)[0],
                                      .inverse = request.attributes().flag("inverse")};
  const bool places = request.inputs() == 3;
  return {{},
          0,
          [=](const KernelRun& run) {
            kernels::rotary(run.pool, shape, run.in(0), run.in(1),
                            places ? run.as_input<const int32_t>(2) : nullptr, run.out(0));
          },
          {{0, 0}}};
}

}  // namespace

std::vector<KernelDefinition> attention_kernels() {
  return {{"attention", make_attention},
          {"attention_backward", make_attention_backward},
          {"cached_attention", make_cached_attention},
          {"rotary", make_rotary}};
}

}  // namespace artel
