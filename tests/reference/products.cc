// Matrix products: matmul, dense, and the sums that give the gradient of a bias.
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// c[i][j] += a[i][k] b[k][j] in every matrix of a stack, as offsets into the three arrays.
struct Product {
  int64_t stack, m, k, n;
  bool transpose_a, transpose_b, one_b;  // one_b: all of the stack share one matrix b

  template <typename Body>
  void each(const Body& body) const {
    for (int64_t s = 0; s < stack; ++s)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t l = 0; l < k; ++l)
            body(static_cast<size_t>(s * m * k + (transpose_a ? l * m + i : i * k + l)),
                 static_cast<size_t>((one_b ? 0 : s * k * n) +
                                     (transpose_b ? j * k + l : l * n + j)),
                 static_cast<size_t>((s * m + i) * n + j));
  }
};

Product matmul_of(const Call& call) {
  const Shape &a = call.in(0).shape, &b = call.in(1).shape;
  const bool ta = call.flag("transpose_a"), tb = call.flag("transpose_b");
  Product p = {.stack = 1,
               .m = a[a.rank() - (ta ? 1 : 2)],
               .k = a[a.rank() - (ta ? 2 : 1)],
               .n = b[b.rank() - (tb ? 2 : 1)],
               .transpose_a = ta,
               .transpose_b = tb,
               .one_b = b.rank() == 2};
  for (int axis = 0; axis < a.rank() - 2; ++axis) p.stack *= a[axis];
  return p;
}

// Weights are [out, in], or [in, out] with "in_out".
Product dense_of(const Call& call) {
  const Rows x = rows_of(call.in(0).shape);
  const bool in_out = call.flag("in_out");
  return {.stack = 1,
          .m = x.rows,
          .k = x.columns,
          .n = call.in(1).shape[in_out ? 1 : 0],
          .transpose_a = false,
          .transpose_b = !in_out,
          .one_b = true};
}

Array multiply(const Product& product, const Call& call) {
  Array y = zeros(call.out_shape());
  const Array &a = call.in(0), &b = call.in(1);
  product.each([&](size_t i, size_t j, size_t k) { y.data[k] += a.data[i] * b.data[j]; });
  return y;
}

Arrays product_gradients(const Product& product, const Call& call, const Array& dy) {
  const Array &a = call.in(0), &b = call.in(1);
  Array da = zeros(a.shape), db = zeros(b.shape);
  product.each([&](size_t i, size_t j, size_t k) {
    da.data[i] += dy.data[k] * b.data[j];
    db.data[j] += dy.data[k] * a.data[i];
  });
  return {da, db};
}

Arrays matmul(const Call& call) { return {multiply(matmul_of(call), call)}; }

Arrays matmul_gradient(const Call& call) {
  return product_gradients(matmul_of(call), call, call.dy());
}

// With "relu", "gelu" or "gelu_tanh" the activation follows; with "slope" its derivative is a
// second result.
Arrays dense(const Call& call) {
  Array y = multiply(dense_of(call), call);
  if (call.count() == 3)
    for (size_t i = 0; i < y.data.size(); ++i)
      y.data[i] += call.in(2).data[i % call.in(2).data.size()];
  Array slope = {y.shape, std::vector<double>(y.data.size(), 1.0)};
  for (size_t i = 0; i < y.data.size(); ++i) {
    const double x = y.data[i];
    const ValueAndSlope at = call.flag("relu")        ? ValueAndSlope{x > 0 ? x : 0, x > 0 ? 1. : 0}
                             : call.flag("gelu")      ? gelu(x)
                             : call.flag("gelu_tanh") ? gelu_tanh(x)
                                                      : ValueAndSlope{x, 1};
    y.data[i] = at.value;
    slope.data[i] = at.slope;
  }
  if (call.flag("slope")) return {y, slope};
  return {y};
}

// The sum over all axes except the channel axis, which is 1 with "channels_first" and otherwise the
// last.
Array channel_sum(const Call& call, const Array& x) {
  const int axis = call.flag("channels_first") ? 1 : x.shape.rank() - 1;
  Array sum = zeros({x.shape[axis]});
  size_t place = 0;
  for_each_index(x.shape, [&](const Index& index) {
    sum.data[static_cast<size_t>(index[static_cast<size_t>(axis)])] += x.data[place++];
  });
  return sum;
}

Array times(const Array& a, const Array& b) {
  Array product = a;
  for (size_t i = 0; i < a.data.size(); ++i) product.data[i] *= b.data[i];
  return product;
}

// Without "slope" a fused GELU could only be differentiated from its input, which is not kept;
// graphs that are differentiated have it.
Arrays dense_gradient(const Call& call) {
  const Array dy = call.flag("slope")  ? times(call.dy(), call.out(1))
                   : call.flag("relu") ? through_relu(call.dy(), call.out())
                                       : call.dy();
  Arrays results = product_gradients(dense_of(call), call, dy);
  if (call.count() == 3) results.push_back(channel_sum(call, dy));
  return results;
}

Arrays bias_backward(const Call& call) {
  Array dy =
      call.flag("slope") ? times(call.in(0), call.in(1)) : through_relu(call.in(0), call.in(1));
  Array sum = channel_sum(call, dy);
  return {std::move(dy), std::move(sum)};
}

Arrays column_sum(const Call& call) { return {channel_sum(call, call.in(0))}; }

}  // namespace

std::vector<Rule> product_rules() {
  return {{"matmul", matmul, matmul_gradient},
          {"dense", dense, dense_gradient},
          {"bias_backward", bias_backward},
          {"column_sum", column_sum}};
}

}  // namespace artel::reference
