#include <artel/artel.h>

int main() {
  artel::Tensor x({64, 4}), y({64}, artel::DType::i32);
  for (int64_t i = 0; i < 64; ++i) {
    y.values<int32_t>()[i] = static_cast<int32_t>(i % 2);
    x.values<float>()[i * 4 + i % 2] = 1;
  }
  artel::Cluster cluster;
  artel::Trainer trainer(cluster, artel::nn::sequential({artel::nn::dense(2)}));
  trainer.fit(x, y, {.batch_size = 32, .epochs = 20});
  const double accuracy = trainer.evaluate(artel::data::tensor_dataset(x, y)).accuracy;
  artel::println("accuracy {:.2f}", accuracy);

  artel::Run run(artel::RunConfig{});
  run.set("train.epochs", 3);
  return accuracy == 1 && run.config().train.epochs == 3 ? 0 : 1;
}
