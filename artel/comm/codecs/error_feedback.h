// Error feedback: what a lossy message leaves out is added to the next one (Seide et al. 2014;
// Karimireddy et al. 2019). The sum of all that was decoded then follows the sum of all that was
// meant, and a biased codec trains as well as an exact one, a few steps later.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace artel::comm {

class Codec;
struct CodecContext;

// The shape that low-rank codecs see in a run of values, row by row.
struct MatrixShape {
  size_t rows = 0;
  size_t columns = 0;
  size_t size() const { return rows * columns; }
};

// What one rank keeps for one bucket between steps. The vectors are sized when first used; a
// checkpoint that is to resume with the same bits stores them. When the group changes, `of_sum`
// starts anew, the others go on.
struct ErrorFeedback {
  // The tensors of the bucket, in order; only low-rank codecs look at them. If empty, the bucket is
  // taken for one square matrix.
  std::vector<MatrixShape> matrices = {};

  std::vector<float> of_values = {};   // lost from this rank's own contribution
  std::vector<float> of_sum = {};      // lost from the part of the sum that this rank forms
  std::vector<float> directions = {};  // PowerSGD: where the next iteration starts
};

// residual += values. A residual that is not finite counts as zero: one bad step is not remembered.
// A sum of finite numbers that would be infinite is the largest number.
void add_to_residual(std::span<const float> values, std::span<float> residual);

// Encodes values + residual and leaves in the residual what the encoding lost.
void compress(const Codec& codec, const CodecContext& context, std::span<const float> values,
              std::span<float> residual, std::span<std::byte> out);

}  // namespace artel::comm
