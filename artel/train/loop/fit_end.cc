// The ends of epochs and of the fit: tests, reports, and checkpoints.
#include <algorithm>

#include "artel/cluster/worker_name.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/loop/epoch_sums.h"
#include "artel/train/loop/fit_loop.h"

namespace artel {

// The last step has been made. Collective where workers are.
void FitLoop::finish() {
  tracer_.finish(*workload_);
  saver_.finish();
  set_phase("comparison of the data after step", s_.step);
  introduction_.finish_comparing_files();
  const bool changed = strategy_->finish();
  if (changed)
    saver_.mark_unsaved();  // the checkpoint of this step lacks contributions of other workers
  ServedFacet* const served = strategy_->served();
  if (served && s_.cluster.rank() == 0) result_.servers = served->server_report();
  bool best = false;
  if (judges_open_epoch()) {
    measure_epoch();
    best = now_.tested && judge_->improves_best(now_);
    report();
  } else if (changed && validation_ && !result_.epochs.empty()) {
    test();
    result_.epochs.back().test_loss = now_.test_loss;
    result_.epochs.back().test_accuracy = now_.test_accuracy;
    result_.epochs.back().test_metrics = now_.test_metrics;
    result_.epochs.back().test_mistakes = now_.test_mistakes;
  }
  save(best);
  saver_.finish();
  saver_.finish_copying();
  parts_.mirrors().wait();
  if (averages() && options_.gather_network)
    strategy_->with_averages([this] { result_.averaged = tensors_of(s_.parameters.sources()); });
  result_.last = now_;
  if (const StrategyState kept = strategy_->state(); kept.values.contains("links"))
    result_.links = kept.values.at("links");
  result_.best = s_.best;
  if (options_.timeline) result_.timeline = tracer_.timeline().stop(s_.cluster.group());
  // If worker 0 fails here, elastic workers regroup, and another one saves.
  if (!s_.cluster.elastic()) gather_traffic();
  saver_.check();
  if (s_.cluster.elastic()) gather_traffic();
  if (served) served->leave();
}

// A fit stopped by request ends at once; the actions at the end of an epoch follow when it is
// resumed. Stop reasons differ between workers, so they must not decide about collective calls.
bool FitLoop::leaves_epoch_open() const {
  if (s_.cluster.size() == 1 || !strategy_->traits().collective)
    return result_.stopped_by == "request";
  return asked_to_stop_;
}

// True if a checkpoint follows the step even if the fit continues.
bool FitLoop::is_saved(int64_t step) const {
  return step % per_epoch_ == 0 || (options_.save_every > 0 && step % options_.save_every == 0);
}

// A run that ends by steps or time is tested once at its end, even within an epoch. A run stopped
// by request ends without a test. Collective if the strategy is, because only some workers may know
// why the run stops.
bool FitLoop::judges_open_epoch() {
  if (s_.epoch.samples == 0 || now_.samples == 0) return false;
  if (options_.steps > 0 && result_.stopped_by == "steps") return true;
  const bool own = result_.stopped_by == "time";
  comm::Group* const group = s_.cluster.group();
  if (!group || s_.alone || !strategy_->traits().collective) return own;
  return holds_on_any(*group, own, "ends within an epoch");
}

// True if weights are averaged, so that tests use the averages.
bool FitLoop::averages() const {
  return s_.options.optimizer.average > 0 && workload_->stepper() != nullptr;
}

void FitLoop::test() {
  constexpr int64_t kTestBatch = 256;
  set_phase("test after step", s_.step);
  if (Stepper* const stepper = workload_->stepper())
    stepper->release_memory();  // the test needs memory
  if (DividedFacet* const divided = strategy_->divided()) divided->gather_weights();
  Evaluation test;
  const auto evaluate = [&] {
    test = trainer_.evaluate(validation_, options_.augment.for_testing(), kTestBatch,
                             options_.while_testing, options_.mistakes);
  };
  now_.averaged = averages();
  if (now_.averaged) {
    saver_.finish();
    strategy_->with_averages(evaluate);
  } else {
    evaluate();
  }
  now_.tested = true;
  now_.test_loss = test.loss;
  now_.test_accuracy = test.accuracy;
  now_.test_metrics = test.metrics;
  now_.test_mistakes = std::move(test.mistakes);
}

// Sets the means of the epoch so far and tests the network. Returns the loss to watch.
double FitLoop::measure_epoch() {
  require(
      s_.epoch.weight > 0 || s_.epoch.samples == 0, ErrorKind::numeric,
      "[epoch {}] none of {} samples has a usable label: all are ignored ({}) or belong to classes "
      "with weight 0; check the labels and train.class_weights",
      now_.epoch, s_.epoch.samples, data::kIgnoredTarget);
  now_.loss = s_.epoch.loss / s_.epoch.weight;
  s_.epoch.metrics.resize(metrics_.sums());  // empty if nothing has been counted
  set_metrics(s_.epoch.metrics);
  now_.gradient_norm.reset();
  now_.noise.reset();
  now_.noise_scale = noise_scale_of(s_.epoch.noise);
  now_.tested = false;
  if (!validation_ || !strategy_->traits().has_weights ||
      (!strategy_->traits().collective && s_.cluster.rank() > 0))
    return now_.loss;
  test();
  return now_.test_loss;
}

// Returns false if a callback wants to stop.
bool FitLoop::report() {
  now_.seconds = seconds_between(begin_, Clock::now());
  // Divided weights are gathered for tests and if FitOptions::gather_network is set.
  now_.has_weights = strategy_->traits().has_weights &&
                     (!divides_ || validation_ != nullptr || options_.gather_network);
  // Report once, even if the group broke before all had finished.
  if (!result_.epochs.empty() && result_.epochs.back().step >= now_.step) return true;
  result_.epochs.push_back(now_);
  bool go_on = true;
  for (const Callback& callback : options_.after_epoch) go_on = callback(now_) && go_on;
  return go_on;
}

// Ends the fit, or requests the end where workers have to stop together.
void FitLoop::want_to_stop(const std::string& reason) {
  if (!strategy_->traits().stops_together) {
    result_.stopped_by = reason;
    return;
  }
  s_.stop = true;
  if (reason_.empty()) reason_ = reason;
}

void FitLoop::end_epoch() {
  const Clock::time_point begin = Clock::now();
  const double watched = measure_epoch();
  s_.epoch = {};
  const bool has_weights = strategy_->traits().has_weights;
  EpochJudge::Verdict verdict;
  if (has_weights) verdict = judge_->judge(now_, watched);
  for (const std::string& reason : verdict.reasons) want_to_stop(reason);
  if (!report()) {
    s_.stop = true;
    if (s_.cluster.size() == 1 || !strategy_->traits().collective) want_to_stop("callback");
  }
  join_if_changed();
  if (has_weights) save(verdict.best);
  ++now_.ended_epochs;
  now_.seconds_between_epochs += seconds_between(begin, Clock::now());
}

// All workers call it between two steps.
void FitLoop::save(bool best) {
  saver_.finish();
  saver_.finish_copying();
  introduction_.compare_files();
  strategy_->settle(s_.step, {.regular = is_saved(s_.step), .ends = !result_.stopped_by.empty()});
  gathered_ = options_.gather_network && !result_.stopped_by.empty();
  if (saver_.writes(*strategy_, best)) set_phase("checkpoint", s_.step);
  saver_.begin(*strategy_, best);
}

// Shares the origin of a stop request, and how long workers have waited, with all workers.
void FitLoop::compare_endings() {
  result_.checkpoints = saver_.folder();
  comm::Group* const group = s_.cluster.group();
  if (!group || s_.alone || !strategy_->traits().collective) return;
  struct Ending {
    int32_t stops, signal;
    double waited;
  };
  const Ending own = {s_.stop && asked_to_stop_ ? 1 : 0, s_.stop_signal, now_.seconds_exchanging};
  std::vector<Ending> all(static_cast<size_t>(group->size()));
  group->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                    {.label = "ends"});
  std::vector<int> ranks;
  for (int rank = 0; rank < group->size(); ++rank) {
    if (all[rank].stops != 0) ranks.push_back(rank);
    if (asked_to_stop_) result_.stop_signal = std::max(result_.stop_signal, all[rank].signal);
  }
  if (!ranks.empty() && ranks.size() < all.size())
    result_.stopped_at = worker_names_of(*group, ranks);
  // In a mesh, workers also wait for other stages.
  if (to_string(strategy_->traits().coordinates).empty())
    result_.seconds_for_wire = std::ranges::min(all, {}, &Ending::waited).waited;
}

// Collective, and the last collective action of a fit: no worker leaves before the last checkpoint
// is written, because its writer may die. A worker that trains alone may wait until the others end.
void FitLoop::gather_traffic() {
  constexpr double kYear = 365 * 86400.0;
  compare_endings();
  comm::Group* const group = s_.cluster.group();
  if (!group || !(s_.cluster.elastic() || strategy_->traits().collective)) return;
  traffic_->read();
  traffic_->report(*strategy_, now_);
  result_.last.sent_bytes = now_.sent_bytes;
  result_.last.received_bytes = now_.received_bytes;
  result_.traffic =
      traffic_->gather(*group, s_.alone ? "end of the others" : "end", s_.alone ? kYear : 0);
}

}  // namespace artel
