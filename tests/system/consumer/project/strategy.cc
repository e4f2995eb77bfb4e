// The strategy of docs/strategies.md: what it keeps must survive a checkpoint.
#include <algorithm>

#include "echo.h"

int main() {
  register_echo();
  artel::Tensor x({64, 4}), y({64}, artel::DType::i32);
  for (int64_t i = 0; i < 64; ++i) {
    y.values<int32_t>()[i] = static_cast<int32_t>(i % 2);
    x.values<float>()[i * 4 + i % 2] = 1;
  }
  artel::Cluster cluster;
  const auto trainer = [&](double share) {
    artel::TrainerOptions options = {.optimizer = artel::optim::sgd(0.1), .threads = 1};
    options.strategy = "echo";
    options.strategy_options = {EchoOptions{.share = share}, artel::LocalStepsOptions{}};
    return artel::Trainer(cluster, artel::nn::sequential({artel::nn::dense(2)}), options);
  };
  const auto train = [&](artel::Trainer& with, int64_t steps) {
    with.fit(x, y, {.batch_size = 16, .epochs = 9, .steps = steps});
    return with.weights()[0].tensor.clone();
  };
  const auto same = [](const artel::Tensor& a, const artel::Tensor& b) {
    return std::equal(a.values<float>().begin(), a.values<float>().end(),
                      b.values<float>().begin());
  };
  artel::Trainer whole = trainer(0.5), first = trainer(0.5), second = trainer(0.5),
                 other = trainer(0);
  train(first, 3);
  second.build({artel::DType::f32, {4}});
  second.restore(first.checkpoint());
  const artel::Tensor expected = train(whole, 6);
  const bool survives = same(train(second, 6), expected),
             matters = !same(train(other, 6), expected);
  artel::println("survives {}, matters {}", survives, matters);
  return survives && matters ? 0 : 1;
}
