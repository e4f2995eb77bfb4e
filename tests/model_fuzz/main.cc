// artel_model_fuzz: compares random networks and graphs with a plain reference.
//
//   artel_model_fuzz --seconds 20             new networks, a new seed each time
//   artel_model_fuzz --seconds 3600 --jobs 2  for long, on two cores
//   artel_model_fuzz --kind meshes            networks for several workers only
//   artel_model_fuzz --cases 1000 --seed 7    the same ones again
//   artel_model_fuzz --seed 7 --case 12       one of them
//   artel_model_fuzz --device opencl:0        networks on a device
//   artel_model_fuzz FILE ...                 kept or written cases, .toml or .graph
//   artel_model_fuzz --coverage 2000          finds layers and ops that do not occur in N cases
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "artel/base/log.h"
#include "artel/base/time.h"
#include "artel/exec/devices.h"
#include "tests/model_fuzz/any_case.h"
#include "tests/model_fuzz/coverage.h"
#include "tests/model_fuzz/moving_lanes.h"
#include "tests/model_fuzz/weighted_losses.h"

namespace artel::model_fuzz {
namespace {

struct Options {
  double seconds = 20;
  int64_t cases = 0;       // 0: as many as the time allows
  int64_t only_case = -1;  // of the seed
  int64_t coverage = 0;
  uint64_t seed = 0;
  int jobs = 1;
  double patience = 600;  // seconds for one case
  Pretence pretence;
  std::string kind = "all";
  std::string device;    // networks are trained there, one after another in this process
  std::string failures;  // folder for failing cases
  std::string write;     // folder for all cases, which are not run
  std::vector<std::string> files;

  AnyCase make(uint64_t number) const { return make_case(seed, number, kind); }
  // The options that run a case again.
  std::string again(uint64_t number) const {
    return fmt::format("{}--seed {} --case {}", kind == "all" ? "" : "--kind " + kind + " ", seed,
                       number);
  }
};

// A generator whose networks are refused tests nothing.
constexpr double kMostRefused = 0.02;

// The report of a job to its supervisor, in shared memory, so that even a crash can be attributed
// to its case.
struct Progress {
  std::atomic<int64_t> networks, graphs, motions, meshes, wrong, refused;
  std::atomic<uint64_t> current;
};

void report(const Options& options, uint64_t number, const AnyCase& any, const std::string& wrong,
            bool apart) {
  fmt::print("\ncase {} ({}): {}\nreducing ...\n", number, options.again(number), wrong);
  std::fflush(stdout);
  const AnyCase small = reduce(any, wrong, apart);
  fmt::print("{}\n{}",
             (apart ? wrong_apart(small) : check(small).wrong)
                 .value_or("(not wrong when it is run again)"),
             to_text(small));
  if (!options.failures.empty())
    fmt::print("written to {}\n",
               write_case(small, options.failures, fmt::format("case_{}", number)));
  std::fflush(stdout);
}

void run_case(const Options& options, uint64_t number, Progress& progress) {
  progress.current = number;
  const AnyCase any = options.make(number);
  const Verdict verdict = check(any);
  if (verdict.wrong) {
    ++progress.wrong;
    report(options, number, any, *verdict.wrong, false);
  }
  if (verdict.refused) {
    constexpr int64_t kPrinted = 3;
    if (++progress.refused <= kPrinted)
      fmt::print("case {} ({}) is refused: {}\n", number, options.again(number), *verdict.refused);
  }
  ++(std::holds_alternative<GraphCase>(any)    ? progress.graphs
     : std::holds_alternative<MotionCase>(any) ? progress.motions
                                               : progress.networks);
  if (is_mesh(any) && !verdict.wrong && !verdict.refused) ++progress.meshes;
}

// Cases `first`, first + jobs, ...
void run_job(const Options& options, int64_t first, Clock::time_point begin, Progress& progress) {
  if (options.only_case >= 0) return run_case(options, static_cast<uint64_t>(first), progress);
  for (int64_t i = first; options.cases == 0 || i < options.cases; i += options.jobs) {
    if (options.cases == 0 && seconds_between(begin, Clock::now()) > options.seconds) break;
    run_case(options, static_cast<uint64_t>(i), progress);
  }
}

int run_files(const std::vector<std::string>& files) {
  int wrong = 0;
  for (const std::string& file : files) {
    const Verdict verdict = check(read_case(file));
    const auto refused = [](const std::string& why) { return "refused: " + why; };
    fmt::print("{}: {}\n", file,
               verdict.wrong     ? *verdict.wrong
               : verdict.refused ? refused(*verdict.refused)
                                 : "right");
    wrong += verdict.wrong || verdict.refused ? 1 : 0;
  }
  return wrong;
}

// Drivers do not survive a fork, so there are no jobs. Fails without a driver, because tools/setup
// installs one. The exit code says that the test was skipped if ARTEL_TESTS_WITHOUT_OPENCL is set.
int run_on_device(const Options& options) {
  constexpr int kSkipped = 77;
  Device* device = nullptr;
  try {
    device = &device_by_name(options.device);
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
    const bool skips = std::getenv("ARTEL_TESTS_WITHOUT_OPENCL") != nullptr;
    return skips && error.kind() == ErrorKind::unsupported ? kSkipped : 1;
  }
  int64_t right = 0, wrong = 0, refused = 0;
  const Clock::time_point begin = Clock::now();
  const auto goes_on = [&](int64_t number) {
    return options.cases > 0 ? number < options.cases
                             : seconds_between(begin, Clock::now()) < options.seconds;
  };
  const int64_t first = std::max<int64_t>(0, options.only_case);
  for (int64_t i = first; options.only_case >= 0 ? i == first : goes_on(i); ++i) {
    const AnyCase any = make_case(options.seed, static_cast<uint64_t>(i), "networks");
    const Verdict verdict = check_on(*device, std::get<NetworkCase>(any));
    if (verdict.wrong)
      fmt::print("case {} (--device {} --seed {} --case {}): {}\n{}", i, options.device,
                 options.seed, i, *verdict.wrong, to_text(any));
    if (verdict.refused) fmt::print("case {} is refused: {}\n", i, *verdict.refused);
    ++(verdict.wrong ? wrong : verdict.refused ? refused : right);
    std::fflush(stdout);
  }
  fmt::print("{}: {} networks right, {} wrong, {} refused\n", device->name(), right, wrong,
             refused);
  return wrong > 0 || right == 0 || refused > right / 10 ? 1 : 0;
}

// Starts the jobs and waits for them, prints their progress, ends a job that hangs at a case, and
// continues after a case that has ended its job.
class Supervisor {
 public:
  static constexpr double kBetweenLines = 60, kReducing = 600;  // seconds

  explicit Supervisor(const Options& options)
      : options_(options), jobs_(static_cast<size_t>(options.jobs)), seen_(jobs_.size()) {
    void* memory = ::mmap(nullptr, sizeof(Progress) * jobs_.size(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    progress_ = static_cast<Progress*>(memory);
  }

  // Returns whether all cases were right.
  bool run() {
    using namespace std::chrono_literals;
    for (size_t job = 0; job < jobs_.size(); ++job)
      start(job, std::max<int64_t>(0, options_.only_case) + static_cast<int64_t>(job));
    size_t running = jobs_.size();
    while (running > 0) {
      std::this_thread::sleep_for(20ms);
      for (size_t job = 0; job < jobs_.size(); ++job)
        if (jobs_[job] > 0 && ended(job)) --running;
      if (seconds_between(told_, Clock::now()) < kBetweenLines) continue;
      told_ = Clock::now();
      tell();
    }
    tell();
    const int64_t refused = sum(&Progress::refused), networks = sum(&Progress::networks);
    const bool too_many =
        refused > 3 && static_cast<double>(refused) > kMostRefused * static_cast<double>(networks);
    if (too_many)
      fmt::print("{} of {} networks were refused, expected {:.0f} % at most\n", refused, networks,
                 100 * kMostRefused);
    return sum(&Progress::wrong) + crashed_ == 0 && !too_many;
  }

 private:
  struct Seen {
    uint64_t current = 0;
    Clock::time_point since = Clock::now();
  };

  void start(size_t job, int64_t first) {
    std::fflush(stdout);
    const pid_t pid = ::fork();
    if (pid == 0) {
      run_job(options_, first, begin_, progress_[job]);
      std::fflush(stdout);
      ::_exit(0);
    }
    jobs_[job] = pid;
  }

  // True if a job has ended for good.
  bool ended(size_t job) {
    const uint64_t current = progress_[job].current;
    if (current != seen_[job].current) seen_[job] = {current};
    const bool hangs = seconds_between(seen_[job].since, Clock::now()) > options_.patience;
    if (hangs) ::kill(jobs_[job], SIGKILL);
    int status = 0;
    if (::waitpid(jobs_[job], &status, hangs ? 0 : WNOHANG) == 0) return false;
    jobs_[job] = 0;
    if (status == 0) return true;
    ++crashed_;
    fmt::print("case {} ({}) {} (status {:#x})\n", current, options_.again(current),
               hangs ? "hung" : "ended its process", status);
    reduce_apart(current);
    if (options_.only_case >= 0) return true;
    start(job, static_cast<int64_t>(current) + options_.jobs);
    return false;
  }

  // In a process of its own, which has run nothing before.
  void reduce_apart(uint64_t number) const {
    std::fflush(stdout);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const AnyCase any = options_.make(number);
      if (const auto wrong = wrong_apart(any)) report(options_, number, any, *wrong, true);
      std::fflush(stdout);
      ::_exit(0);
    }
    const Clock::time_point since = Clock::now();
    while (::waitpid(pid, nullptr, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (seconds_between(since, Clock::now()) < kReducing) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      return;
    }
  }

  int64_t sum(std::atomic<int64_t> Progress::*what) const {
    int64_t all = 0;
    for (size_t job = 0; job < jobs_.size(); ++job) all += (progress_[job].*what).load();
    return all;
  }

  void tell() const {
    fmt::print(
        "{} networks, {} graphs and {} motions, {} wrong, {} refused, {} clean meshes, "
        "after {:.0f} s\n",
        sum(&Progress::networks), sum(&Progress::graphs), sum(&Progress::motions),
        sum(&Progress::wrong) + crashed_, sum(&Progress::refused), sum(&Progress::meshes),
        seconds_between(begin_, Clock::now()));
    std::fflush(stdout);
  }

  const Options& options_;
  std::vector<pid_t> jobs_;  // 0: it has ended
  Progress* progress_;
  std::vector<Seen> seen_;
  int64_t crashed_ = 0;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point told_ = begin_;
};

int run(Options options) {
  register_moving_lanes();
  register_weighted_losses();
  pretend(options.pretence);
  set_log_level(LogLevel::error);
  set_patience(std::min(60.0, options.patience));
  if (!options.files.empty()) return run_files(options.files) > 0 ? 1 : 0;
  if (options.seed == 0) options.seed = std::random_device{}();
  if (options.only_case >= 0) options.jobs = 1;
  for (const std::string& folder : {options.failures, options.write})
    if (!folder.empty()) std::filesystem::create_directories(folder);
  fmt::print("seed {}\n", options.seed);
  std::fflush(stdout);
  if (options.coverage > 0) {
    const std::vector<std::string> missing = never_made(options.seed, options.coverage);
    for (const std::string& what : missing)
      fmt::print("{} does not occur among {} cases\n", what, options.coverage);
    return missing.empty() ? 0 : 1;
  }
  if (!options.device.empty()) return run_on_device(options);
  if (!options.write.empty()) {
    const int64_t first = std::max<int64_t>(0, options.only_case);
    for (int64_t i = first; i < std::max(options.cases, first + 1); ++i)
      fmt::print("{}\n", write_case(options.make(static_cast<uint64_t>(i)), options.write,
                                    fmt::format("case_{}", i)));
    return 0;
  }
  return Supervisor(options).run() ? 0 : 1;
}

}  // namespace
}  // namespace artel::model_fuzz

int main(int argc, char** argv) {
  artel::model_fuzz::Options options;
  CLI::App app("Random networks and graphs beside a plain reference.");
  app.add_option("--seconds", options.seconds, "How long")->capture_default_str();
  app.add_option("--cases", options.cases, "How many instead");
  app.add_option("--case", options.only_case, "Only this one of a seed");
  app.add_option("--kind", options.kind, "Which cases")
      ->check(CLI::IsMember(artel::model_fuzz::kKinds))
      ->capture_default_str();
  app.add_option("--device", options.device, "Train networks there, such as opencl:0");
  app.add_option("--seed", options.seed, "The same cases again; a new one each time if absent");
  app.add_option("--jobs", options.jobs, "Processes side by side")->capture_default_str();
  app.add_option("--failures", options.failures, "A folder for failing cases, reduced");
  app.add_option("--write", options.write, "A folder for all cases, which are not run");
  app.add_option("--coverage", options.coverage,
                 "Find layers and ops that do not occur in N cases");
  app.add_option("--patience", options.patience, "Seconds after which a case hangs")
      ->capture_default_str();
  app.add_option("--pretend", options.pretence.fault, "A fault of this program's own, to test it")
      ->check(CLI::IsMember({"wrong", "crash", "hang"}));
  app.add_option("--at", options.pretence.at, "Pretend it where a case's text contains this");
  app.add_option("files", options.files, "Cases to run instead of new ones");
  CLI11_PARSE(app, argc, argv);
  return artel::model_fuzz::run(std::move(options));
}
