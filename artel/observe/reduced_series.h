// A curve of any length in bounded memory. Neighbouring points are merged into pairs of minimum and
// maximum, so no peak is lost.
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
  // Stores at most `most` pairs of extremes.
  explicit ReducedSeries(size_t most = 8192) : most_(most < 2 ? 2 : most) {}

  // Steps must ascend. Ignores values that are not finite.
  void add(int64_t step, double value);

  struct Points {
    std::vector<int64_t> x;
    std::vector<double> y;
  };
  // About `most` points at most of the steps from `from` to `to`, in order.
  Points points(size_t most, int64_t from = std::numeric_limits<int64_t>::min(),
                int64_t to = std::numeric_limits<int64_t>::max()) const;

  bool empty() const { return pairs_.empty(); }
  int64_t last_step() const { return last_step_; }  // 0 if empty
  double last() const { return last_; }

 private:
  struct Pair {
    int64_t low_step, high_step;
    double low, high;
    void include(const Pair& other);
  };

  size_t most_;
  int64_t merged_ = 1;  // points per pair
  int64_t in_last_ = 0;
  int64_t last_step_ = 0;
  double last_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace artel::observe
