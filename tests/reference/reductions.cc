// Sums, means and extremes over some axes.
#include <limits>

#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// For each element of the operand, in row-major order, the place of the result that it is part of.
std::vector<size_t> parts_of(const Call& call) {
  Shape kept = call.in(0).shape;
  for (const int64_t axis : call.attributes().integers("axes"))
    kept[axis_of(axis, call.in(0).shape)] = 1;
  std::vector<size_t> results;
  for_each_index(call.in(0).shape,
                 [&](const Index& index) { results.push_back(offset(kept, index)); });
  return results;
}

// How many elements each result is made of.
double count_of(const Call& call) {
  double count = 1;
  for (const int64_t axis : call.attributes().integers("axes"))
    count *= static_cast<double>(call.in(0).shape[axis_of(axis, call.in(0).shape)]);
  return count;
}

Array total(const Call& call, double factor) {
  Array y = zeros(call.out_shape());
  size_t i = 0;
  for (const size_t part : parts_of(call)) y.data[part] += factor * call.in(0).data[i++];
  return y;
}

Array spread(const Call& call, double factor) {
  Array dx = {call.in(0).shape, {}};
  for (const size_t part : parts_of(call)) dx.data.push_back(factor * call.dy().data[part]);
  return dx;
}

Arrays extreme(const Call& call, double sign) {
  Array y = zeros(call.out_shape());
  for (double& value : y.data) value = -sign * std::numeric_limits<double>::infinity();
  size_t i = 0;
  for (const size_t part : parts_of(call)) {
    const double value = call.in(0).data[i++];
    if (sign * value > sign * y.data[part]) y.data[part] = value;
  }
  return {y};
}

// Shared equally among ties.
Arrays extreme_gradient(const Call& call) {
  const std::vector<size_t> parts = parts_of(call);
  const std::vector<double>& x = call.in(0).data;
  std::vector<double> ties(call.out().data.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) ties[parts[i]] += x[i] == call.out().data[parts[i]];
  Array dx = zeros(call.in(0).shape);
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] == call.out().data[parts[i]]) dx.data[i] = call.dy().data[parts[i]] / ties[parts[i]];
  return {dx};
}

}  // namespace

std::vector<Rule> reduction_rules() {
  return {
      {"reduce_sum", [](const Call& call) -> Arrays { return {total(call, 1)}; },
       [](const Call& call) -> Arrays { return {spread(call, 1)}; }},
      {"reduce_mean", [](const Call& call) -> Arrays { return {total(call, 1 / count_of(call))}; },
       [](const Call& call) -> Arrays { return {spread(call, 1 / count_of(call))}; }},
      {"reduce_max", [](const Call& call) { return extreme(call, 1); }, extreme_gradient},
      {"reduce_min", [](const Call& call) { return extreme(call, -1); }, extreme_gradient}};
}

}  // namespace artel::reference
