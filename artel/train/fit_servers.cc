// A fit whose updates are made by parameter servers.
#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/train/fit_loop.h"

namespace artel {

// The servers get the parameters of worker 0, who may have loaded them from a file.
void Trainer::FitLoop::begin_serving() {
  const TrainerOptions& options = s_.options;
  require(!averaging_ && options.local_steps == 1, ErrorKind::invalid_argument,
          "cluster.local_steps: got {} with parameter servers, expected 1", options.local_steps);
  const bool downpour = options.strategy == "downpour";
  remote_.emplace(*s_.cluster.world(), *stepper_, options_.batch_size,
                  RemoteOptions{.servers = s_.cluster.servers(),
                                .delay = downpour ? std::nullopt : options.delay,
                                .rule = optim::to_options(options.optimizer),
                                .compress = options.compress,
                                .push_every = downpour ? options.push_every : 1,
                                .fetch_every = downpour ? options.fetch_every : 1,
                                .seed = options.seed});
  const bool together =
      downpour ? s_.step < options.synchronous_epochs * per_epoch_ : options.delay == 0;
  remote_->begin(*s_.cluster.group(), together, s_.step);
  s_.alone = apart();
  if (s_.step > 0 && !options.compress.empty() && s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "step {}: with parameter servers, compression goes on without what was lost before: not "
        "with "
        "the bits of a run that was never stopped",
        s_.step);
}

// The same with parameter servers, which make the update.
void Trainer::FitLoop::step_with_servers(const data::Batch& batch) {
  const RemoteParameters::Step step = {.number = s_.step,
                                       .learning_rate = static_cast<float>(now_.learning_rate),
                                       .lanes = exchange_.layout().range(s_.cluster.rank()),
                                       .stop = s_.stop,
                                       .last = s_.step >= now_.steps};
  const Clock::time_point before = Clock::now();
  std::vector<std::byte*> own;
  {
    const Timeline::Scope scope(timeline_.get(), "compute", Timeline::kMain,
                                "forward and backward");
    stepper_->compute(work(), batch.x, batch.y,
                      [&](int bucket, const std::vector<std::byte*>& partials) {
                        if (remote_->together()) remote_->start(bucket, partials, step);
                        own = partials;
                      });
  }
  computing_ += seconds_between(before, Clock::now());
  const Timeline::Scope scope(timeline_.get(), "wait", Timeline::kMain, "servers");
  if (remote_->together()) {
    account(stepper_->read_statistics(remote_->finish(), s_.step), batch);
    if (s_.cluster.size() > 1 && s_.step % kBalanceEvery == 0) balance();
    const bool warmed_up =
        s_.options.strategy == "downpour" && s_.step == s_.options.synchronous_epochs * per_epoch_;
    if (warmed_up && result_.stopped_by.empty()) {
      remote_->begin(*s_.cluster.group(), false, s_.step);
      s_.alone = true;
    }
  } else {
    const auto share = static_cast<float>(this->share());
    const StepStatistics statistics =
        stepper_->read_statistics(remote_->step_apart(own, step, share), s_.step);
    account(statistics, batch);
    if (s_.step % kBalanceEvery == 0) balance_apart();
  }
  s_.position = loader_.state();
}

// When this worker has made its last step: worker 0 waits for the others and gets what they made.
void Trainer::FitLoop::finish_serving() {
  if (s_.cluster.rank() != 0) return;
  remote_->fetch(false, apart());
  result_.servers = remote_->report();
  if (apart() && validation_ && !result_.epochs.empty() && !ends_within_epoch()) {
    // The weights have changed since this worker's last epoch ended.
    const Evaluation test = trainer_.evaluate(validation_, options_.augment.for_testing());
    result_.epochs.back().test_loss = now_.test_loss = test.loss;
    result_.epochs.back().test_accuracy = now_.test_accuracy = test.accuracy;
  }
}

// The same for workers that run apart: a server decides for all.
void Trainer::FitLoop::balance_apart() {
  const int own = exchange_.layout().range(s_.cluster.rank()).size();
  const double seconds = computing_ / std::max(1, own);
  computing_ = 0;
  comm::LaneLayout better = remote_->shares(s_.step, seconds);
  if (better.lanes_of_rank != exchange_.layout().lanes_of_rank) set_layout(std::move(better));
}

}  // namespace artel
