#include <array>

#include "artel/base/random.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/dropout.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// One work item per query, or per key for the gradients of keys and values. A work item keeps a row
// of WIDTH elements in registers and loops over the keys, so the score matrix is never stored. The
// softmax is computed online. The backward pass recomputes scores from the saved logarithm of each
// row's sum. See exec/cpu/sequence/attention.cc for the formulas.
constexpr std::string_view kAttentionSource = R"(
#define SHAPE int batch, int heads, int queries, int keys, int causal, int stride, int masked, \
              ulong key, int threshold, float keep, int first_head, int all_heads

int seen_by(int query, int queries, int keys, int causal) {
  return causal ? clamp(query + 1 + keys - queries, 0, keys) : keys;
}

/* The key of the random numbers of a query. */
ulong row_key(ulong key, int item, int heads, int queries, int query, int first_head,
              int all_heads) {
  const long head = (long)(item / heads) * all_heads + first_head + item % heads;
  return mix_key(key, (ulong)(head * queries + query));
}

float dot_rows(const float* a, __global const float* b) {
  float sum = 0;
  for (int d = 0; d < WIDTH; ++d) sum += a[d] * b[d];
  return sum;
}

__kernel void attention(SHAPE, IN(float, q), IN(float, k), IN(float, v), IN(uint, mask),
                        OUT(float, y), OUT(float, log_sums)) {
  USE_IN(float, q);
  USE_IN(float, k);
  USE_IN(float, v);
  USE_IN(uint, mask);
  USE_OUT(float, y);
  USE_OUT(float, log_sums);
  const int at = get_global_id(0);
  if (at >= batch * heads * queries) return;
  const int item = at / queries, query = at % queries;
  const int sample = item / heads, head = item % heads;
  q += ((long)sample * queries + query) * stride + head * WIDTH;
  k += (long)sample * keys * stride + head * WIDTH;
  v += (long)sample * keys * stride + head * WIDTH;
  if (masked) mask += (long)sample * keys;
  const int seen = seen_by(query, queries, keys, causal);
  const float scale = 1.0f / sqrt((float)WIDTH);
  const ulong random = row_key(key, item, heads, queries, query, first_head, all_heads);
  float row[WIDTH], sum[WIDTH];
  for (int d = 0; d < WIDTH; ++d) row[d] = q[d] * scale;
  for (int d = 0; d < WIDTH; ++d) sum[d] = 0;
  float largest = -INFINITY, total = 0;
  for (int j = 0; j < seen; ++j) {
    if (masked && (mask[j] << 1) == 0) continue;
    const float score = dot_rows(row, k + (long)j * stride);
    if (!(score <= largest)) {
      const float factor = total > 0 ? exp(largest - score) : 0.0f;
      for (int d = 0; d < WIDTH; ++d) sum[d] *= factor;
      total *= factor;
      largest = score;
    }
    const float p = exp(score - largest);
    total += p;
    const float weight = threshold > 0 ? p * kept_factor(random, j, threshold, keep) : p;
    for (int d = 0; d < WIDTH; ++d) sum[d] += weight * v[(long)j * stride + d];
  }
  const float inverse = total == 0 ? 0.0f : 1.0f / total;
  y += ((long)sample * queries + query) * heads * WIDTH + head * WIDTH;
  for (int d = 0; d < WIDTH; ++d) y[d] = sum[d] * inverse;
  log_sums[2 * at] = total == 0 ? INFINITY : largest;
  log_sums[2 * at + 1] = total == 0 ? 0.0f : log(total);
}

/* The gradient of queries, and of each the sum of p * dp, which gradients of keys need. */
__kernel void attention_dq(SHAPE, IN(float, q), IN(float, k), IN(float, v), IN(uint, mask),
                           IN(float, log_sums), IN(float, dy), OUT(float, products),
                           OUT(float, dq)) {
  USE_IN(float, q);
  USE_IN(float, k);
  USE_IN(float, v);
  USE_IN(uint, mask);
  USE_IN(float, log_sums);
  USE_IN(float, dy);
  USE_OUT(float, products);
  USE_OUT(float, dq);
  const int at = get_global_id(0);
  if (at >= batch * heads * queries) return;
  const int item = at / queries, query = at % queries;
  const int sample = item / heads, head = item % heads;
  q += ((long)sample * queries + query) * stride + head * WIDTH;
  dq += ((long)sample * queries + query) * stride + head * WIDTH;
  k += (long)sample * keys * stride + head * WIDTH;
  v += (long)sample * keys * stride + head * WIDTH;
  dy += ((long)sample * queries + query) * heads * WIDTH + head * WIDTH;
  if (masked) mask += (long)sample * keys;
  const int seen = seen_by(query, queries, keys, causal);
  const float scale = 1.0f / sqrt((float)WIDTH);
  const ulong random = row_key(key, item, heads, queries, query, first_head, all_heads);
  const float largest = log_sums[2 * at], rest = log_sums[2 * at + 1];
  float row[WIDTH], gradient[WIDTH], sum[WIDTH];
  for (int d = 0; d < WIDTH; ++d) row[d] = q[d] * scale;
  for (int d = 0; d < WIDTH; ++d) gradient[d] = dy[d];
  for (int d = 0; d < WIDTH; ++d) sum[d] = 0;
  float product = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int j = 0; j < seen; ++j) {
      if (masked && (mask[j] << 1) == 0) continue;
      const float p = exp(dot_rows(row, k + (long)j * stride) - largest - rest);
      float dp = dot_rows(gradient, v + (long)j * stride);
      if (threshold > 0) dp *= kept_factor(random, j, threshold, keep);
      if (pass == 0) {
        product += p * dp;
      } else {
        const float ds = scale * p * (dp - product);
        for (int d = 0; d < WIDTH; ++d) sum[d] += ds * k[(long)j * stride + d];
      }
    }
  for (int d = 0; d < WIDTH; ++d) dq[d] = sum[d];
  products[at] = product;
}

__kernel void attention_dkv(SHAPE, IN(float, q), IN(float, k), IN(float, v), IN(uint, mask),
                            IN(float, log_sums), IN(float, dy), IN(float, products),
                            OUT(float, dk), OUT(float, dv)) {
  USE_IN(float, q);
  USE_IN(float, k);
  USE_IN(float, v);
  USE_IN(uint, mask);
  USE_IN(float, log_sums);
  USE_IN(float, dy);
  USE_IN(float, products);
  USE_OUT(float, dk);
  USE_OUT(float, dv);
  const int at = get_global_id(0);
  if (at >= batch * heads * keys) return;
  const int item = at / keys, j = at % keys;
  const int sample = item / heads, head = item % heads;
  const long place = ((long)sample * keys + j) * stride + head * WIDTH;
  q += (long)sample * queries * stride + head * WIDTH;
  dy += (long)sample * queries * heads * WIDTH + head * WIDTH;
  const float scale = 1.0f / sqrt((float)WIDTH);
  float k_row[WIDTH], v_row[WIDTH], k_sum[WIDTH], v_sum[WIDTH];
  for (int d = 0; d < WIDTH; ++d) k_row[d] = k[place + d] * scale;
  for (int d = 0; d < WIDTH; ++d) v_row[d] = v[place + d];
  for (int d = 0; d < WIDTH; ++d) k_sum[d] = v_sum[d] = 0;
  const bool visible = !masked || (mask[(long)sample * keys + j] << 1) != 0;
  for (int i = 0; visible && i < queries; ++i) {
    if (j >= seen_by(i, queries, keys, causal)) continue;
    const int row = item * queries + i;
    const float p =
        exp(dot_rows(k_row, q + (long)i * stride) - log_sums[2 * row] - log_sums[2 * row + 1]);
    float dp = dot_rows(v_row, dy + (long)i * heads * WIDTH), weight = p;
    if (threshold > 0) {
      const ulong random = row_key(key, item, heads, queries, i, first_head, all_heads);
      const float factor = kept_factor(random, j, threshold, keep);
      dp *= factor;
      weight *= factor;
    }
    const float ds = scale * p * (dp - products[row]);
    for (int d = 0; d < WIDTH; ++d) k_sum[d] += ds * q[(long)i * stride + d];
    for (int d = 0; d < WIDTH; ++d) v_sum[d] += weight * dy[(long)i * heads * WIDTH + d];
  }
  for (int d = 0; d < WIDTH; ++d) dk[place + d] = k_sum[d];
  for (int d = 0; d < WIDTH; ++d) dv[place + d] = v_sum[d];
}
)";

// The operands of an attention node. `first` is the index of its first input.
struct AttentionCall {
  int64_t batch, heads, queries, keys, width, stride;
  int first, mask;  // indices of inputs; `mask` is -1 without a mask
  bool packed, causal;
  DropoutRule rule;
  uint64_t stream;
  int64_t first_head, all_heads;

  AttentionCall(const KernelRequest& request, int first)
      : first(first),
        packed(request.attributes().flag("packed")),
        causal(request.attributes().flag("causal")),
        rule(request.attributes().number("dropout")),
        stream(hash_name(request.attributes().text("stream"))),
        first_head(request.attributes().integer("first_head", 0)),
        all_heads(request.attributes().integer("all_heads", 0)) {
    const Shape &q = request.in(first), &k = request.in(packed ? first : first + 1);
    heads = request.attributes().integer("heads");
    batch = q[0];
    queries = q[1];
    keys = k[1];
    width = q[2] / heads / (packed ? 3 : 1);
    stride = heads * width * (packed ? 3 : 1);
    if (all_heads == 0) all_heads = heads;
    const int after = first + (packed ? 1 : 3);
    mask = request.inputs() > after ? after : -1;
  }

  std::string options() const { return fmt::format("-DWIDTH={}", width); }

  // Arguments for q, k, and v. at(i) is the memory of operand i if they are not packed.
  template <typename At>
  auto rows(const At& at) const {
    const auto q = at(0);
    return packed ? std::array{q, q + heads * width, q + 2 * heads * width}
                  : std::array{q, at(1), at(2)};
  }

  // The shape and the operands that both passes read.
  std::vector<Argument> arguments(const KernelRun& run) const {
    const auto [q, k, v] = rows([&](int i) { return run.in(first + i); });
    return {batch,
            heads,
            queries,
            keys,
            causal,
            stride,
            mask >= 0,
            random_key(run.context, stream),
            rule.threshold,
            rule.scale,
            first_head,
            all_heads,
            q,
            k,
            v,
            mask >= 0 ? static_cast<const void*>(run.inputs[static_cast<size_t>(mask)]) : nullptr};
  }
};

Kernel make_attention(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const AttentionCall call(request, 0);
  const BuiltKernel kernel = device.kernel(kAttentionSource, "attention", call.options());
  return {{}, 0, [=, &device](const KernelRun& run) {
            std::vector<Argument> arguments = call.arguments(run);
            arguments.insert(arguments.end(), {run.out(0), run.out(1)});
            device.run(kernel, items(call.batch * call.heads * call.queries), arguments);
          }};
}

Kernel make_attention_backward(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const AttentionCall call(request, 2);
  const BuiltKernel dq = device.kernel(kAttentionSource, "attention_dq", call.options());
  const BuiltKernel dkv = device.kernel(kAttentionSource, "attention_dkv", call.options());
  const int64_t rows = call.batch * call.heads * call.queries;
  return {{}, static_cast<size_t>(rows) * sizeof(float), [=, &device](const KernelRun& run) {
            const auto gradients = call.rows([&](int i) { return run.out(i); });
            std::vector<Argument> arguments = call.arguments(run);
            arguments.insert(arguments.end(), {run.in(1), run.in(0), run.workspace});
            std::vector<Argument> second = arguments;
            arguments.emplace_back(gradients[0]);
            second.insert(second.end(), {gradients[1], gradients[2]});
            device.run(dq, items(rows), arguments);
            device.run(dkv, items(call.batch * call.heads * call.keys), second);
          }};
}

// Positions outside the table give NaN.
constexpr std::string_view kRotarySource = R"(
__kernel void rotary(int n, int positions, int heads, int half_width, int table_rows, int inverse,
                     IN(float, x), IN(float, table), IN(int, places), OUT(float, y)) {
  USE_IN(float, x);
  USE_IN(float, table);
  USE_IN(int, places);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int pair = i % half_width, row = i / half_width;  /* row: sample, position, head */
  const int position = row / heads % positions;
  const int place = places ? places[position] : position;
  const bool known = place >= 0 && place < table_rows;
  const long angles = known ? (long)place * 2 * half_width : 0;
  const float c = known ? table[angles + pair] : NAN;
  float s = known ? table[angles + half_width + pair] : NAN;
  if (inverse) s = -s;
  const long at = (long)row * 2 * half_width + pair;
  const float a = x[at], b = x[at + half_width];
  y[at] = a * c - b * s;
  y[at + half_width] = a * s + b * c;
}
)";

Kernel make_rotary(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kRotarySource, "rotary");
  const Shape& x = request.in(0);
  const int64_t heads = request.attributes().integer("heads"), half = x[2] / heads / 2;
  const int64_t n = x.elements() / 2, positions = x[1], rows = request.in(1)[0];
  const bool inverse = request.attributes().flag("inverse"), places = request.inputs() == 3;
  return {{},
          0,
          [=, &device](const KernelRun& run) {
            device.run(kernel, items(n),
                       {n, positions, heads, half, rows, inverse, run.in(0), run.in(1),
                        places ? static_cast<const void*>(run.inputs[2]) : nullptr, run.out(0)});
          },
          {{0, 0}}};
}

}  // namespace

std::vector<KernelDefinition> attention_kernels() {
  return {{"attention", make_attention},
          {"attention_backward", make_attention_backward},
          {"rotary", make_rotary}};
}

}  // namespace artel::opencl
