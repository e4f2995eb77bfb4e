// artel_model_fuzz: random networks and graphs beside a plain reference.
//
//   artel_model_fuzz --seconds 20             new networks, a new seed each time
//   artel_model_fuzz --seconds 3600 --jobs 2  for long, on two cores
//   artel_model_fuzz --cases 1000 --seed 7    the same ones again
//   artel_model_fuzz FILE.toml ...            kept or printed cases
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <random>

#include "artel/base/file.h"
#include "artel/base/time.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/random_graph.h"

namespace artel::model_fuzz {
namespace {

struct Options {
  double seconds = 20;
  int64_t cases = 0;  // 0: as many as the time allows
  uint64_t seed = 0;
  int jobs = 1;
  std::string failures;  // folder for failing cases
  std::vector<std::string> files;
};

// What a job tells the one that watches it, in shared memory: a crash names its case, too.
struct Progress {
  std::atomic<int64_t> networks, graphs, wrong;
  std::atomic<uint64_t> current;
};

void report(const Options& options, uint64_t number, const NetworkCase& network,
            const std::string& wrong) {
  fmt::print("\ncase {}: {}\nreducing ...\n", number, wrong);
  std::fflush(stdout);
  const NetworkCase small = reduce(network);
  fmt::print("{}\n{}", what_is_wrong(small).value_or("(not wrong when it is run again)"),
             to_toml(small));
  if (!options.failures.empty()) {
    const std::string name = fmt::format("case_{}", number);
    write_files(small, options.failures, name);
    fmt::print("written to {}/{}.toml\n", options.failures, name);
  }
  std::fflush(stdout);
}

// Case `number` of a seed: a graph of ops every third time, else a network.
void run_case(const Options& options, uint64_t number, Progress& progress) {
  progress.current = number;
  if (number % 3 == 2) {
    if (const auto wrong = wrong_graph(mix_key({options.seed, number}))) {
      ++progress.wrong;
      fmt::print("\ncase {} (graph): {}\n", number, *wrong);
      std::fflush(stdout);
    }
    ++progress.graphs;
    return;
  }
  Random random{options.seed, number};
  const NetworkCase network = random_case(random);
  if (const auto wrong = what_is_wrong(network)) {
    ++progress.wrong;
    report(options, number, network, *wrong);
  }
  ++progress.networks;
}

void run_job(const Options& options, int job, Progress& progress) {
  const Clock::time_point begin = Clock::now();
  for (int64_t i = job; options.cases == 0 || i < options.cases; i += options.jobs) {
    if (options.cases == 0 && seconds_between(begin, Clock::now()) > options.seconds) break;
    run_case(options, static_cast<uint64_t>(i), progress);
  }
}

int run_files(const std::vector<std::string>& files) {
  int wrong = 0;
  for (const std::string& file : files) {
    const auto found = what_is_wrong(parse_case(read_file(file), file));
    fmt::print("{}: {}\n", file, found.value_or("right"));
    wrong += found ? 1 : 0;
  }
  return wrong;
}

int run(Options options) {
  if (!options.files.empty()) return run_files(options.files) > 0 ? 1 : 0;
  if (options.seed == 0) options.seed = std::random_device{}();
  if (!options.failures.empty()) std::filesystem::create_directories(options.failures);
  fmt::print("seed {}\n", options.seed);
  std::fflush(stdout);
  void* memory = ::mmap(nullptr, sizeof(Progress) * static_cast<size_t>(options.jobs),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* progress = static_cast<Progress*>(memory);
  std::vector<pid_t> jobs;
  for (int job = 0; job < options.jobs; ++job) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      run_job(options, job, progress[job]);
      std::fflush(stdout);
      ::_exit(0);
    }
    jobs.push_back(pid);
  }
  int64_t networks = 0, graphs = 0, wrong = 0;
  for (int job = 0; job < options.jobs; ++job) {
    int status = 0;
    ::waitpid(jobs[static_cast<size_t>(job)], &status, 0);
    networks += progress[job].networks;
    graphs += progress[job].graphs;
    wrong += progress[job].wrong;
    if (status != 0) {
      ++wrong;
      fmt::print("case {} ended its process (status {:#x}); --seed {} runs it again\n",
                 progress[job].current.load(), status, options.seed);
    }
  }
  fmt::print("{} networks and {} graphs, {} wrong\n", networks, graphs, wrong);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace artel::model_fuzz

int main(int argc, char** argv) {
  artel::model_fuzz::Options options;
  CLI::App app("Random networks and graphs beside a plain reference.");
  app.add_option("--seconds", options.seconds, "How long")->capture_default_str();
  app.add_option("--cases", options.cases, "How many instead");
  app.add_option("--seed", options.seed, "The same cases again; a new one each time if absent");
  app.add_option("--jobs", options.jobs, "Processes side by side")->capture_default_str();
  app.add_option("--failures", options.failures, "A folder for failing cases, reduced");
  app.add_option("files", options.files, "Cases to run instead of new ones");
  CLI11_PARSE(app, argc, argv);
  return artel::model_fuzz::run(std::move(options));
}
