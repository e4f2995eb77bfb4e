// What is summed over lanes, in one piece of memory: statistics, gradients with those of the last
// layers first, then observations of states; cut into buckets that are exchanged one by one.
//
// The places are the same for lanes of every size.
//
//   // In a strategy: the gradients of a step.
//   const auto gradients = [](const artel::Stepper& stepper, const artel::Memory& sums) {
//     for (const artel::SummedRegion::Part& part : stepper.region().parts())
//       if (!part.is_state)
//         artel::println("{}: {}", part.name, artel::SummedRegion::values(sums, part)[0]);
//   };
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "artel/comm/codecs/error_feedback.h"
#include "artel/exec/program.h"
#include "artel/nn/metric.h"

namespace artel {

// A part of the summed region. The first bucket begins with the statistics.
struct Bucket {
  size_t offset = 0, bytes = 0;
  // The gradients in it, from `first_gradient` to `gradients_end`, with zeros between them; before
  // them are statistics, after them observations.
  struct Gradient {
    size_t offset = 0;         // bytes in the region
    comm::MatrixShape matrix;  // how low-rank codecs see it
    size_t bytes() const { return matrix.size() * sizeof(float); }
  };
  size_t first_gradient = 0, gradients_end = 0;
  std::vector<Gradient> gradients = {};
  bool contains(size_t at) const { return at >= offset && at < offset + bytes; }
};

// Some elements of a tensor that is summed, in the layout of the region.
struct Slice {
  size_t part = 0;  // of SummedRegion::parts
  size_t first = 0, count = 0;

  bool operator==(const Slice&) const = default;
};

// How low-rank codecs see a tensor: its first axis by all others.
comm::MatrixShape matrix_of(const Shape& shape);

class SummedRegion {
 public:
  SummedRegion() = default;
  // As in the program of one lane size; buckets have at least this many bytes.
  SummedRegion(const Program& program, const std::vector<Metric>& metrics, size_t bucket_bytes);

  // At the beginning: the sum over the samples of weight times loss; the sum of their weights (the
  // samples themselves if all count equally) and their number; whether some worker wants to stop;
  // whether worker 0 wants a trace, and whether newcomers wait there; then the sums of the metrics.
  enum Statistic : size_t { kLoss, kWeight, kSamples, kStop, kTrace, kNewcomers, kFirstMetric };
  const Metrics& metrics() const { return metrics_; }
  // Whether samples may have other weights in the loss than 1.
  bool weighted() const { return weighted_; }
  size_t statistics_bytes() const { return statistics_bytes_; }

  // The gradient of a parameter, or what was observed of a state.
  struct Part {
    std::string name;
    std::string whole;  // the name of the parameter or state that it is, or of which it is a shard,
    size_t first = 0;   // and the element of it at which it begins
    int shard = -1;     // which of its shards; -1: it is whole
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
  // For each bucket, the planned kernel of a program after which it is final.
  std::vector<int> ready_kernels(const Program& program) const;

  static std::span<float> values(const Memory& region, const Part& part) {
    return region.part(part.offset, part.bytes).floats();
  }

 private:
  Metrics metrics_;
  bool weighted_ = false;
  size_t statistics_bytes_ = 0;
  std::vector<Part> parts_;
  std::vector<Bucket> buckets_;
  size_t bytes_ = 0;
};

}  // namespace artel
