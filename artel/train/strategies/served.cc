#include "artel/train/strategies/served.h"

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/train/kept_states.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {

namespace {

// Servers that know in advance that all samples count equally update as soon as they have a bucket.
// Of samples with one label each, no data set that comes with Artel has any that is ignored.
bool may_be_weighted(const Fit& fit) {
  fit.stepper->buckets(fit.batch_size);
  const bool one_label = loss_name(fit.options.loss) == "cross_entropy" &&
                         fit.options.class_weights.empty() && fit.set.layout().target.rank() == 0;
  return fit.stepper->region().weighted() && !one_label;
}

}  // namespace

std::unique_ptr<RemoteParameters> remote_parameters(const Fit& fit, RemoteOptions remote) {
  remote.weighted = may_be_weighted(fit);
  remote.compress = fit.options_of<PackingOptions>().compress;
  const bool lossy = !remote.compress.empty() && remote.compress != "none";
  if (fit.step > 0 && lossy && fit.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: with parameter servers, compression continues without what it held back before, "
        "and not with the bits of a run that was never stopped",
        fit.step);
  remote.servers = fit.cluster.servers();
  remote.rule = optim::to_options(fit.options.optimizer);
  remote.seed = fit.options.seed;
  remote.replicas = static_cast<int>(fit.options_of<ReplicaOptions>().replicas);
  require(remote.replicas <= remote.servers, ErrorKind::invalid_argument,
          "cluster.replicas: got {} with {}, expected at least as many servers", remote.replicas,
          counted(remote.servers, "server"));
  return std::make_unique<RemoteParameters>(fit.cluster.membership(), *fit.stepper, fit.batch_size,
                                            remote);
}

Served::Served(const Fit& fit, std::unique_ptr<RemoteParameters> remote)
    : Strategy(fit), remote_(std::move(remote)) {}

RemoteParameters::Step Served::remote_step(const StepOptions& options) const {
  return {.number = options.number,
          .learning_rate = options.learning_rate,
          .lanes = fit_.division->own(),
          .stop = fit_.stop,
          .last = options.number >= fit_.last_step,
          .pushes = fit_.saves && fit_.saves_after(options.number)};
}

bool Served::finish() {
  if (fit_.cluster.rank() == 0) remote_->fetch();
  return false;
}

// Servers have the averages. If part of a step that is to be repeated is in them already, those
// that this worker last got have to do.
void Served::with_averages(const std::function<void()>& test) {
  if (has_state()) fetch();
  Strategy::with_averages(test);
}

Strategy::Traffic Served::traffic() const {
  return {.waited_seconds = remote_->traffic().waited_seconds};
}

ExchangePath Served::path() const {
  const std::string& compress = fit_.options_of<PackingOptions>().compress;
  const bool lossy = !compress.empty() && compress != "none";
  return {.algorithm = "parameter servers",
          .reduction = !collective() ? "asynchronous"
                       : lossy       ? "lossy"
                                     : "exact"};
}

ServedTogether::ServedTogether(const Fit& fit, std::unique_ptr<RemoteParameters> remote,
                               std::optional<int64_t> until)
    : Served(fit, std::move(remote)), until_(until) {
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
  if (fit_.cluster.size() > 1 && step % Division::kBalanceEvery == 0) fit_.division->balance(step);
}

std::unique_ptr<Strategy> ServedTogether::successor() {
  if (until_ != fit_.step) return nullptr;
  return std::make_unique<ServedApart>(fit_, std::move(remote_));
}

ServedApart::ServedApart(const Fit& fit, std::unique_ptr<RemoteParameters> remote)
    : Served(fit, std::move(remote)) {
  remote_->begin(false, fit.step, fit.step + fit.extra_updates);
}

Strategy::Outcome ServedApart::step(const data::Batch& batch, const StepOptions& options) {
  std::vector<Memory> sums;
  compute(batch, options, fit_.division->own(),
          [&](int, const std::vector<Memory>& partials) { sums = partials; });
  const double share = fit_.division->own_share(batch.total);
  StepStatistics statistics;
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "servers");
    statistics = fit_.stepper->read_statistics(
        remote_->step_apart(sums, remote_step(options), static_cast<float>(share)), options.number);
  }
  // The end of the last epoch is about the weights that all workers have made.
  complete_ = options.number >= fit_.last_step && fit_.cluster.rank() == 0;
  if (complete_) remote_->fetch(true);
  Outcome outcome = outcome_of(statistics);
  // A worker treats what it has seen of a batch as the whole.
  const double whole = share > 0 ? 1 / share : 0;
  outcome.together = {.samples = share > 0 ? batch.total : 0,
                      .loss = whole * statistics.weighted_loss,
                      .weight = whole * statistics.weight,
                      .metrics = statistics.sums};
  for (double& sum : outcome.together->metrics) sum *= whole;
  return outcome;
}

// A server decides which worker has which lanes.
void ServedApart::after_step(int64_t step) {
  // All workers must change their shares at the same step.
  if (step % Division::kBalanceEvery != 0 || step <= remote_->first_step_of_all()) return;
  comm::LaneLayout better = remote_->shares(step, fit_.division->take_seconds_of_a_lane());
  if (better.lanes_of_rank != fit_.division->layout().lanes_of_rank)
    fit_.division->set(std::move(better));
}

bool ServedApart::stops(const Outcome&, bool wish) const { return wish || remote_->stopping(); }

void ServedApart::fetch() {
  Served::fetch();
  fit_.extra_updates = remote_->updates() - fit_.step;
}

// The others may be ahead, and stop later: worker 0 waits for all that are behind.
bool ServedApart::finish() {
  remote_->push_rest();
  remote_->rest();
  if (fit_.cluster.rank() != 0 || complete_) return false;
  remote_->fetch(true);
  fetch();
  return true;
}

StrategyState ServedApart::state() const {
  if (remote_->steps().empty()) return {};
  return {.values = {{std::string(kOwnSteps), to_text(OwnSteps{fit_.step, remote_->steps()})}}};
}

}  // namespace artel
