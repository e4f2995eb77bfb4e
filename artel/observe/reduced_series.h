// A curve of any length in little memory: neighbouring points are merged, and of those that are
// the lowest and the highest stay, so no peak is lost.
//
//   artel::observe::ReducedSeries loss;
//   for (int64_t step = 1; step <= 1'000'000; ++step) loss.add(step, 1.0 / step);
//   const auto [x, y] = loss.points(500);
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace artel::observe {

class ReducedSeries {
 public:
  // Keeps at most this many pairs of extremes.
  explicit ReducedSeries(size_t most = 8192) : most_(most < 2 ? 2 : most) {}

  // Steps ascend. Values that are not finite are left out.
  void add(int64_t step, double value);

  struct Points {
    std::vector<int64_t> x;
    std::vector<double> y;
  };
  // At most about `most` points of the steps from `from` to `to`, in their order.
  Points points(size_t most, int64_t from = std::numeric_limits<int64_t>::min(),
                int64_t to = std::numeric_limits<int64_t>::max()) const;

  bool empty() const { return pairs_.empty(); }
  int64_t last_step() const { return last_step_; }  // 0 if it is empty
  double last() const { return last_; }

 private:
  struct Pair {
    int64_t low_step, high_step;
    double low, high;
    void include(const Pair& other);
  };

  size_t most_;
  int64_t merged_ = 1;  // points in a pair
  int64_t in_last_ = 0;
  int64_t last_step_ = 0;
  double last_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace artel::observe
