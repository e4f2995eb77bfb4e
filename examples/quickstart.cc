// quickstart [FOLDER]: a network for Fashion-MNIST in twenty lines. With several workers
// (`mpirun -n 4 artel_quickstart`) the code stays as it is.
#include <artel/artel.h>

int main(int argc, char** argv) try {
  artel::Cluster cluster(argc, argv);
  const auto [train, test] =
      artel::data::fashion_mnist(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist");

  namespace nn = artel::nn;
  const artel::Model model =
      nn::sequential({nn::flatten(), nn::dense(256), nn::relu(), nn::dropout(0.2), nn::dense(10)});

  artel::Trainer trainer(cluster, model,
                         {.optimizer = artel::optim::sgd(0.02, {.momentum = 0.9}),
                          .schedule = {.shape = artel::optim::Cosine{}}});
  trainer.fit(train, {.batch_size = 64 * cluster.size(),
                      .epochs = 2,
                      .validation = test,
                      .after_epoch = {[](const artel::TrainingState& state) {
                        artel::println("epoch {}: loss {:.4f}, test accuracy {:.4f}", state.epoch,
                                       state.loss, state.test_accuracy);
                        return true;
                      }}});
  artel::println("accuracy {:.4f}", trainer.evaluate(test).accuracy);
  artel::checkpoint::save_weights("quickstart.safetensors", trainer.weights());
} catch (const artel::Error& error) {
  artel::println("quickstart: {}", error.what());
  return 1;
}
