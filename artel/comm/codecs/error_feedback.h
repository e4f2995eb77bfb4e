// Error feedback: the error of a lossy message is added to the next one (Seide et al. 2014;
// Karimireddy et al. 2019). The sum of all decoded messages then follows the sum of all originals,
// and a biased codec trains as well as an exact one, a few steps later.
//
//   const auto codec = artel::comm::make_codec("sign");
//   std::vector<float> values(64, 0.1f), residual(64);
//   std::vector<std::byte> message(codec->encoded_bytes(values.size()));
//   // The residual keeps the error of the message and is added to the next one.
//   compress(*codec, {.seed = 7}, values, residual, message);
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

// The state of one rank for one bucket between steps. Vectors are sized on first use. A checkpoint
// stores them, so that a run resumes with the same bits. When the group changes, `of_sum` restarts
// from zero and the others are kept.
struct ErrorFeedback {
  // The tensors of the bucket, in order; only low-rank codecs look at them. If empty, the bucket is
  // treated as one square matrix.
  std::vector<MatrixShape> matrices = {};

  std::vector<float> of_values = {};   // lost from this rank's own contribution
  std::vector<float> of_sum = {};      // lost from the part of the sum that this rank forms
  std::vector<float> directions = {};  // PowerSGD: where the next iteration starts
};

// residual += values. A residual that is not finite counts as zero, so one bad step is not
// remembered. If a sum of finite numbers overflows, it becomes the largest finite number.
void add_to_residual(std::span<const float> values, std::span<float> residual);

// Encodes values + residual and stores the encoding error in the residual.
void compress(const Codec& codec, const CodecContext& context, std::span<const float> values,
              std::span<float> residual, std::span<std::byte> out);

}  // namespace artel::comm
