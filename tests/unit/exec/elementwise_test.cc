#include "artel/exec/cpu/elementwise/elementwise.h"

#include <functional>
#include <limits>

#include "artel/base/error.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

ElementOp element_op(std::string_view name) { return find_element_op(name).value(); }

std::vector<float> run_dense(const ElementInstruction& instruction,
                             const std::vector<std::vector<float>>& inputs) {
  const auto n = static_cast<int64_t>(inputs[0].size());
  ElementProgram program;
  program.inputs = static_cast<int>(inputs.size());
  program.code = {instruction};
  program.outputs = {program.inputs};
  const ElementKernel kernel(program, {n}, std::vector<ElementOperand>(inputs.size(), {{1}}),
                             {{{1}}});
  std::vector<const float*> pointers;
  for (const auto& input : inputs) pointers.push_back(input.data());
  return same_for_all_threads([&](ThreadPool& pool) {
    std::vector<float> y(n);
    float* out = y.data();
    kernel.run(pool, pointers.data(), &out);
    return y;
  });
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
// A central difference: the oracle of gradients that have no short formula.
double slope(const std::function<double(double)>& f, double x) {
  return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}

struct UnaryCase {
  ElementOp op;
  double (*oracle)(double);
  float low, high;
  float immediate = 0;
};

TEST(Elementwise, UnaryAgainstDouble) {
  const std::vector<UnaryCase> cases = {
      {element_op("neg"), [](double x) { return -x; }, -9, 9},
      {element_op("abs"), [](double x) { return std::abs(x); }, -9, 9},
      {element_op("square"), [](double x) { return x * x; }, -9, 9},
      {element_op("sqrt"), [](double x) { return std::sqrt(x); }, 0, 9},
      {element_op("rsqrt"), [](double x) { return 1 / std::sqrt(x); }, 0.01f, 9},
      {element_op("reciprocal"), [](double x) { return 1 / x; }, 0.01f, 9},
      {element_op("exp"), [](double x) { return std::exp(x); }, -80, 80},
      {element_op("log"), [](double x) { return std::log(x); }, 1e-6f, 50},
      {element_op("sin"), [](double x) { return std::sin(x); }, -50, 50},
      {element_op("cos"), [](double x) { return std::cos(x); }, -50, 50},
      {element_op("tanh"), [](double x) { return std::tanh(x); }, -12, 12},
      {element_op("sigmoid"), sigmoid, -30, 30},
      {element_op("relu"), [](double x) { return x > 0 ? x : 0; }, -3, 3},
      {element_op("gelu"), [](double x) { return x * normal(x); }, -8, 8},
      {element_op("gelu_tanh"), gelu_tanh, -5, 5},
      {element_op("silu"), [](double x) { return x * sigmoid(x); }, -20, 20},
      {element_op("softplus"), [](double x) { return std::log1p(std::exp(x)); }, -15, 20},
      {element_op("erf"), [](double x) { return std::erf(x); }, -5, 5},
      {element_op("sign"), [](double x) { return x > 0   ? 1.0
                                                 : x < 0 ? -1.0
                                                         : 0.0; }, -1, 1},
      {element_op("leaky_relu"), [](double x) { return x > 0 ? x : 0.25 * x; }, -3, 3, 0.25f},
      {element_op("add_scalar"), [](double x) { return x + 1.5; }, -3, 3, 1.5f},
      {element_op("mul_scalar"), [](double x) { return x * -1.5; }, -3, 3, -1.5f},
      {element_op("pow_scalar"), [](double x) { return std::pow(x, 2.5); }, 0, 3, 2.5f},
      {element_op("clamp_min"), [](double x) { return std::max(x, 0.5); }, -3, 3, 0.5f},
      {element_op("clamp_max"), [](double x) { return std::min(x, 0.5); }, -3, 3, 0.5f}};
  for (const UnaryCase& test : cases) {
    SCOPED_TRACE(static_cast<int>(test.op));
    const std::vector<float> x = random_values(40007, 7, test.low, test.high);
    const std::vector<float> y = run_dense({test.op, 0, -1, -1, test.immediate}, {x});
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = test.oracle(x[i]);
      const double scale = std::abs(expected) + 1e-7;
      ASSERT_LE(std::abs(y[i] - expected), 2e-6 * scale + 1e-7) << "at x = " << x[i];
    }
  }
}

struct BinaryCase {
  ElementOp op;
  double (*oracle)(double, double);
  float immediate = 0;
};

TEST(Elementwise, BinaryAgainstDouble) {
  const std::vector<BinaryCase> cases = {
      {element_op("add"), [](double a, double b) { return a + b; }},
      {element_op("sub"), [](double a, double b) { return a - b; }},
      {element_op("mul"), [](double a, double b) { return a * b; }},
      {element_op("div"), [](double a, double b) { return a / b; }},
      {element_op("maximum"), [](double a, double b) { return std::max(a, b); }},
      {element_op("minimum"), [](double a, double b) { return std::min(a, b); }},
      {element_op("pow"), [](double a, double b) { return std::pow(a, b); }},
      {element_op("greater"), [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {element_op("equal"), [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {element_op("relu_grad"), [](double dy, double y) { return y > 0 ? dy : 0; }},
      {element_op("leaky_relu_grad"), [](double dy, double x) { return x > 0 ? dy : 0.25 * dy; },
       0.25f},
      {element_op("gelu_grad"),
       [](double dy, double x) { return dy * slope([](double v) { return v * normal(v); }, x); }},
      {element_op("gelu_tanh_grad"), [](double dy, double x) { return dy * slope(gelu_tanh, x); }},
      {element_op("silu_grad"),
       [](double dy, double x) { return dy * slope([](double v) { return v * sigmoid(v); }, x); }},
      {element_op("sigmoid_grad"), [](double dy, double y) { return dy * y * (1 - y); }},
      {element_op("tanh_grad"), [](double dy, double y) { return dy * (1 - y * y); }}};
  std::vector<float> a = random_values(1031, 1, 0.1f, 3), b = random_values(1031, 2, -3, 3);
  a[17] = b[17] = 1;  // a pair of equals
  for (const BinaryCase& test : cases) {
    SCOPED_TRACE(static_cast<int>(test.op));
    const std::vector<float> y = run_dense({test.op, 0, 1, -1, test.immediate}, {a, b});
    std::vector<double> expected;
    for (size_t i = 0; i < a.size(); ++i) expected.push_back(test.oracle(a[i], b[i]));
    expect_close(y, expected, 2e-6);
  }
}

TEST(Elementwise, LimitsAndNaN) {
  const std::vector<float> x = {NAN, kInfinity, -kInfinity, 0, 1000, -1000};
  const auto check = [&](ElementOp op, const std::vector<double>& expected) {
    SCOPED_TRACE(static_cast<int>(op));
    expect_close(run_dense({op, 0}, {x}), expected, 1e-6);
  };
  check(element_op("exp"), {NAN, kInfinity, 0, 1, kInfinity, 0});
  check(element_op("log"), {NAN, kInfinity, NAN, -kInfinity, std::log(1000.0), NAN});
  check(element_op("tanh"), {NAN, 1, -1, 0, 1, -1});
  check(element_op("sigmoid"), {NAN, 1, 0, 0.5, 1, 0});
  check(element_op("erf"), {NAN, 1, -1, 0, 1, -1});
  check(element_op("softplus"), {NAN, kInfinity, 0, std::log(2.0), 1000, 0});
  check(element_op("relu"), {NAN, kInfinity, 0, 0, 1000, 0});
  check(element_op("sign"), {NAN, 1, -1, 0, 1, -1});
  const std::vector<float> y = {1, -kInfinity, kInfinity, NAN, 1, 1};
  expect_close(run_dense({element_op("maximum"), 0, 1}, {x, y}),
               {NAN, kInfinity, kInfinity, NAN, 1000, 1}, 0);
  expect_close(run_dense({element_op("equal"), 0, 1}, {x, y}), {0, 0, 0, 0, 0, 0}, 0);
}

// z = (x * a + b) * c + x with x dense, a a row, b a column, c a scalar; every odd shape.
TEST(Elementwise, BroadcastsAndStrides) {
  ElementProgram program;
  program.inputs = 4;
  program.code = {{element_op("mul"), 0, 1},
                  {element_op("add"), 4, 2},
                  {element_op("mul"), 5, 3},
                  {element_op("add"), 6, 0},
                  {element_op("neg"), 5}};
  program.outputs = {7, 8};
  for (const int64_t rows : {0, 1, 2, 37, 700}) {
    for (const int64_t columns : {1, 7, 10, 16, 64, 513, 1200}) {
      for (const bool transposed : {false, true}) {
        const int64_t outer = 3, n = outer * rows * columns;
        const std::vector<float> x = random_values(n, 1), a = random_values(columns, 2),
                                 b = random_values(rows, 3), c = random_values(1, 4);
        const ElementOperand dense{{rows * columns, columns, 1}};
        const ElementOperand other = transposed ? ElementOperand{{rows * columns, 1, rows}} : dense;
        const ElementKernel kernel(program, {outer, rows, columns},
                                   {other, {{0, 0, 1}}, {{0, 1, 0}}, {{0, 0, 0}}}, {dense, other});
        const float* inputs[] = {x.data(), a.data(), b.data(), c.data()};
        const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
          std::vector<float> y(2 * n);
          float* outputs[] = {y.data(), y.data() + n};
          kernel.run(pool, inputs, outputs);
          return y;
        });
        std::vector<double> expected(2 * n);
        for (int64_t o = 0; o < outer; ++o) {
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              const int64_t at = (o * rows + i) * columns + j;
              const int64_t to = transposed ? o * rows * columns + j * rows + i : at;
              const double sum = static_cast<double>(x[to]) * a[j] + b[i];
              expected[at] = sum * c[0] + x[to];
              expected[n + to] = -sum;
            }
          }
        }
        expect_close(got, expected, 1e-5);
      }
    }
  }
}

// The first result overwrites an input that a later instruction reads.
TEST(Elementwise, InPlace) {
  ElementProgram program;
  program.inputs = 2;
  program.code = {{element_op("add"), 0, 1}, {element_op("mul"), 0, 1}};
  program.outputs = {2, 3};
  for (const int64_t n : {1, 15, 16, 1000, 5120}) {
    const ElementKernel kernel(program, {n}, {{{1}}, {{1}}}, {{{1}}, {{1}}});
    const std::vector<float> a = random_values(n, 1), b = random_values(n, 2);
    std::vector<float> x = a, y = b;
    ThreadPool pool(2);
    const float* inputs[] = {x.data(), y.data()};
    float* outputs[] = {x.data(), y.data()};
    kernel.run(pool, inputs, outputs);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(x[i], a[i] + b[i]);
      ASSERT_EQ(y[i], a[i] * b[i]);
    }
  }
}

// More registers than fit the cache with a block of the usual size.
TEST(Elementwise, ManyRegisters) {
  ElementProgram program;
  program.inputs = 1;
  for (int i = 0; i < 200; ++i) program.code.push_back({element_op("add_scalar"), 0, -1, -1, 1.0f});
  for (int i = 0; i < 50; ++i) program.code.push_back({element_op("add"), 200 + i, 1 + i});
  program.outputs = {250};
  const ElementKernel kernel(program, {777}, {{{1}}}, {{{1}}});
  const std::vector<float> x = random_values(777, 5);
  std::vector<float> y(777);
  ThreadPool pool(1);
  const float* input = x.data();
  float* output = y.data();
  kernel.run(pool, &input, &output);
  for (int64_t i = 0; i < 777; ++i) ASSERT_NEAR(y[i], 51 * (x[i] + 1), 1e-3);
}

TEST(Elementwise, RejectsWrongPrograms) {
  ElementProgram program{1, {{element_op("add"), 0, 2}}, {1}};
  EXPECT_THROW(ElementKernel(program, {4}, {{{1}}}, {{{1}}}), Error);
  program = {1, {{element_op("neg"), 0}}, {1}};
  EXPECT_THROW(ElementKernel(program, {4}, {{{1}}}, {{{0}}}), Error);
  EXPECT_THROW(ElementKernel(program, {4}, {}, {{{1}}}), Error);
}

}  // namespace
}  // namespace artel::kernels
