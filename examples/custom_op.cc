// An op of your own in one file: its shape rule, its gradient rule and its kernels. Here:
// softsign(x) = x / (1 + |x|), used as the activation of a network that learns a parity of two
// signs.
#include <artel/artel.h>

#include <cmath>

namespace {

using artel::DType;
using artel::Tensor;
using artel::Value;

// The kernels: functions of some elements. They are fused with adjacent element-wise ops into one
// pass over memory. Other ops have a `make` instead (artel/exec/kernel.h).
void softsign_elements(const artel::ElementRun& run) {
  const float* x = run.in[0];
  for (int64_t i = 0; i < run.n; ++i) run.out[i] = x[i] / (1 + std::abs(x[i]));
}

void softsign_backward_elements(const artel::ElementRun& run) {
  const float *dy = run.in[0], *x = run.in[1];
  for (int64_t i = 0; i < run.n; ++i) {
    const float scale = 1 + std::abs(x[i]);
    run.out[i] = dy[i] / (scale * scale);
  }
}

void register_softsign() {
  // The output has the type of the first input; the gradient is another op, of dy and x.
  const auto same_type = [](const artel::InferContext& context) {
    return std::vector<artel::TensorType>{context.type(0)};
  };
  artel::register_op({.name = "softsign",
                      .infer = same_type,
                      .gradient = [](artel::GradientContext& context) -> std::vector<Value> {
                        return {context.graph().add_one("softsign_backward",
                                                        {context.gradient(), context.input(0)})};
                      }});
  artel::register_op({.name = "softsign_backward", .infer = same_type});
  artel::register_kernel({.op = "softsign", .elements = softsign_elements});
  artel::register_kernel({.op = "softsign_backward", .elements = softsign_backward_elements});
}

artel::nn::Layer softsign() {
  return {"softsign",
          [](artel::nn::Build& build, Value x) { return build.graph().add_one("softsign", {x}); }};
}

}  // namespace

int main() try {
  register_softsign();

  // Class 1 where both coordinates have the same sign: no linear network can tell.
  constexpr int64_t kSamples = 2048;
  Tensor x({kSamples, 2}), y({kSamples}, DType::i32);
  artel::Random random({7});
  for (int64_t i = 0; i < kSamples; ++i) {
    const float a = random.normal(), b = random.normal();
    x.values<float>()[2 * i] = a;
    x.values<float>()[2 * i + 1] = b;
    y.values<int32_t>()[i] = (a > 0) == (b > 0);
  }

  namespace nn = artel::nn;
  artel::Cluster cluster;
  artel::Trainer trainer(cluster, nn::sequential({nn::dense(32), softsign(), nn::dense(2)}),
                         {.optimizer = artel::optim::adam(0.01)});
  trainer.fit(x, y, {.batch_size = 64, .epochs = 20});
  const double accuracy = trainer.evaluate(artel::data::tensor_dataset(x, y)).accuracy;
  artel::println("accuracy {:.4f} with softsign", accuracy);
  return accuracy > 0.95 ? 0 : 1;
} catch (const artel::Error& error) {
  artel::println("custom_op: {}", error.what());
  return 1;
}
