// artel_run_worker FILE FOLDER...: trains a run in each folder and prints its accuracy. A single
// run joins the others by itself; several runs share a cluster.
#include <artel/artel.h>

int main(int argc, char** argv) try {
  std::optional<artel::Cluster> cluster;
  if (argc > 3) cluster.emplace(argc, argv);
  for (int i = 2; i < argc; ++i) {
    artel::Run run(argv[1], {.out = argv[i], .quiet = true});
    const artel::RunResult result = cluster ? run.train(*cluster) : run.train();
    if (result.rank >= 0)
      artel::println("worker {}: accuracy {:.4f}", result.rank, run.evaluate().accuracy);
    else
      artel::println("server");
  }
} catch (const artel::Error& error) {
  artel::println("{}", error.what());
  return 1;
}
