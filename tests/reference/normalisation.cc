// Batch, layer and RMS norm.
//
// Each standardises groups of elements: z = (x - mean) / sqrt(variance + epsilon), y = scale z +
// shift. With n elements in a group and g the gradient of z, that of x is
// (g - mean(g) - z mean(g z)) / deviation.
#include <cmath>

#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

struct Moments {
  double mean, variance;
};

Moments moments_of(const Array& x, const std::vector<size_t>& group) {
  const auto n = static_cast<double>(group.size());
  double mean = 0, variance = 0;
  for (const size_t i : group) mean += x.data[i] / n;
  for (const size_t i : group) variance += (x.data[i] - mean) * (x.data[i] - mean) / n;
  return {mean, variance};
}

// The offsets of the elements of each channel (axis 1).
std::vector<std::vector<size_t>> channels_of(const Shape& shape) {
  std::vector<std::vector<size_t>> groups(static_cast<size_t>(shape[1]));
  size_t place = 0;
  for_each_index(shape,
                 [&](const Index& i) { groups[static_cast<size_t>(i[1])].push_back(place++); });
  return groups;
}

// Those of each row.
std::vector<std::vector<size_t>> row_groups(const Shape& shape) {
  const Rows all = rows_of(shape);
  std::vector<std::vector<size_t>> groups(static_cast<size_t>(all.rows));
  for (int64_t i = 0; i < all.rows * all.columns; ++i)
    groups[static_cast<size_t>(i / all.columns)].push_back(static_cast<size_t>(i));
  return groups;
}

Array vector_of(size_t n) { return zeros({static_cast<int64_t>(n)}); }

// Inputs x, scale, shift and perhaps a residual; with "relu" negative results become 0. Results: y,
// the mean, 1 / deviation and the unbiased variance of each channel.
Arrays batch_norm(const Call& call) {
  const Array& x = call.in(0);
  const auto channels = channels_of(x.shape);
  Array y = zeros(x.shape), mean = vector_of(channels.size()), inverse = mean, unbiased = mean;
  for (size_t c = 0; c < channels.size(); ++c) {
    const auto n = static_cast<double>(channels[c].size());
    const Moments m = moments_of(x, channels[c]);
    mean.data[c] = m.mean;
    inverse.data[c] = 1 / std::sqrt(m.variance + call.attributes().number("epsilon"));
    unbiased.data[c] = n > 1 ? m.variance * n / (n - 1) : m.variance;
    for (const size_t i : channels[c]) {
      const double z = (call.disturbance.apply(x.data[i]) - m.mean) * inverse.data[c];
      double result = call.in(1).data[c] * z + call.in(2).data[c];
      if (call.count() == 4) result += call.in(3).data[i];
      y.data[i] = call.flag("relu") && result < 0 ? 0 : result;
    }
  }
  return {y, mean, inverse, unbiased};
}

// The gradients of x, scale and shift; `dy` is that of the sum before a ReLU.
Arrays batch_norm_gradients(Disturbance& d, const Array& dy, const Array& x, const Array& scale,
                            const Array& mean, const Array& inverse) {
  const auto channels = channels_of(x.shape);
  Array dx = zeros(x.shape), dscale = vector_of(channels.size()), dshift = dscale;
  for (size_t c = 0; c < channels.size(); ++c) {
    const auto z = [&](size_t i) { return (x.data[i] - mean.data[c]) * inverse.data[c]; };
    for (const size_t i : channels[c]) {
      dscale.data[c] += dy.data[i] * z(i);
      dshift.data[c] += dy.data[i];
    }
    const auto n = static_cast<double>(channels[c].size());
    for (const size_t i : channels[c])
      dx.data[i] = scale.data[c] * inverse.data[c] *
                   (d.apply(dy.data[i]) - dshift.data[c] / n - z(i) * dscale.data[c] / n);
  }
  return {dx, dscale, dshift};
}

Arrays batch_norm_gradient(const Call& call) {
  const Array dy = call.flag("relu") ? through_relu(call.dy(), call.out()) : call.dy();
  Arrays results =
      batch_norm_gradients(call.disturbance, dy, call.in(0), call.in(1), call.out(1), call.out(2));
  if (call.count() == 4) results.push_back(dy);
  return results;
}

// y = scale (x - mean) / deviation + shift of each channel.
Array normalised(const Array& x, const Array& scale, const Array& shift, const Array& mean,
                 const Array& inverse) {
  Array y = zeros(x.shape);
  const auto channels = channels_of(x.shape);
  for (size_t c = 0; c < channels.size(); ++c)
    for (const size_t i : channels[c])
      y.data[i] = scale.data[c] * (x.data[i] - mean.data[c]) * inverse.data[c] + shift.data[c];
  return y;
}

// Inputs dy, x, scale, shift, mean, 1 / deviation, and y with both "relu" and "residual".
Arrays batch_norm_backward(const Call& call) {
  Array dy = call.in(0);
  if (call.flag("relu"))
    dy = through_relu(dy, call.flag("residual") ? call.in(6)
                                                : normalised(call.in(1), call.in(2), call.in(3),
                                                             call.in(4), call.in(5)));
  Arrays results =
      batch_norm_gradients(call.disturbance, dy, call.in(1), call.in(2), call.in(4), call.in(5));
  if (call.flag("residual")) results.push_back(dy);
  return results;
}

Array inverse_deviation(const Call& call, const Array& variance) {
  Array inverse = variance;
  for (double& v : inverse.data) v = 1 / std::sqrt(v + call.attributes().number("epsilon"));
  return inverse;
}

// Inputs x, scale, shift, mean and variance.
Arrays batch_norm_inference(const Call& call) {
  Array y = normalised(call.in(0), call.in(1), call.in(2), call.in(3),
                       inverse_deviation(call, call.in(4)));
  if (call.flag("relu"))
    for (double& value : y.data)
      if (value < 0) value = 0;
  return {y};
}

// The statistics are states: they have no gradient.
Arrays batch_norm_inference_gradient(const Call& call) {
  const Array dy = call.flag("relu") ? through_relu(call.dy(), call.out()) : call.dy();
  const Array &x = call.in(0), &scale = call.in(1), &mean = call.in(3);
  const Array inverse = inverse_deviation(call, call.in(4));
  const auto channels = channels_of(x.shape);
  Array dx = zeros(x.shape), dscale = vector_of(channels.size()), dshift = dscale;
  for (size_t c = 0; c < channels.size(); ++c)
    for (const size_t i : channels[c]) {
      dx.data[i] = dy.data[i] * scale.data[c] * inverse.data[c];
      dscale.data[c] += dy.data[i] * (x.data[i] - mean.data[c]) * inverse.data[c];
      dshift.data[c] += dy.data[i];
    }
  return {dx, dscale, dshift, {}, {}};
}

// Results: y, and the mean and 1 / deviation of each row.
Arrays layer_norm(const Call& call) {
  const Array& x = call.in(0);
  const auto rows = row_groups(x.shape);
  Array y = zeros(x.shape), mean = vector_of(rows.size()), inverse = mean;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Moments m = moments_of(x, rows[r]);
    mean.data[r] = m.mean;
    inverse.data[r] = 1 / std::sqrt(m.variance + call.attributes().number("epsilon"));
    for (size_t c = 0; c < rows[r].size(); ++c)
      y.data[rows[r][c]] = call.in(1).data[c] *
                               (call.disturbance.apply(x.data[rows[r][c]]) - m.mean) *
                               inverse.data[r] +
                           call.in(2).data[c];
  }
  return {y, mean, inverse};
}

Arrays layer_norm_gradients(Disturbance& d, const Array& dy, const Array& x, const Array& scale,
                            const Array& mean, const Array& inverse) {
  const auto rows = row_groups(x.shape);
  Array dx = zeros(x.shape), dscale = zeros(scale.shape), dshift = dscale;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto n = static_cast<double>(rows[r].size());
    const auto z = [&](size_t i) { return (x.data[i] - mean.data[r]) * inverse.data[r]; };
    double mean_g = 0, mean_gz = 0;
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const size_t i = rows[r][c];
      dscale.data[c] += dy.data[i] * z(i);
      dshift.data[c] += dy.data[i];
      mean_g += dy.data[i] * scale.data[c] / n;
      mean_gz += dy.data[i] * scale.data[c] * z(i) / n;
    }
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const size_t i = rows[r][c];
      dx.data[i] =
          inverse.data[r] * (d.apply(dy.data[i] * scale.data[c]) - mean_g - z(i) * mean_gz);
    }
  }
  return {dx, dscale, dshift};
}

Arrays layer_norm_gradient(const Call& call) {
  return layer_norm_gradients(call.disturbance, call.dy(), call.in(0), call.in(1), call.out(1),
                              call.out(2));
}

Arrays layer_norm_backward(const Call& call) {
  return layer_norm_gradients(call.disturbance, call.in(0), call.in(1), call.in(2), call.in(3),
                              call.in(4));
}

// y = scale x / sqrt(mean(x^2) + epsilon), and that inverse root for each row.
Arrays rms_norm(const Call& call) {
  const Array& x = call.in(0);
  const auto rows = row_groups(x.shape);
  Array y = zeros(x.shape), inverse = vector_of(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    double square = 0;
    for (const size_t i : rows[r])
      square += x.data[i] * x.data[i] / static_cast<double>(rows[r].size());
    inverse.data[r] = 1 / std::sqrt(square + call.attributes().number("epsilon"));
    for (size_t c = 0; c < rows[r].size(); ++c)
      y.data[rows[r][c]] = call.in(1).data[c] * x.data[rows[r][c]] * inverse.data[r];
  }
  return {y, inverse};
}

// With r the inverse root, dr/dx = -x r^3 / n.
Arrays rms_norm_gradients(Disturbance& d, const Array& dy, const Array& x, const Array& scale,
                          const Array& inverse) {
  const auto rows = row_groups(x.shape);
  Array dx = zeros(x.shape), dscale = zeros(scale.shape);
  for (size_t r = 0; r < rows.size(); ++r) {
    const double root = inverse.data[r];
    double dot = 0;
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const size_t i = rows[r][c];
      dscale.data[c] += dy.data[i] * x.data[i] * root;
      dot += dy.data[i] * scale.data[c] * x.data[i];
    }
    for (size_t c = 0; c < rows[r].size(); ++c) {
      const size_t i = rows[r][c];
      dx.data[i] = d.apply(dy.data[i] * scale.data[c] * root) -
                   dot * x.data[i] * root * root * root / static_cast<double>(rows[r].size());
    }
  }
  return {dx, dscale};
}

Arrays rms_norm_gradient(const Call& call) {
  return rms_norm_gradients(call.disturbance, call.dy(), call.in(0), call.in(1), call.out(1));
}

Arrays rms_norm_backward(const Call& call) {
  return rms_norm_gradients(call.disturbance, call.in(0), call.in(1), call.in(2), call.in(3));
}

}  // namespace

std::vector<Rule> normalisation_rules() {
  return {{"batch_norm", batch_norm, batch_norm_gradient},
          {"batch_norm_backward", batch_norm_backward},
          {"batch_norm_inference", batch_norm_inference, batch_norm_inference_gradient},
          {"layer_norm", layer_norm, layer_norm_gradient},
          {"layer_norm_backward", layer_norm_backward},
          {"rms_norm", rms_norm, rms_norm_gradient},
          {"rms_norm_backward", rms_norm_backward}};
}

}  // namespace artel::reference
