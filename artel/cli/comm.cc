#include <CLI/CLI.hpp>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/workers.h"
#include "artel/cluster/cluster.h"
#include "artel/cluster/launcher.h"
#include "artel/comm/collectives/benchmark.h"
#include "artel/data/fetch.h"

namespace artel::cli {
namespace {

struct Arguments {
  int workers = 2;
  std::string algorithm = "ring";  // of `schedule`
  int hosts = 1;
  std::vector<std::string> algorithms = {"automatic"};  // of `bench`
  std::vector<uint64_t> sizes = {4 << 10, 64 << 10, 1 << 20, 16 << 20};
  double seconds = 0.3;
  bool calibrate = false, json = false;
  std::string plot;
};

void schedule(const Arguments& arguments) {
  require(arguments.hosts <= arguments.workers, ErrorKind::invalid_argument,
          "--hosts: got {}, expected at most one for each of the {} workers", arguments.hosts,
          arguments.workers);
  std::vector<int> hosts;  // of each worker: neighbours share one
  for (int worker = 0; worker < arguments.workers; ++worker)
    hosts.push_back(worker * arguments.hosts / arguments.workers);
  fmt::print("{}", comm::schedule_table(comm::algorithm_from_string(arguments.algorithm),
                                        arguments.workers, hosts));
}

std::string describe(const comm::LinkCost& link) {
  return fmt::format("{:.1f} us and {}/s", 1e6 * link.latency, format_bytes(link.bandwidth));
}

void print_json(const std::vector<comm::BenchmarkRow>& rows, int workers) {
  for (const comm::BenchmarkRow& row : rows) {
    const nlohmann::ordered_json line = {{"algorithm", comm::to_string(row.algorithm)},
                                         {"workers", workers},
                                         {"bytes", row.bytes},
                                         {"seconds", row.seconds},
                                         {"algorithm_bytes_per_second", row.algorithm_bandwidth},
                                         {"bus_bytes_per_second", row.bus_bandwidth}};
    println("{}", line.dump());
  }
}

void bench(const Arguments& arguments) {
  comm::BenchmarkOptions options = {.sizes = {}, .algorithms = {}, .seconds = arguments.seconds};
  options.sizes.assign(arguments.sizes.begin(), arguments.sizes.end());
  for (const std::string& name : arguments.algorithms)
    options.algorithms.push_back(comm::algorithm_from_string(name));
  if (!launched_group()) {
    const int code = launch_here({.workers = arguments.workers});
    if (code != 0) throw CLI::RuntimeError(code);
    return;
  }
  Cluster cluster(0, nullptr);
  comm::Group& group = *cluster.group();
  const std::vector<std::string> members = cluster.members();
  std::string cache;  // of rank 0
  if (group.rank() == 0) {
    cache = (data::data_folder() / "calibration").string();
    std::filesystem::create_directories(data::data_folder());
    if (arguments.calibrate) std::filesystem::remove(cache);
  }
  bool remembered = false;
  const comm::Calibration links = comm::calibrate(group, cache, &remembered);
  const std::vector<comm::BenchmarkRow> rows = comm::benchmark_all_reduce(group, options);
  if (group.rank() != 0) return;
  if (!arguments.plot.empty()) write_file_atomically(arguments.plot, comm::benchmark_svg(rows));
  if (arguments.json) return print_json(rows, group.size());
  for (const std::string& member : members) println("{}", member);
  println("calibration {} {}", remembered ? "remembered in" : "measured now, kept in", cache);
  println("a message costs {} inside a host", describe(links.inside));
  const std::vector<int> hosts = group.host_numbers();
  if (hosts.back() > 0) println("and {} between hosts", describe(links.between));
  fmt::print("{}", comm::benchmark_table(rows));
}

}  // namespace

void add_comm(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("comm", "Show and measure the exchange of data between workers");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  artel comm schedule --algorithm ring --workers 3\n"
      "  artel comm bench --workers 4 --algorithm ring --algorithm tree\n"
      "  mpirun -n 4 artel comm bench --plot allreduce.svg");
  const auto add_workers = [&](CLI::App* to) {
    to->add_option("-n,--workers", arguments->workers, "Number of workers")
        ->type_name("N")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
  };

  CLI::App* showing =
      command->add_subcommand("schedule", "Show the messages of an all-reduce, in order");
  showing
      ->add_option("--algorithm", arguments->algorithm,
                   "ring, tree, halving, hierarchical, or direct")
      ->capture_default_str();
  add_workers(showing);
  showing->add_option("--hosts", arguments->hosts, "Number of machines, for hierarchical")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  showing->footer("Example:\n  artel comm schedule --algorithm ring --workers 3");
  showing->callback([arguments] { schedule(*arguments); });

  CLI::App* measuring = command->add_subcommand(
      "bench", "Measure time and bandwidth of all-reduces, here or under mpirun or srun");
  add_workers(measuring);
  measuring->add_option("--algorithm", arguments->algorithms, "Algorithms; may be repeated")
      ->capture_default_str();
  measuring->add_option("--sizes", arguments->sizes, "Sizes such as 4KiB,16MiB")
      ->delimiter(',')
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false));
  measuring->add_option("--seconds", arguments->seconds, "Time per row")
      ->type_name("S")
      ->check(at_least(1e-3))
      ->capture_default_str();
  measuring->add_flag("--calibrate", arguments->calibrate,
                      "Measure the links again instead of using cached values");
  measuring->add_option("--plot", arguments->plot, "Write bandwidth over size as SVG")
      ->type_name("FILE");
  measuring->add_flag("--json", arguments->json, "Print one JSON object per row");
  measuring->footer("Example:\n  artel comm bench --workers 4 --sizes 4KiB,1MiB,64MiB");
  measuring->callback([arguments] { bench(*arguments); });
}

}  // namespace artel::cli
