// Ops that move elements and compute nothing.
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// Where each element of a smaller array, in row-major order, lies in a larger one that holds it
// `begin` places after the start of `axis`.
std::vector<size_t> places(const Shape& part, const Shape& whole, int axis, int64_t begin) {
  std::vector<size_t> result;
  for_each_index(part, [&](Index index) {
    index[static_cast<size_t>(axis)] += begin;
    int64_t at = 0;
    for (int a = 0; a < whole.rank(); ++a) at = at * whole[a] + index[static_cast<size_t>(a)];
    result.push_back(static_cast<size_t>(at));
  });
  return result;
}

Array take(const Array& whole, const Shape& part, int axis, int64_t begin) {
  Array result = {part, {}};
  for (const size_t place : places(part, whole.shape, axis, begin))
    result.data.push_back(whole.data[place]);
  return result;
}

void put(const Array& part, Array& whole, int axis, int64_t begin) {
  size_t i = 0;
  for (const size_t place : places(part.shape, whole.shape, axis, begin))
    whole.data[place] = part.data[i++];
}

Arrays reshape(const Call& call) { return {{call.out_shape(), call.in(0).data}}; }
Arrays reshape_gradient(const Call& call) { return {{call.in(0).shape, call.dy().data}}; }

// Calls body(place in x, place in y): axis i of y is axis permutation[i] of x.
template <typename Body>
void for_each_moved(const Call& call, const Body& body) {
  const std::vector<int64_t>& permutation = call.attributes().integers("permutation");
  size_t place = 0;
  for_each_index(call.out_shape(), [&](const Index& index) {
    Index from(index.size());
    for (size_t i = 0; i < index.size(); ++i) from[static_cast<size_t>(permutation[i])] = index[i];
    body(offset(call.in(0).shape, from), place++);
  });
}

Arrays transpose(const Call& call) {
  Array y = zeros(call.out_shape());
  for_each_moved(call, [&](size_t x, size_t at) { y.data[at] = call.in(0).data[x]; });
  return {y};
}

Arrays transpose_gradient(const Call& call) {
  Array dx = zeros(call.in(0).shape);
  for_each_moved(call, [&](size_t x, size_t at) { dx.data[x] = call.dy().data[at]; });
  return {dx};
}

int joined_axis(const Call& call) {
  return axis_of(call.attributes().integer("axis"), call.out_shape());
}

Arrays concat(const Call& call) {
  Array y = zeros(call.out_shape());
  int64_t begin = 0;
  for (int i = 0; i < call.count(); ++i) {
    put(call.in(i), y, joined_axis(call), begin);
    begin += call.in(i).shape[joined_axis(call)];
  }
  return {y};
}

Arrays concat_gradient(const Call& call) {
  Arrays results;
  int64_t begin = 0;
  for (int i = 0; i < call.count(); ++i) {
    results.push_back(take(call.dy(), call.in(i).shape, joined_axis(call), begin));
    begin += call.in(i).shape[joined_axis(call)];
  }
  return results;
}

Arrays slice(const Call& call) {
  return {
      take(call.in(0), call.out_shape(), joined_axis(call), call.attributes().integer("begin"))};
}

Arrays slice_gradient(const Call& call) {
  Array dx = zeros(call.in(0).shape);
  put(call.dy(), dx, joined_axis(call), call.attributes().integer("begin"));
  return {dx};
}

// Zeros around its operand.
Arrays slice_backward(const Call& call) {
  Array y = zeros(call.out_shape());
  put(call.in(0), y, joined_axis(call), call.attributes().integer("begin"));
  return {y};
}

Arrays slice_backward_gradient(const Call& call) {
  return {take(call.dy(), call.in(0).shape, joined_axis(call), call.attributes().integer("begin"))};
}

Arrays broadcast_to(const Call& call) {
  Array y = {call.out_shape(), {}};
  for_each_index(y.shape, [&](const Index& index) {
    y.data.push_back(call.in(0).data[offset(call.in(0).shape, index)]);
  });
  return {y};
}

Arrays broadcast_gradient(const Call& call) {
  Array dx = zeros(call.in(0).shape);
  size_t place = 0;
  for_each_index(call.out_shape(), [&](const Index& index) {
    dx.data[offset(dx.shape, index)] += call.dy().data[place++];
  });
  return {dx};
}

}  // namespace

std::vector<Rule> shape_rules() {
  return {{"reshape", reshape, reshape_gradient},
          {"transpose", transpose, transpose_gradient},
          {"concat", concat, concat_gradient},
          {"slice", slice, slice_gradient},
          {"slice_backward", slice_backward, slice_backward_gradient},
          {"broadcast_to", broadcast_to, broadcast_gradient},
          {"to_f32", [](const Call& call) -> Arrays { return {call.in(0)}; }}};
}

}  // namespace artel::reference
