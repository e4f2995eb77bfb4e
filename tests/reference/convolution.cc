// Convolutions as one list of products. With offsets into the larger image x, the weights w and the
// smaller image y, a convolution is y += x w, its gradients are x += y w and w += x y, and the
// transposed convolution is x += y w as well.
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

class Taps {
 public:
  // `large` [batch, in, ...], weights [out, in / groups, ...], `small` [batch, out, ...].
  Taps(const Attributes& attributes, Shape large, Shape weights, Shape small)
      : stride_(attributes.integers("stride")),
        padding_(attributes.integers("padding")),
        dilation_(attributes.integers("dilation")),
        groups_(attributes.integer("groups")),
        large_(std::move(large)),
        weights_(std::move(weights)),
        small_(std::move(small)) {}

  template <typename Body>
  void each(const Body& body) const {
    const int64_t outs = weights_[0] / groups_, ins = weights_[1];
    for (int64_t image = 0; image < small_[0]; ++image)
      for (int64_t out = 0; out < weights_[0]; ++out)
        for (int64_t in = 0; in < ins; ++in)
          for (int64_t row = 0; row < small_[2]; ++row)
            for (int64_t column = 0; column < small_[3]; ++column)
              for (int64_t i = 0; i < weights_[2]; ++i)
                for (int64_t j = 0; j < weights_[3]; ++j) {
                  const int64_t x_row = row * stride_[0] - padding_[0] + i * dilation_[0];
                  const int64_t x_column = column * stride_[1] - padding_[1] + j * dilation_[1];
                  if (x_row < 0 || x_row >= large_[2] || x_column < 0 || x_column >= large_[3])
                    continue;
                  body(at(large_, image, out / outs * ins + in, x_row, x_column),
                       at(weights_, out, in, i, j), at(small_, image, out, row, column));
                }
  }

 private:
  static size_t at(const Shape& s, int64_t a, int64_t b, int64_t c, int64_t d) {
    return static_cast<size_t>(((a * s[1] + b) * s[2] + c) * s[3] + d);
  }

  std::vector<int64_t> stride_, padding_, dilation_;
  int64_t groups_;
  Shape large_, weights_, small_;
};

Array small_of(const Taps& taps, const Shape& shape, const Array& large, const Array& weights) {
  Array y = zeros(shape);
  taps.each([&](size_t i, size_t j, size_t k) { y.data[k] += large.data[i] * weights.data[j]; });
  return y;
}

Array large_of(const Taps& taps, const Shape& shape, const Array& small, const Array& weights) {
  Array x = zeros(shape);
  taps.each([&](size_t i, size_t j, size_t k) { x.data[i] += small.data[k] * weights.data[j]; });
  return x;
}

Array weights_of(const Taps& taps, const Shape& shape, const Array& large, const Array& small) {
  Array w = zeros(shape);
  taps.each([&](size_t i, size_t j, size_t k) { w.data[j] += large.data[i] * small.data[k]; });
  return w;
}

void add_bias(Array& y, const Call& call) {
  if (call.count() < 3) return;
  size_t place = 0;
  for_each_index(y.shape, [&](const Index& index) {
    y.data[place++] += call.in(2).data[static_cast<size_t>(index[1])];
  });
}

Array bias_gradient(const Array& dy) {
  Array sum = zeros({dy.shape[1]});
  size_t place = 0;
  for_each_index(dy.shape, [&](const Index& index) {
    sum.data[static_cast<size_t>(index[1])] += dy.data[place++];
  });
  return sum;
}

// With "relu" negative results become 0.
Arrays conv(const Call& call) {
  const Array &x = call.in(0), &w = call.in(1);
  const Taps taps(call.attributes(), x.shape, w.shape, call.out_shape());
  Array y = small_of(taps, call.out_shape(), x, w);
  add_bias(y, call);
  if (call.flag("relu"))
    for (double& value : y.data)
      if (value < 0) value = 0;
  return {y};
}

Arrays conv_gradient(const Call& call) {
  const Array &x = call.in(0), &w = call.in(1);
  const Array dy = call.flag("relu") ? through_relu(call.dy(), call.out()) : call.dy();
  const Taps taps(call.attributes(), x.shape, w.shape, dy.shape);
  Arrays results = {large_of(taps, x.shape, dy, w), weights_of(taps, w.shape, x, dy)};
  if (call.count() == 3) results.push_back(bias_gradient(dy));
  return results;
}

Arrays backward_data(const Call& call) {
  const Array &dy = call.in(0), &w = call.in(1);
  const Taps taps(call.attributes(), call.out_shape(), w.shape, dy.shape);
  return {large_of(taps, call.out_shape(), dy, w)};
}

Arrays backward_weights(const Call& call) {
  const Array &x = call.in(0), &dy = call.in(1);
  const Taps taps(call.attributes(), x.shape, call.out_shape(), dy.shape);
  return {weights_of(taps, call.out_shape(), x, dy)};
}

Arrays transposed(const Call& call) {
  const Array &x = call.in(0), &w = call.in(1);
  const Taps taps(call.attributes(), call.out_shape(), w.shape, x.shape);
  Array y = large_of(taps, call.out_shape(), x, w);
  add_bias(y, call);
  return {y};
}

Arrays transposed_gradient(const Call& call) {
  const Array &x = call.in(0), &w = call.in(1), &dy = call.dy();
  const Taps taps(call.attributes(), dy.shape, w.shape, x.shape);
  Arrays results = {small_of(taps, x.shape, dy, w), weights_of(taps, w.shape, dy, x)};
  if (call.count() == 3) results.push_back(bias_gradient(dy));
  return results;
}

}  // namespace

std::vector<Rule> convolution_rules() {
  return {{"conv2d", conv, conv_gradient},
          {"conv2d_backward_data", backward_data},
          {"conv2d_backward_weights", backward_weights},
          {"conv_transpose2d", transposed, transposed_gradient}};
}

}  // namespace artel::reference
