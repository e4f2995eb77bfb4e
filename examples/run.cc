// run_example [FILE [FOLDER]]: which learning rate is best for a configuration? The runs are those
// of `artel train FILE`. With several workers (`mpirun -n 4 artel_run_example`) the code stays as
// it is.
#include <artel/artel.h>

int main(int argc, char** argv) try {
  const std::string file = argc > 1 ? argv[1] : "examples/fashion_mnist.toml";
  const std::string folder = argc > 2 ? argv[2] : "runs/rates";
  artel::Cluster cluster(argc, argv);
  for (const double rate : {0.02, 0.1}) {
    artel::Run run(file, {.out = fmt::format("{}/{}", folder, rate), .quiet = true});
    run.set("train.steps", 60);
    run.set("train.schedule", "constant");
    run.set("train.optimizer.lr", rate);
    const artel::RunResult result = run.train(cluster);
    if (cluster.rank() == 0)
      artel::println("{}: loss {:.4f}, test accuracy {:.4f}", run.folder().string(),
                     result.fit.last.loss, run.evaluate().accuracy);
  }
} catch (const artel::Error& error) {
  artel::println("run_example: {}", error.what());
  return 1;
}
