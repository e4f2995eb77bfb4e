#include "artel/ps/delayed_proximal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/ps/answer_queue.h"
#include "artel/ps/margin_loss.h"
#include "artel/ps/sample_shares.h"

namespace artel::ps {
namespace {

constexpr int kNoBlock = -1;
// Lossy filters pass everything once in this many passes.
constexpr int64_t kHonestEvery = 10;
constexpr int64_t kBalanceEvery = 16;  // passes
constexpr double kLeastGain = 0.03;    // share of a pass; smaller gains are noise
constexpr double kThousand = 4096;

// An iteration that was pushed but not answered yet.
struct Iteration : Question {
  Iteration(int block, int64_t pass) : block(block), pass(pass) {}
  int block;  // kNoBlock for the sums of a pass
  int64_t pass;
  std::vector<float> pushed;
  std::vector<uint8_t> keep;
  std::vector<float> answer;  // weights, changes of weights, or sums
  Report report;              // from the servers; worker 0 only
};

// Sums over workers at the end of a pass, followed by one slot per worker for its speed.
enum Sum : size_t {
  loss_thousands,
  loss_rest,
  right_thousands,
  right_rest,
  count_thousands,
  count_rest,
  wishes,
  moving,
  speeds
};

uint64_t round_up(uint64_t keys) { return (keys + 15) / 16 * 16; }  // whole cache lines
uint64_t sums_for(int workers) { return round_up(speeds + static_cast<uint64_t>(workers)); }

}  // namespace

class DelayedProximal::Solver {
 public:
  Solver(Client& client, comm::Group& workers, const SparseProblem& problem,
         const DelayedProximalOptions& options)
      : client_(client),
        problem_(problem),
        options_(options),
        loss_{options.loss == "logistic"},
        workers_(workers.size()),
        shares_(workers.size()) {
    require(options.loss == "logistic" || options.loss == "squared", ErrorKind::invalid_argument,
            "[ddpg] loss: got '{}', expected logistic or squared", options.loss);
    for (const int block : options.order)
      require(block >= 0 && block < problem.blocks(), ErrorKind::invalid_argument,
              "[ddpg] order: got block {}, expected 0 to {}", block, problem.blocks() - 1);
    client_.set_codec(options.filters.compress);
    if (client.worker() == 0) set_up();
    take_samples();
    workers.barrier({.label = "servers are ready"});
    make_filters();
    queue_ = std::make_unique<AnswerQueue>(client);
  }

  PassReport next(bool wish, const std::function<bool(int64_t pass)>& rests) {
    if (begun_ < 0) prepare();
    wish_ |= wish;
    // The sums of a pass may still be in flight when the next one starts.
    while (reports_.empty()) {
      if (begun_ < last_pass())
        pass(++begun_, rests);
      else
        absorb(0);
    }
    const double before = std::exchange(loss_before_, reports_.front().loss);
    report_ = reports_.front();
    reports_.pop_front();
    const double change = std::abs(before - report_.loss) / std::max(1e-30, report_.loss);
    if (options_.tolerance > 0 && report_.pass > 1 && change < options_.tolerance)
      wish_ = settled_ = true;
    return report_;
  }

  bool done() const { return report_.pass >= last_pass(); }
  bool settled() const { return settled_; }

  // The servers' weights of all features.
  std::vector<float> weights() {
    absorb(0);
    std::vector<float> all(problem_.features());
    client_.run({.kind = Kind::pull, .keys = {0, all.size()}, .sink = copy_to(all)});
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
    setup.segments.push_back({.name = "sums", .keys = sum_keys(), .kind = SegmentKind::sum});
    client_.set_up(setup);
    if (options_.weights.empty()) return;
    require(options_.weights.size() == features, ErrorKind::invalid_argument,
            "[ddpg] weights to resume from: got {}, expected {}", options_.weights.size(),
            features);
    client_.run({.kind = Kind::assign, .keys = {0, features}, .values = {options_.weights.data()}});
  }

  KeyRange sum_keys() const {
    const uint64_t keys = client_.map().keys();
    return {keys - sums_for(workers_), keys};
  }

  // Loads this worker's share of the samples.
  void take_samples() {
    const SampleShares::Range own = shares_.range(client_.worker(), problem_.size);
    const Clock::time_point begin = Clock::now();
    samples_ = {};
    samples_ = problem_.samples(own.first, own.last);
    margins_.assign(samples_.targets.size(), 0.0f);
    slopes_.assign(samples_.targets.size(), 0.0f);
    stale_.assign(samples_.targets.size(), 1);
    weights_.assign(static_cast<size_t>(problem_.blocks()), {});
    lost_ = weights_;
    seconds_moving_ = seconds_between(begin, Clock::now());
  }

  SparseBlock visit(int block) {
    const SparseBlock samples = samples_.block(block);
    weights_[static_cast<size_t>(block)].resize(samples.features.size(), 0.0f);
    lost_[static_cast<size_t>(block)].resize(samples.features.size(), 0.0f);
    return samples;
  }

  // Sends the curvature to the servers. The time this takes determines the first shares of samples.
  void prepare() {
    since_ = {.computed = seconds_computed()};
    for (int block = 0; block < problem_.blocks(); ++block) push_curvature(block);
    push_sums(options_.passes_done);
    absorb(0);
    reports_.clear();
    if (!options_.weights.empty() && moves_at_ == 0) fetch_weights(packing());
    since_ = {.computed = seconds_computed()};
    begun_ = options_.passes_done;
  }

  // All workers call this before the same pass. Once all requests are answered, the servers have
  // finished all earlier passes and cannot start another without this worker.
  void move_samples() {
    absorb(0);
    moves_at_ = 0;
    ++moves_;
    shares_ = next_shares_;
    take_samples();
    fetch_weights(packing());
    since_ = {.computed = seconds_computed()};
  }

  // Fetches weights for a worker that has none. `packing` selects the packing of the answers.
  void fetch_weights(uint32_t packing) {
    absorb(0);
    for (int block = 0; block < problem_.blocks(); ++block) {
      const SparseBlock samples = visit(block);
      std::vector<float> weights(samples.features.size());
      const Clock::time_point begin = Clock::now();
      client_.run({.kind = Kind::pull,
                   .flags = packing | afresh,
                   .keys = keys_of(block),
                   .list = samples.features,
                   .sink = copy_to(weights)});
      waited_ += seconds_between(begin, Clock::now());
      add(block, samples, weights);
    }
  }

  // The sums of the last pass use the servers' final weights, not those affected here by a codec or
  // a delay. No worker pushes another gradient after its last answer.
  void take_final_weights() {
    absorb(0);
    if (options_.filters.compress.empty()) return;
    std::ranges::fill(margins_, 0.0f);
    for (std::vector<float>& weights : weights_) std::ranges::fill(weights, 0.0f);
    fetch_weights(0);
  }

  int64_t last_pass() const { return std::min(options_.passes, last_pass_); }

  // Once all requests are answered, the servers wait for this worker, so their weights are those of
  // this pass.
  void pass(int64_t number, const std::function<bool(int64_t pass)>& rests) {
    if (number == moves_at_) move_samples();
    for (const int block : order_of(number)) push_gradient(block, number);
    push_sums(number);
    const bool rest = number >= last_pass() || (rests && rests(number));
    absorb(rest ? 0 : ahead() - 1);
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

  // Maximum number of unanswered iterations when another starts.
  int64_t ahead() const { return std::max<int64_t>(1, options_.delay.value_or(problem_.blocks())); }

  double rate() const {
    const auto unanswered = static_cast<double>(unanswered_.size());
    if (!options_.delay) return options_.rate / (1 + 2 * unanswered);
    const auto unseen = static_cast<double>(ahead() - 1);
    return options_.rate / (1 + options_.damping * unseen * unseen / problem_.blocks());
  }

  std::vector<int> order_of(int64_t pass) const {
    if (!options_.order.empty()) return options_.order;
    std::vector<int> order(static_cast<size_t>(problem_.blocks()));
    std::iota(order.begin(), order.end(), 0);
    Random random{options_.seed, hash_name("blocks"), static_cast<uint64_t>(pass)};
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
  }

  static Sink copy_to(std::vector<float>& target) {
    return [&target](size_t offset, std::span<const float> values, bool) {
      std::copy(values.begin(), values.end(), target.begin() + static_cast<std::ptrdiff_t>(offset));
    };
  }

  // Packing of values and key lists in both directions.
  uint32_t packing() const {
    const FilterOptions& filters = options_.filters;
    return (filters.key_cache ? remember : 0u) | (filters.masks() ? masked : 0u) |
           (filters.compress.empty() ? 0u : coded);
  }

  Request request_for(Iteration& iteration, KeyRange keys,
                      std::optional<std::span<const uint64_t>> list) {
    iteration.answer.assign(list ? list->size() : keys.size(), 0.0f);
    return {.flags = finishes,
            .iteration = ++iterations_,
            .keys = keys,
            .list = list,
            .values = {iteration.pushed.data()},
            .lanes = {client_.worker(), client_.worker() + 1},
            .sink = copy_to(iteration.answer)};  // lives until it is answered
  }

  void start(const std::shared_ptr<Iteration>& iteration, const Request& request) {
    iteration->ticket = client_.start(request);
    await(iteration);
  }

  void await(const std::shared_ptr<Iteration>& iteration) {
    queue_->expect(iteration);
    unanswered_.push_back(iteration);
  }

  KeyRange keys_of(int block) const {
    return {problem_.cuts[static_cast<size_t>(block)],
            problem_.cuts[static_cast<size_t>(block) + 1]};
  }

  void push_curvature(int block) {
    absorb(ahead() - 1);
    const SparseBlock samples = visit(block);
    std::vector<float> row_sums(samples_.targets.size(), 0.0f);
    for (size_t i = 0; i < samples.rows.size(); ++i)
      row_sums[samples.rows[i]] += std::abs(samples.values[i]);
    auto iteration = std::make_shared<Iteration>(block, 0);
    for (size_t feature = 0; feature < samples.features.size(); ++feature) {
      double sum = 0;
      for (uint64_t i = samples.starts[feature]; i < samples.starts[feature + 1]; ++i)
        sum += std::abs(samples.values[i]) * row_sums[samples.rows[i]];
      iteration->pushed.push_back(loss_.curvature() * static_cast<float>(sum));
    }
    Request request = request_for(*iteration, keys_of(block), samples.features);
    request.kind = Kind::push;
    request.flags |= to_state | (packing() & remember);
    start(iteration, request);
  }

  void push_gradient(int block, int64_t pass) {
    absorb(ahead() - 1);
    const SparseBlock samples = visit(block);
    auto iteration = std::make_shared<Iteration>(block, pass);
    for (size_t row = 0; row < slopes_.size(); ++row) {
      if (stale_[row] == 0) continue;
      slopes_[row] = loss_.slope(samples_.targets[row], margins_[row]);
      stale_[row] = 0;
    }
    iteration->pushed.resize(samples.features.size());
    for (size_t feature = 0; feature < samples.features.size(); ++feature) {
      double sum = 0;
      for (uint64_t i = samples.starts[feature]; i < samples.starts[feature + 1]; ++i)
        sum += samples.values[i] * slopes_[samples.rows[i]];
      iteration->pushed[feature] = static_cast<float>(sum);
    }
    Request request = request_for(*iteration, keys_of(block), samples.features);
    request.flags |= packing();
    const FilterOptions& filters = options_.filters;
    if (filters.masks()) {
      iteration->keep.assign(iteration->pushed.size(), 1);
      for (const auto& filter : filters_)
        if (pass % kHonestEvery != 0)
          filter->apply({iteration->pushed, weights_[static_cast<size_t>(block)], iteration->keep,
                         request.iteration});
      request.keep = iteration->keep;
    }
    if (!filters.compress.empty()) {
      std::vector<float>& lost = lost_[static_cast<size_t>(block)];
      for (size_t i = 0; i < lost.size(); ++i)
        if (iteration->keep.empty() || iteration->keep[i] != 0) iteration->pushed[i] += lost[i];
      request.lost = lost;
    }
    request.learning_rate = static_cast<float>(rate());
    start(iteration, request);
  }

  void push_sums(int64_t pass) {
    absorb(ahead() - 1);
    if (pass > options_.passes_done && pass >= last_pass()) take_final_weights();
    auto iteration = std::make_shared<Iteration>(kNoBlock, pass);
    double loss = 0;
    int64_t correct = 0;
    for (size_t row = 0; row < margins_.size(); ++row) {
      loss += loss_.value(samples_.targets[row], margins_[row]);
      correct += samples_.targets[row] * margins_[row] > 0 ? 1 : 0;
    }
    // Large sums are split into two floats: thousands and the remainder.
    iteration->pushed.assign(sum_keys().size(), 0.0f);
    const auto put = [&](Sum thousands, double value) {
      iteration->pushed[thousands] = static_cast<float>(std::floor(value / kThousand));
      iteration->pushed[thousands + 1] =
          static_cast<float>(value - kThousand * std::floor(value / kThousand));
    };
    put(loss_thousands, loss);
    put(right_thousands, static_cast<double>(correct));
    put(count_thousands, static_cast<double>(margins_.size()));
    iteration->pushed[wishes] = wish_ ? 1 : 0;
    iteration->pushed[moving] = static_cast<float>(seconds_moving_ / workers_);
    iteration->pushed[speeds + static_cast<size_t>(client_.worker())] = seconds_of_a_pass(pass);
    iteration->ticket = client_.start(request_for(*iteration, sum_keys(), std::nullopt));
    // Answers arrive in order, so the sums have arrived when the report has.
    if (client_.worker() == 0) iteration->ticket = client_.start_report(iteration->report);
    await(iteration);
  }

  double seconds_computed() const { return seconds_between(begin_, Clock::now()) - waited_; }

  // This worker's mean computing time since its share was last reconsidered.
  float seconds_of_a_pass(int64_t pass) {
    ++since_.passes;
    const double computed = seconds_computed();
    const double mean = (computed - since_.computed) / static_cast<double>(since_.passes);
    if (balances_after(pass)) since_ = {.computed = computed};
    return static_cast<float>(std::max(mean, 1e-9));
  }

  // Frequent at first, then rarer, because moving samples takes time.
  static bool balances_after(int64_t pass) {
    return pass % kBalanceEvery == 0 || (pass & (pass - 1)) == 0;
  }

  // Applies the answers that have arrived, and waits until at most `most` iterations are
  // unanswered.
  void absorb(int64_t most) {
    while (!unanswered_.empty()) {
      const std::shared_ptr<Iteration> first = unanswered_.front();
      if (!queue_->is_answered(*first)) {
        if (static_cast<int64_t>(unanswered_.size()) <= most) return;
        const Clock::time_point begin = Clock::now();
        queue_->wait(*first);
        waited_ += seconds_between(begin, Clock::now());
      }
      use(*first);
      unanswered_.pop_front();
    }
  }

  void use(Iteration& iteration) {
    if (iteration.block == kNoBlock) return take_sums(iteration);
    if (iteration.pass == 0) return;  // curvature
    const std::vector<float>& weights = weights_[static_cast<size_t>(iteration.block)];
    // Without packing, the answer holds the weights.
    if ((packing() & (masked | coded)) == 0)
      for (size_t i = 0; i < weights.size(); ++i) iteration.answer[i] -= weights[i];
    add(iteration.block, visit(iteration.block), iteration.answer);
  }

  // Changes the weights of a block and updates the margins.
  void add(int block, const SparseBlock& samples, const std::vector<float>& changes) {
    std::vector<float>& weights = weights_[static_cast<size_t>(block)];
    for (size_t feature = 0; feature < weights.size(); ++feature) {
      const float change = changes[feature];
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
    const auto get = [&](Sum thousands) {
      return kThousand * static_cast<double>(sums[thousands]) + sums[thousands + 1];
    };
    const Client::Traffic traffic = client_.traffic();
    reports_.push_back({.pass = iteration.pass,
                        .loss = get(loss_thousands),
                        .objective = get(loss_thousands) + iteration.report.penalty,
                        .correct = static_cast<int64_t>(get(right_thousands)),
                        .samples = static_cast<int64_t>(get(count_thousands)),
                        .nonzeros = iteration.report.nonzeros,
                        .seconds = seconds_between(begin_, Clock::now()),
                        .seconds_waited = waited_,
                        .sent_bytes = traffic.sent_bytes,
                        .received_bytes = traffic.received_bytes,
                        .moves = moves_});
    if (sums[wishes] != 0) last_pass_ = std::min(last_pass_, pass_that_knows(iteration.pass));
    if (moves_at_ == 0)
      balance(iteration.pass, {sums.begin() + speeds, sums.begin() + speeds + workers_},
              sums[moving]);
  }

  // The first pass at whose end all workers have the sums of `pass`, for any delay.
  int64_t pass_that_knows(int64_t pass) const {
    if (pass == options_.passes_done) return pass;  // see prepare()
    const auto in_a_pass = static_cast<int64_t>(order_of(pass).size()) + 1;
    return pass + (ahead() + in_a_pass - 1) / in_a_pass;
  }

  // All workers see the same sums and make the same decision. Samples move if that pays off within
  // as many passes as are already done.
  void balance(int64_t pass, const std::vector<float>& seconds, double seconds_moving) {
    const bool due = options_.balances && balances_after(pass);
    if (!due && !shares_.has_orphans(seconds)) return;
    const auto passes = static_cast<double>(std::max(pass, kBalanceEvery));
    const double slowest = *std::max_element(seconds.begin(), seconds.end());
    next_shares_ =
        shares_.balanced(seconds, std::max(kLeastGain, seconds_moving / (passes * slowest)));
    if (next_shares_ != shares_) moves_at_ = pass_that_knows(pass) + 1;
  }

  Client& client_;
  const SparseProblem& problem_;
  const DelayedProximalOptions& options_;
  MarginLoss loss_;
  int workers_;
  SampleShares shares_, next_shares_ = shares_;
  int64_t moves_ = 0;
  int64_t moves_at_ = 0;  // pass from which the next shares apply; 0 if undecided
  SparseSamples samples_;
  double seconds_moving_ = 0;                       // time spent moving samples
  std::vector<float> margins_, slopes_;             // by sample
  std::vector<uint8_t> stale_;                      // by sample: the slope must be recomputed
  std::vector<std::vector<float>> weights_, lost_;  // by block and feature
  std::vector<std::unique_ptr<PushFilter>> filters_;
  int64_t iterations_ = 0;
  std::deque<std::shared_ptr<Iteration>> unanswered_;
  std::deque<PassReport> reports_;
  PassReport report_ = {.pass = options_.passes_done};
  int64_t begun_ = -1;  // passes; -1 before `prepare`
  double loss_before_ = 0;
  bool wish_ = false, settled_ = false;
  int64_t last_pass_ = std::numeric_limits<int64_t>::max();
  double waited_ = 0;
  struct {
    double computed = 0;  // computing time of this run at that point
    int64_t passes = 0;
  } since_;  // when the share was last reconsidered
  Clock::time_point begin_ = Clock::now();
  std::unique_ptr<AnswerQueue> queue_;  // last, because its thread uses the other members
};

DelayedProximal::DelayedProximal(Client& client, comm::Group& workers, const SparseProblem& problem,
                                 const DelayedProximalOptions& options)
    : solver_(std::make_unique<Solver>(client, workers, problem, options)) {}
DelayedProximal::~DelayedProximal() = default;

PassReport DelayedProximal::next(bool wish, const std::function<bool(int64_t pass)>& rests) {
  return solver_->next(wish, rests);
}
bool DelayedProximal::done() const { return solver_->done(); }
bool DelayedProximal::settled() const { return solver_->settled(); }
std::vector<float> DelayedProximal::weights() { return solver_->weights(); }

uint64_t problem_keys(const SparseProblem& problem, int workers) {
  return round_up(problem.features()) + sums_for(workers);
}

}  // namespace artel::ps
