// Measurements of parameter servers; each prints one line of JSON.
//   artel_bench_ps dense FLOATS ROUNDS        push and pull of all values, 2 workers, 1 server
//   artel_bench_ps memcpy FLOATS ROUNDS       copies of as many bytes, by 2 threads
//   artel_bench_ps keys COUNT ROUNDS          push and pull of scattered keys, 1 worker, 1 server
//   artel_bench_ps delay FILE TAU PASSES [OBJECTIVE]
//                                             sparse logistic regression, 4 workers, 2 servers: so
//                                             many passes and until the objective is reached
//   artel_bench_ps filters FILE PASSES FILTERS...
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/data/tables/column_blocks.h"
#include "artel/data/tables/libsvm.h"
#include "artel/ps/delayed_proximal.h"
#include "artel/ps/server.h"

namespace artel {
namespace {

using Json = nlohmann::json;

std::string unique_address() { return fmt::format("bench-ps-{}", ::getpid()); }

// Runs body(rank) in one process per rank; rank 0 is this one.
void in_processes(int size, const std::function<void(int rank)>& body) {
  std::vector<pid_t> children;
  for (int rank = 1; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      body(rank);
      ::_exit(0);
    }
    children.push_back(child);
  }
  body(0);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
}

comm::Group join(const std::string& address, int rank, int size) {
  return comm::Group::connect({.rank = rank, .size = size, .address = address});
}

ps::Setup plain_setup(uint64_t keys, bool together, int workers) {
  return {.segments = {{.name = "weights", .keys = {0, keys}}},
          .rule = {{"name", "sgd"}},
          .together = together,
          .lanes = workers,
          .delay = together ? std::optional<int64_t>(0) : std::nullopt};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void dense(uint64_t floats, int rounds) {
  constexpr int kWorkers = 2;
  const std::string address = unique_address();
  in_processes(kWorkers + 1, [&](int rank) {
    const auto world = std::make_shared<comm::Group>(join(address, rank, kWorkers + 1));
    comm::Group own = world->split(rank < kWorkers ? 0 : 1);
    if (rank == kWorkers) return ps::Server(world, {.workers = kWorkers}).run();
    ps::Client client(world, kWorkers, ps::ShardMap::even(floats, 1));
    if (rank == 0) client.set_up(plain_setup(floats, true, kWorkers));
    own.barrier();
    const comm::SharedBytes memory = world->allocate(floats * sizeof(float));
    auto* const gradient = reinterpret_cast<float*>(memory.get());
    std::fill_n(gradient, floats, 1e-6f);
    std::vector<float> values(floats);
    constexpr uint64_t kBucket = 1 << 20;  // floats, as in training
    std::vector<double> seconds;
    int64_t iteration = 0;
    for (int round = 0; round < rounds + 2; ++round) {
      own.barrier();
      const Clock::time_point begin = Clock::now();
      std::vector<ps::Client::Ticket> tickets;
      ++iteration;
      for (uint64_t first = 0; first < floats; first += kBucket) {
        const uint64_t last = std::min(floats, first + kBucket);
        tickets.push_back(client.start(
            {.flags = last == floats ? uint32_t{ps::finishes} : 0,
             .iteration = iteration,
             .keys = {first, last},
             .values = {gradient + first},
             .lanes = {rank, rank + 1},
             .learning_rate = 0.1f,
             .sink = [&, first](size_t offset, std::span<const float> part, bool) {
               std::memcpy(values.data() + first + offset, part.data(), part.size_bytes());
             }}));
      }
      for (const auto& ticket : tickets) client.wait(ticket);
      if (round >= 2) seconds.push_back(seconds_between(begin, Clock::now()));
    }
    client.leave();
    const double bytes = 2.0 * kWorkers * static_cast<double>(floats) * sizeof(float);
    if (rank == 0)
      fmt::print("{}\n", Json({{"gigabytes_per_second", bytes / median(seconds) / 1e9}}).dump());
  });
}

void copies(uint64_t floats, int rounds) {
  // Each thread copies what a worker pushes and pulls.
  std::vector<double> seconds;
  std::vector<std::vector<float>> from(2, std::vector<float>(floats, 1)), to = from;
  for (int round = 0; round < rounds + 2; ++round) {
    const Clock::time_point begin = Clock::now();
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        std::memcpy(to[t].data(), from[t].data(), floats * sizeof(float));
        std::memcpy(from[t].data(), to[t].data(), floats * sizeof(float));
      });
    for (std::thread& thread : threads) thread.join();
    if (round >= 2) seconds.push_back(seconds_between(begin, Clock::now()));
  }
  const double bytes = 4.0 * static_cast<double>(floats) * sizeof(float);
  fmt::print("{}\n", Json({{"gigabytes_per_second", bytes / median(seconds) / 1e9}}).dump());
}

void small_keys(uint64_t count, int rounds) {
  constexpr uint64_t kKeys = 10'000'000;
  const std::string address = unique_address();
  in_processes(2, [&](int rank) {
    const auto world = std::make_shared<comm::Group>(join(address, rank, 2));
    comm::Group own = world->split(rank);
    if (rank == 1) return ps::Server(world, {.workers = 1}).run();
    ps::Client client(world, 1, ps::ShardMap::even(kKeys, 1));
    client.set_up(plain_setup(kKeys, false, 1));
    std::vector<double> seconds;
    std::mt19937_64 random(7);
    std::vector<float> values(count, 1e-3f);
    for (int round = 0; round < rounds + 2; ++round) {
      std::vector<uint64_t> keys(count);
      for (uint64_t& key : keys) key = random() % kKeys;
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      const Clock::time_point begin = Clock::now();
      client.run({.flags = ps::finishes,
                  .iteration = round + 1,
                  .keys = {0, kKeys},
                  .list = keys,
                  .values = {values.data()},
                  .learning_rate = 0.1f,
                  .sink = [&](size_t offset, std::span<const float> part, bool) {
                    std::copy(part.begin(), part.end(),
                              values.begin() + static_cast<std::ptrdiff_t>(offset));
                  }});
      // A pair pushed and a pair pulled, on two cores.
      if (round >= 2)
        seconds.push_back(seconds_between(begin, Clock::now()) / static_cast<double>(keys.size()));
    }
    client.leave();
    fmt::print("{}\n", Json({{"pairs_per_second_and_core", 2 / median(seconds) / 2}}).dump());
  });
}

// Emulates one machine per worker: the time that an iteration would take there is spent sleeping.
// The slowed one has a quota of half the time, in periods of 100 ms.
class Machine {
 public:
  Machine(double seconds_per_visit, bool slowed)
      : seconds_(seconds_per_visit), slowed_(slowed), begin_(Clock::now()) {}

  void visit() const {
    constexpr double kPeriod = 0.1, kQuota = 0.05;
    double left = seconds_;
    while (left > 0) {
      double now = seconds_;
      if (slowed_) {
        const double at = std::fmod(seconds_between(begin_, Clock::now()), kPeriod);
        if (at >= kQuota) {
          rest(kPeriod - at);
          continue;
        }
        now = std::min(left, kQuota - at);
      }
      now = std::min(now, left);
      rest(now);
      left -= now;
    }
  }

 private:
  static void rest(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  double seconds_;
  bool slowed_;
  Clock::time_point begin_;
};

struct Trial {
  std::string file;
  ps::DelayedProximalOptions options;
  bool emulated = false;  // one machine per worker, the last one slowed
  int64_t passes = 0;     // at least this many, then until the objective is reached
  double aim = 1e30;
};

struct Curve {
  std::vector<std::pair<double, double>> objective;  // seconds, value
  ps::PassReport last;
  int64_t sent_bytes = 0, received_bytes = 0;  // of all workers
  double waiting_share = 0;  // of the workers that are not slowed, when shares have settled
};

// 4 workers and 2 servers as threads.
Curve solve(const Trial& trial) {
  constexpr int kWorkers = 4, kServers = 2, kBlocks = 64;
  constexpr double kMachineSeconds = 0.008;  // of an iteration with an equal share of the samples
  const data::SparseFile file(map_file(trial.file));
  const auto features = static_cast<uint64_t>(file.features());
  const std::vector<uint64_t> cuts = data::balanced_cuts(file, kBlocks);
  const std::string address = unique_address();
  Curve curve;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorkers + kServers; ++rank)
    threads.emplace_back([&, rank] {
      const auto world = std::make_shared<comm::Group>(join(address, rank, kWorkers + kServers));
      comm::Group own = world->split(rank < kWorkers ? 0 : 1);
      if (rank >= kWorkers) return ps::Server(world, {.workers = kWorkers}).run();
      const bool slowed = trial.emulated && rank + 1 == kWorkers;
      const auto path = std::filesystem::temp_directory_path() / (address + std::to_string(rank));
      const auto samples_of = [&](int64_t first, int64_t last) {
        const auto blocks =
            std::make_shared<const data::ColumnBlocks>(file, first, last, cuts, path, features);
        std::filesystem::remove(path);
        const double share =
            static_cast<double>(last - first) / static_cast<double>(file.size()) * kWorkers;
        // An iteration visits its block twice: for the gradient, and with the new weights.
        const Machine machine(trial.emulated ? kMachineSeconds * share / 2 : 0, slowed);
        return ps::SparseSamples{.targets = blocks->targets(),
                                 .block = [blocks, machine](int block) -> ps::SparseBlock {
                                   machine.visit();
                                   const data::ColumnBlock& part = blocks->block(block);
                                   return {part.features, part.starts, part.rows, part.values};
                                 }};
      };
      const ps::SparseProblem problem = {
          .cuts = cuts, .constant = features, .size = file.size(), .samples = samples_of};
      ps::Client client(world, kWorkers,
                        ps::ShardMap::even(ps::problem_keys(problem, kWorkers), kServers));
      ps::PassReport settled;
      ps::DelayedProximal solver(client, own, problem, trial.options);
      ps::PassReport last;
      for (bool wish = false; !solver.done();) {
        last = solver.next(wish);
        if (rank == 0) curve.objective.emplace_back(last.seconds, last.objective);
        const bool moved = last.moves > settled.moves && last.pass < trial.passes;
        if (last.pass <= trial.passes / 2 || moved) settled = last;
        wish = rank == 0 && last.pass >= trial.passes && last.objective <= trial.aim;
      }
      const std::lock_guard lock(mutex);
      if (rank == 0) curve.last = last;
      curve.sent_bytes += last.sent_bytes;
      curve.received_bytes += last.received_bytes;
      if (trial.emulated && !slowed)
        curve.waiting_share += (last.seconds_waited - settled.seconds_waited) /
                               (last.seconds - settled.seconds) / (kWorkers - 1);
      client.leave();
    });
  for (std::thread& thread : threads) thread.join();
  return curve;
}

Json to_json(const Curve& curve) {
  return {{"objective", curve.objective},         {"final", curve.last.objective},
          {"nonzeros", curve.last.nonzeros},      {"passes", curve.last.pass},
          {"waiting_share", curve.waiting_share}, {"moves", curve.last.moves},
          {"sent_bytes", curve.sent_bytes},       {"received_bytes", curve.received_bytes}};
}

int run(const std::vector<std::string>& words) {
  const std::string& mode = words.at(0);
  if (mode == "dense") {
    dense(std::stoull(words.at(1)), std::stoi(words.at(2)));
  } else if (mode == "memcpy") {
    copies(std::stoull(words.at(1)), std::stoi(words.at(2)));
  } else if (mode == "keys") {
    small_keys(std::stoull(words.at(1)), std::stoi(words.at(2)));
  } else if (mode == "delay") {
    Trial trial = {.file = words.at(1), .emulated = true, .passes = std::stoll(words.at(3))};
    if (words.size() > 4) trial.aim = std::stod(words[4]);
    trial.options = {.penalty = {.l1 = 1},
                     .delay = std::stoll(words.at(2)),
                     .passes = 3 * trial.passes,
                     .seed = 5};
    fmt::print("{}\n", to_json(solve(trial)).dump());
  } else if (mode == "filters") {
    Trial trial = {.file = words.at(1), .passes = std::stoll(words.at(2))};
    trial.options = {.penalty = {.l1 = 1}, .delay = 4, .passes = trial.passes, .seed = 5};
    ps::FilterOptions& filters = trial.options.filters;
    filters = {.key_cache = false, .changes = false};
    for (size_t i = 3; i < words.size(); ++i) {
      if (words[i] == "cache") filters.key_cache = true;
      if (words[i] == "changes") filters.changes = true;
      if (words[i] == "kkt") filters.kkt = 0.5;
      if (words[i] == "skip") filters.random_skip = 0.1;
      if (words[i] == "fp16" || words[i] == "int8") filters.compress = words[i];
    }
    fmt::print("{}\n", to_json(solve(trial)).dump());
  } else {
    fail(ErrorKind::invalid_argument, "no measurement is called '{}'", mode);
  }
  return 0;
}

}  // namespace
}  // namespace artel

int main(int argc, char** argv) {
  try {
    return artel::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "artel_bench_ps: {}\n", error.what());
    return 1;
  }
}
