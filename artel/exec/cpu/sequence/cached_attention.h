// Attention of new tokens to all earlier ones, whose keys and values are cached.
//
// Each query loops over the rows of its head without packing. With one new token, every row is read
// once. Heads are spread over the threads, so the bits do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct CachedAttentionShape {
  int64_t heads;
  int64_t key_heads;  // each for heads / key_heads neighbouring heads
  int64_t tokens;     // new ones
  int64_t positions;  // rows of the cache
  int64_t key_width;  // of all key heads together

  int64_t head_width() const { return key_width / key_heads; }
  int64_t width() const { return heads * head_width(); }
};

class CachedAttention {
 public:
  explicit CachedAttention(const CachedAttentionShape& shape) : shape_(shape) {}

  size_t workspace_bytes() const;

  // qkv [tokens, width + 2 * key_width]; cache [2, positions, key_width]: keys, then values. Writes
  // the rows of the new tokens from `first` on, then y [tokens, width]. Throws if they do not fit
  // the cache.
  void run(ThreadPool& pool, const float* qkv, float* cache, int64_t first, float* y,
           std::byte* workspace) const;

 private:
  CachedAttentionShape shape_;
};

}  // namespace artel::kernels
