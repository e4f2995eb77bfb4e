// Matrix products on row-major float matrices.
//
// A Gemm is prepared once for a shape and then runs any number of times. It is immutable: several
// lanes may run one object at the same time, each with its own workspace. The bits of the result
// depend on the shape and the algorithm only, never on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

enum class GemmAlgorithm {
  packed,    // our own blocked kernel, with the epilogue fused into the store of each tile
  onednn,    // dnnl_sgemm on a part of the output in each thread
  openblas,  // cblas_sgemm on a part of the output in each thread
  bf16,      // oneDNN on operands rounded to bf16, where the processor has it
};

std::string_view to_string(GemmAlgorithm algorithm);

// op(a) is m x k and op(b) is k x n; op transposes a matrix that is stored transposed.
struct GemmShape {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
};

// c = min(most, relu(alpha * op(a) op(b) [+ c] [+ bias of the column]))
struct GemmEpilogue {
  const float* bias = nullptr;  // n values
  bool relu = false;
  float most = std::numeric_limits<float>::infinity();
  bool accumulate = false;
  float alpha = 1;
  // Called once for each block of c, which then has its final values and is still in a cache. Each
  // thread calls it for the blocks that it computed. Together the blocks cover c; how c is cut into
  // them is not specified.
  std::function<void(float* block, int64_t rows, int64_t columns)> finish = {};
};

// Some rows of A and of C, as of one lane.
struct GemmRows {
  const float* a;
  float* c;
  int64_t rows;
};

// The part of one lane in a sum over k: k rows of a transposed A and of B.
struct GemmTerms {
  const float* a;
  const float* b;
  int64_t k;
};

class Gemm {
 public:
  // The workspace suffices for up to `lanes` products of this shape at once.
  Gemm(const GemmShape& shape, GemmAlgorithm algorithm, int threads, int lanes = 1);

  const GemmShape& shape() const { return shape_; }
  size_t workspace_bytes() const;
  // True if run_rows or run_sums may be called: with our own algorithm, for an A that is not
  // transposed, or for a transposed A and a B that is not.
  bool joins_rows() const;
  bool joins_sums() const;

  // The leading dimensions are those of the matrices as stored, in elements. `c` must not overlap
  // `a` or `b`. `workspace` has workspace_bytes() bytes, aligned to 64.
  void run(ThreadPool& pool, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
           int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace) const;

  // The products of several lanes with one B, which is packed once. Each row gets the bits that
  // `run` gives it. Lanes may have other numbers of rows than shape().m.
  void run_rows(ThreadPool& pool, std::span<const GemmRows> lanes, int64_t lda, const float* b,
                int64_t ldb, int64_t ldc, const GemmEpilogue& epilogue, std::byte* workspace) const;

  // c = the sum over lanes of what `run` gives for each, with its bits, added in the order of a
  // tree (sum_passes.h). Lanes may have other k than shape().
  void run_sums(ThreadPool& pool, std::span<const GemmTerms> lanes, std::span<const int> merges,
                int64_t lda, int64_t ldb, float* c, int64_t ldc, std::byte* workspace) const;

 private:
  // The partition of C.
  struct Grid {
    Grid(const GemmShape& shape, GemmAlgorithm algorithm, int threads);

    int sharing = 1;        // threads that compute one block of rows after another
    int64_t rows, columns;  // of a part of C, which one thread computes; unless they share it
    int64_t parts_m, parts_n;
  };
  size_t part_bytes(const GemmShape& shape, const Grid& grid) const;
  GemmShape joint_shape() const;

  GemmShape shape_;
  GemmAlgorithm algorithm_;
  int threads_, lanes_;
};

// The positions of the matrices of a batch: item (i, j) starts at i * outer + j * inner elements.
struct BatchStride {
  int64_t outer, inner;
};

// `outer` x `inner` products of one shape, such as those of attention (samples x heads). Items are
// spread over the threads.
class BatchedGemm {
 public:
  BatchedGemm(const GemmShape& shape, int64_t outer, int64_t inner, GemmAlgorithm algorithm,
              int threads);

  size_t workspace_bytes() const;

  void run(ThreadPool& pool, const float* a, int64_t lda, BatchStride a_stride, const float* b,
           int64_t ldb, BatchStride b_stride, float* c, int64_t ldc, BatchStride c_stride,
           const GemmEpilogue& epilogue, std::byte* workspace) const;

 private:
  Gemm item_;
  int64_t outer_, inner_;
  int threads_;
};

// The fixed rule: the fastest f32 algorithm for a shape as measured once (docs/decisions/0010), of
// which the batch has `lanes`.
GemmAlgorithm choose_gemm(const GemmShape& shape, int lanes = 1);

// All f32 algorithms that can compute the shape, for tuning.
std::vector<GemmAlgorithm> gemm_candidates(const GemmShape& shape);

}  // namespace artel::kernels
