// The layout of values summed over lanes, in one block of memory: statistics, gradients from the
// last layer to the first, then observations of states. The block is cut into buckets that are
// exchanged one by one.
//
// The layout is the same for lanes of every size.
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
  // Its gradients, from `first_gradient` to `gradients_end`, with zeros between them. Statistics
  // come before them, observations after them.
  struct Gradient {
    size_t offset = 0;                       // bytes in the region
    comm::MatrixShape matrix;                // shape for low-rank codecs
    bool is_table = false, by_rows = false;  // see SummedRegion::Part
    size_t bytes() const { return matrix.size() * sizeof(float); }
  };
  size_t first_gradient = 0, gradients_end = 0;
  std::vector<Gradient> gradients = {};
  bool contains(size_t at) const { return at >= offset && at < offset + bytes; }
};

// Some elements of a summed tensor, in the layout of the region.
struct Slice {
  size_t part = 0;  // index in SummedRegion::parts
  size_t first = 0, count = 0;

  bool operator==(const Slice&) const = default;
};

// The matrix that low-rank codecs see: the first axis by all others.
comm::MatrixShape matrix_of(const Shape& shape);

class SummedRegion {
 public:
  SummedRegion() = default;
  // Laid out for the program of the largest lanes, of which there are `lanes`. Buckets have at
  // least `bucket_bytes` bytes.
  SummedRegion(const Program& program, const std::vector<Metric>& metrics, int lanes,
               size_t bucket_bytes);

  // Statistics at the beginning: the sum over the samples of weight times loss; the sum of weights
  // (or of samples without weights); the number of samples; requests of any worker to stop and to
  // trace, of newcomers to join, and of any worker to leave; then the metrics.
  enum Statistic : size_t {
    kLoss,
    kWeight,
    kSamples,
    kStop,
    kTrace,
    kNewcomers,
    kLeaves,
    kFirstMetric
  };
  const Metrics& metrics() const { return metrics_; }
  // The number of floats for statistics.
  size_t statistics() const { return kFirstMetric + metric_floats_; }
  // Copies the metrics of a lane to their places. Rows go to the lane's slot.
  void write_metrics(const Frame& frame, int lane, std::span<float> region) const;
  // The sums of all metrics.
  std::vector<double> read_metrics(std::span<const float> region) const;
  // True if samples may have weights other than 1.
  bool weighted() const { return weighted_; }
  size_t statistics_bytes() const { return statistics_bytes_; }

  // The gradient of a parameter, or the observation of a state.
  struct Part {
    std::string name;
    std::string whole;  // the parameter or state, or the one that this is a shard of
    size_t first = 0;   // its first element in `whole`
    int shard = -1;     // index of the shard; -1 if not divided
    Shape shape;
    size_t offset = 0, bytes = 0;  // in the region
    bool is_state = false;
    float momentum = 0;     // of a state
    bool is_table = false;  // the gradient of an embedding table without another use,
    bool by_rows = false;   // which has many rows compared with those that a batch touches
    size_t columns() const { return static_cast<size_t>(shape[shape.rank() - 1]); }
  };
  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Cuts the region into buckets of at least this many bytes.
  void cut(size_t bucket_bytes);
  size_t bytes() const { return bytes_; }
  bool empty() const { return buckets_.empty(); }

  // Lanes are added by position. Throws an internal error if a program for another lane size sums
  // other values or places them differently.
  void check(const Program& program) const;
  // For each bucket, the planned kernel of a program after which it is final.
  std::vector<int> ready_kernels(const Program& program) const;

  static std::span<float> values(const Memory& region, const Part& part) {
    return region.part(part.offset, part.bytes).floats();
  }

 private:
  // The position of a metric among the statistics: its sums, or one slot of rows per lane.
  struct MetricPlace {
    size_t offset = 0, size = 0, slot = 0;
  };

  Metrics metrics_;
  std::vector<MetricPlace> metric_places_;
  size_t metric_floats_ = 0;
  bool weighted_ = false;
  size_t statistics_bytes_ = 0;
  std::vector<Part> parts_;
  std::vector<Bucket> buckets_;
  size_t bytes_ = 0;
};

}  // namespace artel
