// Attention of new tokens to all before them, whose keys and values are kept.
//
// Each query goes by itself over the rows of its head: with one new token that reads every row
// once, and nothing is packed. Heads are spread over threads; the bits do not depend on their
// number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct CachedAttentionShape {
  int64_t heads;
  int64_t tokens;     // new ones
  int64_t positions;  // rows of the cache
  int64_t width;      // of all heads together
};

class CachedAttention {
 public:
  explicit CachedAttention(const CachedAttentionShape& shape) : shape_(shape) {}

  size_t workspace_bytes() const;

  // qkv [tokens, 3 * width]; cache [2, positions, width]: keys, then values. Writes the rows of the
  // new tokens from `first` on, then y [tokens, width]. Throws if they do not fit the cache.
  void run(ThreadPool& pool, const float* qkv, float* cache, int64_t first, float* y,
           std::byte* workspace) const;

 private:
  CachedAttentionShape shape_;
};

}  // namespace artel::kernels
