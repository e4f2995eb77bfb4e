#include "artel/ps/delayed_proximal.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <numeric>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/time.h"

namespace artel::ps {
namespace {

constexpr uint64_t kSums = 16;        // keys behind the features
constexpr int64_t kMostAhead = 1024;  // where the delay has no limit
// Filters that may be wrong let everything pass every so many passes.
constexpr int64_t kHonestEvery = 10;

// The slope of the loss, and its value, at a margin.
struct Loss {
  bool logistic;

  float slope(float target, float margin) const {
    if (!logistic) return margin - target;
    return -target / (1 + std::exp(target * margin));
  }
  double value(float target, float margin) const {
    if (!logistic) return 0.5 * (margin - target) * static_cast<double>(margin - target);
    const double x = -static_cast<double>(target) * margin;
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  float curvature() const { return logistic ? 0.25f : 1.0f; }
};

// An iteration that was pushed and not yet answered.
struct Iteration {
  int block = -1;  // -1: sums of a pass
  int64_t pass = 0;
  Client::Ticket ticket;
  std::vector<float> pushed;
  std::vector<uint8_t> keep;
  std::vector<float> answer;  // changes of the weights; or sums
  Report report;              // of the servers, at worker 0
  bool done = false;
};

// Waits for the answers in order, on a thread of its own, so that those that have come can be used
// at once.
class Receiver {
 public:
  explicit Receiver(Client& client) : client_(client), thread_([this] { work(); }) {}
  ~Receiver() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void expect(const std::shared_ptr<Iteration>& iteration) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(iteration);
    }
    changed_.notify_all();
  }
  bool is_done(const Iteration& iteration) {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    return iteration.done;
  }
  void wait(const Iteration& iteration) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return iteration.done || failure_; });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::shared_ptr<Iteration> next = waiting_.front();
      lock.unlock();
      std::exception_ptr failure;
      try {
        client_.wait(next->ticket);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      waiting_.pop_front();
      next->done = true;
      if (failure) failure_ = failure;
      changed_.notify_all();
      if (failure_) return;
    }
  }

  Client& client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Iteration>> waiting_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

class Solver {
 public:
  Solver(Client& client, comm::Group& workers, const SparseProblem& problem,
         const DelayedProximalOptions& options)
      : client_(client),
        problem_(problem),
        options_(options),
        loss_{options.loss == "logistic"},
        workers_(workers.size()),
        margins_(problem.targets.size(), 0.0f),
        slopes_(problem.targets.size()),
        stale_(problem.targets.size(), 1) {
    require(options.loss == "logistic" || options.loss == "squared", ErrorKind::invalid_argument,
            "[ddpg] loss: got '{}', expected logistic or squared", options.loss);
    for (const int block : options.order)
      require(block >= 0 && block < problem.blocks(), ErrorKind::invalid_argument,
              "[ddpg] order: got block {}, expected 0 to {}", block, problem.blocks() - 1);
    client_.set_codec(options.filters.compress);
    if (client.worker() == 0) set_up();
    workers.barrier({.label = "servers are ready"});
    for (int block = 0; block < problem.blocks(); ++block)
      weights_.emplace_back(problem.block(block).features.size(), 0.0f);
    lost_ = weights_;
    make_filters();
    receiver_ = std::make_unique<Receiver>(client);
  }

  PassReport run(const AfterPass& after_pass) {
    for (int block = 0; block < problem_.blocks(); ++block) push_curvature(block);
    double before = 0;
    for (int64_t pass = 1;; ++pass) {
      for (const int block : order_of(pass)) push_gradient(block, pass);
      push_sums(pass);
      // The sums of this pass may still be on their way; those that have come are looked at.
      const bool last = pass >= std::min(options_.passes, last_pass_);
      absorb(last ? 0 : ahead() - 1, last);
      while (!reports_.empty()) {
        report_ = reports_.front();
        reports_.pop_front();
        const double change = std::abs(before - report_.loss) / std::max(1e-30, report_.loss);
        before = report_.loss;
        if (options_.tolerance > 0 && report_.pass > 1 && change < options_.tolerance) wish_ = true;
        if (after_pass && !after_pass(report_)) wish_ = true;
      }
      if (last) return report_;
    }
  }

  std::vector<float> weights() {
    std::vector<float> all(problem_.features());
    client_.run({.kind = Kind::pull,
                 .keys = {0, all.size()},
                 .sink = [&](size_t offset, std::span<const float> values, bool) {
                   std::copy(values.begin(), values.end(),
                             all.begin() + static_cast<std::ptrdiff_t>(offset));
                 }});
    return all;
  }

 private:
  void set_up() {
    const uint64_t features = problem_.features();
    const uint64_t penalised = problem_.constant.value_or(features);
    Setup setup = {.segments = {{.name = "weights", .keys = {0, penalised}}},
                   .together = true,
                   .lanes = workers_,
                   .delay = options_.delay,
                   .compress = options_.filters.compress};
    Proximal penalty = options_.penalty;
    penalty.curvature = true;
    setup.rule = optim::write_options("proximal", penalty);
    if (penalised < features)
      setup.segments.push_back(
          {.name = "constant", .keys = {penalised, features}, .decays = false});
    setup.segments.push_back({.name = "sums",
                              .keys = {client_.map().keys() - kSums, client_.map().keys()},
                              .kind = SegmentKind::sum});
    client_.set_up(setup);
  }

  void make_filters() {
    const double part = options_.penalty.l1 / workers_;
    const FilterOptions& filters = options_.filters;
    if (filters.kkt > 0) filters_.push_back(make_kkt_filter(filters.kkt * part));
    if (filters.random_skip > 0)
      filters_.push_back(
          make_random_skip(filters.random_skip * part,
                           mix_key({options_.seed, static_cast<uint64_t>(client_.worker())})));
  }

  // Iterations that may be unanswered when another begins.
  int64_t ahead() const {
    return std::max<int64_t>(1, std::min(options_.delay.value_or(kMostAhead), kMostAhead));
  }

  std::vector<int> order_of(int64_t pass) const {
    if (!options_.order.empty()) return options_.order;
    std::vector<int> order(static_cast<size_t>(problem_.blocks()));
    std::iota(order.begin(), order.end(), 0);
    Random random{options_.seed, hash_name("blocks"), static_cast<uint64_t>(pass)};
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
  }

  Request request_for(const std::shared_ptr<Iteration>& iteration, KeyRange keys,
                      std::optional<std::span<const uint64_t>> list) {
    iteration->answer.assign(list ? list->size() : keys.size(), 0.0f);
    return {.flags = finishes,
            .iteration = ++iterations_,
            .keys = keys,
            .list = list,
            .values = {iteration->pushed.data()},
            .lanes = {client_.worker(), client_.worker() + 1},
            .sink = [iteration](size_t offset, std::span<const float> values, bool) {
              std::copy(values.begin(), values.end(),
                        iteration->answer.begin() + static_cast<std::ptrdiff_t>(offset));
            }};
  }

  void start(const std::shared_ptr<Iteration>& iteration, const Request& request) {
    iteration->ticket = client_.start(request);
    await(iteration);
  }

  void await(const std::shared_ptr<Iteration>& iteration) {
    receiver_->expect(iteration);
    unanswered_.push_back(iteration);
  }

  KeyRange keys_of(int block) const {
    return {problem_.cuts[static_cast<size_t>(block)],
            problem_.cuts[static_cast<size_t>(block) + 1]};
  }

  void push_curvature(int block) {
    absorb(ahead() - 1, false);
    const SparseBlock samples = problem_.block(block);
    std::vector<float> row_sums(problem_.targets.size(), 0.0f);
    for (size_t i = 0; i < samples.rows.size(); ++i)
      row_sums[samples.rows[i]] += std::abs(samples.values[i]);
    auto iteration = std::make_shared<Iteration>(Iteration{.block = block});
    for (size_t feature = 0; feature < samples.features.size(); ++feature) {
      double sum = 0;
      for (uint64_t i = samples.starts[feature]; i < samples.starts[feature + 1]; ++i)
        sum += std::abs(samples.values[i]) * row_sums[samples.rows[i]];
      iteration->pushed.push_back(loss_.curvature() * static_cast<float>(sum));
    }
    Request request = request_for(iteration, keys_of(block), samples.features);
    request.kind = Kind::push;
    request.flags |= to_state;
    if (options_.filters.key_cache) request.flags |= remember;
    start(iteration, request);
  }

  void push_gradient(int block, int64_t pass) {
    absorb(ahead() - 1, false);
    const SparseBlock samples = problem_.block(block);
    auto iteration = std::make_shared<Iteration>(Iteration{.block = block, .pass = pass});
    for (size_t row = 0; row < slopes_.size(); ++row) {
      if (stale_[row] == 0) continue;
      slopes_[row] = loss_.slope(problem_.targets[row], margins_[row]);
      stale_[row] = 0;
    }
    iteration->pushed.resize(samples.features.size());
    for (size_t feature = 0; feature < samples.features.size(); ++feature) {
      double sum = 0;
      for (uint64_t i = samples.starts[feature]; i < samples.starts[feature + 1]; ++i)
        sum += samples.values[i] * slopes_[samples.rows[i]];
      iteration->pushed[feature] = static_cast<float>(sum);
    }
    Request request = request_for(iteration, keys_of(block), samples.features);
    const FilterOptions& filters = options_.filters;
    if (filters.key_cache) request.flags |= remember;
    if (filters.masks()) {
      request.flags |= masked;
      iteration->keep.assign(iteration->pushed.size(), 1);
      for (const auto& filter : filters_)
        if (pass % kHonestEvery != 0)
          filter->apply({iteration->pushed, weights_[static_cast<size_t>(block)], iteration->keep,
                         request.iteration});
      request.keep = iteration->keep;
    }
    if (!filters.compress.empty()) {
      request.flags |= coded;
      std::vector<float>& lost = lost_[static_cast<size_t>(block)];
      for (size_t i = 0; i < lost.size(); ++i)
        if (iteration->keep.empty() || iteration->keep[i] != 0) iteration->pushed[i] += lost[i];
      request.lost = lost;
    }
    const auto delay = static_cast<double>(ahead());
    request.learning_rate =
        static_cast<float>(options_.rate / (1 + options_.damping * (delay - 1)));
    start(iteration, request);
  }

  void push_sums(int64_t pass) {
    absorb(ahead() - 1, false);
    auto iteration = std::make_shared<Iteration>(Iteration{.pass = pass});
    double loss = 0;
    int64_t correct = 0;
    for (size_t row = 0; row < margins_.size(); ++row) {
      loss += loss_.value(problem_.targets[row], margins_[row]);
      correct += problem_.targets[row] * margins_[row] > 0 ? 1 : 0;
    }
    // Sums of many samples in two floats each: whole numbers and the rest.
    iteration->pushed.assign(kSums, 0.0f);
    iteration->pushed[0] = static_cast<float>(std::floor(loss / 4096));
    iteration->pushed[1] = static_cast<float>(loss - 4096 * std::floor(loss / 4096));
    iteration->pushed[2] = static_cast<float>(correct / 4096);
    iteration->pushed[3] = static_cast<float>(correct % 4096);
    iteration->pushed[4] = static_cast<float>(margins_.size() / 4096);
    iteration->pushed[5] = static_cast<float>(margins_.size() % 4096);
    iteration->pushed[6] = wish_ ? 1 : 0;
    const uint64_t keys = client_.map().keys();
    const Request request = request_for(iteration, {keys - kSums, keys}, std::nullopt);
    iteration->ticket = client_.start(request);
    // Answers come in order, so the report's end is also that of the sums.
    if (client_.worker() == 0) iteration->ticket = client_.start_report(iteration->report);
    await(iteration);
  }

  // Uses what has come, and waits until at most `most` iterations are unanswered. `all`: even the
  // sums of the last pass.
  void absorb(int64_t most, bool all) {
    while (!unanswered_.empty()) {
      const std::shared_ptr<Iteration> first = unanswered_.front();
      const bool must = all || static_cast<int64_t>(unanswered_.size()) > most;
      if (!receiver_->is_done(*first)) {
        if (!must) return;
        const Clock::time_point begin = Clock::now();
        receiver_->wait(*first);
        waited_ += seconds_between(begin, Clock::now());
      }
      use(*first);
      unanswered_.pop_front();
    }
  }

  void use(const Iteration& iteration) {
    if (iteration.block < 0) return take_sums(iteration);
    if (iteration.pass == 0) return;  // curvature
    const SparseBlock samples = problem_.block(iteration.block);
    std::vector<float>& weights = weights_[static_cast<size_t>(iteration.block)];
    // Without packing the answer is the weights themselves.
    const bool changes = options_.filters.masks() || !options_.filters.compress.empty();
    for (size_t feature = 0; feature < weights.size(); ++feature) {
      const float change =
          changes ? iteration.answer[feature] : iteration.answer[feature] - weights[feature];
      if (change == 0) continue;
      weights[feature] += change;
      for (uint64_t i = samples.starts[feature]; i < samples.starts[feature + 1]; ++i) {
        margins_[samples.rows[i]] += samples.values[i] * change;
        stale_[samples.rows[i]] = 1;
      }
    }
  }

  void take_sums(const Iteration& iteration) {
    const std::vector<float>& sums = iteration.answer;
    PassReport report = {.pass = iteration.pass,
                         .loss = 4096.0 * sums[0] + sums[1],
                         .objective = 4096.0 * sums[0] + sums[1] + iteration.report.penalty,
                         .correct = static_cast<int64_t>(4096.0 * sums[2] + sums[3]),
                         .samples = static_cast<int64_t>(4096.0 * sums[4] + sums[5]),
                         .nonzeros = iteration.report.nonzeros,
                         .seconds = seconds_between(begin_, Clock::now()),
                         .seconds_waited = waited_,
                         .sent_bytes = client_.traffic().sent_bytes,
                         .received_bytes = client_.traffic().received_bytes};
    reports_.push_back(report);
    if (sums[6] == 0 || last_pass_ < std::numeric_limits<int64_t>::max()) return;
    // The pass at whose end everybody has seen this wish, whatever the delay.
    const auto in_a_pass = static_cast<int64_t>(order_of(iteration.pass).size()) + 1;
    last_pass_ = iteration.pass + (ahead() + in_a_pass - 1) / in_a_pass;
  }

  Client& client_;
  const SparseProblem& problem_;
  const DelayedProximalOptions& options_;
  Loss loss_;
  int workers_;
  std::vector<float> margins_, slopes_;             // of each sample
  std::vector<uint8_t> stale_;                      // samples whose slope is to be computed anew
  std::vector<std::vector<float>> weights_, lost_;  // of the features of each block
  std::vector<std::unique_ptr<PushFilter>> filters_;
  int64_t iterations_ = 0;
  std::deque<std::shared_ptr<Iteration>> unanswered_;
  std::deque<PassReport> reports_;
  PassReport report_;
  bool wish_ = false;
  int64_t last_pass_ = std::numeric_limits<int64_t>::max();
  double waited_ = 0;
  Clock::time_point begin_ = Clock::now();
  std::unique_ptr<Receiver> receiver_;  // last: its thread uses the rest
};

}  // namespace

uint64_t problem_keys(const SparseProblem& problem) {
  return (problem.features() + kSums - 1) / kSums * kSums + kSums;
}

PassReport delayed_proximal(Client& client, comm::Group& workers, const SparseProblem& problem,
                            const DelayedProximalOptions& options, const AfterPass& after_pass,
                            std::vector<float>* weights) {
  Solver solver(client, workers, problem, options);
  PassReport last;
  try {
    last = solver.run(after_pass);
  } catch (const std::exception& error) {
    // The solver's receiver may wait for answers that nobody will send.
    workers.abort(fmt::format("worker {}: {}", client.worker(), error.what()));
    throw;
  }
  if (weights) *weights = solver.weights();
  return last;
}

}  // namespace artel::ps
