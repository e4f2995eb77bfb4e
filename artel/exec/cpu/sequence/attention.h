// Scaled dot-product attention with several heads, forward and backward.
//
// For each sample and head: y = softmax(scale * q k^T) v. Queries are taken in blocks of rows, and
// only the scores of one block with all keys exist at a time, so memory grows linearly with the
// number of positions; keys beyond the last one that a causal block may see are not touched. The
// backward pass computes the scores again from the saved logarithm of each row's sum: five products
// where the forward pass has two.
//
// Samples and heads are spread over threads; the bits do not depend on their number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct AttentionShape {
  int64_t batch, heads;
  int64_t queries, keys;  // positions
  int64_t width;          // of one head
  bool causal = false;    // query i sees the keys up to i + keys - queries
};

// Rows of all heads side by side; `stride` is the distance between positions in elements. Samples
// follow each other without gaps.
template <typename T>
struct HeadRows {
  T* data;
  int64_t stride;
};

struct AttentionInputs {
  HeadRows<const float> q, k, v;
  // [batch, keys] words (i32 or f32), 0 where no query may look; null: all keys are seen. A query
  // that sees no key gets zeros.
  const uint32_t* mask = nullptr;
  // Share of the softmax's results that are dropped, a function of the key, sample, head and query;
  // both passes get the same.
  float dropout = 0;
  uint64_t dropout_key = 0;
  // For some of the heads: the index of the first, and the total number (0: these are all).
  int64_t first_head = 0, all_heads = 0;
};

struct AttentionGradients {
  HeadRows<float> q, k, v;
};

class Attention {
 public:
  Attention(const AttentionShape& shape, int threads);

  size_t forward_workspace_bytes() const;
  size_t backward_workspace_bytes() const;

  // y [batch, queries, heads * width]; log_sums [batch, heads, queries, 2], see LogSum.
  void forward(ThreadPool& pool, const AttentionInputs& in, float* y, float* log_sums,
               std::byte* workspace) const;
  void backward(ThreadPool& pool, const AttentionInputs& in, const float* log_sums, const float* dy,
                const AttentionGradients& out, std::byte* workspace) const;

 private:
  int64_t forward_floats() const;
  int64_t backward_floats() const;
  int64_t score_columns() const;

  AttentionShape shape_;
  int threads_;
  int64_t forward_rows_, backward_rows_;  // of a block
};

}  // namespace artel::kernels
