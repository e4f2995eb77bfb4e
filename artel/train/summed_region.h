// What is summed over lanes, in one piece of memory: statistics, gradients with those of the last
// layers first, then observations of states; cut into buckets that are exchanged one by one.
//
// The places are the same for lanes of every size.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "artel/comm/codecs/error_feedback.h"
#include "artel/exec/program.h"

namespace artel {

// A part of the summed region. The first bucket begins with the statistics.
struct Bucket {
  size_t offset = 0, bytes = 0;
  // The gradients in it, from `first_gradient` to `gradients_end`, with zeros between them; what is
  // before and behind them is statistics and observations.
  struct Gradient {
    size_t offset = 0;         // bytes in the region
    comm::MatrixShape matrix;  // what low-rank codecs take it for
    size_t bytes() const { return matrix.size() * sizeof(float); }
  };
  size_t first_gradient = 0, gradients_end = 0;
  std::vector<Gradient> gradients = {};
  bool contains(size_t at) const { return at >= offset && at < offset + bytes; }
};

// What low-rank codecs take a tensor for: its first axis by all others.
comm::MatrixShape matrix_of(const Shape& shape);

class SummedRegion {
 public:
  static constexpr size_t kStatisticsBytes = 64;  // at the beginning

  SummedRegion() = default;
  // As the program of one lane size has it; buckets have at least so many bytes.
  SummedRegion(const Program& program, size_t bucket_bytes);

  // The gradient of a parameter, or what was observed of a state.
  struct Part {
    std::string name;
    Shape shape;
    size_t offset = 0, bytes = 0;  // in the region
    bool is_state = false;
    float momentum = 0;  // of a state
  };
  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  size_t bytes() const { return bytes_; }
  bool empty() const { return buckets_.empty(); }

  // Lanes are added place by place: throws an internal error if a program of another lane size sums
  // other things, or elsewhere.
  void check(const Program& program) const;
  // For each bucket, the planned step of a program after which it is final.
  std::vector<int> ready_steps(const Program& program) const;

  static std::span<float> values(std::byte* region, const Part& part) {
    return {reinterpret_cast<float*>(region + part.offset), part.bytes / sizeof(float)};
  }
  static std::span<const float> values(const std::byte* region, const Part& part) {
    return values(const_cast<std::byte*>(region), part);
  }

 private:
  std::vector<Part> parts_;
  std::vector<Bucket> buckets_;
  size_t bytes_ = 0;
};

}  // namespace artel
