#include "artel/exec/cpu/sequence/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "artel/base/random.h"
#include "artel/exec/cpu/elementwise/dropout.h"
#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/sequence/attention_rows.h"

namespace artel::kernels {
namespace {

// The scores of a block must fit into the L2 cache, so blocks have fewer rows with many keys.
// Scores of causal blocks are computed in parts of few rows, to stay close to the diagonal. Sums
// over queries need long blocks.
constexpr int64_t kCausalRows = 24, kMostRows = 96;
constexpr int64_t kBlockScores = kMostRows * 256;

int64_t block_rows(int64_t most, int64_t keys) {
  return std::clamp<int64_t>(kBlockScores / std::max<int64_t>(1, keys) / 6 * 6, 6, most);
}

// Row pointers of a block of a matrix: rows that lie `stride` apart, from the first one on.
template <typename T>
class RowPointers {
 public:
  RowPointers(T* first, int64_t stride, int64_t rows) : count_(static_cast<size_t>(rows)) {
    for (int64_t i = 0; i < rows; ++i) rows_[i] = first + i * stride;
  }
  operator std::span<T* const>() const { return {rows_.data(), count_}; }  // NOLINT: a view

 private:
  std::array<T*, kMostRows> rows_;
  size_t count_;
};

// Panels of a matrix [keys, width] as the right factor, transposed for scores and not transposed
// for sums over keys. `floats` is their size.
struct Panels {
  float* data;
  int64_t stride;

  static int64_t floats(int64_t k, int64_t n) { return aligned_floats(panel_floats(k, n)); }
};

Panels pack(float* memory, HeadRows<const float> rows, bool transposed, int64_t k, int64_t n) {
  const int64_t stride = k * panel_width();
  pack_panels(rows.data, rows.stride, transposed, k, n, memory, stride);
  return {memory, stride};
}

// Operations of a product besides multiplying.
struct Extras {
  float alpha = 1;
  const float* bias = nullptr;
  bool accumulate = false;
  Ahead ahead = {};
};

// c [rows, columns] = alpha * a b [+ bias of the column] [+ c], the sum over `depth`.
void multiply(std::span<const float* const> a, int64_t a_step, const Panels& b, int64_t depth,
              std::span<float* const> c, int64_t columns, const Extras& extras) {
  const Segment segment{0, 0, depth};
  multiply_panels({.a = a,
                   .a_step = a_step,
                   .c = c,
                   .columns = columns,
                   .segments = {&segment, 1},
                   .panels = b.data,
                   .panel_stride = b.stride,
                   .accumulate = extras.accumulate,
                   .alpha = extras.alpha,
                   .bias = extras.bias,
                   .ahead = extras.ahead});
}

template <typename T>
HeadRows<T> from_row(HeadRows<T> rows, int64_t row) {
  return {rows.data + row * rows.stride, rows.stride};
}

// The rows of one head of one sample.
template <typename T>
HeadRows<T> head_of(HeadRows<T> rows, int64_t positions, int64_t sample, int64_t head,
                    int64_t width) {
  return {rows.data + sample * positions * rows.stride + head * width, rows.stride};
}

// The rows of one head of one sample, in blocks that are fetched while an earlier item is computed:
// they are short pieces of memory far apart, which no processor foresees.
class NextRows {
 public:
  NextRows(const AttentionShape& shape, int64_t item)
      : shape_(shape), item_(item), exists_(item < shape.batch * shape.heads) {}

  // The part of the rows that block `first` of that many queries should prefetch.
  Ahead block(HeadRows<const float> rows, int64_t positions, int64_t first, int64_t count) const {
    if (!exists_) return {};
    const auto& [batch, heads, queries, keys, width, causal] = shape_;
    const auto next = head_of(rows, positions, item_ / heads, item_ % heads, width);
    const int64_t begin = positions * first / queries;
    return {next.data + begin * next.stride, positions * (first + count) / queries - begin,
            next.stride, width * static_cast<int64_t>(sizeof(float))};
  }

 private:
  const AttentionShape& shape_;
  int64_t item_;
  bool exists_;
};

// 0 where the mask shows a key, else minus infinity; added to the scores.
const float* mask_bias(const uint32_t* mask, int64_t keys, float* memory) {
  if (!mask) return nullptr;
  for (int64_t i = 0; i < keys; ++i)
    memory[i] = (mask[i] << 1) != 0 ? 0.0f : -std::numeric_limits<float>::infinity();
  return memory;
}

// Keys that a query sees, counted from the first.
int64_t seen_by(const AttentionShape& s, int64_t query) {
  if (!s.causal) return s.keys;
  return std::clamp<int64_t>(query + 1 + s.keys - s.queries, 0, s.keys);
}

// Hands out consecutive parts of a thread's workspace.
class Scratch {
 public:
  explicit Scratch(std::byte* memory) : next_(reinterpret_cast<float*>(memory)) {}
  float* take(int64_t floats) {
    float* taken = next_;
    next_ += aligned_floats(floats);
    return taken;
  }

 private:
  float* next_;
};

// Drops elements of a row of softmax results (or of their gradients). The number of a query counts
// over samples and all heads.
void drop(const AttentionInputs& in, const AttentionShape& shape, int64_t item, int64_t query,
          int64_t seen, float* row) {
  if (in.dropout == 0) return;
  const int64_t heads = in.all_heads > 0 ? in.all_heads : shape.heads;
  const int64_t head = item / shape.heads * heads + in.first_head + item % shape.heads;
  const auto number = static_cast<uint64_t>(head * shape.queries + query);
  dropout_row(mix_key({in.dropout_key, number}), in.dropout, seen, row);
}

}  // namespace

Attention::Attention(const AttentionShape& shape, int threads)
    : shape_(shape),
      threads_(threads),
      forward_rows_(block_rows(shape.causal ? kCausalRows : kMostRows, shape.keys)),
      backward_rows_(block_rows(kMostRows, shape.keys)) {}

// Rows of scores lie an odd number of cache lines apart, so that columns do not share cache sets.
int64_t Attention::score_columns() const { return (shape_.keys + 15) / 32 * 32 + 16; }

int64_t Attention::forward_floats() const {
  const auto& [batch, heads, queries, keys, width, causal] = shape_;
  return aligned_floats(keys) + forward_rows_ * score_columns() + Panels::floats(width, keys) +
         Panels::floats(keys, width);
}

int64_t Attention::backward_floats() const {
  const auto& [batch, heads, queries, keys, width, causal] = shape_;
  return aligned_floats(keys) + 2 * backward_rows_ * score_columns() +
         2 * Panels::floats(width, keys) + Panels::floats(keys, width) +
         2 * Panels::floats(backward_rows_, width);
}

size_t Attention::forward_workspace_bytes() const {
  return static_cast<size_t>(threads_ * forward_floats()) * sizeof(float);
}

size_t Attention::backward_workspace_bytes() const {
  return static_cast<size_t>(threads_ * backward_floats()) * sizeof(float);
}

void Attention::forward(ThreadPool& pool, const AttentionInputs& in, float* y, float* log_sums,
                        std::byte* workspace) const {
  const int64_t batch = shape_.batch, heads = shape_.heads, width = shape_.width;
  const int64_t queries = shape_.queries, keys = shape_.keys;
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  const size_t bytes = static_cast<size_t>(forward_floats()) * sizeof(float);
  for_each_with_slot(pool, threads_, batch * heads, [&](int64_t slot, int64_t item) {
    const int64_t sample = item / heads, head = item % heads;
    Scratch scratch(workspace + static_cast<size_t>(slot) * bytes);
    const auto q = head_of(in.q, queries, sample, head, width);
    const float* bias =
        mask_bias(in.mask ? in.mask + sample * keys : nullptr, keys, scratch.take(keys));
    float* scores = scratch.take(forward_rows_ * score_columns());
    const Panels k = pack(scratch.take(Panels::floats(width, keys)),
                          head_of(in.k, keys, sample, head, width), true, width, keys);
    const Panels v = pack(scratch.take(Panels::floats(keys, width)),
                          head_of(in.v, keys, sample, head, width), false, keys, width);
    const auto out = head_of(HeadRows<float>{y, heads * width}, queries, sample, head, width);
    const NextRows next(shape_, item + threads_);
    for (int64_t first = 0; first < queries; first += forward_rows_) {
      const int64_t rows = std::min(forward_rows_, queries - first);
      const int64_t columns = seen_by(shape_, first + rows - 1);
      const RowPointers<float> score_rows(scores, score_columns(), rows);
      const RowPointers<const float> score_inputs(scores, score_columns(), rows);
      const RowPointers<float> results(out.data + first * out.stride, out.stride, rows);
      multiply(RowPointers<const float>(q.data + first * q.stride, q.stride, rows), 1, k, width,
               score_rows, columns,
               {.alpha = scale, .bias = bias, .ahead = next.block(in.k, keys, first, rows)});
      std::array<float, kMostRows> inverse_sums;
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t query = item * queries + first + i, seen = seen_by(shape_, first + i);
        float* row = scores + i * score_columns();
        exponentials(row, seen, columns, &inverse_sums[i]).save(log_sums, query);
        drop(in, shape_, item, first + i, seen, row);
      }
      multiply(score_inputs, 1, v, columns, results, width,
               {.ahead = next.block(in.v, keys, first, rows)});
      for (int64_t i = 0; i < rows; ++i)
        scale_row(out.data + (first + i) * out.stride, width, inverse_sums[i]);
    }
  });
}

// With p the softmax of the scores s: dv = p^T dy, dp = dy v^T, ds = p (dp - sum(p dp)),
// dq = scale ds k and dk = scale ds^T q. With dropout, p in dv and the elements of dp are dropped
// and scaled as p was.
void Attention::backward(ThreadPool& pool, const AttentionInputs& in, const float* log_sums,
                         const float* dy, const AttentionGradients& out,
                         std::byte* workspace) const {
  const int64_t batch = shape_.batch, heads = shape_.heads, width = shape_.width;
  const int64_t queries = shape_.queries, keys = shape_.keys;
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  const size_t bytes = static_cast<size_t>(backward_floats()) * sizeof(float);
  const int64_t line = score_columns();
  for_each_with_slot(pool, threads_, batch * heads, [&](int64_t slot, int64_t item) {
    const int64_t sample = item / heads, head = item % heads;
    Scratch scratch(workspace + static_cast<size_t>(slot) * bytes);
    const auto rows_of = [&](auto rows, int64_t positions) {
      return head_of(rows, positions, sample, head, width);
    };
    const auto q = rows_of(in.q, queries), k = rows_of(in.k, keys), v = rows_of(in.v, keys);
    const HeadRows<const float> all_dy{dy, heads * width};
    const auto dy_rows = rows_of(all_dy, queries);
    const auto dq = rows_of(out.q, queries), dk = rows_of(out.k, keys), dv = rows_of(out.v, keys);
    const float* bias =
        mask_bias(in.mask ? in.mask + sample * keys : nullptr, keys, scratch.take(keys));
    float* scores = scratch.take(backward_rows_ * line);
    float* products = scratch.take(backward_rows_ * line);
    const Panels k_across = pack(scratch.take(Panels::floats(width, keys)), k, true, width, keys);
    const Panels v_across = pack(scratch.take(Panels::floats(width, keys)), v, true, width, keys);
    const Panels k_down = pack(scratch.take(Panels::floats(keys, width)), k, false, keys, width);
    float* q_memory = scratch.take(Panels::floats(backward_rows_, width));
    float* dy_memory = scratch.take(Panels::floats(backward_rows_, width));
    const NextRows next(shape_, item + threads_);
    int64_t summed = 0;  // keys whose gradients were begun by an earlier block
    for (int64_t first = 0; first < queries; first += backward_rows_) {
      const int64_t rows = std::min(backward_rows_, queries - first);
      const int64_t columns = seen_by(shape_, first + rows - 1);
      // Scores and their gradients by parts with a common last key.
      for (int64_t at = 0; at < rows; at += forward_rows_) {
        const int64_t query = first + at, part = std::min(forward_rows_, rows - at);
        const int64_t part_columns = seen_by(shape_, query + part - 1);
        float *s = scores + at * line, *p = products + at * line;
        multiply(RowPointers<const float>(q.data + query * q.stride, q.stride, part), 1, k_across,
                 width, RowPointers<float>(s, line, part), part_columns,
                 {.alpha = scale, .bias = bias, .ahead = next.block(in.k, keys, query, part)});
        multiply(
            RowPointers<const float>(dy_rows.data + query * dy_rows.stride, dy_rows.stride, part),
            1, v_across, width, RowPointers<float>(p, line, part), part_columns,
            {.ahead = next.block(in.v, keys, query, part)});
        for (int64_t i = 0; i < part; ++i) {
          const int64_t row = item * queries + query + i, seen = seen_by(shape_, query + i);
          drop(in, shape_, item, query + i, seen, p + i * line);
          score_gradients(s + i * line, p + i * line, seen, columns, LogSum::load(log_sums, row),
                          scale);
          drop(in, shape_, item, query + i, seen, s + i * line);
        }
        multiply(RowPointers<const float>(p, line, part), 1, k_down, part_columns,
                 RowPointers<float>(dq.data + query * dq.stride, dq.stride, part), width,
                 {.ahead = next.block(in.q, queries, query, part)});
      }
      const Panels q_block = pack(q_memory, from_row(q, first), false, rows, width);
      const Panels dy_block = pack(dy_memory, from_row(dy_rows, first), false, rows, width);
      const Ahead ahead = next.block(all_dy, queries, first, rows);
      for (int64_t key = 0; key < columns;) {
        const bool begun = key < summed;
        const int64_t count = std::min(kMostRows, (begun ? summed : columns) - key);
        multiply(RowPointers<const float>(scores + key, 1, count), line, dy_block, rows,
                 RowPointers<float>(dv.data + key * dv.stride, dv.stride, count), width,
                 {.accumulate = begun, .ahead = key == 0 ? ahead : Ahead{}});
        multiply(RowPointers<const float>(products + key, 1, count), line, q_block, rows,
                 RowPointers<float>(dk.data + key * dk.stride, dk.stride, count), width,
                 {.accumulate = begun});
        key += count;
      }
      summed = columns;
    }
    for (int64_t key = summed; key < keys; ++key) {  // not seen by any query
      std::fill_n(dk.data + key * dk.stride, width, 0.0f);
      std::fill_n(dv.data + key * dv.stride, width, 0.0f);
    }
  });
}

}  // namespace artel::kernels
