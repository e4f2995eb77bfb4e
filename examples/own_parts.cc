// own_parts: a layer, a loss and a metric of one's own; docs/extending.md goes through it.
#include <artel/artel.h>

#include <artel/base/random.h>

#include <cmath>

using artel::Value;

// Says how far up a value lies that 90 % of the targets stay below: a miss upwards costs nine times
// as much as one downwards.
Value pinball(Value prediction, Value target) {
  const Value off = artel::sub(target, artel::reshape(prediction, target.shape()));
  return artel::mean(artel::maximum(artel::mul_scalar(off, 0.9), artel::mul_scalar(off, -0.1)));
}

// The share of targets that are below the prediction: two sums for each batch, the number of those
// and the number of all.
Value count_below(Value prediction, Value target) {
  const Value below = artel::greater(artel::reshape(prediction, target.shape()), target);
  return artel::metric_sums(artel::sum(below), target.shape().elements());
}

// dense(x) * sigmoid(gate(x)), as text "gated UNITS".
artel::nn::Layer gated(int64_t units) {
  return {"gated", [units](artel::nn::Build& build, Value x) {
            namespace nn = artel::nn;
            const Value value = nn::named("value", nn::dense(units))(build, x);
            const Value gate = nn::named("gate", nn::dense(units))(build, x);
            return artel::mul(value, artel::unary("sigmoid", gate));
          }};
}

// Values whose noise grows with x.
artel::data::DatasetPtr noisy_samples(int64_t count, uint64_t seed) {
  artel::Random random(seed);
  artel::Tensor inputs({count, 1}), targets({count, 1});
  for (int64_t i = 0; i < count; ++i) {
    const float x = random.uniform(0, 1);
    inputs.values<float>()[static_cast<size_t>(i)] = x;
    targets.values<float>()[static_cast<size_t>(i)] = std::sin(6 * x) + x * random.normal();
  }
  return artel::data::tensor_dataset(inputs, targets);
}

int main(int argc, char** argv) try {
  artel::register_loss("pinball", pinball);
  artel::register_metric({.name = "below", .sums = count_below, .value = artel::ratio});
  artel::nn::register_layer("gated", "UNITS", [](artel::nn::LayerWords& words) {
    return gated(words.integer("units", 1, 1 << 20));
  });

  artel::Cluster cluster(argc, argv);
  const artel::Model model = artel::nn::parse_layers({"gated 32", "gated 32", "dense 1"});
  artel::Trainer trainer(cluster, model,
                         {.optimizer = artel::optim::adam(0.01),
                          .loss = "pinball",
                          .metrics = artel::metrics_by_name({"below"}),
                          .seed = 5});
  trainer.fit(noisy_samples(2000, 1), {.batch_size = 50, .epochs = 20});
  const artel::Evaluation test = trainer.evaluate(noisy_samples(2000, 2));
  const double below = test.metrics.front().value;
  artel::println("pinball {:.4f}, {:.1f} % below", test.loss, 100 * below);
  return std::abs(below - 0.9) < 0.05 ? 0 : 1;
} catch (const artel::Error& error) {
  artel::println("own_parts: {}", error.what());
  return 1;
}
