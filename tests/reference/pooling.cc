// Maxima and averages of windows of images.
#include <algorithm>
#include <cmath>

#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// The part of an axis that one result sees.
struct Span {
  int64_t begin, end;
};

// The windows of a pooling node between images of these shapes: "size" says that they adapt.
class Windows {
 public:
  Windows(const Attributes& attributes, Shape x, Shape y)
      : attributes_(attributes), x_(std::move(x)), y_(std::move(y)) {}

  // Calls body(result, elements, divisor) with offsets: of the result, of the elements of its
  // window in row-major order, and by what an average divides their sum.
  template <typename Body>
  void each(const Body& body) const {
    size_t result = 0;
    for (int64_t plane = 0; plane < y_[0] * y_[1]; ++plane)
      for (int64_t i = 0; i < y_[2]; ++i)
        for (int64_t j = 0; j < y_[3]; ++j) {
          const Span rows = span(0, i), columns = span(1, j);
          std::vector<size_t> elements;
          for (int64_t row = rows.begin; row < rows.end; ++row)
            for (int64_t column = columns.begin; column < columns.end; ++column)
              elements.push_back(static_cast<size_t>((plane * x_[2] + row) * x_[3] + column));
          double divisor = static_cast<double>(elements.size());
          if (attributes_.flag("count_padding"))
            divisor = static_cast<double>(attributes_.integers("kernel")[0] *
                                          attributes_.integers("kernel")[1]);
          body(result++, elements, divisor);
        }
  }

 private:
  Span span(int axis, int64_t i) const {
    const int64_t extent = x_[2 + axis];
    if (attributes_.has("size")) {
      const auto in = static_cast<double>(extent), out = static_cast<double>(y_[2 + axis]);
      const auto k = static_cast<double>(i);
      return {static_cast<int64_t>(std::floor(k * in / out)),
              static_cast<int64_t>(std::ceil((k + 1) * in / out))};
    }
    const int64_t begin =
        i * attributes_.integers("stride")[axis] - attributes_.integers("padding")[axis];
    const int64_t end = begin + attributes_.integers("kernel")[axis];
    return {std::max<int64_t>(begin, 0), std::min(end, extent)};
  }

  const Attributes& attributes_;
  Shape x_, y_;
};

// The second result is which element of the window won, the first of equals.
Arrays max_pool(const Call& call) {
  Array y = zeros(call.out_shape()), winners = y;
  Windows(call.attributes(), call.in(0).shape, y.shape)
      .each([&](size_t result, const std::vector<size_t>& elements, double) {
        size_t best = 0;
        for (size_t i = 1; i < elements.size(); ++i)
          if (call.in(0).data[elements[i]] > call.in(0).data[elements[best]]) best = i;
        y.data[result] = call.in(0).data[elements[best]];
        winners.data[result] = static_cast<double>(best);
      });
  return {y, winners};
}

Array max_gradient(const Attributes& attributes, const Shape& shape, const Array& dy,
                   const Array& winners) {
  Array dx = zeros(shape);
  Windows(attributes, shape, dy.shape)
      .each([&](size_t result, const std::vector<size_t>& elements, double) {
        dx.data[elements[static_cast<size_t>(winners.data[result])]] += dy.data[result];
      });
  return dx;
}

Arrays average_pool(const Call& call) {
  Array y = zeros(call.out_shape());
  Windows(call.attributes(), call.in(0).shape, y.shape)
      .each([&](size_t result, const std::vector<size_t>& elements, double divisor) {
        for (const size_t element : elements) y.data[result] += call.in(0).data[element] / divisor;
      });
  return {y};
}

Array average_gradient(const Attributes& attributes, const Shape& shape, const Array& dy) {
  Array dx = zeros(shape);
  Windows(attributes, shape, dy.shape)
      .each([&](size_t result, const std::vector<size_t>& elements, double divisor) {
        for (const size_t element : elements) dx.data[element] += dy.data[result] / divisor;
      });
  return dx;
}

Arrays max_pool_gradient(const Call& call) {
  return {max_gradient(call.attributes(), call.in(0).shape, call.dy(), call.out(1))};
}
Arrays average_pool_gradient(const Call& call) {
  return {average_gradient(call.attributes(), call.in(0).shape, call.dy())};
}
Arrays max_backward(const Call& call) {
  return {max_gradient(call.attributes(), call.out_shape(), call.in(0), call.in(1))};
}
Arrays average_backward(const Call& call) {
  return {average_gradient(call.attributes(), call.out_shape(), call.in(0))};
}

}  // namespace

std::vector<Rule> pooling_rules() {
  return {{"max_pool", max_pool, max_pool_gradient},
          {"adaptive_max_pool", max_pool, max_pool_gradient},
          {"average_pool", average_pool, average_pool_gradient},
          {"adaptive_average_pool", average_pool, average_pool_gradient},
          {"max_pool_backward", max_backward},
          {"average_pool_backward", average_backward},
          {"adaptive_average_pool_backward", average_backward}};
}

}  // namespace artel::reference
