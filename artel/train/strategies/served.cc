#include "artel/train/strategies/served.h"

#include <iterator>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/train/loop/kept_states.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {

namespace {

// Servers update a bucket as soon as they have it if they know in advance that all samples count
// equally. Built-in data sets with one label per sample ignore no samples.
bool may_be_weighted(const FitView& fit) {
  fit.stepper->buckets(fit.batch_size);
  const bool one_label = loss_name(fit.options.loss) == "cross_entropy" &&
                         fit.options.class_weights.empty() && fit.set.layout().target.rank() == 0;
  return fit.stepper->region().weighted() && !one_label;
}

// Empty without one.
std::string codec_of(const FitView& fit) {
  const std::string& compress = fit.options_of<PackingOptions>().compress;
  return compress == "none" ? "" : compress;
}

// How embedding tables travel. Throws for lazy updates where servers would need whole tables.
RemoteOptions::Rows table_rows(const FitView& fit, const RemoteOptions& remote) {
  using Rows = RemoteOptions::Rows;
  const optim::OptimizerConfig& optimizer = fit.options.optimizer;
  const bool coded = !remote.compress.empty();
  std::string_view hindrance;
  if (remote.delay != 0 || remote.push_every > 1 || remote.fetch_every > 1)
    hindrance = "workers that run apart";
  else if (coded)
    hindrance = "compression";
  else if (remote.replicas > 1)
    hindrance = "cluster.replicas = 2";
  else if (remote.weighted || optimizer.clip_norm > 0)
    hindrance = "clip_norm, ignored labels, or a masked loss";
  require(!optimizer.lazy_rows || hindrance.empty(), ErrorKind::unsupported,
          "[optimizer {}] lazy_rows: got true on parameter servers with {}, expected false; try "
          "without servers",
          optimizer.name(), hindrance);
  if (optimizer.lazy_rows) return Rows::lazy;
  return hindrance.empty() && optim::leaves_zeros_alone(optimizer) ? Rows::touched : Rows::whole;
}

}  // namespace

std::unique_ptr<RemoteParameters> remote_parameters(const FitView& fit, RemoteOptions remote) {
  remote.weighted = may_be_weighted(fit);
  remote.compress = codec_of(fit);
  if (fit.step > 0 && !remote.compress.empty() && fit.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: with parameter servers, a resumed run starts without the residuals of "
        "compression, "
        "so its bits differ from those of an uninterrupted run",
        fit.step);
  remote.servers = fit.cluster.servers();
  remote.rule = optim::to_options(fit.options.optimizer);
  remote.seed = fit.options.seed;
  remote.replicas = static_cast<int>(fit.options_of<ReplicaOptions>().replicas);
  require(remote.replicas <= remote.servers, ErrorKind::invalid_argument,
          "cluster.replicas: got {} with {}, expected at least as many servers", remote.replicas,
          counted(remote.servers, "server"));
  remote.rows = table_rows(fit, remote);
  return std::make_unique<RemoteParameters>(fit.cluster.membership(), *fit.stepper, fit.batch_size,
                                            remote);
}

Served::Served(const FitView& fit, StrategyTraits traits, std::unique_ptr<RemoteParameters> remote)
    : Strategy(fit, std::move(traits)), remote_(std::move(remote)) {}

RemoteParameters::Step Served::remote_step(const StepOptions& options) const {
  return {.number = options.number,
          .learning_rate = options.learning_rate,
          .lanes = fit_.lane_partition->own(),
          .stop = fit_.stop,
          .last = options.number >= fit_.last_step,
          .pushes = fit_.saves && fit_.saves_after(options.number)};
}

bool Served::finish() {
  if (fit_.cluster.rank() == 0) fetch();
  return false;
}

// Servers have the averages. If these already contain part of a step that will be repeated, uses
// those last fetched by this worker.
void Served::with_averages(const std::function<void()>& test) {
  if (has_state()) fetch();
  Strategy::with_averages(test);
}

Strategy::Traffic Served::traffic() const {
  return {.waited_seconds = remote_->traffic().waited_seconds};
}

ExchangePath Served::path() const {
  const bool lossy = !codec_of(fit_).empty();
  return {.algorithm = "parameter servers",
          .reduction = !traits_.collective ? "asynchronous"
                       : lossy             ? "lossy"
                                           : "exact"};
}

ServedTogether::ServedTogether(const FitView& fit, std::unique_ptr<RemoteParameters> remote,
                               std::optional<int64_t> until)
    // servers have the optimizer state
    : Served(fit, {.in_step = true}, std::move(remote)), until_(until) {
  remote_->begin(true, fit.step, fit.step + fit.extra_updates);
}

Strategy::Outcome ServedTogether::step(const data::Batch& batch, const StepOptions& options) {
  const RemoteParameters::Step step = remote_step(options);
  compute(batch, options, {0, fit_.lanes}, [&](int bucket, const std::vector<Memory>& partials) {
    remote_->start(bucket, partials, step);
  });
  StepStatistics statistics;
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "servers");
    statistics = fit_.stepper->read_statistics(remote_->finish(), options.number);
  }
  require(
      remote_->holds_back() || statistics.gradient_scale() == 1, ErrorKind::unsupported,
      "[step {}] some samples have a label that is ignored ({}), which parameter servers take for "
      "samples with several labels only; leave such samples out",
      options.number, data::kIgnoredTarget);
  return outcome_together(statistics, batch);
}

void ServedTogether::after_step(int64_t step) {
  if (fit_.cluster.size() > 1 && step % LanePartition::kBalanceEvery == 0)
    fit_.lane_partition->balance(step);
}

std::unique_ptr<Strategy> ServedTogether::successor() {
  if (until_ != fit_.step) return nullptr;
  return std::make_unique<ServedApart>(fit_, std::move(remote_));
}

ServedApart::ServedApart(const FitView& fit, std::unique_ptr<RemoteParameters> remote)
    : Served(fit, {.collective = false}, std::move(remote)) {
  remote_->begin(false, fit.step, fit.step + fit.extra_updates);
  divide_as_before();
}

void ServedApart::divide_as_before() {
  const auto kept = fit_.kept.find(state_name());
  if (kept == fit_.kept.end()) return;
  const std::optional<OwnSteps> steps = own_steps(kept->second);
  if (!steps || std::ssize(steps->finished) != fit_.cluster.size()) return;
  const auto own = steps->finished.find(fit_.cluster.membership().number_of(fit_.cluster.rank()));
  if (own == steps->finished.end() || own->second != fit_.step) return;  // not resumed from this
  earlier_shares_ = steps->shares;
  const auto next = earlier_shares_.upper_bound(fit_.step);
  if (next != earlier_shares_.begin()) divide(std::prev(next)->second);
}

void ServedApart::divide(const std::vector<int>& lanes_of_rank) {
  const int lanes = std::accumulate(lanes_of_rank.begin(), lanes_of_rank.end(), 0);
  if (lanes != fit_.lanes || std::ssize(lanes_of_rank) != fit_.cluster.size()) return;
  if (lanes_of_rank != fit_.lane_partition->layout().lanes_of_rank)
    fit_.lane_partition->set({lanes, lanes_of_rank});
}

Strategy::Outcome ServedApart::step(const data::Batch& batch, const StepOptions& options) {
  std::vector<Memory> sums;
  compute(batch, options, fit_.lane_partition->own(),
          [&](int, const std::vector<Memory>& partials) { sums = partials; });
  const double share = fit_.lane_partition->own_share(batch.total);
  StepStatistics statistics;
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "servers");
    statistics = fit_.stepper->read_statistics(
        remote_->step_apart(sums, remote_step(options), static_cast<float>(share)), options.number);
  }
  // The last epoch ends with the weights made by all workers.
  complete_ = options.number >= fit_.last_step && fit_.cluster.rank() == 0;
  if (complete_) remote_->fetch(true);
  Outcome outcome = outcome_of(statistics);
  // A worker treats its samples of a batch as the whole batch.
  const double whole = share > 0 ? 1 / share : 0;
  outcome.together = {.samples = share > 0 ? batch.total : 0,
                      .loss = whole * statistics.weighted_loss,
                      .weight = whole * statistics.weight,
                      .metrics = statistics.sums};
  for (double& sum : outcome.together->metrics) sum *= whole;
  return outcome;
}

// A server decides the division of lanes.
void ServedApart::after_step(int64_t step) {
  // All workers must change their shares at the same step.
  if (step % LanePartition::kBalanceEvery != 0) return;
  if (step > remote_->first_step_of_all())
    return divide(
        remote_->shares(step, fit_.lane_partition->take_seconds_of_a_lane()).lanes_of_rank);
  const auto earlier = earlier_shares_.find(step);
  if (earlier != earlier_shares_.end()) divide(earlier->second);
}

bool ServedApart::stops(const Outcome&, bool wish) const { return wish || remote_->stopping(); }

void ServedApart::fetch() {
  Served::fetch();
  fit_.extra_updates = remote_->updates() - fit_.step;
}

// The others may be ahead and stop later. Worker 0 waits for all that are behind.
bool ServedApart::finish() {
  remote_->push_rest();
  remote_->report_end();
  if (fit_.cluster.rank() != 0 || complete_) return false;
  remote_->fetch(true);
  fetch();
  return true;
}

StrategyState ServedApart::state() const {
  if (remote_->steps().empty()) return {};
  return {.values = {{std::string(kOwnSteps),
                      to_text(OwnSteps{fit_.step, remote_->steps(), remote_->decided_shares()})}}};
}

}  // namespace artel
