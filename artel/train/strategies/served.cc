#include "artel/train/strategies/served.h"

#include "artel/train/trainer_state.h"

namespace artel {

Served::Served(const Fit& fit, std::unique_ptr<RemoteParameters> remote)
    : Strategy(fit), remote_(std::move(remote)) {}

RemoteParameters::Step Served::remote_step(const StepOptions& options) const {
  return {.number = options.number,
          .learning_rate = options.learning_rate,
          .lanes = fit_.division.own(),
          .stop = fit_.state.stop,
          .last = options.number >= fit_.last_step};
}

bool Served::finish() {
  if (fit_.state.cluster.rank() != 0) return false;
  remote_->fetch(false, !collective());
  return !collective();
}

Strategy::Traffic Served::traffic() const {
  return {remote_->traffic().waited_seconds, remote_->traffic().sent_bytes};
}

ServedTogether::ServedTogether(const Fit& fit, std::unique_ptr<RemoteParameters> remote,
                               std::optional<int64_t> until)
    : Served(fit, std::move(remote)), until_(until) {
  remote_->begin(*fit.state.cluster.group(), true, fit.state.step);
}

Strategy::Outcome ServedTogether::step(const data::Batch& batch, const StepOptions& options) {
  TrainerState& s = fit_.state;
  const RemoteParameters::Step step = remote_step(options);
  compute(batch, options, {0, s.lanes}, [&](int bucket, const std::vector<std::byte*>& partials) {
    remote_->start(bucket, partials, step);
  });
  StepStatistics statistics;
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "servers");
    statistics = fit_.stepper.read_statistics(remote_->finish(), options.number);
  }
  if (s.cluster.size() > 1 && options.number % Division::kBalanceEvery == 0)
    fit_.division.balance(options.number);
  Outcome outcome = outcome_of(statistics, 1);
  outcome.together = {.loss = statistics.loss * static_cast<double>(batch.total),
                      .correct = static_cast<double>(statistics.correct),
                      .labels = static_cast<double>(statistics.labels),
                      .stop = statistics.stop};
  return outcome;
}

std::unique_ptr<Strategy> ServedTogether::successor() {
  if (until_ != fit_.state.step) return nullptr;
  return std::make_unique<ServedApart>(fit_, std::move(remote_));
}

ServedApart::ServedApart(const Fit& fit, std::unique_ptr<RemoteParameters> remote)
    : Served(fit, std::move(remote)) {
  remote_->begin(*fit.state.cluster.group(), false, fit.state.step);
}

Strategy::Outcome ServedApart::step(const data::Batch& batch, const StepOptions& options) {
  std::vector<std::byte*> sums;
  compute(batch, options, fit_.division.own(),
          [&](int, const std::vector<std::byte*>& partials) { sums = partials; });
  const double share = fit_.division.own_share(batch.total);
  StepStatistics statistics;
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "servers");
    statistics = fit_.stepper.read_statistics(
        remote_->step_apart(sums, remote_step(options), static_cast<float>(share)), options.number);
  }
  if (options.number % Division::kBalanceEvery == 0) {
    // A server decides for all.
    comm::LaneLayout better =
        remote_->shares(options.number, fit_.division.take_seconds_of_a_lane());
    if (better.lanes_of_rank != fit_.division.layout().lanes_of_rank)
      fit_.division.set(std::move(better));
  }
  Outcome outcome = outcome_of(statistics, share);
  // A worker takes what it has seen of a batch for the whole.
  const double whole = share > 0 ? 1 / share : 0;
  outcome.together = {.loss = whole * statistics.loss * static_cast<double>(batch.total),
                      .correct = whole * static_cast<double>(statistics.correct),
                      .labels = whole * static_cast<double>(statistics.labels)};
  return outcome;
}

bool ServedApart::stops(const Outcome&, bool wish) const { return wish || remote_->stopping(); }

}  // namespace artel
