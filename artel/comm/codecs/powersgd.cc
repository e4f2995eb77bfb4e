// powersgd: each matrix M as a product P Q^T of a low rank (Vogels et al. 2019).
//
// One step of power iteration: P = M Q, made orthonormal; Q = M^T P. Both are linear in M up to the
// orthonormalisation, so over a group they are simply summed, P before and Q after it, and every
// rank holds the same factors. The next step starts from this Q. Matrices that would not shrink
// (vectors, above all) are sent as they are.
//
// P and Q are scaled by powers of two, which changes no digit, so no product or square of floats
// leaves the range of floats. Only the directions of P's and of the first Q's columns matter, and
// the Q that is sent is smaller than M^T P by kShrink.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/powersgd.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/rank_sum.h"
#include "artel/comm/group.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

float dot(const float* a, const float* b, size_t count) {
  const hn::ScalableTag<float> tag;
  const size_t lanes = hn::Lanes(tag);
  auto even = hn::Zero(tag);
  auto odd = hn::Zero(tag);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    even = hn::MulAdd(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i), even);
    odd = hn::MulAdd(hn::LoadU(tag, a + i + lanes), hn::LoadU(tag, b + i + lanes), odd);
  }
  float sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(even, odd)));
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(float factor, const float* HWY_RESTRICT values, size_t count,
                float* HWY_RESTRICT sum) {
  for (size_t i = 0; i < count; ++i) sum[i] += factor * values[i];
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(dot);
HWY_EXPORT(add_scaled);

float dot(const float* a, const float* b, size_t count) {
  return HWY_DYNAMIC_DISPATCH(dot)(a, b, count);
}

void add_scaled(float factor, const float* values, size_t count, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_scaled)(factor, values, count, sum);
}

constexpr float kShrink = 0x1p-20f;  // covers the growth by a matrix's rows times the ranks
constexpr float kLargest = std::numeric_limits<float>::max();

// Multiplies the values by a power of two that brings the largest magnitude below `bound`, itself a
// power of two, and above half of it. If any value is not finite, all become zeros and NaN. Returns
// true if they are finite and not all zero.
bool scale_to(float bound, float* values, size_t count) {
  uint32_t bits = 0;  // as integers: a NaN is larger than any number
  for (size_t i = 0; i < count; ++i)
    bits = std::max(bits, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  const auto largest = std::bit_cast<float>(bits);
  const bool usable = largest > 0 && largest <= kLargest;
  const int exponent = usable ? std::ilogb(bound) - 1 - std::ilogb(largest) : 0;
  // In two steps: the power itself may be beyond the range.
  const float first = usable ? std::ldexp(1.0f, exponent / 2) : 0.0f;
  const float second = usable ? std::ldexp(1.0f, exponent - exponent / 2) : 0.0f;
  for (size_t i = 0; i < count; ++i) values[i] = values[i] * first * second;
  return usable;
}

// A matrix inside a bucket, and where its factors are. Factors are stored column by column.
struct Piece {
  MatrixShape shape;
  bool low_rank = false;
  size_t values = 0;  // offsets
  size_t left = 0;    // P, or the values themselves
  size_t right = 0;   // Q
};

// A bucket of matrices and the algebra on all of them.
class Pieces {
 public:
  Pieces(std::span<const MatrixShape> shapes, size_t rank) : rank_(rank) {
    for (const MatrixShape& shape : shapes) {
      const bool low_rank = rank * (shape.rows + shape.columns) < shape.size();
      pieces_.push_back({shape, low_rank, values_, left_, right_});
      values_ += shape.size();
      left_ += low_rank ? rank * shape.rows : shape.size();
      right_ += low_rank ? rank * shape.columns : 0;
    }
  }

  size_t values() const { return values_; }
  size_t left() const { return left_; }
  size_t right() const { return right_; }

  // Fills the columns of Q that have no start values, and scales all columns so that the sum of P
  // over up to 1024 ranks is not larger than the values.
  void start(uint64_t key, std::span<float> right) const {
    for_each_column([&](const Piece& piece, size_t column) {
      const size_t columns = piece.shape.columns;
      const float bound = 0x1p-10f / static_cast<float>(std::bit_ceil(columns));
      float* q = &right[piece.right + column * columns];
      if (scale_to(bound, q, columns)) return;
      Random random{key, piece.right, column};
      std::generate_n(q, columns, [&] { return random.uniform(-1, 1); });
      scale_to(bound, q, columns);
    });
  }

  // P = M Q
  void project(std::span<const float> values, std::span<const float> right,
               std::span<float> left) const {
    for_each_row([&](const Piece& piece, size_t row) {
      const float* m = &values[piece.values + row * piece.shape.columns];
      if (!piece.low_rank) {
        std::copy_n(m, piece.shape.columns, &left[piece.left + row * piece.shape.columns]);
        return;
      }
      for (size_t k = 0; k < rank_; ++k)
        left[piece.left + k * piece.shape.rows + row] =
            dot(m, &right[piece.right + k * piece.shape.columns], piece.shape.columns);
    });
  }

  // Gram-Schmidt, column by column. A column that is linearly dependent on earlier ones becomes
  // zero.
  void orthonormalise(std::span<float> left) const {
    constexpr float kDependent = 1e-6f;
    for_each_column([&](const Piece& piece, size_t column) {
      const size_t rows = piece.shape.rows;
      float* p = &left[piece.left + column * rows];
      scale_to(1, p, rows);
      const float before = dot(p, p, rows);
      for (size_t k = 0; k < column; ++k) {
        const float* earlier = &left[piece.left + k * rows];
        add_scaled(-dot(p, earlier, rows), earlier, rows, p);
      }
      const float after = dot(p, p, rows);
      const float factor = after > kDependent * before ? 1 / std::sqrt(after) : 0.0f;
      std::transform(p, p + rows, p, [&](float x) { return factor * x; });
    });
  }

  // Q = M^T P, times kShrink
  void project_back(std::span<const float> values, std::span<const float> left,
                    std::span<float> right) const {
    std::fill(right.begin(), right.end(), 0.0f);
    for_each_row([&](const Piece& piece, size_t row) {
      if (!piece.low_rank) return;
      for (size_t k = 0; k < rank_; ++k)
        add_scaled(kShrink * left[piece.left + k * piece.shape.rows + row],
                   &values[piece.values + row * piece.shape.columns], piece.shape.columns,
                   &right[piece.right + k * piece.shape.columns]);
    });
  }

  // sum += scale P Q^T, where Q is smaller by kShrink. Finite inputs give finite results.
  void add_product(std::span<const float> left, std::span<const float> right, float scale,
                   std::span<float> sum) const {
    std::vector<float> product;
    for_each_row([&](const Piece& piece, size_t row) {
      const size_t columns = piece.shape.columns;
      float* target = &sum[piece.values + row * columns];
      if (!piece.low_rank) {
        add_scaled(scale, &left[piece.left + row * columns], columns, target);
        return;
      }
      product.assign(columns, 0.0f);
      for (size_t k = 0; k < rank_; ++k)
        add_scaled(left[piece.left + k * piece.shape.rows + row], &right[piece.right + k * columns],
                   columns, product.data());
      for (size_t i = 0; i < columns; ++i) {
        const float grown = product[i] / kShrink;
        const float bounded = std::min(std::max(grown, -kLargest), kLargest);
        target[i] += scale * (std::fabs(product[i]) <= kLargest ? bounded : product[i]);
      }
    });
  }

  // residual -= product, or zero for uncompressed values.
  void keep_lost(std::span<const float> product, std::span<float> residual) const {
    for (const Piece& piece : pieces_) {
      const auto begin = residual.begin() + static_cast<ptrdiff_t>(piece.values);
      const auto end = begin + static_cast<ptrdiff_t>(piece.shape.size());
      if (piece.low_rank)
        std::transform(begin, end, product.begin() + static_cast<ptrdiff_t>(piece.values), begin,
                       std::minus<>());
      else
        std::fill(begin, end, 0.0f);
    }
  }

 private:
  template <typename Body>
  void for_each_row(const Body& body) const {
    for (const Piece& piece : pieces_)
      if (piece.shape.columns > 0)
        for (size_t row = 0; row < piece.shape.rows; ++row) body(piece, row);
  }

  template <typename Body>
  void for_each_column(const Body& body) const {
    for (const Piece& piece : pieces_)
      if (piece.low_rank)
        for (size_t column = 0; column < rank_; ++column) body(piece, column);
  }

  size_t rank_;
  std::vector<Piece> pieces_;
  size_t values_ = 0, left_ = 0, right_ = 0;
};

class PowerSgd final : public Codec {
 public:
  explicit PowerSgd(int rank) : rank_(static_cast<size_t>(rank)) {}

  std::string name() const override { return fmt::format("powersgd {}", rank_); }

  size_t encoded_bytes(size_t floats) const override {
    const Pieces pieces = square(floats);
    return (pieces.left() + pieces.right()) * sizeof(float);
  }

  // Three passes over the values and two reductions of the factors.
  void all_reduce(Group& group, const CodecContext& context, ErrorFeedback& feedback,
                  std::span<float> values, bool mean) const override {
    const Pieces pieces =
        feedback.matrices.empty() ? square(values.size()) : Pieces(feedback.matrices, rank_);
    require(pieces.values() == values.size(), ErrorKind::shape,
            "[comm] matrices of a bucket for {}: got {} floats, expected {}", name(),
            pieces.values(), values.size());
    feedback.of_values.resize(values.size());
    feedback.directions.resize(pieces.right());
    const std::span<float> corrected = feedback.of_values;
    const std::span<float> right = feedback.directions;
    std::vector<float> left(pieces.left());

    add_to_residual(values, corrected);
    pieces.start(context.key(), right);
    pieces.project(corrected, right, left);
    add_over_ranks(group, left, true);
    pieces.orthonormalise(left);
    pieces.project_back(corrected, left, right);
    add_over_ranks(group, right, true);

    std::fill(values.begin(), values.end(), 0.0f);
    pieces.add_product(left, right, 1, values);
    pieces.keep_lost(values, corrected);
    if (!mean)
      for (float& value : values) value *= static_cast<float>(group.size());
  }

 private:
  // Values without a shape: a square matrix, and the rest uncompressed.
  Pieces square(size_t floats) const {
    const auto columns = static_cast<size_t>(std::sqrt(static_cast<double>(floats)));
    const size_t rows = columns == 0 ? 0 : floats / columns;
    return Pieces(std::array{MatrixShape{rows, columns}, MatrixShape{1, floats - rows * columns}},
                  rank_);
  }

  void write(const CodecContext& context, std::span<const float> values,
             std::byte* out) const override {
    const Pieces pieces = square(values.size());
    std::vector<float> factors(pieces.left() + pieces.right(), 0.0f);
    const std::span<float> left = std::span(factors).first(pieces.left());
    const std::span<float> right = std::span(factors).subspan(pieces.left());
    pieces.start(context.key(), right);
    pieces.project(values, right, left);
    pieces.orthonormalise(left);
    pieces.project_back(values, left, right);
    std::copy_n(std::as_bytes(std::span(factors)).begin(), factors.size() * sizeof(float), out);
  }

  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    const Pieces pieces = square(sum.size());
    std::vector<float> factors(pieces.left() + pieces.right());
    std::copy(in.begin(), in.end(), std::as_writable_bytes(std::span(factors)).begin());
    pieces.add_product(std::span(factors).first(pieces.left()),
                       std::span(factors).subspan(pieces.left()), scale, sum);
  }

  size_t rank_;
};

}  // namespace

CodecDefinition powersgd_codec() {
  return {.name = "powersgd", .usual_argument = "4", .make = [](std::string_view rank) {
            const double number = codec_number("powersgd", rank, 1, 256);
            require(number == static_cast<int>(number), ErrorKind::invalid_argument,
                    "[compress] 'powersgd {0}': got a rank of {0}, expected a whole number; try "
                    "'powersgd 4'",
                    rank);
            return std::make_unique<PowerSgd>(static_cast<int>(number));
          }};
}

}  // namespace artel::comm
#endif
