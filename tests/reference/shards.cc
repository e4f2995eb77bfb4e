// Ops at the borders of layers that are cut into shards, for graphs that have all shards.
#include <algorithm>
#include <limits>

#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// Which shard has an element of an axis, and where in it.
struct Place {
  int64_t shard, at;
};
std::vector<Place> places_of(const Call& call, int64_t extent) {
  const int64_t shards = call.attributes().integer("shards");
  const int64_t blocks = call.attributes().integer("blocks"), block = extent / blocks;
  std::vector<Place> places;
  for (int64_t i = 0; i < extent; ++i) {
    const int64_t within = i % block;
    int64_t shard = 0;
    while (within >= block * (shard + 1) / shards) ++shard;
    const int64_t first = block * shard / shards, size = block * (shard + 1) / shards - first;
    places.push_back({shard, i / block * size + within - first});
  }
  return places;
}

// Calls body(shard, place in the shard, place in the whole) for each element of the whole.
template <typename Body>
void for_each_shared(const Call& call, const Shape& whole, const Body& body) {
  const auto axis = static_cast<size_t>(call.attributes().integer("axis"));
  const std::vector<Place> places = places_of(call, whole[static_cast<int>(axis)]);
  std::vector<int64_t> extents(static_cast<size_t>(call.attributes().integer("shards")), 0);
  for (const Place& place : places) ++extents[static_cast<size_t>(place.shard)];
  size_t at = 0;
  for_each_index(whole, [&](Index index) {
    const Place& place = places[static_cast<size_t>(index[axis])];
    Shape shard = whole;
    shard[static_cast<int>(axis)] = extents[static_cast<size_t>(place.shard)];
    index[axis] = place.at;
    body(static_cast<size_t>(place.shard), offset(shard, index), at++);
  });
}

Arrays cut(const Call& call, const Array& whole, std::vector<Shape> shapes) {
  Arrays pieces;
  for (const Shape& shape : shapes) pieces.push_back(zeros(shape));
  for_each_shared(call, whole.shape, [&](size_t shard, size_t at, size_t from) {
    pieces[shard].data[at] = whole.data[from];
  });
  return pieces;
}

template <typename Piece>
Array join(const Call& call, const Shape& shape, const Piece& piece) {
  Array whole = zeros(shape);
  for_each_shared(call, shape, [&](size_t shard, size_t at, size_t to) {
    whole.data[to] = piece(static_cast<int>(shard)).data[at];
  });
  return whole;
}

template <typename Term>
Array sum(const Shape& shape, int count, const Term& term) {
  Array result = zeros(shape);
  for (int i = 0; i < count; ++i)
    for (size_t k = 0; k < result.data.size(); ++k) result.data[k] += term(i).data[k];
  return result;
}

Arrays copies(const Call& call) { return Arrays(call.node.outputs.size(), call.in(0)); }
Arrays copies_gradient(const Call& call) {
  return {sum(call.in(0).shape, static_cast<int>(call.node.outputs.size()),
              [&](int i) -> const Array& { return call.dy(i); })};
}

Arrays shard_sum(const Call& call) {
  return {sum(call.out_shape(), call.count(), [&](int i) -> const Array& { return call.in(i); })};
}
Arrays shard_sum_gradient(const Call& call) { return Arrays(call.inputs.size(), call.dy()); }

Arrays slices(const Call& call) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < call.node.outputs.size(); ++i)
    shapes.push_back(call.out_shape(static_cast<int>(i)));
  return cut(call, call.in(0), shapes);
}
Arrays slices_gradient(const Call& call) {
  return {join(call, call.in(0).shape, [&](int i) -> const Array& { return call.dy(i); })};
}

Arrays gather(const Call& call) {
  return {join(call, call.out_shape(), [&](int i) -> const Array& { return call.in(i); })};
}
Arrays gather_gradient(const Call& call) {
  std::vector<Shape> shapes;
  for (int i = 0; i < call.count(); ++i) shapes.push_back(call.in(i).shape);
  return cut(call, call.dy(), shapes);
}

// The scores of all classes, side by side.
Array all_scores(const Call& call) {
  const int64_t rows = call.in(call.count() - 1).shape.elements();
  Array scores = {{rows, call.attributes().integer("classes")}, {}};
  for (int64_t row = 0; row < rows; ++row)
    for (int i = 0; i + 1 < call.count(); ++i) {
      const int64_t columns = call.in(i).shape.back();
      const auto begin = call.in(i).data.begin() + row * columns;
      scores.data.insert(scores.data.end(), begin, begin + columns);
    }
  return scores;
}

int64_t label_of(const Call& call, const Array& labels, int64_t row) {
  const auto label = static_cast<int64_t>(labels.data[static_cast<size_t>(row)]);
  return label == call.attributes().integer("ignore_index") ? -1 : label;
}

double counted_labels(const Call& call, const Array& labels) {
  double count = 0;
  for (int64_t row = 0; row < labels.shape.elements(); ++row)
    count += label_of(call, labels, row) >= 0;
  return count;
}

// By which the sum of the losses is divided.
double divisor(const Call& call, const Array& labels) {
  return call.flag("over_rows") ? static_cast<double>(labels.shape.elements())
                                : counted_labels(call, labels);
}

Arrays shard_cross_entropy(const Call& call) {
  const Array scores = all_scores(call), &labels = call.in(call.count() - 1);
  const int64_t rows = scores.shape[0], classes = scores.shape[1];
  Array loss = zeros({}), sums = {{rows, 2}, {}};
  for (int64_t row = 0; row < rows; ++row) {
    const double* const x = scores.data.data() + row * classes;
    const double largest = *std::max_element(x, x + classes);
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(x[c] - largest);
    sums.data.insert(sums.data.end(), {largest, std::log(total)});
    if (const int64_t label = label_of(call, labels, row); label >= 0)
      loss.data[0] += largest - x[label] + std::log(total);
  }
  loss.data[0] /= divisor(call, labels);
  return {loss, sums, {{}, {counted_labels(call, labels) / static_cast<double>(rows)}}};
}

// For one shard's scores, whose first class is `first`.
Array scores_gradient(const Call& call, const Array& scores, int64_t first, const Array& labels,
                      const Array& sums, double dloss) {
  Array result = zeros(scores.shape);
  const int64_t columns = scores.shape.back();
  const double scale = dloss / divisor(call, labels);
  for (int64_t row = 0; row < labels.shape.elements(); ++row) {
    const int64_t label = label_of(call, labels, row);
    if (label < 0) continue;
    const auto at = static_cast<size_t>(row);
    for (int64_t c = 0; c < columns; ++c) {
      const auto place = static_cast<size_t>(row * columns + c);
      result.data[place] =
          scale * (std::exp(scores.data[place] - sums.data[2 * at] - sums.data[2 * at + 1]) -
                   (first + c == label ? 1 : 0));
    }
  }
  return result;
}

Arrays shard_cross_entropy_gradient(const Call& call) {
  Arrays results;
  int64_t first = 0;
  for (int i = 0; i + 1 < call.count(); ++i) {
    results.push_back(scores_gradient(call, call.in(i), first, call.in(call.count() - 1),
                                      call.out(1), call.dy().data[0]));
    first += call.in(i).shape.back();
  }
  results.emplace_back();
  return results;
}

Arrays shard_cross_entropy_backward(const Call& call) {
  const int64_t shards = call.attributes().integer("shards");
  const int64_t first =
      call.attributes().integer("classes") * call.attributes().integer("shard") / shards;
  return {scores_gradient(call, call.in(2), first, call.in(3), call.in(1), call.in(0).data[0])};
}

Arrays shard_count_top(const Call& call) {
  const Array scores = all_scores(call), &labels = call.in(call.count() - 1);
  const int64_t classes = scores.shape[1];
  double top = 0;
  for (int64_t row = 0; row < scores.shape[0]; ++row) {
    const int64_t label = label_of(call, labels, row);
    if (label < 0) continue;
    const double* const x = scores.data.data() + row * classes;
    int64_t before = 0;
    for (int64_t c = 0; c < classes; ++c)
      before += x[c] > x[label] || (x[c] == x[label] && c < label);
    top += before < call.attributes().integer("k");
  }
  return {{{2}, {top, counted_labels(call, labels)}}};
}

}  // namespace

std::vector<Rule> shard_rules() {
  return {{"shard_copies", copies, copies_gradient, true},
          {"shard_sum", shard_sum, shard_sum_gradient},
          {"shard_slices", slices, slices_gradient, true},
          {"shard_gather", gather, gather_gradient},
          {"shard_cross_entropy", shard_cross_entropy, shard_cross_entropy_gradient, true},
          {"shard_cross_entropy_backward", shard_cross_entropy_backward},
          {"shard_count_top", shard_count_top}};
}

}  // namespace artel::reference
